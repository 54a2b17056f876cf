/*
 * test_debian.c: the Debian packages are the same bytes whoever makes them, and well formed.
 */
#include "package/package.h"

#include "base/banned.h"

#define SCRIPT "tests/package/debian.sh"

PACKAGE_TEST(the_packages_are_the_same_whoever_builds_them_and_when)
PACKAGE_TEST(the_packages_hold_what_install_puts_and_say_what_they_need)
PACKAGE_TEST(lintian_has_nothing_to_say)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_packages_are_the_same_whoever_builds_them_and_when),
        cmocka_unit_test(the_packages_hold_what_install_puts_and_say_what_they_need),
        cmocka_unit_test(lintian_has_nothing_to_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
