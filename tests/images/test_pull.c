/*
 * test_pull.c: pulling from a registry that does wrong on purpose (tests/images/stub): I8, I9, I11, I13. Each test is a
 * function of pull.sh. The registry is there twice, with TLS and without.
 */
#include "images/servers.h"

#include "base/banned.h"

#define SCRIPT "tests/images/pull.sh"

PACKAGE_TEST(an_image_is_pulled_named_and_unpacked)
PACKAGE_TEST(what_is_there_is_not_pulled_again)
PACKAGE_TEST(what_the_store_has_damaged_is_got_anew)
PACKAGE_TEST(both_families_of_media_types_and_unpacked_layers_are_taken)
PACKAGE_TEST(what_is_wrong_is_refused_in_one_line_and_leaves_the_store_as_it_was)
PACKAGE_TEST(what_has_no_end_is_refused_in_bounded_memory)
PACKAGE_TEST(answers_that_are_final_say_what_to_do)
PACKAGE_TEST(what_fails_for_the_moment_is_tried_again)
PACKAGE_TEST(the_process_that_reads_layers_has_nothing_else)
PACKAGE_TEST(layers_are_unpacked_while_others_come)
PACKAGE_TEST(a_download_that_is_cut_goes_on_where_it_was)
PACKAGE_TEST(a_pull_that_is_killed_goes_on_where_it_was)
PACKAGE_TEST(a_pull_that_is_killed_at_any_call_leaves_the_store_right)
PACKAGE_TEST(a_disk_that_fails_at_any_call_is_said_and_leaves_the_store_right)
PACKAGE_TEST(a_store_without_room_is_said_and_goes_on_when_there_is_some)
PACKAGE_TEST(a_disk_that_is_full_at_any_point_is_said_and_leaves_the_store_right)
PACKAGE_TEST(of_several_pulls_at_once_one_downloads)
PACKAGE_TEST(a_server_that_falls_silent_is_given_up)
PACKAGE_TEST(credentials_stay_with_the_registry_when_it_redirects)
PACKAGE_TEST(basic_authentication_and_tokens_work)
PACKAGE_TEST(tokens_that_are_none_are_refused)
PACKAGE_TEST(plain_http_only_where_it_was_asked_for)
PACKAGE_TEST(certificates_are_verified_unless_told_otherwise)
PACKAGE_TEST(the_platform_is_chosen_or_what_there_is_is_listed)
PACKAGE_TEST(mirrors_are_asked_first_and_the_registry_last)
PACKAGE_TEST(a_proxy_is_used_as_curl_would)
PACKAGE_TEST(events_are_json_a_line_each)
PACKAGE_TEST(the_fields_of_events_are_those_in_their_page)
PACKAGE_TEST(a_terminal_gets_a_bar_and_others_lines)
PACKAGE_TEST(no_registry_in_reach_has_a_status_of_its_own)
PACKAGE_TEST(of_several_pulls_of_one_that_is_out_of_reach_one_tries)
PACKAGE_TEST(a_wrong_command_line_is_refused)

