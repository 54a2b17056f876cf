/*
 * test_output.c: what the code prints comes back, all of it or its first bytes, and what is said of
 * it is true; nothing that it prints, or does not read, can hang or grow the supervisor. The cases
 * O1 to O9, and their like.
 */
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <termios.h>

#include "live/live.h"

#include "base/banned.h"

static char *seconds(char *text, size_t size, double s) {
    (void)snprintf(text, size, "%dms", (int)(s * 1000 * live_slow()));
    return text;
}

/* ------------------------------------------------------------------ much output */

static long peak_kib(void) {
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    long kib = -1;

    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    (void)fclose(f);
    return kib;
}

/* O1 */
static void a_flood_of_output_does_not_grow_the_supervisor(void **state) {
    (void)state;
    struct live_host before = live_look();
    FILE *f = fopen("/proc/self/clear_refs", "we"); /* 5: the peak starts anew */
    if (f) {
        (void)fputs("5", f);
        (void)fclose(f);
    }
    long from = peak_kib();
    mayfly_result *r =
        live_python("import os, threading, time\n"
                    "def flood(fd):\n"
                    "    while time.monotonic() < end: os.write(fd, b'x' * 65536)\n"
                    "end = time.monotonic() + 3\n"
                    "t = [threading.Thread(target=flood, args=[fd]) for fd in (1, 2)]\n"
                    "for x in t: x.start()\n"
                    "for x in t: x.join()\n"
                    "os._exit(7)\n",
                    NULL);
    long grown = peak_kib() - from;

    live_expect(r, MAYFLY_EXITED, 7);
    assert_int_equal(r->out.len, 1 << 20);
    assert_int_equal(r->err.len, 1 << 20);
    assert_true(r->out.truncated && r->err.truncated);
    assert_true(r->out.total > 4 << 20 && r->err.total > 4 << 20);
    assert_int_equal(r->out.total % 65536, 0);
    assert_int_equal(r->err.total % 65536, 0);
    if (grown > 16 << 10)
        fail_msg("the supervisor grew by %ld KiB over %llu bytes of output", grown,
                 (unsigned long long)(r->out.total + r->err.total));
    mayfly_result_free(r);
    live_same(before);
}

static void a_flood_until_the_time_is_up_is_a_time_out(void **state) {
    (void)state;
    char limit[32];
    mayfly_result *r = live_sh("while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done", "timeout",
                               seconds(limit, sizeof(limit), 1), NULL);

    live_expect(r, MAYFLY_TIMED_OUT, 124);
    assert_true(r->out.total > 0);
    assert_int_equal(r->out.truncated, r->out.total > r->out.len);
    mayfly_result_free(r);
}

/* O2 */
static void a_cap_on_output_cuts_but_does_not_kill(void **state) {
    (void)state;
    mayfly_result *r = live_python("import sys\n"
                                   "for i in range(5000): print('line', '%04d' % i)\n"
                                   "sys.exit(3)\n",
                                   "max-output", "1k", NULL);

    live_expect(r, MAYFLY_EXITED, 3);
    assert_int_equal(r->out.len, 1024);
    assert_int_equal(r->out.total, 50000);
    assert_true(r->out.truncated);
    assert_int_equal(r->out.data[1024], '\0');
    assert_memory_equal(r->out.data, "line 0000\nline 0001\n", 20);
    assert_memory_equal(r->out.data + 1020, "line", 4);
    assert_false(r->err.truncated);
    assert_int_equal(r->err.total, 0);
    mayfly_result_free(r);
}

static void a_cap_kills_where_that_was_asked_for(void **state) {
    (void)state;
    double start = live_now_ms();
    mayfly_result *r =
        live_sh("while :; do echo xxxxxxxxxxxxxxxx; done", "max-output", "1k:kill", NULL);

    live_expect(r, MAYFLY_OUTPUT_LIMIT, 137);
    assert_int_equal(r->out.len, 1024);
    assert_true(r->out.truncated);
    assert_true(live_now_ms() - start < 2000 * live_slow());
    mayfly_result_free(r);
}

