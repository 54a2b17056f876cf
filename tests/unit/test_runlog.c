/*
 * test_runlog.c: the run log: what a line has, that the chain shows every change, that writers which die at any point
 * leave a log that verifies, and that many at once lose nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "log/log.h"
#include "mayfly.h"
#include "runlog/files.h"
#include "runlog/pruned.h"
#include "runlog/sum.h"
#include "runlog/verify.h"
#include "tree.h"

#include "base/banned.h"

static const char facts_usual[] =
    "{\"exitCode\":0,\"timedOut\":false,\"outcome\":\"exited\",\"signal\":null,\"oomKills\":0,"
    "\"stdout\":\"secret\",\"usage\":{\"wallMs\":9.1,\"cpuMs\":7,\"memoryPeakBytes\":9000000},"
    "\"hints\":[\"a hint\"],\"error\":null,\"image\":\"/srv/root\",\"id\":\"0123\"}";

/* ------------------------------------------------------------------ a log of the test's own */

struct place {
    char dir[64], file[128];
};

static int make_place(void **state) {
    struct place *p = calloc(1, sizeof(*p));

    if (!p)
        return -1;
    (void)snprintf(p->dir, sizeof(p->dir), "/tmp/mayfly-runlog-XXXXXX");
    *state = p;
    if (!mkdtemp(p->dir))
        return -1;
    (void)snprintf(p->file, sizeof(p->file), "%s/runs.jsonl", p->dir);
    return 0;
}

static int remove_place(void **state) {
    struct place *p = *state;
    int r = remove_tree(p->dir);

    free(p);
    return r;
}

static struct runlog *open_log(const char *file, uint64_t bytes, unsigned keep) {
    const struct runlog_options o = {.target = file, .file_bytes = bytes, .keep = keep};
    struct runlog *log = NULL;
    struct err err = {0};

    if (runlog_open(&o, &log, &err) < 0)
        fail_msg("%s", err.message);
    return log;
}

static void write_run(struct runlog *log, const char *code, char note[256]) {
    const struct runlog_run run = {.source = "python",
                                   .start = {1795999106, 123000000},
                                   .code = code,
                                   .code_len = strlen(code),
                                   .policy = "memory=1\n",
                                   .facts = facts_usual};
    struct err err = {0};

    if (runlog_write(log, &run, note, &err) < 0)
        fail_msg("%s", err.message);
}

static void write_runs(const char *file, int n) {
    struct runlog *log = open_log(file, 0, 0);
    char code[32];

    for (int i = 0; i < n; i++) {
        (void)snprintf(code, sizeof(code), "print(%d)", i);
        write_run(log, code, NULL);
    }
    runlog_close(log);
}

static char *slurp(const char *file, size_t *ret_len) {
    char *text = NULL;

    if (file_read_all_at(AT_FDCWD, file, 64 << 20, &text, ret_len) < 0)
        fail_msg("%s: %s", file, strerror(errno));
    return text;
}

static void spit(const char *file, const char *data, size_t len) {
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, data, len), 0);
    (void)close(fd);
}

static struct verify_report verify(const char *file) {
    struct verify_report r;
    struct err err = {0};

    if (runlog_verify(file, &r, &err) < 0)
        fail_msg("%s", err.message);
    return r;
}

static struct verify_report is_whole(const char *file, uint64_t records) {
    struct verify_report r = verify(file);

    if (!r.whole || r.records != records)
        fail_msg("%llu records, expected %llu; %s", (unsigned long long)r.records,
                 (unsigned long long)records, r.fault);
    return r;
}

static void is_broken(const char *file, const char *why) {
    struct verify_report r = verify(file);

    if (r.whole || !strstr(r.fault, why))
        fail_msg("expected \"%s\", got: %s", why, r.whole ? "it is whole" : r.fault);
}

/* ------------------------------------------------------------------ what a line has */

