/*
 * test_completion.c: what each shell offers at the Tab key, by that shell. That no flag is missing is
 * for test_manual.c.
 */
#include "package/package.h"

#include "base/banned.h"

#define SCRIPT "tests/package/completion.sh"

PACKAGE_TEST(bash_completes_commands_flags_values_and_paths)
PACKAGE_TEST(bash_completes_at_the_tab_key)
PACKAGE_TEST(zsh_completes_at_the_tab_key)
PACKAGE_TEST(fish_completes_commands_flags_values_and_paths)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bash_completes_commands_flags_values_and_paths),
        cmocka_unit_test(bash_completes_at_the_tab_key),
        cmocka_unit_test(zsh_completes_at_the_tab_key),
        cmocka_unit_test(fish_completes_commands_flags_values_and_paths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