/* O3 */
static void what_was_printed_before_a_time_out_is_returned(void **state) {
    (void)state;
    char limit[32];
    mayfly_result *r = live_python("import time\nprint('half a line', end='')\ntime.sleep(100)\n",
                                   "timeout", seconds(limit, sizeof(limit), 1), NULL);

    live_expect(r, MAYFLY_TIMED_OUT, 124);
    assert_true(r->timed_out);
    assert_string_equal(r->out.data, "half a line");
    mayfly_result_free(r);
}

/* O4 */
static void an_exit_exactly_at_the_cap_is_right_every_time(void **state) {
    (void)state;
    const char *scripts[] = {"printf %01023d 0; exit 1", "printf %01024d 0; exit 2",
                             "printf %01025d 0; exit 3"};
    struct live_host before = live_look();
    int n = live_times(1000);

    for (int i = 0; i < n; i++) {
        int k = i % 3;
        mayfly_result *r = live_sh(scripts[k], "max-output", "1k", NULL);

        live_expect(r, MAYFLY_EXITED, k + 1);
        assert_int_equal(r->out.total, 1023 + k);
        assert_int_equal(r->out.len, k == 0 ? 1023 : 1024);
        assert_int_equal(r->out.truncated, k == 2);
        mayfly_result_free(r);
    }
    live_same(before);
}

static void an_exit_exactly_at_the_cap_is_never_a_kill(void **state) {
    (void)state;
    for (int i = 0; i < 30; i++) {
        mayfly_result *r = live_sh("printf %01024d 0; exit 2", "max-output", "1k:kill", NULL);

        live_expect(r, MAYFLY_EXITED, 2);
        mayfly_result_free(r);
    }
}

/* O7 */
static void closing_one_stream_leaves_the_other_whole(void **state) {
    (void)state;
    mayfly_result *r = live_python("import os\n"
                                   "os.close(1)\n"
                                   "for i in range(200): os.write(2, b'y' * 10000)\n"
                                   "os._exit(4)\n",
                                   NULL);

    live_expect(r, MAYFLY_EXITED, 4);
    assert_int_equal(r->out.total, 0);
    assert_false(r->out.truncated);
    assert_string_equal(r->out.data, "");
    assert_int_equal(r->err.total, 2000000);
    assert_true(r->err.truncated);
    mayfly_result_free(r);
}

static void closing_all_streams_does_not_end_the_run(void **state) {
    (void)state;
    mayfly_result *r = live_python("import os, time\n"
                                   "for fd in range(3): os.close(fd)\n"
                                   "time.sleep(0.3)\n"
                                   "os._exit(9)\n",
                                   NULL);

    live_expect(r, MAYFLY_EXITED, 9);
    assert_true(r->wall_ms >= 300);
    mayfly_result_free(r);
}

/* ------------------------------------------------------------------ bytes that are not text */

/* O5 */
/* By links of the box's own, whoever the code runs as; and only the way they go. */
static void the_streams_can_be_opened_by_name(void **state) {
    const char *const users[] = {"1000", "0", "5"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        mayfly_result *r =
            live_sh("echo a >/dev/stdout; echo b >/dev/stderr; echo c | tee /dev/fd/2; "
                    "cat /dev/stdin; head -c1 /dev/stdout || true; echo x >/dev/stdin",
                    "user", users[i], NULL);
        assert_int_equal(r->outcome, MAYFLY_EXITED);
        assert_true(r->exit_code != 0);
        assert_string_equal(r->out.data, "a\nc\n");
        if (strncmp(r->err.data, "b\nc\n", 4) != 0)
            fail_msg("%s", r->err.data);
        mayfly_result_free(r);
    }
}

static void bytes_come_back_as_they_are(void **state) {
    (void)state;
    mayfly_result *r = live_python("import os\n"
                                   "os.write(1, bytes(range(256)))\n"
                                   "os.write(2, b'\\x00\\xff\\xc3')\n"
                                   "os._exit(5)\n",
                                   NULL);

    live_expect(r, MAYFLY_EXITED, 5);
    assert_int_equal(r->out.len, 256);
    for (int i = 0; i < 256; i++)
        assert_int_equal((unsigned char)r->out.data[i], i);
    assert_int_equal(r->err.len, 3);
    assert_memory_equal(r->err.data, "\x00\xff\xc3", 4);
    mayfly_result_free(r);
}