static void a_line_has_the_run_and_nothing_that_it_printed(void **state) {
    const struct place *p = *state;
    struct stat st;
    size_t len;

    write_runs(p->file, 1);
    char *line = slurp(p->file, &len);
    assert_string_equal(
        line,
        "{\"seq\":1,\"time\":\"2026-11-30T00:38:26.123Z\",\"source\":\"python\","
        "\"code\":{\"bytes\":8,\"digest\":\"sha256:"
        "83886bbc5808db2ba6af44f6b236f39a741752dd47909a1b906a59a6d1adb0e0\",\"text\":\"print(0)\"},"
        "\"policy\":\"sha256:aa2e14cfafda5c62f2c33ee0d36a6ca2c8a2ab722e82f94aad0bae6a46d50f4c\","
        "\"id\":\"0123\",\"image\":\"/srv/root\",\"outcome\":\"exited\",\"exitCode\":0,"
        "\"signal\":null,\"timedOut\":false,\"oomKills\":0,"
        "\"usage\":{\"wallMs\":9.1,\"cpuMs\":7,\"memoryPeakBytes\":9000000},"
        "\"hints\":[\"a hint\"],\"error\":null,"
        "\"prev\":\"0000000000000000000000000000000000000000000000000000000000000000\"}\n");
    free(line);
    assert_int_equal(stat(p->file, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
}

static json_t *record_of(const struct runlog_run *run, enum runlog_code code) {
    json_t *o = record_make(run, code);

    assert_non_null(o);
    return o;
}

static void code_is_logged_as_far_as_it_is_to_be(void **unused) {
    const char *command[] = {"sh", "-c", "echo \xff", NULL};
    const struct runlog_run code = {.source = "mcp", .code = "a\0\xff", .code_len = 3},
                            words = {.source = "run", .command = command};
    char hex[RUNLOG_HEX];
    json_t *o = record_of(&code, RUNLOG_FULL);
    const json_t *c = json_object_get(o, "code");

    (void)unused;
    assert_int_equal(json_integer_value(json_object_get(c, "bytes")), 3);
    assert_int_equal(json_string_length(json_object_get(c, "text")), 5); /* a, NUL, U+FFFD */
    runlog_digest("a\0\xff", 3, hex);
    assert_string_equal(json_string_value(json_object_get(c, "digest")) + 7, hex);
    json_decref(o);
    o = record_of(&code, RUNLOG_DIGEST);
    assert_null(json_object_get(json_object_get(o, "code"), "text"));
    assert_non_null(json_object_get(json_object_get(o, "code"), "digest"));
    json_decref(o);
    o = record_of(&code, RUNLOG_NONE);
    assert_null(json_object_get(o, "code"));
    json_decref(o);
    o = record_of(&words, RUNLOG_FULL);
    assert_string_equal(json_string_value(json_array_get(json_object_get(o, "command"), 2)),
                        "echo \xef\xbf\xbd");
    json_decref(o);
    o = record_of(&words, RUNLOG_DIGEST);
    runlog_digest("sh\0-c\0echo \xff", 13, hex);
    assert_string_equal(json_string_value(json_object_get(o, "commandDigest")) + 7, hex);
    json_decref(o);
    o = record_of(&words, RUNLOG_NONE);
    assert_null(json_object_get(o, "command"));
    assert_null(json_object_get(o, "commandDigest"));
    /* Nobody lived to tell. */
    assert_string_equal(json_string_value(json_object_get(o, "outcome")), "lost");
    json_decref(o);
}

static void a_line_is_bounded_whatever_the_run_was(void **state) {
    const struct place *p = *state;
    enum { LARGE = 3 << 20 };
    char *code = malloc(LARGE + 1), *facts = malloc(LARGE + 100);
    struct runlog *log = open_log(p->file, 0, 0);
    size_t len;

    assert_non_null(code);
    assert_non_null(facts);
    memset(code, '\x01', LARGE); /* six bytes each in JSON */
    code[LARGE] = '\0';
    int n = snprintf(facts, 100, "{\"outcome\":\"exited\",\"exitCode\":0,\"hints\":[\"");
    memset(facts + n, 'h', LARGE - 100);
    (void)snprintf(facts + n + LARGE - 100, 8, "\"]}");
    const struct runlog_run run = {
        .source = "python", .code = code, .code_len = LARGE, .facts = facts};
    struct err err = {0};
    if (runlog_write(log, &run, NULL, &err) < 0)
        fail_msg("%s", err.message);
    runlog_close(log);
    char *line = slurp(p->file, &len);
    assert_true(len < RUNLOG_LINE);
    assert_true(len > 1 << 20);
    assert_non_null(strstr(line, "\"cut\":true"));
    free(line);
    is_whole(p->file, 1);
    free(code);
    free(facts);
}

/* Not what a writer leaves that dies: the beginning of a line, be it ended by the next writer or by nobody. */
static void lines_of_others_show(void **state) {
    const struct place *p = *state;
    static const char *const strange[] = {"garbage\n", "garbage", "{\"sex\":1}\n", "\xff\n"};
    static const char *const dead[] = {"{\"seq\":3,\"so", "{\"s", "{\"seq\":3,\n"};
    size_t len;

    write_runs(p->file, 2);
    char *text = slurp(p->file, &len), both[8192];
    assert_true(len < sizeof(both) - 64);
    memcpy(both, text, len);
    free(text);
    for (size_t i = 0; i < ARRAY_LEN(strange); i++) {
        memcpy(both + len, strange[i], strlen(strange[i]));
        spit(p->file, both, len + strlen(strange[i]));
        is_broken(p->file, "no writer of the log left it");
    }
    for (size_t i = 0; i < ARRAY_LEN(dead); i++) {
        memcpy(both + len, dead[i], strlen(dead[i]));
        spit(p->file, both, len + strlen(dead[i]));
        assert_int_equal(is_whole(p->file, 2).torn, 1);
    }
}

static void whatever_bytes_the_code_has_it_is_a_record(void **state) {
    const struct place *p = *state;
    char code[256];
    struct runlog *log = open_log(p->file, 0, 0);

    for (size_t i = 0; i < sizeof(code); i++)
        code[i] = (char)i;
    const struct runlog_run run = {
        .source = "mcp", .code = code, .code_len = sizeof(code), .facts = facts_usual};
    assert_int_equal(runlog_write(log, &run, NULL, NULL), 0);
    assert_int_equal(runlog_write(log, &run, NULL, NULL), 0);
    runlog_close(log);
    is_whole(p->file, 2);
}

/* ------------------------------------------------------------------ changes show */

/* Lines of the file, each with its end; `line` from 0. */
static char *line_at(char *text, int line) {
    while (line-- > 0)
        text = strchr(text, '\n') + 1;
    return text;
}

static void every_change_shows(void **state) {
    const struct place *p = *state;
    char head[200], file[256];
    size_t len, head_len;

    write_runs(p->file, 6);
    struct verify_report was = is_whole(p->file, 6);
    assert_int_equal(was.first, 1);
    assert_int_equal(was.last, 6);
    char *whole = slurp(p->file, &len), *changed = malloc(len + 1);
    (void)snprintf(head, sizeof(head), "%s.head", p->file);
    char *head_text = slurp(head, &head_len);
    assert_non_null(changed);
    /* Each byte of each line but the line ends: any other value. */
    for (size_t i = 0; i < len; i += 7) {
        if (whole[i] == '\n')
            continue;
        memcpy(changed, whole, len);
        changed[i] ^= 1;
        spit(p->file, changed, len);
        struct verify_report r = verify(p->file);
        if (r.whole)
            fail_msg("byte %zu was altered, and the log is whole", i);
    }
    for (int line = 0; line < 6; line++) { /* removed */
        char *at = line_at(whole, line), *next = strchr(at, '\n') + 1;
        size_t before = (size_t)(at - whole), after = len - (size_t)(next - whole);
        memcpy(changed, whole, before);
        memcpy(changed + before, next, after);
        spit(p->file, changed, before + after);
        is_broken(p->file, line == 5 ? "1 record is missing at the end" : "records are missing");
        /* Put at the end instead. */
        memcpy(changed + before + after, at, (size_t)(next - at));
        spit(p->file, changed, len);
        if (line < 5)
            is_broken(p->file, "records are missing");
        /* Twice. */
        memcpy(changed, whole, len);
        memcpy(changed, whole, (size_t)(next - whole));
        char *twice = malloc(2 * len);
        assert_non_null(twice);
        memcpy(twice, whole, (size_t)(next - whole));
        memcpy(twice + (next - whole), at, len - before);
        spit(p->file, twice, len + (size_t)(next - at));
        is_broken(p->file, "");
        free(twice);
    }
    spit(p->file, whole, 0); /* all of it */
    is_broken(p->file, "6 records are missing at the end");
    spit(p->file, whole, len);
    assert_int_equal(unlink(head), 0);
    is_broken(p->file, "FILE.head");
    spit(head, head_text, head_len);
    is_whole(p->file, 6);
    /* A writer goes on, and notes what it found; the gap stays. */
    spit(p->file, whole, (size_t)(line_at(whole, 4) - whole));
    struct runlog *log = open_log(p->file, 0, 0);
    char note[256];
    write_run(log, "later", note);
    assert_non_null(strstr(note, "lines are missing"));
    write_run(log, "and later", note);
    assert_string_equal(note, "");
    runlog_close(log);
    is_broken(p->file, "its writer found that lines are missing");
    assert_int_equal(verify(p->file).gaps, 1);
    (void)file;
    free(head_text);
    free(changed);
    free(whole);
}

/* ------------------------------------------------------------------ writers die */

/* A line's writer dies after any number of its bytes, before or after FILE.head; the next two go on. */
static void a_line_without_an_end_is_mended_by_the_next(void **state) {
    const struct place *p = *state;
    char head[200], note[256];
    size_t len, head_len, new_len;

    (void)snprintf(head, sizeof(head), "%s.head", p->file);
    write_runs(p->file, 2);
    char *old_head = slurp(head, &head_len), *old = slurp(p->file, &len);
    write_runs(p->file, 1);
    char *text = slurp(p->file, &new_len), *new_head = slurp(head, &head_len);
    for (size_t cut = len; cut <= new_len; cut += cut < new_len - 2 && cut > len ? 11 : 1) {
        bool torn = cut > len && cut < new_len;

        spit(p->file, text, cut);
        spit(head, old_head, head_len);
        struct verify_report r = is_whole(p->file, cut == new_len ? 3 : 2);
        assert_int_equal(r.torn, torn);
        struct runlog *log = open_log(p->file, 0, 0);
        write_run(log, "next", note);
        if (torn != (strstr(note, "a writer died") != NULL))
            fail_msg("cut at %zu: \"%s\"", cut, note);
        write_run(log, "and next", note);
        assert_string_equal(note, "");
        runlog_close(log);
        r = is_whole(p->file, cut == new_len ? 5 : 4);
        assert_int_equal(r.torn, torn);
        /* What was torn is still there, and cannot be taken away. */
        if (torn) {
            size_t all_len;
            char *all = slurp(p->file, &all_len);
            memmove(all + len, all + cut + 1, all_len - cut - 1);
            spit(p->file, all, all_len - (cut + 1 - len));
            is_broken(p->file, "does not fit");
            free(all);
        }
    }
    /* The mender dies too, with its newline written; and the head in any state. */
    for (size_t n = 0; n < head_len; n += 37) {
        spit(p->file, text, new_len - 5);
        FILE *f = fopen(p->file, "ae");
        assert_non_null(f);
        (void)fputc('\n', f);
        assert_int_equal(fclose(f), 0);
        spit(head, n ? new_head : old_head, head_len); /* as if it had been counted */
        assert_int_equal(truncate(head, (off_t)(n ? head_len : head_len)), 0);
        struct runlog *log = open_log(p->file, 0, 0);
        write_run(log, "next", note);
        runlog_close(log);
        if (n == 0)
            assert_int_equal(is_whole(p->file, 3).torn, 1);
        else
            is_broken(p->file,
                      "lines are missing"); /* a counted line that is torn was whole once */
    }
    free(new_head);
    free(old_head);
    free(text);
    free(old);
}

/* Killed at any moment, a thousand times over. */
static void writers_that_are_killed_leave_a_whole_log(void **state) {
    const struct place *p = *state;
    uint64_t *written =
        mmap(NULL, sizeof(*written), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned random = 1;

    assert_true(written != MAP_FAILED);
    for (int i = 0; i < 150; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            const struct runlog_options o = {.target = p->file, .file_bytes = 4096, .keep = 1000};
            const struct runlog_run run = {.source = "mcp", .facts = facts_usual};
            struct runlog *log = NULL;

            if (runlog_open(&o, &log, NULL) < 0)
                _exit(1);
            while (runlog_write(log, &run, NULL, NULL) == 0)
                __atomic_add_fetch(written, 1, __ATOMIC_SEQ_CST);
            _exit(1);
        }
        random = random * 1103515245u + 12345u;
        const struct timespec t = {0, 300000 + (long)(random >> 8) % 4000000};
        (void)nanosleep(&t, NULL);
        (void)kill(pid, SIGKILL);
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!WIFSIGNALED(status))
            fail_msg("the writer ended by itself, %x", (unsigned)status);
    }
    write_runs(p->file, 1);
    struct verify_report r = verify(p->file);
    if (!r.whole)
        fail_msg("%s", r.fault);
    assert_int_equal(r.gaps, 0);
    assert_int_equal(r.first, 1);
    assert_int_equal(r.records, r.last);
    /* None that was told of is missing; at most one more of each that was killed. */
    if (*written < 100 || r.records < *written + 1 || r.records > *written + 151)
        fail_msg("%llu were written, %llu are there", (unsigned long long)*written,
                 (unsigned long long)r.records);
    (void)munmap(written, sizeof(*written));
}

/* ------------------------------------------------------------------ many at once */

enum { THREADS = 4, EACH = 25, PROCESSES = 4 };

static void *write_in_thread(void *log) {
    for (int i = 0; i < EACH; i++)
        write_run(log, "thread", NULL);
    return NULL;
}

static void many_writers_lose_nothing_and_rotation_goes_on(void **state) {
    const struct place *p = *state;
    pid_t pids[PROCESSES];

    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            struct runlog *log = open_log(p->file, 8192, 1000);
            pthread_t threads[THREADS];
            for (int t = 0; t < THREADS; t++)
                if (pthread_create(&threads[t], NULL, write_in_thread, log) != 0)
                    _exit(1);
            for (int t = 0; t < THREADS; t++)
                (void)pthread_join(threads[t], NULL);
            _exit(0);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = 0;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    struct verify_report r = is_whole(p->file, PROCESSES * THREADS * EACH);
    assert_int_equal(r.torn, 0);
    unsigned *numbers = NULL;
    size_t n = 0;
    assert_int_equal(rotated_list(p->file, &numbers, &n), 0);
    assert_true(n > 10);
    assert_int_equal(numbers[n - 1], n);
    for (size_t i = 0; i < n; i++) {
        char path[4200];
        struct stat st;
        rotated_name(p->file, numbers[i], path);
        assert_int_equal(stat(path, &st), 0);
        assert_true(st.st_size <= 8192);
        assert_int_equal(st.st_mode & 07777, 0600);
    }
    /* One in the middle goes. */
    char path[4200];
    rotated_name(p->file, numbers[n / 2], path);
    assert_int_equal(unlink(path), 0);
    is_broken(p->file, "records are missing");
    free(numbers);
}

static void what_is_pruned_is_written_off_and_what_is_taken_is_not(void **state) {
    const struct place *p = *state;
    struct runlog *log = open_log(p->file, 4096, 2);
    unsigned *numbers = NULL;
    size_t n = 0;
    char path[4200];

    for (int i = 0; i < 60; i++)
        write_run(log, "x", NULL);
    runlog_close(log);
    assert_int_equal(rotated_list(p->file, &numbers, &n), 0);
    assert_int_equal(n, 2);
    struct verify_report r = verify(p->file);
    if (!r.whole)
        fail_msg("%s", r.fault);
    assert_int_equal(r.last, 60);
    assert_true(r.first > 20);
    rotated_name(p->file, numbers[0], path);
    assert_int_equal(unlink(path), 0);
    is_broken(p->file, "records are missing");
    free(numbers);
}

/* A writer died after it had renamed the file, before there was another. */
static void a_rotation_that_was_cut_short_is_gone_on_with(void **state) {
    const struct place *p = *state;
    char path[4200];

    write_runs(p->file, 3);
    rotated_name(p->file, 1, path);
    assert_int_equal(rename(p->file, path), 0);
    is_whole(p->file, 3);
    write_runs(p->file, 2);
    struct verify_report r = is_whole(p->file, 5);
    assert_int_equal(r.gaps, 0);
}

/* A writer died after it had written off a file, before it removed it; and what is written off is not looked for. */
static void a_file_that_was_written_off_and_is_still_there_does_no_harm(void **state) {
    const struct place *p = *state;
    struct runlog *log = open_log(p->file, 4096, 1);
    char kept[4200], *first = NULL;
    size_t len = 0;

    rotated_name(p->file, 1, kept);
    for (int i = 0; i < 100 && !(first && access(kept, F_OK) < 0); i++) {
        if (!first && access(kept, F_OK) == 0)
            first = slurp(kept, &len);
        write_run(log, "x", NULL);
    }
    runlog_close(log);
    assert_non_null(first);
    assert_int_equal(access(kept, F_OK), -1); /* just pruned */
    struct verify_report r = verify(p->file);
    if (!r.whole || r.first < 2)
        fail_msg("from %llu: %s", (unsigned long long)r.first, r.fault);
    spit(kept, first, len);
    r = verify(p->file);
    if (!r.whole || r.first != 1)
        fail_msg("from %llu: %s", (unsigned long long)r.first, r.fault);
    free(first);
}

/* ------------------------------------------------------------------ what was removed with old files */

struct total {
    const struct pruned *p;
    uint64_t runs, unread;
};

static int add_up(void *context, const struct log_line *at) {
    struct total *t = context;
    struct record r;

    if (!at->complete)
        return 0;
    if (record_parse(at->line, at->len, &r) < 0) {
        t->unread += !pruned_has(t->p, at, NULL);
        return 0;
    }
    t->runs += !pruned_has(t->p, at, &r);
    record_done(&r);
    return 0;
}

/* Runs that the counters have: removed ones, and those that are there. */
static struct total all_of(const char *file, struct pruned *p) {
    struct total t = {.p = p};
    struct err err = {0};

    if (pruned_read(file, p, &err) < 0 || log_each(file, add_up, &t, &err) < 0)
        fail_msg("%s", err.message);
    t.runs += p->sum.all.runs;
    t.unread += p->sum.no_records;
    return t;
}

static void what_is_pruned_stays_in_the_counters(void **state) {
    const struct place *p = *state;
    char path[4200], *first = NULL;
    struct pruned pruned;
    size_t len = 0;

    rotated_name(p->file, 1, path);
    for (uint64_t i = 1; i <= 40; i++) {
        struct runlog *log = open_log(p->file, 4096, 1);
        write_run(log, "x", NULL);
        runlog_close(log);
        if (i == 3) { /* a writer that died */
            int fd = open(p->file, O_WRONLY | O_APPEND | O_CLOEXEC);
            assert_true(fd >= 0 && write(fd, "{\"seq\":4", 8) == 8);
            (void)close(fd);
        }
        if (!first && access(path, F_OK) == 0)
            first = slurp(path, &len);
        struct total t = all_of(p->file, &pruned);
        if (t.runs != i || t.unread != (i > 3))
            fail_msg("%llu runs, %llu unread after %llu", (unsigned long long)t.runs,
                     (unsigned long long)t.unread, (unsigned long long)i);
    }
    assert_true(pruned.file > 2 && pruned.seq > 10);
    assert_int_equal(pruned.sum.all.of[SHARE_HINTED], pruned.seq); /* each has a hint */
    assert_int_equal(pruned.sum.all.of[SHARE_FAILED], 0);
    assert_true(pruned.sum.wall_s > 0.0090 * (double)pruned.seq);
    assert_string_equal(pruned.sum.cell[0].source, "python");
    assert_string_equal(pruned.sum.cell[0].outcome, "exited");
    /* A writer died before it removed a file that is counted: it counts once, also when it goes at last. */
    assert_non_null(first);
    spit(path, first, len);
    struct total t = all_of(p->file, &pruned);
    assert_int_equal(t.runs, 40);
    assert_int_equal(t.unread, 1);
    struct runlog *log = open_log(p->file, 4096, 1);
    for (int i = 0; i < 10; i++)
        write_run(log, "x", NULL);
    runlog_close(log);
    assert_int_equal(access(path, F_OK), -1);
    t = all_of(p->file, &pruned);
    assert_int_equal(t.runs, 50);
    assert_int_equal(t.unread, 1);
    free(first);
}

static void many_that_prune_at_once_count_each_run_once(void **state) {
    const struct place *p = *state;
    pid_t pids[4];
    struct pruned pruned;

    for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            struct runlog *log = open_log(p->file, 4096, 1);
            for (int n = 0; n < 100; n++)
                write_run(log, "x", NULL);
            _exit(0);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
        int status = 0;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(all_of(p->file, &pruned).runs, 400);
    assert_true(pruned.seq > 300);
    struct verify_report r = verify(p->file);
    if (!r.whole)
        fail_msg("%s", r.fault);
}

/* The counters begin anew, in words, and the log goes on as ever. */
static void counters_that_are_damaged_are_told_of_and_hold_up_no_log(void **state) {
#define BEFORE "{\"version\":1,\"seq\":9,\"file\":1,\"runs\":"
#define AFTER                                                                                      \
    ",\"noRecords\":0,\"wallSeconds\":1.5,\"cpuSeconds\":1,\"timedOut\":0,\"failed\":0,"           \
    "\"hinted\":0}"
    static const char good[] =
        BEFORE "[{\"source\":\"mcp\",\"outcome\":\"lost\",\"runs\":9}]" AFTER;
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{\"version\":2}",
        BEFORE "{}" AFTER,
        BEFORE "[7]" AFTER,
        BEFORE "[{\"source\":\"mcp\",\"outcome\":\"lost\",\"runs\":-1}]" AFTER,
        BEFORE "[{\"source\":\"seventeen letters\",\"outcome\":\"lost\",\"runs\":1}]" AFTER,
        "{\"version\":1,\"seq\":9,\"file\":4294967296,\"runs\":[]" AFTER,
        BEFORE "[],\"noRecords\":0,\"wallSeconds\":-1,\"cpuSeconds\":1,\"timedOut\":0,"
               "\"failed\":0,\"hinted\":0}",
        BEFORE "[],\"noRecords\":0,\"wallSeconds\":1,\"cpuSeconds\":1,\"timedOut\":0,"
               "\"failed\":0.5,\"hinted\":0}",
    };
    const struct place *p = *state;
    char path[4200], note[256] = "";
    struct pruned pruned;
    struct err err = {0};

    (void)snprintf(path, sizeof(path), "%s.pruned", p->file);
    spit(path, good, strlen(good));
    assert_int_equal(pruned_read(p->file, &pruned, &err), 0);
    assert_true(pruned.there && pruned.seq == 9 && pruned.sum.all.runs == 9 &&
                pruned.sum.wall_s > 1.4);
    write_runs(p->file, 1); /* the first of a log has nothing before it */
    assert_int_equal(access(path, F_OK), -1);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        spit(path, bad[i], strlen(bad[i]));
        err = (struct err){0};
        if (pruned_read(p->file, &pruned, &err) != -EBADMSG || pruned.there || pruned.seq)
            fail_msg("%s was taken", bad[i]);
        assert_non_null(strstr(err.message, "runs.jsonl.pruned is damaged; "));
    }
    struct runlog *log = open_log(p->file, 4096, 1);
    bool told = false;
    for (int i = 0; i < 20; i++) {
        write_run(log, "x", note);
        told = told || strstr(note, ".pruned is damaged");
    }
    assert_true(told);
    assert_int_equal(pruned_read(p->file, &pruned, &err), 0);
    assert_true(pruned.there);
    /* Nor does what is not to be removed. */
    unsigned *numbers = NULL;
    size_t n = 0;
    assert_int_equal(rotated_list(p->file, &numbers, &n), 0);
    rotated_name(p->file, numbers[0], path);
    free(numbers);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    told = false;
    for (int i = 0; i < 20; i++) {
        write_run(log, "x", note);
        told = told || (strstr(note, path) && strstr(note, "is no regular file; move it away"));
    }
    runlog_close(log);
    assert_true(told);
#undef BEFORE
#undef AFTER
}

