/*
 * test_matrix.c: `mayfly lab` as its user sees it: what is chosen is tried, what was found is written, shown and read
 * again, and however it ends nothing of it is left.
 */
#include "package/package.h"

#include "base/banned.h"

#define SCRIPT "tests/lab/lab.sh"

PACKAGE_TEST(some_probes_and_the_matrix_that_is_written)
PACKAGE_TEST(each_field_is_what_the_page_says)
PACKAGE_TEST(what_is_not_there_is_said_with_what_is)
PACKAGE_TEST(what_was_saved_shows_as_what_was_found)
PACKAGE_TEST(what_was_not_saved_by_it_is_refused)
PACKAGE_TEST(a_file_is_written_whole_or_not_at_all)
PACKAGE_TEST(without_some_controls_what_doctor_says_gets_through)
PACKAGE_TEST(on_the_host_it_says_what_that_means)
PACKAGE_TEST(as_a_user_it_works_but_for_what_only_root_can_switch_off)
PACKAGE_TEST(an_interrupt_ends_it_and_leaves_nothing)
PACKAGE_TEST(killed_it_leaves_nothing)
PACKAGE_TEST(killed_on_the_host_the_next_one_collects)
PACKAGE_TEST(in_a_kernel_of_its_own)
PACKAGE_TEST(each_difference_between_the_kernels_has_its_reason)
PACKAGE_TEST(the_whole_matrix_is_as_it_is_written)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(some_probes_and_the_matrix_that_is_written),
        cmocka_unit_test(each_field_is_what_the_page_says),
        cmocka_unit_test(what_is_not_there_is_said_with_what_is),
        cmocka_unit_test(what_was_saved_shows_as_what_was_found),
        cmocka_unit_test(what_was_not_saved_by_it_is_refused),
        cmocka_unit_test(a_file_is_written_whole_or_not_at_all),
        cmocka_unit_test(without_some_controls_what_doctor_says_gets_through),
        cmocka_unit_test(on_the_host_it_says_what_that_means),
        cmocka_unit_test(as_a_user_it_works_but_for_what_only_root_can_switch_off),
        cmocka_unit_test(an_interrupt_ends_it_and_leaves_nothing),
        cmocka_unit_test(killed_it_leaves_nothing),
        cmocka_unit_test(killed_on_the_host_the_next_one_collects),
        cmocka_unit_test(in_a_kernel_of_its_own),
        cmocka_unit_test(each_difference_between_the_kernels_has_its_reason),
        cmocka_unit_test(the_whole_matrix_is_as_it_is_written),
    };

    return cmocka_run_group_tests_name("lab", tests, NULL, NULL);
}
