/*
 * record_run.c: `mayfly-log record`, which mayfly starts before a run with --log.
 *
 *   mayfly                      mayfly-log record
 *   starts it -------------->
 *          <----------------- "ready", or "error WORDS": there will be no run then
 *   one line of JSON: who, command, policy, codeBytes
 *   codeBytes of code ------>
 *   … the run …
 *   the result as JSON, and the end of file
 *          <----------------- "ok", "ok NOTE", or "error WORDS"
 *
 * Whoever dies in between has closed its end, and the record says that the run
 * was lost: there is a line for every run that was let go. The terminal's
 * signals are mayfly's to act on, and not for this one.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "log/log.h"

#include "base/banned.h"

enum { HEADER_MAX = 8 << 20, CODE_MAX = 64 << 20, FACTS_MAX = 8 << 20, COMMAND_MAX = 4096 };

static int answer(const char *word, const char *text) {
    _cleanup_buf_ struct buf line = {0};

    buf_printf(&line, "%s%s%s\n", word, *text ? " " : "", text);
    return line.failed || fd_write_full(STDOUT_FILENO, line.data, line.len) < 0 ? EXIT_TROUBLE : 0;
}

/* Everything on standard input: it ends with mayfly's end. */
static int read_all(struct buf *text) {
    enum { CHUNK = 64 << 10 };

    for (;;) {
        char *to = buf_reserve(text, CHUNK);
        if (!to)
            return -ENOMEM;
        ssize_t n = read(STDIN_FILENO, to, CHUNK);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return 0;
        text->len += n > 0 ? (size_t)n : 0;
        if (text->len > (size_t)HEADER_MAX + CODE_MAX + FACTS_MAX)
            return -EFBIG;
    }
}

struct asked_record {
    json_t *header;
    const char *command[COMMAND_MAX + 1];
    struct runlog_run run;
};

/* What came, as a run. Half a header is no run: nothing was let go before it was whole. */
static bool take(struct buf *text, struct asked_record *a) {
    char *newline = text->len ? memchr(text->data, '\n', text->len) : NULL;

    if (!newline)
        return false;
    a->header = json_loadb(text->data, (size_t)(newline - text->data), JSON_ALLOW_NUL, NULL);
    const json_t *bytes = json_object_get(a->header, "codeBytes"),
                 *command = json_object_get(a->header, "command");
    const char *source = json_string_value(json_object_get(a->header, "source"));
    size_t rest = text->len - (size_t)(newline + 1 - text->data);
    if (!source || (bytes && (!json_is_integer(bytes) || json_integer_value(bytes) < 0 ||
                              (uint64_t)json_integer_value(bytes) > rest)))
        return false;
    a->run.source = source;
    a->run.policy = json_string_value(json_object_get(a->header, "policy"));
    if (bytes) {
        a->run.code = newline + 1;
        a->run.code_len = (size_t)json_integer_value(bytes);
    }
    for (size_t i = 0; i < json_array_size(command) && i < COMMAND_MAX; i++) {
        const char *word = json_string_value(json_array_get(command, i));
        a->command[i] = word ? word : "";
    }
    a->run.command = command ? a->command : NULL;
    if (rest > a->run.code_len) {
        text->data[text->len] = '\0'; /* buf keeps room for it */
        a->run.facts = newline + 1 + a->run.code_len;
    }
    return true;
}

static int parse(int argc, char **argv, struct runlog_options *o, struct err *err) {
    for (int i = 1; i < argc; i++) {
        const char *eq = strchr(argv[i], '='), *value = eq ? eq + 1 : "";
        size_t len = eq ? (size_t)(eq - argv[i]) : strlen(argv[i]);
        const char *wrong = runlog_take_flag(o, argv[i], len, value);

        if (wrong)
            return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "%.*s: \"%.100s\" is not %s",
                           (int)MIN(len, 64u), argv[i], value, wrong);
    }
    return 0;
}

int record_run(int argc, char **argv) {
    struct runlog_options options = {0};
    struct runlog *log = NULL;
    struct asked_record a = {0};
    struct err err = {0};
    _cleanup_buf_ struct buf text = {0};
    char note[256] = "";
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ};

    for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
        (void)signal(ignored[i], SIG_IGN);
    int r = parse(argc, argv, &options, &err);
    r = r < 0 ? r : runlog_open(&options, &log, &err);
    if (r < 0)
        return (void)answer("error", err.message), EXIT_TROUBLE;
    int status = answer("ready", "");
    (void)clock_gettime(CLOCK_REALTIME, &a.run.start);
    r = status ? -EPIPE : read_all(&text);
    if (r == 0 && take(&text, &a))
        r = runlog_write(log, &a.run, note, &err);
    json_decref(a.header);
    runlog_close(log);
    if (r < 0)
        return (void)answer("error", err.code ? err.message : errno_words(r)), EXIT_TROUBLE;
    return answer("ok", note);
}
