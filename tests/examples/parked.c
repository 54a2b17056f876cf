/*
 * parked.c: boxes in stock. A box is built and parked before anybody knows what will run in it, so that what is left to be
 * waited for, when the code comes, is the code. Several run beside each other, a thread each.
 *
 *   make && gcc -Iinclude -o parked tests/examples/parked.c build/public/libmayfly.a -ljansson -lseccomp -lm
 *   ./parked build/rootfs
 */
#include <mayfly.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const char *const programs[] = {
    "print(sum(range(11)))",
    "print(1 / 0)",
    "import os\nprint(os.listdir('/nowhere'))",
    "import time\nprint('begun')\ntime.sleep(60)",
};
enum { N = sizeof(programs) / sizeof(programs[0]) };

struct slot {
    mayfly_box *box;
    const char *code;
    mayfly_result *result;
    struct mayfly_error error;
};

/* Any thread may go on with a box that another has opened. */
static void *run(void *data) {
    struct slot *s = data;
    struct mayfly_input input = {.code = s->code, .code_len = strlen(s->code)};

    if (mayfly_start(s->box, &input, &s->error) == 0)
        (void)mayfly_wait(s->box, &s->result, &s->error);
    return NULL;
}

/* The last line of a text, without its end. */
static void print_last_line(const struct mayfly_stream *s) {
    size_t end = s->len && s->data[s->len - 1] == '\n' ? s->len - 1 : s->len, begin = end;

    while (begin > 0 && s->data[begin - 1] != '\n')
        begin--;
    printf(" %.*s", (int)(end - begin), s->data + begin);
}

static void report(size_t i, const struct slot *s) {
    if (!s->result) {
        printf("%zu: %s\n", i, s->error.message);
        return;
    }
    printf("%zu: %s, exit code %d:", i, mayfly_outcome_name(s->result->outcome),
           s->result->exit_code);
    print_last_line(s->result->err.len ? &s->result->err : &s->result->out);
    printf("\n");
}

int main(int argc, char **argv) {
    struct mayfly_error error = {.message = "usage: parked ROOTFS [FIELD VALUE]..."};
    mayfly_policy *policy = mayfly_policy_new();
    struct slot slots[N] = {0};
    pthread_t threads[N];
    int failed = 0;

    if (argc < 2 || argc % 2 || !policy ||
        mayfly_policy_set(policy, "rootfs", argv[1], &error) < 0 ||
        mayfly_policy_set(policy, "timeout", "1s", &error) < 0 ||
        mayfly_policy_python(policy, NULL, &error) < 0)
        failed = 1;
    for (int i = 2; i < argc && !failed; i += 2)
        failed = mayfly_policy_set(policy, argv[i], argv[i + 1], &error) < 0;
    for (size_t i = 0; i < N && !failed; i++)
        failed = mayfly_open(policy, &slots[i].box, &error) < 0; /* it costs no CPU from now on */
    for (size_t i = 0; i < N && !failed; i++) {
        slots[i].code = programs[i]; /* now it is known */
        if (pthread_create(&threads[i], NULL, run, &slots[i]) != 0)
            return 125; /* and all boxes end with this process */
    }
    for (size_t i = 0; i < N && !failed; i++) {
        (void)pthread_join(threads[i], NULL);
        report(i + 1, &slots[i]);
    }
    for (size_t i = 0; i < N; i++) {
        mayfly_result_free(slots[i].result);
        mayfly_close(slots[i].box);
    }
    mayfly_policy_free(policy);
    if (failed)
        fprintf(stderr, "%s\n", error.message);
    return failed ? 125 : 0;
}
