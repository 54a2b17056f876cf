/*
 * test_bare.c: on a bare Debian the packages install, work, and leave nothing when they are purged.
 * It has a program of its own for its time: unpacking a Debian is most of it.
 */
#include "package/package.h"

#include "base/banned.h"

#define SCRIPT "tests/package/bare.sh"

PACKAGE_TEST(installed_in_a_bare_debian_it_works_and_purged_it_leaves_nothing)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(installed_in_a_bare_debian_it_works_and_purged_it_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