static size_t from_base64(const char *text, unsigned char *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned bits = 0, n_bits = 0;
    size_t n = 0;

    for (; *text && *text != '='; text++) {
        const char *at = strchr(digits, *text);
        assert_non_null(at);
        bits = bits << 6 | (unsigned)(at - digits);
        n_bits += 6;
        if (n_bits >= 8)
            out[n++] = (unsigned char)(bits >> (n_bits -= 8));
    }
    return n;
}

/* Runs the program with --json; the object is the caller's. */
static json_t *in_json(const char *cap, const char *code) {
    const char *argv[] = {"python", "--json", "--max-output", cap, "-c", code, NULL};
    struct live_output *o = live_program(argv, -1);
    json_error_t e;
    json_t *object = json_loadb(o->out, o->out_len, JSON_ALLOW_NUL, &e);

    if (!object)
        fail_msg("not JSON: %s\n%s\n%s", e.text, o->out, o->err);
    assert_int_equal(o->exit_code, 0);
    free(o);
    return object;
}

static const char *text_of(json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));

    if (!text)
        fail_msg("no text %s in the result", key);
    return text;
}

static void json_has_the_exact_bytes_of_what_is_not_utf8(void **state) {
    (void)state;
    unsigned char raw[64];
    json_t *object = in_json("1m", "import os\n"
                                   "os.write(1, b'\\x00\\xff\\xc3')\n"
                                   "os.write(2, b'plain')\n"
                                   "os._exit(6)");

    assert_int_equal(from_base64(text_of(object, "stdoutBase64"), raw), 3);
    assert_memory_equal(raw, "\x00\xff\xc3", 3);
    (void)text_of(object, "stdout");
    assert_string_equal(text_of(object, "stderr"), "plain");
    assert_null(json_object_get(object, "stderrBase64"));
    assert_int_equal(json_integer_value(json_object_get(object, "exitCode")), 6);
    assert_int_equal(json_integer_value(json_object_get(object, "stdoutBytes")), 3);
    json_decref(object);
}

static void json_stays_valid_when_a_character_is_split_at_the_cap(void **state) {
    (void)state;
    static unsigned char raw[2048];
    json_t *object = in_json("1025", "print('\\u00e9' * 1000)");
    const char *text = text_of(object, "stdout");

    assert_int_equal(from_base64(text_of(object, "stdoutBase64"), raw), 1025);
    assert_int_equal(raw[1024], 0xc3);
    assert_memory_equal(raw, "\xc3\xa9\xc3\xa9", 4);
    assert_memory_equal(text, "\xc3\xa9\xc3\xa9", 4);
    assert_true(json_is_true(json_object_get(object, "stdoutTruncated")));
    assert_int_equal(json_integer_value(json_object_get(object, "exitCode")), 0);
    assert_int_equal(json_integer_value(json_object_get(object, "stdoutBytes")), 2001);
    json_decref(object);
}

/* ------------------------------------------------------------------ input */

static mayfly_result *with_input(const char *code, struct mayfly_input input) {
    struct mayfly_error e = {0};
    mayfly_policy *policy = live_policy();

    input.code = code;
    input.code_len = strlen(code);
    if (mayfly_policy_python(policy, NULL, &e) < 0)
        fail_msg("%s", e.message);
    mayfly_result *r = live_run(policy, &input);
    mayfly_policy_free(policy);
    return r;
}

static void input_arrives_whole_and_ends(void **state) {
    (void)state;
    size_t len = 3 << 20;
    char *data = malloc(len);

    assert_non_null(data);
    for (size_t i = 0; i < len; i++)
        data[i] = (char)(i * 7 % 251);
    mayfly_result *r =
        with_input("import sys\n"
                   "d = sys.stdin.buffer.read()\n"
                   "print(len(d), all(d[i] == i * 7 % 251 for i in range(0, len(d), 997)))\n",
                   (struct mayfly_input){.stdin_data = data, .stdin_len = len});

    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "3145728 True\n");
    mayfly_result_free(r);
    free(data);
}

static void input_that_nobody_reads_does_not_hold_the_run(void **state) {
    (void)state;
    size_t len = 1 << 20;
    char *data = calloc(1, len);
    double start = live_now_ms();

    assert_non_null(data);
    mayfly_result *r =
        with_input("print('done')\n", (struct mayfly_input){.stdin_data = data, .stdin_len = len});
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "done\n");
    assert_true(live_now_ms() - start < 3000 * live_slow());
    mayfly_result_free(r);
    free(data);
}

