/*
 * test_install.c: what `make install` puts is whole, goes again, and serves: the library from C,
 * C++ and Python, shared and static, by pkg-config; the program with nothing around it.
 */
#include "package/package.h"

#include "base/banned.h"

#define SCRIPT "tests/package/install.sh"

PACKAGE_TEST(uninstall_removes_all_that_install_put)
PACKAGE_TEST(each_place_can_be_chosen_and_a_helper_goes_along)
PACKAGE_TEST(exactly_the_headers_names_are_exported)
PACKAGE_TEST(the_example_builds_by_pkg_config_shared)
PACKAGE_TEST(the_example_builds_by_pkg_config_static)
PACKAGE_TEST(a_callers_own_names_do_not_meet_the_static_librarys)
PACKAGE_TEST(a_cpp_program_uses_the_header_and_the_library)
PACKAGE_TEST(python_calls_the_library_by_ctypes)
PACKAGE_TEST(nothing_tells_where_it_was_built)
PACKAGE_TEST(the_static_program_runs_where_nothing_else_is)
PACKAGE_TEST(the_archive_of_make_dist_is_whole_and_always_the_same)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uninstall_removes_all_that_install_put),
        cmocka_unit_test(each_place_can_be_chosen_and_a_helper_goes_along),
        cmocka_unit_test(exactly_the_headers_names_are_exported),
        cmocka_unit_test(the_example_builds_by_pkg_config_shared),
        cmocka_unit_test(the_example_builds_by_pkg_config_static),
        cmocka_unit_test(a_callers_own_names_do_not_meet_the_static_librarys),
        cmocka_unit_test(a_cpp_program_uses_the_header_and_the_library),
        cmocka_unit_test(python_calls_the_library_by_ctypes),
        cmocka_unit_test(nothing_tells_where_it_was_built),
        cmocka_unit_test(the_static_program_runs_where_nothing_else_is),
        cmocka_unit_test(the_archive_of_make_dist_is_whole_and_always_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