/* What lies in the place of a file of the log is named, with what to do, and waited for by nobody. */
static void what_is_no_file_of_the_log_is_named(void **state) {
    static const struct {
        const char *end;
        char kind;
        const char *words;
    } cases[] = {
        {".head", 'p', "is no regular file; move it away"},
        {".head", 'd', "is no regular file; move it away"},
        {".head", 'l', "is a symbolic link; move it away"},
        {".3", 'p', "is no regular file; move it away"},
        {".3", 'd', "is no regular file; move it away"},
        {".3", 'l', "is a symbolic link; move it away"},
        {".4294967295", 'f', "has the last number there is; move the log away"},
    };
    const struct place *p = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct runlog_options o = {.target = p->file, .file_bytes = 4096};
        char path[4200];
        struct err err = {0};
        struct runlog *log = NULL;

        (void)snprintf(path, sizeof(path), "%s%s", p->file, cases[i].end);
        int made = cases[i].kind == 'p'   ? mkfifo(path, 0600)
                   : cases[i].kind == 'd' ? mkdir(path, 0700)
                   : cases[i].kind == 'l' ? symlink("/dev/null", path)
                                          : mknod(path, S_IFREG | 0600, 0);
        assert_int_equal(made, 0);
        (void)alarm(20);
        int r = runlog_open(&o, &log, &err);
        const struct runlog_run run = {.source = "run", .facts = facts_usual};
        for (int n = 0; r == 0 && n < 20; n++)
            r = runlog_write(log, &run, NULL, &err);
        runlog_close(log);
        if (r == 0 || !strstr(err.message, path) || !strstr(err.message, cases[i].words))
            fail_msg("%s, %c: %s", cases[i].end, cases[i].kind, err.message);
        struct verify_report report;
        err = (struct err){0};
        r = runlog_verify(p->file, &report, &err);
        if (cases[i].kind != 'f' && (r == 0 || !strstr(err.message, path)))
            fail_msg("%s, %c: %s", cases[i].end, cases[i].kind, err.message);
        (void)alarm(0);
        assert_int_equal(remove(path), 0);
        (void)unlink(p->file);
        (void)snprintf(path, sizeof(path), "%s.head", p->file);
        (void)unlink(path);
    }
}

