#include <mayfly.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    const char *code = "print('hello from', __import__('os').getuid())\nprint(1 / 0)\n";
    struct mayfly_input input = {.code = code, .code_len = strlen(code)};
    struct mayfly_error error = {.message = "usage: example ROOTFS [TIMEOUT]"};
    mayfly_policy *policy = mayfly_policy_new();
    mayfly_box *box = NULL;
    mayfly_result *result = NULL;

    if (argc < 2 || !policy || mayfly_policy_set(policy, "rootfs", argv[1], &error) < 0 ||
        mayfly_policy_set(policy, "timeout", argc > 2 ? argv[2] : "5s", &error) < 0 ||
        mayfly_policy_python(policy, NULL, &error) < 0 ||
        mayfly_open(policy, &box, &error) < 0 || /* built and parked: no CPU, no clock yet */
        mayfly_start(box, &input, &error) < 0 || /* the code goes in; it runs */
        mayfly_wait(box, &result, &error) < 0) { /* to its end; nothing of the box is left */
        fprintf(stderr, "%s\n", error.message);
        return 125;
    }
    printf("%s %d\n%s%s", mayfly_outcome_name(result->outcome), result->exit_code, result->out.data,
           result->err.data);
    mayfly_result_free(result);
    mayfly_close(box);
    mayfly_policy_free(policy);
    return 0;
}
