/*
 * test_browser.c: the lab's page in a headless browser, as `mayfly lab --from` makes it; browser.sh has the checks.
 */
#include "package/package.h"

#include "lab/scratch.h"

#include "base/banned.h"

#define SCRIPT "tests/lab/browser.sh"

PACKAGE_TEST(axe_finds_nothing)
PACKAGE_TEST(no_text_of_a_probe_is_markup_and_nothing_leaves)
PACKAGE_TEST(a_cell_opens_by_click_and_by_key)
PACKAGE_TEST(filters_filter_and_sorts_sort)
PACKAGE_TEST(in_print_all_is_there)
PACKAGE_TEST(a_phone_does_not_scroll_sideways)
PACKAGE_TEST(without_scripts_it_can_be_read)

static char results[] = "/tmp/mayfly-browser-XXXXXX";

static int begin(void **state) {
    (void)state;
    return mkdtemp(results) ? setenv("RESULTS", results, 1) : -1;
}

static int end(void **state) {
    (void)state;
    scratch_remove(results);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(axe_finds_nothing),
        cmocka_unit_test(no_text_of_a_probe_is_markup_and_nothing_leaves),
        cmocka_unit_test(a_cell_opens_by_click_and_by_key),
        cmocka_unit_test(filters_filter_and_sorts_sort),
        cmocka_unit_test(in_print_all_is_there),
        cmocka_unit_test(a_phone_does_not_scroll_sideways),
        cmocka_unit_test(without_scripts_it_can_be_read),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
