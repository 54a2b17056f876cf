/*
 * test_logged.c: each execution of `mayfly mcp` has its line in the run log, and there is none where that cannot be
 * written; and the program as an ordinary user has it, whose log is in a place of his own.
 */
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "mcp/mcp.h"
#include "tree.h"

#include "base/banned.h"

static struct place { char dir[32], flag[64], file[48], aside[48], mount[64], mark[48]; } place;

static int make_place(void **state) {
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)snprintf(place.dir, sizeof(place.dir), "/tmp/mayfly-mcp-XXXXXX");
    if (!mkdtemp(place.dir))
        return -1;
    (void)snprintf(place.file, sizeof(place.file), "%s/runs", place.dir);
    (void)snprintf(place.aside, sizeof(place.aside), "%s/aside", place.dir);
    (void)snprintf(place.flag, sizeof(place.flag), "--log=%s", place.file);
    (void)snprintf(place.mark, sizeof(place.mark), "%s/out", place.dir);
    (void)snprintf(place.mount, sizeof(place.mount), "%s:/mnt:rw", place.mark);
    return mkdir(place.mark, 0700) || chmod(place.mark, 0777);
}

static int remove_place(void **state) {
    (void)state;
    return remove_tree(place.dir);
}

/* `mayfly log` of that file, as a list; it must be whole. */
static json_t *records(const char *flag) {
    const char *verify[] = {"log", "verify", flag, NULL}, *show[] = {"log", "--json", flag, NULL};
    struct live_output *o = live_program(verify, -1);
    json_t *list = json_array();
    char *save = NULL;

    if (o->exit_code != 0)
        fail_msg("the log is not whole: %s%s", o->out, o->err);
    free(o);
    o = live_program(show, -1);
    for (char *line = strtok_r(o->out, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        assert_int_equal(json_array_append_new(list, json_loads(line, 0, NULL)), 0);
    free(o);
    return list;
}

static const char *text_at(const json_t *list, size_t i, const char *name) {
    const char *text = json_string_value(json_object_get(json_array_get(list, i), name));

    return text ? text : "(none)";
}

/* ------------------------------------------------------------------ every execution */

static void every_execution_is_a_line_and_what_ran_nothing_is_none(void **state) {
    const char *flags[] = {"--allow-run", place.flag, NULL};
    struct talk t = talk_begin(flags);

    (void)state;
    talk_call(&t, "1", "run_python", "{\"code\":\"print('private')\"}", "");
    json_t *m = talk_answer(&t, "1");
    const char *id = json_string_value(json_object_get(at(m, "result", "structuredContent"), "id"));
    talk_call(&t, "2", "run_python", "{\"code\":\"while True: pass\",\"timeout\":0.2}", "");
    json_decref(talk_answer(&t, "2"));
    talk_call(&t, "3", "run_command", "{\"command\":[\"sh\",\"-c\",\"exit 3\"]}", "");
    json_decref(talk_answer(&t, "3"));
    talk_call(&t, "4", "run_command", "{\"command\":[\"no-such-command\"]}", "");
    json_decref(talk_answer(&t, "4"));
    talk_call(&t, "5", "run_python", "{\"code\":1}", ""); /* runs nothing */
    json_decref(talk_answer(&t, "5"));
    json_t *list = records(place.flag);
    assert_int_equal(json_array_size(list), 4); /* the first box was mayfly's own */
    assert_string_equal(text_at(list, 0, "id"), id);
    assert_string_equal(text_at(list, 0, "source"), "mcp");
    assert_string_equal(text_at(list, 0, "outcome"), "exited");
    assert_string_equal(json_string_value(json_object_get(
                            json_object_get(json_array_get(list, 0), "code"), "text")),
                        "print('private')");
    assert_string_equal(text_at(list, 1, "outcome"), "timed_out");
    assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 2), "exitCode")), 3);
    assert_int_equal(json_array_size(json_object_get(json_array_get(list, 2), "command")), 3);
    assert_string_equal(text_at(list, 3, "outcome"), "setup_failed");
    assert_has(text_at(list, 0, "policy"), "sha256:");
    json_decref(list);
    json_decref(m);
    talk_end(&t);
}

