/*
 * test_files_calls.c: any system call of a run with files in and out may fail. Then the run is refused in one line, or it
 * is right; or it was made, and what could not be brought back is said in one.
 */
#include "fault/failing.h"

#include "base/defs.h"

#include "base/banned.h"

static const char *const with_files[] = {
    "run", "--file", "a=/etc/hostname", "--out", "/tmp/mayfly-fault-out", "true", NULL};

static void a_run_with_files_fails_in_words(void **state) {
    const int errors[] = {EIO, ENOMEM};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(errors); i++)
        for (int role = 0; role < IN_PAYLOAD; role++)
            free(sweep_failures((struct failing){.role = (enum inject_role)role,
                                                 .error = errors[i],
                                                 .repeat = 1,
                                                 .argv = with_files},
                                inject_step(11), 10));
    (void)rmdir("/tmp/mayfly-fault-out");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_with_files_fails_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