static void without_input_reading_ends_at_once(void **state) {
    (void)state;
    live_prints("import sys\nprint(repr(sys.stdin.read()))\n"
                "try: input()\n"
                "except EOFError: print('EOFError')\n",
                "''\nEOFError\n");
}

/* ------------------------------------------------------------------ output that is passed on */

struct reader {
    int fd;
    size_t total;
};

static void *read_slowly(void *arg) {
    struct reader *reader = arg;
    char chunk[8192];
    ssize_t n;

    while ((n = read(reader->fd, chunk, sizeof(chunk))) > 0) {
        reader->total += (size_t)n;
        live_sleep_ms(1);
    }
    return NULL;
}

static void a_slow_reader_gets_all_that_is_kept(void **state) {
    (void)state;
    int fd[2];
    pthread_t thread;
    struct reader reader = {0};

    assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
    reader.fd = fd[0];
    assert_int_equal(pthread_create(&thread, NULL, read_slowly, &reader), 0);
    mayfly_result *r = with_input("import os\n"
                                  "for i in range(30): os.write(1, b'z' * 50000)\n",
                                  (struct mayfly_input){.stdout_fd = fd[1]});
    (void)close(fd[1]);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)close(fd[0]);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_int_equal(r->out.total, 1500000);
    assert_int_equal(r->out.len, 1 << 20);
    assert_int_equal(reader.total, 1 << 20);
    mayfly_result_free(r);
}

static void a_reader_that_goes_away_cancels_the_run(void **state) {
    (void)state;
    const char *codes[] = {"while True: print('x' * 100)\n",  /* it writes */
                           "import time\ntime.sleep(100)\n"}; /* it does not */

    for (int i = 0; i < 2; i++) {
        int fd[2];
        double start = live_now_ms();

        assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
        (void)close(fd[0]);
        mayfly_result *r = with_input(codes[i], (struct mayfly_input){.stdout_fd = fd[1]});
        (void)close(fd[1]);
        live_expect(r, MAYFLY_CANCELLED, -1);
        assert_true(live_now_ms() - start < 3000 * live_slow());
        mayfly_result_free(r);
    }
}

/* O8 */
static void the_program_ends_when_its_reader_goes_away(void **state) {
    (void)state;
    const char *codes[] = {"while True: print('a line')",
                           "import time\nprint('a line')\ntime.sleep(100)"};
    struct live_host before = live_look();

    for (int i = 0; i < 2; i++) {
        const char *argv[] = {"python", "-c", codes[i], NULL};
        FILE *err = tmpfile();
        int fd[2], status = 0;
        char line[7];

        assert_non_null(err);
        assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
        pid_t pid = live_spawn(argv, -1, fd[1], fileno(err));
        (void)close(fd[1]);
        for (size_t n = 0; n < sizeof(line);) { /* the newline may come in a write of its own */
            ssize_t got = read(fd[0], line + n, sizeof(line) - n);
            assert_true(got > 0);
            n += (size_t)got;
        }
        assert_memory_equal(line, "a line\n", 7);
        double start = live_now_ms();
        (void)close(fd[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(live_now_ms() - start < 2000 * live_slow());
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 141);
        (void)fclose(err);
    }
    live_same(before);
}

/* ------------------------------------------------------------------ a terminal */

/* The process group leader on a terminal of its own; exits with the program's exit status. */
static _Noreturn void on_terminal(const char *name, const char *const *argv) {
    (void)setsid();
    int tty = open(name, O_RDWR); /* becomes the controlling terminal */
    int status = 0;

    if (tty < 0)
        _exit(98);
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(tty, 0);
        (void)dup2(tty, 1);
        (void)dup2(tty, 2);
        (void)execv(live_env("MAYFLY_BIN"), (char *const *)(uintptr_t)argv);
        _exit(99);
    }
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        _exit(97);
    _exit(WEXITSTATUS(status));
}

static size_t read_until(int fd, char *text, size_t size, const char *word) {
    double until = live_now_ms() + 10000 * live_slow();
    size_t n = 0;

    text[0] = '\0';
    while (n + 1 < size && !strstr(text, word)) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int wait_ms = (int)(until - live_now_ms());

        if (wait_ms <= 0 || poll(&p, 1, wait_ms) <= 0)
            break;
        ssize_t got = read(fd, text + n, size - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
        text[n] = '\0';
    }
    return n;
}