static void make_certificate(void) {
    const char *const argv[] = {"openssl",
                                "req",
                                "-x509",
                                "-newkey",
                                "ec",
                                "-pkeyopt",
                                "ec_paramgen_curve:P-256",
                                "-nodes",
                                "-days",
                                "30",
                                "-subj",
                                "/CN=mayfly test",
                                "-addext",
                                "subjectAltName=IP:127.0.0.1",
                                "-keyout",
                                in_dir("key.pem"),
                                "-out",
                                in_dir("ca.pem"),
                                NULL};
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        (void)close(2);
        (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static int begin(void **state) {
    const char *const plain[] = {"/usr/bin/python3", "tests/images/stub/registry.py", in_dir("log"),
                                 in_dir("ports"), NULL};
    const char *const tls[] = {"python3",
                               "tests/images/stub/registry.py",
                               in_dir("log-tls"),
                               in_dir("ports-tls"),
                               in_dir("ca.pem"),
                               in_dir("key.pem"),
                               NULL};

    (void)state;
    if (access("/usr/bin/python3", X_OK) < 0 || access("/usr/bin/openssl", X_OK) < 0)
        return 0; /* each test says so */
    servers_begin();
    make_certificate();
    (void)setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    start_server((const char *const[]){plain[0], plain[1], in_dir("log"), in_dir("ports"), NULL},
                 "said");
    start_server((const char *const[]){tls[0], tls[1], in_dir("log-tls"), in_dir("ports-tls"),
                                       in_dir("ca.pem"), in_dir("key.pem"), NULL},
                 "said-tls");
    await_in_file("ports", "{print \"127.0.0.1:\" $1}", "STUB");
    await_in_file("ports", "{print \"127.0.0.2:\" $2}", "STUB_OTHER");
    await_in_file("ports-tls", "{print \"127.0.0.1:\" $1}", "STUB_TLS");
    await_in_file("ports-tls", "{print \"127.0.0.2:\" $2}", "STUB_TLS_OTHER");
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_image_is_pulled_named_and_unpacked),
        cmocka_unit_test(what_is_there_is_not_pulled_again),
        cmocka_unit_test(what_the_store_has_damaged_is_got_anew),
        cmocka_unit_test(both_families_of_media_types_and_unpacked_layers_are_taken),
        cmocka_unit_test(what_is_wrong_is_refused_in_one_line_and_leaves_the_store_as_it_was),
        cmocka_unit_test(what_has_no_end_is_refused_in_bounded_memory),
        cmocka_unit_test(answers_that_are_final_say_what_to_do),
        cmocka_unit_test(what_fails_for_the_moment_is_tried_again),
        cmocka_unit_test(the_process_that_reads_layers_has_nothing_else),
        cmocka_unit_test(layers_are_unpacked_while_others_come),
        cmocka_unit_test(a_download_that_is_cut_goes_on_where_it_was),
        cmocka_unit_test(a_pull_that_is_killed_goes_on_where_it_was),
        cmocka_unit_test(a_pull_that_is_killed_at_any_call_leaves_the_store_right),
        cmocka_unit_test(a_disk_that_fails_at_any_call_is_said_and_leaves_the_store_right),
        cmocka_unit_test(a_store_without_room_is_said_and_goes_on_when_there_is_some),
        cmocka_unit_test(a_disk_that_is_full_at_any_point_is_said_and_leaves_the_store_right),
        cmocka_unit_test(of_several_pulls_at_once_one_downloads),
        cmocka_unit_test(a_server_that_falls_silent_is_given_up),
        cmocka_unit_test(credentials_stay_with_the_registry_when_it_redirects),
        cmocka_unit_test(basic_authentication_and_tokens_work),
        cmocka_unit_test(tokens_that_are_none_are_refused),
        cmocka_unit_test(plain_http_only_where_it_was_asked_for),
        cmocka_unit_test(certificates_are_verified_unless_told_otherwise),
        cmocka_unit_test(the_platform_is_chosen_or_what_there_is_is_listed),
        cmocka_unit_test(mirrors_are_asked_first_and_the_registry_last),
        cmocka_unit_test(a_proxy_is_used_as_curl_would),
        cmocka_unit_test(events_are_json_a_line_each),
        cmocka_unit_test(the_fields_of_events_are_those_in_their_page),
        cmocka_unit_test(a_terminal_gets_a_bar_and_others_lines),
        cmocka_unit_test(no_registry_in_reach_has_a_status_of_its_own),
        cmocka_unit_test(of_several_pulls_of_one_that_is_out_of_reach_one_tries),
        cmocka_unit_test(a_wrong_command_line_is_refused),
    };

    return cmocka_run_group_tests(tests, begin, servers_end);
}