static void a_line_longer_than_any_is_passed_over_and_told(void **state) {
    const struct place *p = *state;
    enum { LARGE = 5 << 20 };
    char *text = malloc(LARGE);
    struct line_reader reader = {.fd = -1};
    const char *line;
    size_t len;
    bool complete;

    assert_non_null(text);
    memset(text, 'x', LARGE);
    text[LARGE - 2] = '\n';
    text[LARGE - 1] = 'y';
    spit(p->file, text, LARGE);
    reader.fd = open(p->file, O_RDONLY | O_CLOEXEC);
    assert_int_equal(line_next(&reader, &line, &len, &complete), -EFBIG);
    assert_int_equal(line_next(&reader, &line, &len, &complete), 1);
    assert_int_equal(len, 1);
    assert_false(complete);
    line_reader_done(&reader);
    (void)close(reader.fd);
    spit(p->file, text, LARGE - 2); /* and without an end */
    reader = (struct line_reader){.fd = open(p->file, O_RDONLY | O_CLOEXEC)};
    assert_int_equal(line_next(&reader, &line, &len, &complete), -EFBIG);
    assert_int_equal(line_next(&reader, &line, &len, &complete), 0);
    line_reader_done(&reader);
    (void)close(reader.fd);
    assert_int_equal(unlink(p->file), 0);
    write_runs(p->file, 2);
    FILE *f = fopen(p->file, "ae");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, LARGE - 1, f), LARGE - 1);
    assert_int_equal(fclose(f), 0);
    is_broken(p->file, "line 3: is longer than any record");
    free(text);
}