/* What is executed can come by a file as well. */
#define HIDDEN "[{\"name\":\"a/b.py\",\"text\":\"print('hidden')\"}]"

static void has_hidden(const json_t *line) {
    const json_t *file = json_array_get(json_object_get(line, "files"), 0);

    assert_string_equal(json_string_value(json_object_get(file, "name")), "a/b.py");
    assert_int_equal(json_integer_value(json_object_get(file, "bytes")), 15);
    assert_string_equal(json_string_value(json_object_get(file, "digest")),
                        "sha256:6220d4eabc9c6272cc6d4491b0b91a49d9ae3179e49f878ede76d6564c39110c");
}

static void files_that_were_handed_in_are_in_the_line(void **state) {
    const char *flags[] = {"--allow-run", place.flag, NULL};
    struct talk t = talk_begin(flags);

    (void)state;
    talk_call(&t, "1", "run_python",
              "{\"code\":\"exec(open('/in/a/b.py').read())\",\"files\":" HIDDEN "}", "");
    json_t *m = talk_answer(&t, "1");
    assert_string_equal(
        json_string_value(json_object_get(at(m, "result", "structuredContent"), "stdout")),
        "hidden\n");
    json_decref(m);
    talk_call(&t, "2", "run_command",
              "{\"command\":[\"python3\",\"/in/a/b.py\"],\"files\":" HIDDEN "}", "");
    json_decref(talk_answer(&t, "2"));
    talk_call(&t, "3", "run_python", "{\"code\":\"1\",\"files\":[]}", "");
    json_decref(talk_answer(&t, "3"));
    json_t *list = records(place.flag);
    assert_int_equal(json_array_size(list), 3);
    has_hidden(json_array_get(list, 0));
    has_hidden(json_array_get(list, 1));
    assert_null(json_object_get(json_array_get(list, 2), "files"));
    json_decref(list);
    talk_end(&t);
}

static void what_the_log_has_of_the_code_is_the_operators_choice(void **state) {
    const char *flags[] = {place.flag, "--log-code", "none", NULL};
    struct talk t = talk_begin(flags);

    (void)state;
    talk_call(&t, "1", "run_python", "{\"code\":\"print('private')\",\"files\":" HIDDEN "}", "");
    json_decref(talk_answer(&t, "1"));
    json_t *list = records(place.flag);
    assert_int_equal(json_array_size(list), 1);
    assert_null(json_object_get(json_array_get(list, 0), "code"));
    assert_null(json_object_get(json_array_get(list, 0), "files"));
    json_decref(list);
    talk_end(&t);
}

static void a_cancelled_call_and_one_of_a_client_that_is_gone_are_logged(void **state) {
    const char *flags[] = {"--allow-run", "--timeout=60s", place.flag, NULL};
    struct talk t = talk_begin(flags);

    (void)state;
    talk_call(&t, "1", "run_command", "{\"command\":[\"sleep\",\"45.25\"]}", "");
    talk_call(&t, "2", "run_command", "{\"command\":[\"sleep\",\"46.25\"]}", "");
    await_process("sleep 45.25", true, 5000);
    await_process("sleep 46.25", true, 5000);
    talk_say(&t, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
                 "\"requestId\":1}}");
    await_process("sleep 45.25", false, 5000);
    (void)close(t.from);
    t.from = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)talk_wait(&t);
    json_t *list = records(place.flag);
    assert_int_equal(json_array_size(list), 2);
    assert_string_equal(text_at(list, 0, "outcome"), "cancelled");
    assert_string_equal(text_at(list, 1, "outcome"), "cancelled");
    json_decref(list);
}

