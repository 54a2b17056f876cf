/*
 * test_examples.c: what is in tests/examples does what it says.
 */
#include "package/package.h"

#include "base/banned.h"

#define SCRIPT "tests/agent/examples.sh"

PACKAGE_TEST(the_example_in_shell_judges_programs)
PACKAGE_TEST(the_example_in_c_parks_boxes)
PACKAGE_TEST(the_example_in_javascript_has_a_model_mend_its_code)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_in_shell_judges_programs),
        cmocka_unit_test(the_example_in_c_parks_boxes),
        cmocka_unit_test(the_example_in_javascript_has_a_model_mend_its_code),
    };

    if (!live_has_cgroups())
        (void)setenv("BEST_EFFORT", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