static void a_writer_that_was_stopped_does_not_hold_the_others_for_ever(void **state) {
    const struct place *p = *state;
    struct log_head head;
    struct err err = {0};
    int first = -1, second = -1;

    assert_int_equal(head_lock(p->file, true, 0, &first, &head, &err), 0);
    assert_false(head.there);
    assert_int_equal(head_lock(p->file, true, 5, &second, &head, &err), -EBUSY);
    assert_non_null(strstr(err.message, "look who holds it"));
    fd_close(&first);
    err_clear(&err);
    assert_int_equal(head_lock(p->file, false, 0, &second, &head, &err), 0);
    fd_close(&second);
}

/* ------------------------------------------------------------------ what cannot be written */

static void refuse_target(const char *file, const char *why) {
    const struct runlog_options o = {.target = file};
    struct runlog *log = NULL;
    struct err err = {0};

    if (runlog_open(&o, &log, &err) == 0)
        fail_msg("%s was taken", file);
    if (!strstr(err.message, why) || strncmp(err.message, "run log: ", 9) != 0)
        fail_msg("%s: no \"%s\" in: %s", file, why, err.message);
}

static void a_log_that_cannot_be_written_is_told_before_and_nothing_is_made(void **state) {
    const struct place *p = *state;
    char path[256];

    refuse_target("/no/such/dir/log", "No such file or directory");
    refuse_target("journald:/no/such/socket", "the journal at /no/such/socket: No such file");
    refuse_target("", "no name");
    refuse_target(p->dir, "Is a directory");
    spit(p->file, "precious\n", 9);
    refuse_target(p->file, "holds something else than a run log");
    if (geteuid() == 0) {
        assert_int_equal(chown(p->file, 1, 1), 0);
        refuse_target(p->file, "belongs to another user");
        assert_int_equal(chown(p->file, 0, 0), 0);
    }
    assert_int_equal(chmod(p->file, 0644), 0);
    refuse_target(p->file, "chmod 600");
    assert_int_equal(unlink(p->file), 0);
    assert_int_equal(symlink("elsewhere", p->file), 0);
    refuse_target(p->file, "symbolic link");
    assert_int_equal(unlink(p->file), 0);
    assert_int_equal(mkfifo(p->file, 0600), 0);
    refuse_target(p->file, "no regular file");
    assert_int_equal(unlink(p->file), 0);
    (void)snprintf(path, sizeof(path), "%s.head", p->file);
    assert_int_equal(access(path, F_OK), -1);
}