/* SIGKILL cannot be seen to by who gets it: the witness beside it writes what was under way, and nothing else. */
static void what_was_under_way_when_the_server_was_killed_is_logged_as_lost(void **state) {
    const char *flags[] = {"--allow-run", "--timeout=60s", place.flag, NULL};
    struct talk t = talk_begin(flags);

    (void)state;
    talk_call(&t, "1", "run_python", "{\"code\":\"print(1)\",\"files\":" HIDDEN "}", "");
    json_decref(talk_answer(&t, "1"));
    talk_call(&t, "2", "run_command", "{\"command\":[\"sleep\",\"47.25\"],\"files\":" HIDDEN "}",
              "");
    talk_call(&t, "3", "run_python",
              "{\"code\":\"import subprocess as s; s.run(['sleep', '48.25'])\",\"files\":" HIDDEN
              "}",
              "");
    await_process("sleep 47.25", true, 5000);
    await_process("sleep 48.25", true, 5000);
    assert_int_equal(kill(t.pid, SIGKILL), 0);
    await_process("sleep 47.25", false, 5000);
    await_process("sleep 48.25", false, 5000);
    (void)talk_wait(&t);
    json_t *list = NULL;
    for (int i = 0; i < 500 && json_array_size(list) != 3; i++) {
        json_decref(list);
        live_sleep_ms(10);
        list = records(place.flag);
    }
    assert_int_equal(json_array_size(list), 3);
    assert_string_equal(text_at(list, 0, "outcome"), "exited");
    for (size_t i = 1; i < 3; i++) {
        assert_string_equal(text_at(list, i, "outcome"), "lost");
        assert_string_equal(text_at(list, i, "policy"), text_at(list, 0, "policy"));
        assert_string_equal(text_at(list, i, "source"), "mcp");
        has_hidden(json_array_get(list, i));
    }
    char *all = json_dumps(list, 0);
    assert_has(all, "\"sleep\", \"47.25\"");
    free(all);
    json_decref(list);
}

static void calls_at_once_are_each_a_line(void **state) {
    const char *flags[] = {"--allow-run", "--max-boxes=8", place.flag, NULL};
    struct talk t = talk_begin(flags);
    enum { CALLS = 64 };

    (void)state;
    for (int i = 0; i < CALLS; i++) {
        char id[16], arguments[64];
        (void)snprintf(id, sizeof(id), "%d", i);
        (void)snprintf(arguments, sizeof(arguments), "{\"command\":[\"echo\",\"<%d>\"]}", i);
        talk_call(&t, id, "run_command", arguments, "");
    }
    for (int i = 0; i < CALLS; i++)
        json_decref(talk_hear(&t));
    talk_end(&t);
    json_t *list = records(place.flag);
    assert_int_equal(json_array_size(list), CALLS);
    json_decref(list);
}

static void files_of_each_call_are_kept_apart_under_one_policy(void **state) {
    const char *flags[] = {"--out", place.mark, place.flag, NULL};
    struct talk t = talk_begin(flags);
    char path[64], *text = NULL;

    (void)state;
    (void)snprintf(path, sizeof(path), "%s/2", place.mark);
    assert_int_equal(mkdir(path, 0700), 0); /* somebody else's */
    for (int i = 1; i < 4; i++) {
        char arguments[96], want[96];
        (void)snprintf(arguments, sizeof(arguments), "{\"code\":\"%s('/out/a', 'w')\"}",
                       i == 2 ? "print" : "open");
        (void)snprintf(want, sizeof(want),
                       "files left in /out, kept for the user in the directory %d:\na (0 B)\n",
                       i == 1 ? 1 : 4);
        talk_call(&t, "1", "run_python", arguments, "");
        json_t *m = talk_answer(&t, "1");
        if (i == 2)
            assert_null(strstr(text_of(m), "kept for the user"));
        else
            assert_has(text_of(m), want);
        assert_int_equal(json_array_size(at(m, "result", "content")), 1);
        json_decref(m);
    }
    talk_end(&t);
    assert_true(asprintf(&text, "%s/1/a", place.mark) > 0 && access(text, F_OK) == 0);
    free(text);
    assert_int_equal(rmdir(path), 0); /* as it was */
    (void)snprintf(path, sizeof(path), "%s/3", place.mark);
    assert_int_equal(access(path, F_OK), -1); /* nothing was left there */
    json_t *list = records(place.flag);
    assert_int_equal(json_array_size(list), 3);
    assert_string_equal(text_at(list, 0, "policy"), text_at(list, 2, "policy"));
    json_decref(list);
}

