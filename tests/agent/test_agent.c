/*
 * test_agent.c: `mayfly agent` as its user and an endpoint see it. The endpoint plays scripts, and looks at all that it
 * is sent (endpoint.py).
 */
#include "images/servers.h"

#include "base/banned.h"

#define SCRIPT "tests/agent/agent.sh"

PACKAGE_TEST(a_traceback_is_read_and_the_corrected_code_gives_the_answer)
PACKAGE_TEST(the_object_has_the_conversation_the_runs_and_the_tokens)
PACKAGE_TEST(an_endpoint_that_does_not_stream_serves_too)
PACKAGE_TEST(two_calls_of_one_turn_run_beside_each_other)
PACKAGE_TEST(what_endpoints_leave_out_is_understood)
PACKAGE_TEST(what_the_model_does_wrong_it_is_told)
PACKAGE_TEST(steps_and_answers_have_an_end)
PACKAGE_TEST(very_long_output_is_cut_for_the_model)
PACKAGE_TEST(the_flags_say_what_is_asked_and_what_may_be_run)
PACKAGE_TEST(files_go_in_and_come_out_by_name)
PACKAGE_TEST(each_run_is_in_the_log_unless_the_operator_says_no)
PACKAGE_TEST(what_is_wrong_with_the_flags_is_said_at_once)
PACKAGE_TEST(the_endpoint_is_one_that_may_be_told_the_key)
PACKAGE_TEST(the_key_is_in_no_box_and_no_command_line)
PACKAGE_TEST(what_the_operator_must_mend_is_one_line)
PACKAGE_TEST(what_is_no_chat_completion_is_one_line)
PACKAGE_TEST(a_moments_trouble_and_a_cut_stream_are_waited_out)
PACKAGE_TEST(what_lasts_or_never_ends_is_given_up)
PACKAGE_TEST(an_interrupt_ends_the_box_and_then_the_program)
PACKAGE_TEST(a_terminal_shows_the_text_as_it_comes_and_obeys_none_of_it)
PACKAGE_TEST(an_endpoint_that_others_have_written_is_understood)

static int begin(void **state) {
    const char *argv[] = {"python3", "tests/agent/endpoint.py", NULL, "sk-test-4711-do-not-tell",
                          NULL};

    (void)state;
    if (!live_has_cgroups())
        (void)setenv("BEST_EFFORT", "1", 1);
    servers_begin();
    argv[2] = in_dir("port");
    start_server(argv, "log");
    await_in_file("port", "NR == 1", "ENDPOINT_PORT");
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_traceback_is_read_and_the_corrected_code_gives_the_answer),
        cmocka_unit_test(the_object_has_the_conversation_the_runs_and_the_tokens),
        cmocka_unit_test(an_endpoint_that_does_not_stream_serves_too),
        cmocka_unit_test(two_calls_of_one_turn_run_beside_each_other),
        cmocka_unit_test(what_endpoints_leave_out_is_understood),
        cmocka_unit_test(what_the_model_does_wrong_it_is_told),
        cmocka_unit_test(steps_and_answers_have_an_end),
        cmocka_unit_test(very_long_output_is_cut_for_the_model),
        cmocka_unit_test(the_flags_say_what_is_asked_and_what_may_be_run),
        cmocka_unit_test(files_go_in_and_come_out_by_name),
        cmocka_unit_test(each_run_is_in_the_log_unless_the_operator_says_no),
        cmocka_unit_test(what_is_wrong_with_the_flags_is_said_at_once),
        cmocka_unit_test(the_endpoint_is_one_that_may_be_told_the_key),
        cmocka_unit_test(the_key_is_in_no_box_and_no_command_line),
        cmocka_unit_test(what_the_operator_must_mend_is_one_line),
        cmocka_unit_test(what_is_no_chat_completion_is_one_line),
        cmocka_unit_test(a_moments_trouble_and_a_cut_stream_are_waited_out),
        cmocka_unit_test(what_lasts_or_never_ends_is_given_up),
        cmocka_unit_test(an_interrupt_ends_the_box_and_then_the_program),
        cmocka_unit_test(a_terminal_shows_the_text_as_it_comes_and_obeys_none_of_it),
        cmocka_unit_test(an_endpoint_that_others_have_written_is_understood),
    };

    return cmocka_run_group_tests(tests, begin, servers_end);
}