/* A line that does not fit is not there in half, and the next one is. */
static void a_full_disk_takes_no_half_line(void **state) {
    const struct place *p = *state;
    struct rlimit old, full;
    struct stat st;
    struct err err = {0};
    const struct runlog_run run = {.source = "mcp", .facts = facts_usual};

    write_runs(p->file, 2);
    struct runlog *log = open_log(p->file, 0, 0);
    assert_int_equal(stat(p->file, &st), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    (void)signal(SIGXFSZ, SIG_IGN);
    full = (struct rlimit){(rlim_t)st.st_size + 100, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
    int r = runlog_write(log, &run, NULL, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(r, -EFBIG);
    assert_non_null(strstr(err.message, "run log: writing "));
    struct verify_report v = is_whole(p->file, 2);
    assert_int_equal(v.torn, 0);
    write_run(log, "room again", NULL);
    is_whole(p->file, 3);
    runlog_close(log);
}

/* ------------------------------------------------------------------ the journal */

static bool has_field(const char *data, size_t len, const char *name, const char *value) {
    char field[300];
    uint64_t size = strlen(value);
    int n = snprintf(field, sizeof(field), "%s\n", name);

    memcpy(field + n, &size, 8);
    memcpy(field + n + 8, value, size);
    return memmem(data, len, field, (size_t)n + 8 + size) != NULL;
}

static void the_journal_gets_fields_as_it_wants_them(void **state) {
    const struct place *p = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char target[200], data[8192];
    int sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), size = 4096;

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/journal", p->dir);
    (void)snprintf(target, sizeof(target), "journald:%s/journal", p->dir);
    assert_int_equal(bind(sock, (const void *)&address, sizeof(address)), 0);
    assert_int_equal(setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
    struct runlog *log = open_log(target, 0, 0);
    write_run(log, "print(1)", NULL);
    ssize_t n = recv(sock, data, sizeof(data), 0);
    assert_true(n > 0);
    assert_true(has_field(data, (size_t)n, "MESSAGE", "run 0123: exited"));
    assert_true(has_field(data, (size_t)n, "SYSLOG_IDENTIFIER", "mayfly"));
    assert_true(has_field(data, (size_t)n, "PRIORITY", "6"));
    assert_true(has_field(data, (size_t)n, "MAYFLY_ID", "0123"));
    assert_non_null(memmem(data, (size_t)n, "\"text\":\"print(1)\"", 17));
    /* One that is too large for a datagram comes as a file that nobody can change any more. */
    char *code = malloc(400001);
    assert_non_null(code);
    memset(code, 1, 400000); /* six bytes each in JSON */
    code[400000] = '\0';
    write_run(log, code, NULL);
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = {.iov_base = data, .iov_len = sizeof(data)};
    struct msghdr header = {.msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof(control.bytes)};
    n = recvmsg(sock, &header, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *c = CMSG_FIRSTHDR(&header);
    if (n == 0) {
        int fd = -1;
        assert_non_null(c);
        memcpy(&fd, CMSG_DATA(c), sizeof(fd));
        assert_int_equal(fcntl(fd, F_GET_SEALS) & F_SEAL_WRITE, F_SEAL_WRITE);
        assert_true(lseek(fd, 0, SEEK_END) > 200000);
        (void)close(fd);
    } else {
        fail_msg("%zd bytes came as a datagram", n);
    }
    free(code);
    runlog_close(log);
    (void)close(sock);
}

/* ------------------------------------------------------------------ sums */

static void add_runs(struct sum *s, int64_t hours_ago, int n, const char *outcome, int code,
                     bool timed_out, size_t hints) {
    const struct record r = {.outcome = outcome,
                             .source = "mcp",
                             .id = "",
                             .exit_code = code,
                             .timed_out = timed_out,
                             .hints = hints,
                             .wall_ms = 10,
                             .cpu_ms = -1,
                             .memory_bytes = 5,
                             .time_ms = s->now_ms - hours_ago * 3600000};

    for (int i = 0; i < n; i++)
        sum_add(s, &r);
}

static bool spikes(const struct sum *s, enum sum_share share) {
    return sum_is_spike(s, SUM_HOURS - 1, share);
}

static void a_spike_is_what_chance_does_not_make(void **unused) {
    struct sum s;

    (void)unused;
    sum_init(&s, INT64_C(1795999106000));
    add_runs(&s, 0, 20, "timed_out", 124, true, 1);
    assert_false(spikes(&s, SHARE_TIMED_OUT)); /* against what? */
    add_runs(&s, 30, 97, "exited", 0, false, 0);
    add_runs(&s, 31, 3, "timed_out", 124, true, 0);
    assert_true(spikes(&s, SHARE_TIMED_OUT));
    assert_true(spikes(&s, SHARE_FAILED));
    assert_true(spikes(&s, SHARE_HINTED));
    assert_false(sum_is_spike(&s, 0, SHARE_FAILED)); /* an hour without runs */
    sum_init(&s, INT64_C(1795999106000));
    add_runs(&s, 30, 70, "exited", 0, false, 0);
    add_runs(&s, 40, 30, "exited", 1, false, 0);
    add_runs(&s, 0, 70, "exited", 0, false, 0); /* the usual share of failures */
    add_runs(&s, 0, 35, "signaled", 139, false, 0);
    assert_false(spikes(&s, SHARE_FAILED));
    assert_false(spikes(&s, SHARE_TIMED_OUT));
    add_runs(&s, 0, 40, "oom_killed", 137, false, 0);
    assert_true(spikes(&s, SHARE_FAILED));
    /* Few are no spike, and what is too long ago or in the future counts in nothing but all. */
    sum_init(&s, INT64_C(1795999106000));
    add_runs(&s, 30, 100, "exited", 0, false, 0);
    add_runs(&s, 0, 9, "exited", 1, false, 0);
    assert_false(spikes(&s, SHARE_FAILED));
    add_runs(&s, 24 * 9, 5, "exited", 1, false, 0);
    add_runs(&s, -2, 5, "exited", 1, false, 0);
    assert_int_equal(s.before.runs, 100);
    assert_int_equal(s.all.runs, 119);
}

static void sums_are_shown_by_the_hour(void **unused) {
    struct sum s;
    char *text = NULL;
    size_t len;
    FILE *to = open_memstream(&text, &len);

    (void)unused;
    assert_non_null(to);
    sum_init(&s, INT64_C(1795999106000));
    add_runs(&s, 30, 100, "exited", 0, false, 0);
    add_runs(&s, 1, 10, "exited", 0, false, 0);
    add_runs(&s, 0, 10, "timed_out", 124, true, 0);
    sum_print(&s, to);
    assert_int_equal(fclose(to), 0);
    const char *const lines[] = {
        "2026-11-29 23:00         10         0.0%         0.0%         0.0%\n",
        "2026-11-30 00:00         10       100.0%       100.0%         0.0%  SPIKE: timed out  "
        "SPIKE: "
        "failed\n",
        "7 days before           100         0.0%         0.0%         0.0%\n",
        "A share far above the usual one",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        if (!strstr(text, lines[i]))
            fail_msg("no %s in\n%s", lines[i], text);
    free(text);
    json_t *o = sum_json(&s);
    const json_t *hours = json_object_get(o, "hours"), *last = json_array_get(hours, 1);
    assert_int_equal(json_array_size(hours), 2);
    assert_string_equal(json_string_value(json_object_get(last, "hour")),
                        "2026-11-30T00:00:00.000Z");
    assert_int_equal(json_integer_value(json_object_get(last, "timedOut")), 10);
    assert_int_equal(json_array_size(json_object_get(last, "spikes")), 2);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(o, "all"), "runs")), 120);
    json_decref(o);
}

static void counters_are_in_prometheus_format(void **unused) {
    struct sum s;
    char *text = NULL;
    size_t len;
    FILE *to = open_memstream(&text, &len);

    (void)unused;
    assert_non_null(to);
    sum_init(&s, INT64_C(1795999106000));
    add_runs(&s, 0, 2, "exited", 0, false, 0);
    add_runs(&s, 0, 1, "ti\"med\\out\n", 124, true, 1);
    sum_prometheus(&s, to);
    assert_int_equal(fclose(to), 0);
    const char *const lines[] = {
        "mayfly_runs_total{source=\"mcp\",outcome=\"exited\"} 2\n",
        "mayfly_runs_total{source=\"mcp\",outcome=\"ti\\\"med\\\\out \"} 1\n",
        "# TYPE mayfly_runs_total counter\n",
        "mayfly_runs_failed_total 1\n",
        "mayfly_runs_timed_out_total 1\n",
        "mayfly_runs_hinted_total 1\n",
        "mayfly_run_wall_seconds_total 0.030\n",
        "mayfly_run_memory_peak_bytes 5\n",
        "mayfly_last_run_timestamp_seconds 1795999106.000\n",
        "mayfly_log_spike{share=\"failed\"} 0\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        if (!strstr(text, lines[i]))
            fail_msg("no %s in\n%s", lines[i], text);
    free(text);
}

/* ------------------------------------------------------------------ what is asked for */

static int ask(struct asked *a, struct err *err, const char *const *words) {
    char *argv[16] = {NULL};
    int argc = 0;

    for (; words[argc]; argc++)
        argv[argc] = (char *)(uintptr_t)words[argc];
    return asked_parse(a, argc, argv, INT64_C(1795999106000), err);
}
#define ASK(a, err, ...) ask(a, err, (const char *const[]){"log", __VA_ARGS__, NULL})

static void flags_are_taken_or_refused_in_words(void **unused) {
    static const char *const bad[][2] = {
        {"--since=yesterday", "is no time"},
        {"--since=2026-13-01", "is no time"},
        {"--since=", "is no time"},
        {"--lines=0", "not a number"},
        {"--id", "wants a value"},
        {"--log=", "no file's name"},
        {"--log=journald", "journalctl"},
        {"--sinceX=1", "no such flag"},
        {"what", "what is that"},
        {"-x", "no such flag"},
    };
    struct asked a;
    struct err err = {0};

    (void)unused;
    assert_int_equal(ASK(&a, &err, "--log=/x", "-f", "--failed", "-n", "5", "--since", "2h",
                         "--outcome=exited", "--id=i", "--source", "mcp"),
                     0);
    assert_true(a.follow && a.failed && a.last == 5);
    assert_true(a.since == INT64_C(1795999106000) - 7200000);
    assert_string_equal(a.file, "/x");
    assert_int_equal(
        ASK(&a, &err, "--log", "/x", "--since", "2026-11-30", "--until=2026-11-30T12:00:00Z"), 0);
    assert_true(a.until - a.since == 12 * 3600000);
    assert_int_equal(ASK(&a, &err, "--log=/x", "--since=3d"), 0);
    assert_true(a.since == INT64_C(1795999106000) - 3 * 86400000);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        err_clear(&err);
        if (ASK(&a, &err, bad[i][0]) != -EINVAL || !strstr(err.message, bad[i][1]))
            fail_msg("%s: %s", bad[i][0], err.message);
    }
    err_clear(&err);
    assert_int_equal(ASK(&a, &err, "verify", "--stats"), -EINVAL);
    assert_int_equal(ASK(&a, NULL, "--log=/x", "--failed", "--source=mcp", "--since=1h"), 0);
    struct record r = {
        .outcome = "exited", .source = "mcp", .id = "", .time_ms = INT64_C(1795999106000)};
    assert_false(asked_wants(&a, &r));
    r.exit_code = 1;
    assert_true(asked_wants(&a, &r));
    r.source = "run";
    assert_false(asked_wants(&a, &r));
    r.source = "mcp";
    r.time_ms -= 3600001;
    assert_false(asked_wants(&a, &r));
    assert_true(asked_filters(&a));
    static const char *const narrow[] = {"--since=1h", "--until=1h",   "--failed",
                                         "--id=1",     "--source=run", "--outcome=lost"};
    for (size_t i = 0; i < ARRAY_LEN(narrow); i++) {
        assert_int_equal(ASK(&a, NULL, "--log=/x", narrow[i]), 0);
        assert_true(asked_filters(&a));
    }
    assert_int_equal(ASK(&a, NULL, "--log=/x", "--prometheus", "--json", "-n", "5"), 0);
    assert_false(asked_filters(&a));
}

static void runs_are_found_by_every_way_in_which_they_end(void **unused) {
    (void)unused;
    for (int i = 0; i <= MAYFLY_SETUP_FAILED; i++)
        assert_string_equal(asked_outcomes[i], mayfly_outcome_name((enum mayfly_outcome)i));
    assert_string_equal(asked_outcomes[MAYFLY_SETUP_FAILED + 1], "lost");
    assert_null(asked_outcomes[MAYFLY_SETUP_FAILED + 2]);
}

static void times_are_read_as_they_are_written(void **unused) {
    static const char *const bad[] = {"",
                                      "2026-11-30",
                                      "2026-11-30T00:38:26.123z",
                                      "2026-00-30T00:38:26.123Z",
                                      "2026-11-30T24:38:26.123Z",
                                      "2026-11-3000:38:26.123ZZ",
                                      "+026-11-30T00:38:26.123Z",
                                      "1026-11-30T00:38:26.123Z"};
    char text[32];
    int64_t ms = 0;

    (void)unused;
    time_print(INT64_C(1795999106123), text);
    assert_string_equal(text, "2026-11-30T00:38:26.123Z");
    assert_int_equal(time_parse(text, &ms), 0);
    assert_true(ms == INT64_C(1795999106123));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (time_parse(bad[i], &ms) == 0)
            fail_msg("%s was taken", bad[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define IN_PLACE(f) cmocka_unit_test_setup_teardown(f, make_place, remove_place)
        IN_PLACE(a_line_has_the_run_and_nothing_that_it_printed),
        cmocka_unit_test(code_is_logged_as_far_as_it_is_to_be),
        IN_PLACE(a_line_is_bounded_whatever_the_run_was),
        IN_PLACE(lines_of_others_show),
        IN_PLACE(whatever_bytes_the_code_has_it_is_a_record),
        IN_PLACE(every_change_shows),
        IN_PLACE(a_line_without_an_end_is_mended_by_the_next),
        IN_PLACE(writers_that_are_killed_leave_a_whole_log),
        IN_PLACE(many_writers_lose_nothing_and_rotation_goes_on),
        IN_PLACE(what_is_pruned_is_written_off_and_what_is_taken_is_not),
        IN_PLACE(a_rotation_that_was_cut_short_is_gone_on_with),
        IN_PLACE(a_file_that_was_written_off_and_is_still_there_does_no_harm),
        IN_PLACE(what_is_pruned_stays_in_the_counters),
        IN_PLACE(many_that_prune_at_once_count_each_run_once),
        IN_PLACE(counters_that_are_damaged_are_told_of_and_hold_up_no_log),
        IN_PLACE(what_is_no_file_of_the_log_is_named),
        IN_PLACE(a_line_longer_than_any_is_passed_over_and_told),
        IN_PLACE(a_writer_that_was_stopped_does_not_hold_the_others_for_ever),
        IN_PLACE(a_log_that_cannot_be_written_is_told_before_and_nothing_is_made),
        IN_PLACE(a_full_disk_takes_no_half_line),
        IN_PLACE(the_journal_gets_fields_as_it_wants_them),
        cmocka_unit_test(a_spike_is_what_chance_does_not_make),
        cmocka_unit_test(sums_are_shown_by_the_hour),
        cmocka_unit_test(counters_are_in_prometheus_format),
        cmocka_unit_test(flags_are_taken_or_refused_in_words),
        cmocka_unit_test(runs_are_found_by_every_way_in_which_they_end),
        cmocka_unit_test(times_are_read_as_they_are_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