/* O6 */
static void on_a_terminal_input_ends_at_once_and_the_keyboard_is_untouched(void **state) {
    (void)state;
    const char *code = "import os\n"
                       "try: input('prompt>')\n"
                       "except EOFError: print('EOFError')\n"
                       "print([os.isatty(fd) for fd in range(3)])\n"
                       "try: os.open('/dev/tty', os.O_RDWR); print('a terminal')\n"
                       "except OSError: print('no terminal')\n"
                       "print('end')\n";
    const char *argv[] = {"mayfly", "python", "--limits=best-effort", "-c", code, NULL};
    static struct termios mode_before, mode_after; /* static: padding is compared too */
    char text[4096], typed[64] = "";
    char name[64];
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), status = 0;

    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 ||
        ptsname_r(master, name, sizeof(name)) != 0)
        live_skip("a pseudo-terminal", strerror(errno));
    int slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(slave >= 0);
    assert_int_equal(tcgetattr(slave, &mode_before), 0);
    mode_before.c_lflag &= (tcflag_t)~ECHO; /* what is typed is then not in what is printed */
    assert_int_equal(tcsetattr(slave, TCSANOW, &mode_before), 0);
    assert_int_equal(write(master, "typed ahead\n", 12), 12);

    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        on_terminal(name, argv);
    (void)read_until(master, text, sizeof(text), "end\r\n");
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !strstr(text, "EOFError\r\n") ||
        !strstr(text, "[False, False, False]\r\n") || !strstr(text, "no terminal\r\n"))
        fail_msg("status %x, printed:\n%s", (unsigned)status, text);
    assert_int_equal(tcgetattr(slave, &mode_after), 0);
    assert_memory_equal(&mode_before, &mode_after, sizeof(mode_before));

    struct pollfd p = {.fd = slave, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 1000), 1);
    assert_int_equal(read(slave, typed, sizeof(typed)), 12);
    assert_memory_equal(typed, "typed ahead\n", 12);
    (void)close(slave);
    (void)close(master);
}

/* ------------------------------------------------------------------ code of any size */

/* `size` bytes of code, with text beyond ASCII on every line, whose last line raises. */
static char *long_code(size_t size, size_t *ret_len) {
    static const char line[] = "n = 1  # gr\xc3\xb6\xc3\x9f"
                               "er: \xe6\x97\xa5\xe6\x9c\xac\n";
    static const char last[] = "print('gr\xc3\xbc\xc3\x9f', n)\n"
                               "raise ValueError('\xe6\x97\xa5\xe6\x9c\xac')  # the line shown\n";
    char *code = malloc(size + sizeof(line) + sizeof(last));
    size_t n = 0;

    assert_non_null(code);
    while (n < size) {
        /* one statement, then comments: the compiler would take seconds for 5 MB of statements */
        size_t skip = n ? 7 : 0;
        memcpy(code + n, line + skip, sizeof(line) - 1 - skip);
        n += sizeof(line) - 1 - skip;
    }
    memcpy(code + n, last, sizeof(last));
    *ret_len = n + sizeof(last) - 1;
    return code;
}

static const size_t code_sizes[] = {127 << 10, 129 << 10, 5 << 20};

static void expect_traceback(const char *out, const char *err) {
    if (strcmp(out, "gr\xc3\xbc\xc3\x9f 1\n") != 0 || !strstr(err, "# the line shown") ||
        !strstr(err, "ValueError: \xe6\x97\xa5\xe6\x9c\xac"))
        fail_msg("--- stdout\n%s\n--- stderr\n%s", out, err);
}

/* O9 */
static void code_of_any_size_runs_and_tracebacks_show_the_line(void **state) {
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        size_t len = 0;
        char *code = long_code(code_sizes[i], &len);
        struct mayfly_input input = {.code = code, .code_len = len};
        struct mayfly_error e = {0};
        mayfly_policy *policy = live_policy();

        if (mayfly_policy_python(policy, NULL, &e) < 0)
            fail_msg("%s", e.message);
        mayfly_result *r = live_run(policy, &input);
        live_expect(r, MAYFLY_EXITED, 1);
        expect_traceback(r->out.data, r->err.data);
        mayfly_result_free(r);
        mayfly_policy_free(policy);
        free(code);
    }
}