static void the_journal_gets_them_where_the_operator_wants_it(void **state) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char flag[160], got[65536];
    const char *flags[] = {flag, NULL};
    int sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    (void)state;
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/journal", place.dir);
    (void)snprintf(flag, sizeof(flag), "--log=journald:%s", address.sun_path);
    assert_int_equal(bind(sock, (const void *)&address, sizeof(address)), 0);
    struct talk t = talk_begin(flags);
    assert_int_equal(recv(sock, got, sizeof(got), 0), -1); /* nothing was executed yet */
    talk_call(&t, "1", "run_python", "{\"code\":\"print('private')\"}", "");
    json_decref(talk_answer(&t, "1"));
    ssize_t n = recv(sock, got, sizeof(got), 0);
    assert_true(n > 0);
    assert_non_null(memmem(got, (size_t)n, "print('private')", strlen("print('private')")));
    assert_non_null(memmem(got, (size_t)n, "\"source\":\"mcp\"", strlen("\"source\":\"mcp\"")));
    talk_end(&t);
    (void)close(sock);
}

/* ------------------------------------------------------------------ a log that cannot be written */

static void put_a_directory_in_its_place(void) {
    assert_int_equal(rename(place.file, place.aside), 0);
    assert_int_equal(mkdir(place.file, 0700), 0);
}

static void put_it_back(void) {
    assert_int_equal(rmdir(place.file), 0);
    assert_int_equal(rename(place.aside, place.file), 0);
}

static void a_call_that_cannot_be_logged_is_not_executed(void **state) {
    const char *flags[] = {"-v", place.mount, place.flag, NULL};
    static const char touch[] = "{\"code\":\"open('/mnt/mark', 'w')\"}";
    struct talk t = talk_begin(flags);
    char mark[64];

    (void)state;
    (void)snprintf(mark, sizeof(mark), "%s/mark", place.mark);
    put_a_directory_in_its_place();
    talk_call(&t, "1", "run_python", touch, "");
    json_t *m = talk_answer(&t, "1");
    assert_true(is_error(m));
    assert_has(text_of(m), "nothing was executed");
    assert_has(text_of(m), place.file);
    assert_string_equal(outcome_of(m), "setup_failed");
    assert_int_equal(access(mark, F_OK), -1);
    json_decref(m);
    put_it_back();
    talk_call(&t, "2", "run_python", touch, "");
    m = talk_answer(&t, "2");
    assert_false(is_error(m));
    assert_int_equal(access(mark, F_OK), 0);
    json_decref(m);
    json_t *list = records(place.flag);
    assert_int_equal(json_array_size(list), 1);
    json_decref(list);
    talk_end(&t);
}

static void a_log_that_is_lost_while_the_code_runs_is_told_of_with_the_result(void **state) {
    const char *flags[] = {"-v", place.mount, place.flag, NULL};
    struct talk t = talk_begin(flags);
    char mark[64];

    (void)state;
    (void)snprintf(mark, sizeof(mark), "%s/go", place.mark);
    talk_call(&t, "1", "run_python",
              "{\"code\":\"import os, time\\nopen('/mnt/mark', 'w')\\n"
              "while not os.path.exists('/mnt/go'): time.sleep(0.01)\\nprint('made')\"}",
              "");
    char begun[64];
    (void)snprintf(begun, sizeof(begun), "%s/mark", place.mark);
    for (int i = 0; i < 500 && access(begun, F_OK) < 0; i++)
        (void)usleep(10000);
    put_a_directory_in_its_place();
    int fd = open(mark, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    json_t *m = talk_answer(&t, "1");
    assert_true(is_error(m));
    assert_has(text_of(m), "This call is missing in the log");
    assert_has(text_of(m), "stdout:\nmade\n");
    json_decref(m);
    put_it_back();
    talk_end(&t);
}

static void a_server_whose_calls_could_not_be_logged_does_not_begin(void **state) {
    static const struct {
        const char *flags[5], *said;
    } cases[] = {
        {{"mcp", "--log=/nowhere/runs"}, "; or log nothing: --no-log"},
        {{"mcp", "--log=journald:/nowhere"}, "/nowhere"},
        {{"mcp", "--log-code=some"}, "--log-code: \"some\" is not full, digest or none"},
        {{"mcp", "--log-size", "1"}, "--log-size: \"1\" is not"},
        {{"mcp", "--log-keep"}, "--log-keep: wants N"},
        {{"mcp", "--no-log=1"}, "--no-log: wants no value"},
        {{"mcp", "--no-log", "--log"}, "--no-log: and --log"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *argv[8] = {0};
        memcpy(argv, cases[i].flags, sizeof(cases[i].flags));
        struct live_output *o = live_program(argv, -1);
        assert_int_equal(o->exit_code, 125);
        assert_has(o->err, cases[i].said);
        assert_ptr_equal(strchr(o->err, '\n'), o->err + o->err_len - 1); /* one line */
        free(o);
    }
}

/* ------------------------------------------------------------------ as an ordinary user */

/* A shell's commands as a user who has nothing, in a /tmp of his own, with a text as input; what they print. */
static char *as_user(const char *commands, const char *input) {
    static char text[262144];
    int in = memfd_create("in", MFD_CLOEXEC), out = memfd_create("out", MFD_CLOEXEC), status = -1;

    assert_int_equal(write(in, input, strlen(input)), (ssize_t)strlen(input));
    assert_int_equal(lseek(in, 0, SEEK_SET), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || unsetenv("XDG_STATE_HOME") < 0)
            _exit(98);
        (void)execl("tests/hosts/as-user.sh", "as-user.sh", "--", "sh", "-ec", commands, NULL);
        _exit(99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    (void)live_slurp(out, text, sizeof(text));
    (void)close(in);
    (void)close(out);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("wait status %d: %s", status, text);
    return text;
}

static void an_ordinary_user_has_it_and_a_log_of_his_own(void **state) {
    (void)state;
    if (geteuid() != 0) {
        live_skip("root", "only root can become another user");
        return;
    }
    const char *text = as_user(
        "\"$MAYFLY_BIN\" mcp --limits=best-effort --rootfs \"$MAYFLY_ROOTFS\"\n"
        "stat -c 'mode %a, of %u' ~/.local/state/mayfly/runs.jsonl; echo \"I am $(id -u)\"\n"
        "\"$MAYFLY_BIN\" log --json; \"$MAYFLY_BIN\" log verify",
        INITIALIZE("2025-11-25") "\n"
                                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"
                                 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
                                 "call\",\"params\":{\"name\":"
                                 "\"run_python\",\"arguments\":{\"code\":\"print(6 * 7, "
                                 "open('/in/a').read())\","
                                 "\"files\":[{\"name\":\"a\",\"text\":\"handed\"}]}}}\n");
    assert_has(text, "exit code: 0\\n\\nstdout:\\n42 handed\\n");
    assert_has(text, "\"isError\":false");
    assert_has(text, "mode 600, of 61234\nI am 61234\n");
    assert_has(text, "\"source\":\"mcp\"");
    assert_has(text, "is whole: 1 records");
}

int main(void) {
#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        IN_A_PLACE(every_execution_is_a_line_and_what_ran_nothing_is_none),
        IN_A_PLACE(what_the_log_has_of_the_code_is_the_operators_choice),
        IN_A_PLACE(a_cancelled_call_and_one_of_a_client_that_is_gone_are_logged),
        IN_A_PLACE(files_that_were_handed_in_are_in_the_line),
        IN_A_PLACE(what_was_under_way_when_the_server_was_killed_is_logged_as_lost),
        IN_A_PLACE(calls_at_once_are_each_a_line),
        IN_A_PLACE(the_journal_gets_them_where_the_operator_wants_it),
        IN_A_PLACE(files_of_each_call_are_kept_apart_under_one_policy),
        IN_A_PLACE(a_call_that_cannot_be_logged_is_not_executed),
        IN_A_PLACE(a_log_that_is_lost_while_the_code_runs_is_told_of_with_the_result),
        IN_A_PLACE(a_server_whose_calls_could_not_be_logged_does_not_begin),
        IN_A_PLACE(an_ordinary_user_has_it_and_a_log_of_his_own),
    };

    (void)setenv("MAYFLY_ROOTFS", live_env("MAYFLY_ROOTFS"), 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