static void code_of_any_size_reaches_the_program_as_a_file_and_on_stdin(void **state) {
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char path[] = "/tmp/mayfly-code-XXXXXX";
        const char *by_name[] = {"python", path, NULL}, *by_stdin[] = {"python", "-", NULL};
        size_t len = 0;
        char *code = long_code(code_sizes[i], &len);
        int fd = mkostemp(path, O_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, code, len), len);
        struct live_output *o = live_program(by_name, -1);
        assert_int_equal(o->exit_code, 1);
        expect_traceback(o->out, o->err);
        free(o);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        o = live_program(by_stdin, fd);
        assert_int_equal(o->exit_code, 1);
        expect_traceback(o->out, o->err);
        free(o);
        (void)close(fd);
        assert_int_equal(unlink(path), 0);
        free(code);
    }
}

static void code_is_in_no_argument_that_the_host_can_see(void **state) {
    (void)state;
    const char *code = "import sys\n# a word that no other process has: ephemeroptera\n"
                       "print(open('/proc/self/cmdline').read().split('\\0')[:4])\n"
                       "sys.stdin.read()\n";
    struct mayfly_error e = {0};
    mayfly_policy *policy = live_policy();
    mayfly_box *box = NULL;
    mayfly_result *r = NULL;
    int hold[2];

    assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
    struct mayfly_input input = {.code = code, .code_len = strlen(code), .stdin_fd = hold[0]};
    if (mayfly_policy_python(policy, NULL, &e) < 0 || mayfly_open(policy, &box, &e) < 0 ||
        mayfly_start(box, &input, &e) < 0)
        fail_msg("%s", e.message);
    for (int i = 0; i < 500 && !live_process("/home/box/main.py"); i++)
        live_sleep_ms(2);
    assert_true(live_process("/home/box/main.py"));
    assert_false(live_process("ephemeroptera"));
    (void)close(hold[1]);
    if (mayfly_wait(box, &r, &e) < 0)
        fail_msg("%s", e.message);
    mayfly_close(box);
    mayfly_policy_free(policy);
    (void)close(hold[0]);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "['python3', '-I', '-u', '/home/box/main.py']\n");
    mayfly_result_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flood_of_output_does_not_grow_the_supervisor),
        cmocka_unit_test(a_flood_until_the_time_is_up_is_a_time_out),
        cmocka_unit_test(a_cap_on_output_cuts_but_does_not_kill),
        cmocka_unit_test(a_cap_kills_where_that_was_asked_for),
        cmocka_unit_test(what_was_printed_before_a_time_out_is_returned),
        cmocka_unit_test(an_exit_exactly_at_the_cap_is_right_every_time),
        cmocka_unit_test(an_exit_exactly_at_the_cap_is_never_a_kill),
        cmocka_unit_test(closing_one_stream_leaves_the_other_whole),
        cmocka_unit_test(closing_all_streams_does_not_end_the_run),
        cmocka_unit_test(the_streams_can_be_opened_by_name),
        cmocka_unit_test(bytes_come_back_as_they_are),
        cmocka_unit_test(json_has_the_exact_bytes_of_what_is_not_utf8),
        cmocka_unit_test(json_stays_valid_when_a_character_is_split_at_the_cap),
        cmocka_unit_test(input_arrives_whole_and_ends),
        cmocka_unit_test(input_that_nobody_reads_does_not_hold_the_run),
        cmocka_unit_test(without_input_reading_ends_at_once),
        cmocka_unit_test(a_slow_reader_gets_all_that_is_kept),
        cmocka_unit_test(a_reader_that_goes_away_cancels_the_run),
        cmocka_unit_test(the_program_ends_when_its_reader_goes_away),
        cmocka_unit_test(on_a_terminal_input_ends_at_once_and_the_keyboard_is_untouched),
        cmocka_unit_test(code_of_any_size_runs_and_tracebacks_show_the_line),
        cmocka_unit_test(code_of_any_size_reaches_the_program_as_a_file_and_on_stdin),
        cmocka_unit_test(code_is_in_no_argument_that_the_host_can_see),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
