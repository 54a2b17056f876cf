/*
 * main.c: mayfly-agent, which `mayfly agent` becomes once it knows what the operator wants and where the image is. It is
 * a program of its own so that a single run loads no network library.
 *
 * The key is taken from the environment and wiped there before anything else is done: no program that is started from
 * here inherits it, and a box has an environment of its own in any case.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/loop.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/units.h"
#include "base/utf8.h"
#include "base/signals.h"
#include "tool/toolbox.h"

#include "base/banned.h"

enum {
    EXIT_INCOMPLETE = 3,
    EXIT_MAX_STEPS = 4,
    EXIT_MAYFLY = 125,
    EXIT_PIPE = 128 + 13, /* SIGPIPE: nobody reads the answer */
    MAX_QUESTION_BYTES = 4 << 20,
};

struct options {
    uint32_t settings_fd, max_steps;
    const char *question, *system_text;
    const char *failed; /* what mayfly itself has found wrong: it is only to be told */
    bool allow_run, json, quiet, no_log, log_given;
    struct runlog_options log;
    char *key, *from_stdin;
    struct endpoint_options endpoint;
};

static int usage(struct err *err, const char *remedy, const char *fmt, ...) PRINTF_LIKE(3, 4);
static int usage(struct err *err, const char *remedy, const char *fmt, ...) {
    char text[sizeof(err->message)];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return err_set(err, ERR_USAGE, -EINVAL, "", remedy, "%s", text);
}

/* ------------------------------------------------------------------ what is wanted */

static int take_number(const char *flag, const char *value, uint32_t least, uint32_t most,
                       uint32_t *ret, struct err *err) {
    uint32_t n = 0;

    if (parse_u32(value, &n) < 0 || n < least || n > most)
        return usage(err, NULL, "%s: \"%.64s\" is not %u to %u", flag, value, least, most);
    *ret = n;
    return 0;
}

static int take_time(const char *flag, const char *value, uint32_t *ret_ms, struct err *err) {
    uint64_t ms = 0;

    if (parse_duration_ms(value, &ms) < 0 || ms < 100 || ms > 86400000)
        return usage(err, NULL, "%s: \"%.64s\" is not 100ms to 24h", flag, value);
    *ret_ms = (uint32_t)ms;
    return 0;
}

static int take_flag(struct options *o, const char *flag, const char *value, struct err *err) {
    if (strcmp(flag, "--question") == 0)
        o->question = value;
    else if (strcmp(flag, "--failed") == 0)
        o->failed = value;
    else if (strcmp(flag, "--model") == 0)
        o->endpoint.model = value;
    else if (strcmp(flag, "--system") == 0)
        o->system_text = value;
    else if (strcmp(flag, "--max-steps") == 0)
        return take_number(flag, value, 1, 1000, &o->max_steps, err);
    else if (strcmp(flag, "--max-tokens") == 0)
        return take_number(flag, value, 1, 10000000, &o->endpoint.max_tokens, err);
    else if (strcmp(flag, "--retries") == 0)
        return take_number(flag, value, 0, 100, &o->endpoint.retries, err);
    else if (strcmp(flag, "--request-timeout") == 0)
        return take_time(flag, value, &o->endpoint.request_ms, err);
    else if (strncmp(flag, "--log", strlen("--log")) == 0) {
        const char *wrong = runlog_take_flag(&o->log, flag, strlen(flag), value);
        if (wrong)
            return usage(err, NULL, "%s: \"%.100s\" is not %s", flag, value, wrong);
        o->log_given = true;
    } else if (strcmp(flag, "--settings-fd") != 0 || parse_u32(value, &o->settings_fd) < 0)
        return usage(err, "this program is for mayfly to start: mayfly agent",
                     "%.64s: no such flag", flag);
    return 0;
}

static int parse(int argc, char **argv, struct options *o, struct err *err) {
    const struct {
        const char *flag;
        bool *to;
    } switches[] = {{"--allow-run", &o->allow_run},
                    {"--json", &o->json},
                    {"--quiet", &o->quiet},
                    {"--no-log", &o->no_log},
                    {"--no-stream", &o->endpoint.no_stream},
                    {"--plain-http", &o->endpoint.plain_http}};

    for (int i = 1; i < argc; i++) {
        size_t s = 0;
        while (s < ARRAY_LEN(switches) && strcmp(switches[s].flag, argv[i]) != 0)
            s++;
        if (s < ARRAY_LEN(switches)) {
            *switches[s].to = true;
            continue;
        }
        if (i + 1 >= argc)
            return usage(err, NULL, "%.64s: wants a value", argv[i]);
        int r = take_flag(o, argv[i], argv[i + 1], err);
        if (r < 0)
            return r;
        i++;
    }
    return o->no_log && o->log_given
               ? usage(err, NULL, "--no-log: and --log, or what it should hold, cannot both be had")
               : 0;
}

/* An empty variable is none. */
static const char *variable(const char *name) {
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

static int take_key(struct options *o, struct err *err) {
    static const char usual[] = "https://api.openai.com/v1";
    char *value = getenv("OPENAI_API_KEY");
    int r = 0;

    o->endpoint.base_url = variable("OPENAI_BASE_URL");
    o->endpoint.base_url = o->endpoint.base_url ? o->endpoint.base_url : usual;
    if (value && *value && !(o->key = strdup(value)))
        r = err_oom(err);
    if (value)
        explicit_bzero(value, strlen(value));
    (void)unsetenv("OPENAI_API_KEY");
    for (const char *c = o->key; c && *c && r == 0; c++)
        if (*c <= ' ' || *c > '~' || *c == '"' || *c == '\\')
            r = usage(
                err, "export it as the endpoint's owner gave it",
                "OPENAI_API_KEY: holds what no key has: a space, a quote, or what is not ASCII");
    if (r == 0 && !o->key && o->endpoint.base_url == usual)
        r = usage(err, "export it, or name an endpoint that wants none with OPENAI_BASE_URL",
                  "OPENAI_API_KEY is not set");
    o->endpoint.key = o->key;
    return r;
}

static int read_question(struct options *o, struct err *err) {
    size_t len = 0;
    char *text = NULL;

    if (strcmp(o->question, "-") == 0) {
        _cleanup_buf_ struct buf b = {0};
        char *to = buf_reserve(&b, MAX_QUESTION_BYTES + 1);
        ssize_t n = to ? fd_read_full(STDIN_FILENO, to, MAX_QUESTION_BYTES + 1) : -ENOMEM;
        if (n < 0)
            return err_errno(err, ERR_USAGE, (int)n, "", NULL, "the question from standard input");
        if (n > MAX_QUESTION_BYTES)
            return usage(err, "ask for less", "the question from standard input is over %d MiB",
                         MAX_QUESTION_BYTES >> 20);
        to[n] = '\0';
        len = (size_t)n;
        o->question = o->from_stdin = text = strdup(to);
        if (!text)
            return err_oom(err);
    }
    if (text && strlen(text) != len)
        return usage(err, NULL, "the question holds a NUL byte");
    if (!o->question[strspn(o->question, " \t\r\n")])
        return usage(err, "mayfly agent \"QUESTION\", or - for standard input",
                     "the question is empty");
    if (!utf8_valid(o->question, strlen(o->question)) ||
        (o->system_text && !utf8_valid(o->system_text, strlen(o->system_text))))
        return usage(err, NULL, "the question, or --system, is not UTF-8");
    return 0;
}

static int look_at(struct options *o, struct err *err) {
    if (!o->endpoint.model)
        o->endpoint.model = variable("OPENAI_MODEL");
    if (!o->endpoint.model || !utf8_valid(o->endpoint.model, strlen(o->endpoint.model)))
        return usage(err, "name one that the endpoint has, with --model or OPENAI_MODEL",
                     "no model is named");
    if (!o->question)
        return usage(err, "mayfly agent \"QUESTION\", or - for standard input", "no question");
    return read_question(o, err);
}

/* ------------------------------------------------------------------ what came of it */

static json_t *error_object(const struct err *err) {
    return err->code
               ? json_pack("{s:s,s:s}", "kind", err_kind_name(err->kind), "message", err->message)
               : json_null();
}

static json_t *tokens_object(const struct loop *l) {
    if (!l->has_tokens || !l->steps)
        return json_null();
    return json_pack("{s:I,s:I,s:I}", "prompt", (json_int_t)l->prompt_tokens, "completion",
                     (json_int_t)l->completion_tokens, "total",
                     (json_int_t)(l->prompt_tokens + l->completion_tokens));
}

static json_t *text_or_null(const char *text) { return *text ? json_string(text) : json_null(); }
static json_t *own(const json_t *value) {
    return value ? json_copy((json_t *)(uintptr_t)value) : NULL;
}
static json_t *or_else(json_t *value, json_t *other) {
    if (value)
        json_decref(other);
    return value ? value : other;
}

static char *summary_text(const struct options *o, const struct loop *l, enum loop_outcome outcome,
                          unsigned retries, double wall_ms, const struct err *err) {
    bool failed = outcome == LOOP_FAILED;
    json_t *summary = json_pack(
        "{s:s,s:o,s:o,s:o,s:o,s:i,s:i,s:o,s:f,s:o,s:o}", "outcome", loop_outcome_name(outcome),
        "answer", or_else(own(loop_answer(l)), json_null()), "error",
        failed ? error_object(err) : json_null(), "finishReason", text_or_null(l->finish), "model",
        text_or_null(l->model[0]         ? l->model
                     : o->endpoint.model ? o->endpoint.model
                                         : ""),
        "steps", (int)l->steps, "retries", (int)retries, "tokens", tokens_object(l), "wallMs",
        wall_ms, "messages", or_else(own(l->messages), json_array()), "runs",
        or_else(own(l->runs), json_array()));
    key_blot_json(summary, o->key);
    char *text = summary ? json_dumps(summary, JSON_COMPACT) : NULL;

    json_decref(summary);
    return text;
}

static int print_line(const char *text) {
    size_t len = strlen(text);
    int r = fd_write_full(STDOUT_FILENO, text, len);

    return r ? r : fd_write_full(STDOUT_FILENO, "\n", 1);
}

static int status_of(enum loop_outcome outcome, int signal_fd) {
    switch (outcome) {
    case LOOP_ANSWERED:
        return 0;
    case LOOP_INCOMPLETE:
        return EXIT_INCOMPLETE;
    case LOOP_MAX_STEPS:
        return EXIT_MAX_STEPS;
    case LOOP_INTERRUPTED: {
        int status = signals_status(signal_fd);
        return status ? status : EXIT_MAYFLY;
    }
    case LOOP_FAILED:
        break;
    }
    return EXIT_MAYFLY;
}

static void complain(const char *text) {
    char line[640];

    int n = snprintf(line, sizeof(line) - 1, "mayfly: agent: %s", text);
    size_t len = MIN((size_t)n, sizeof(line) - 2);
    utf8_make_line(line, len, (size_t)n > len);
    line[len] = '\n';
    (void)fd_write_full(STDERR_FILENO, line, len + 1);
}

/* In words, where it is not in an object. */
static void explain(const struct options *o, const struct loop *l, enum loop_outcome outcome,
                    const struct err *err) {
    char text[200];

    if (outcome == LOOP_FAILED) {
        complain(err->message);
    } else if (outcome == LOOP_MAX_STEPS) {
        (void)snprintf(text, sizeof(text),
                       "no answer within %u steps, the last of which wants to run something again; "
                       "allow more with --max-steps",
                       o->max_steps);
        complain(text);
    } else if (outcome == LOOP_INCOMPLETE) {
        bool cut = strcmp(l->finish, "length") == 0,
             filtered = strcmp(l->finish, "content_filter") == 0;
        (void)snprintf(text, sizeof(text), "the model's answer is %s: its finish reason is %s; %s",
                       cut || filtered ? "not whole" : "empty",
                       l->finish[0] ? l->finish : "not told",
                       cut        ? "allow more with --max-tokens"
                       : filtered ? "the endpoint holds back what it will not say; ask otherwise"
                                  : "ask again, or try another --model");
        complain(text);
    }
}

static int report(const struct options *o, const struct loop *l, enum loop_outcome outcome,
                  const struct screen *screen, unsigned retries, double wall_ms, int signal_fd,
                  const struct err *err) {
    int r = screen->error;

    if (o->json) {
        char *text _cleanup_free_ = summary_text(o, l, outcome, retries, wall_ms, err);
        r = text ? print_line(text) : -ENOMEM;
    } else {
        explain(o, l, outcome, err);
    }
    if (r == -EPIPE)
        return EXIT_PIPE;
    if (r < 0) {
        char text[120];
        (void)snprintf(text, sizeof(text), "writing to standard output: %s", errno_words(r));
        complain(text);
        return EXIT_MAYFLY;
    }
    return status_of(outcome, signal_fd);
}

/* ------------------------------------------------------------------ the whole */

static int take_error(const struct mayfly_error *error, struct err *err) {
    return err_set(err, (enum err_kind)error->kind, error->code, error->control, NULL, "%s",
                   error->message);
}

/* That the operator himself hands the key in is taken for a mistake. */
static int make_tools(const struct options *o, struct toolbox **ret, struct err *err) {
    const struct toolbox_options options = {
        .allow_run = o->allow_run, .source = "agent", .log = o->no_log ? NULL : &o->log};
    struct settings settings = {0};
    struct mayfly_error error = {0};
    int r = settings_read((int)o->settings_fd, &settings, &error);

    if (r < 0)
        return take_error(&error, err);
    size_t secret = key_secret(o->key);
    if (o->key && secret && settings.text.len &&
        memmem(settings.text.data, settings.text.len, o->key, secret)) {
        settings_done(&settings);
        return usage(err, "leave it out of the flags and the policy",
                     "OPENAI_API_KEY would be in the box, where the model's code could print it");
    }
    r = toolbox_new(&settings, &options, ret, &error);
    return r < 0 ? take_error(&error, err) : 0;
}

static int converse(struct options *o, int signal_fd) {
    const uint64_t since = now_ns();
    struct endpoint *endpoint = NULL;
    struct toolbox *tools = NULL;
    struct screen screen = {0};
    struct loop loop = {0};
    struct err err = {0};
    enum loop_outcome outcome = LOOP_FAILED;

    screen_init(&screen, o->quiet, o->json);
    int r = take_key(o, &err);
    if (r == 0 && o->failed)
        r = usage(&err, NULL, "%s", o->failed);
    r = r ? r : look_at(o, &err);
    o->endpoint.wake_fd = signal_fd;
    r = r ? r : endpoint_new(&o->endpoint, &endpoint, &err);
    r = r ? r : make_tools(o, &tools, &err);
    if (r == 0) {
        const struct loop_options lo = {.system_text = o->system_text,
                                        .question = o->question,
                                        .max_steps = o->max_steps,
                                        .cancel_fd = signal_fd};
        outcome = loop_run(&loop, &lo, endpoint, toolbox_tools(tools), &screen, &err);
    }
    int status = report(o, &loop, outcome, &screen, endpoint ? endpoint_retries(endpoint) : 0,
                        (double)(now_ns() - since) / 1e6, signal_fd, &err);
    loop_done(&loop);
    toolbox_free(tools);
    endpoint_free(endpoint);
    return status;
}

int main(int argc, char **argv) {
    struct options o = {.settings_fd = UINT32_MAX,
                        .max_steps = 6,
                        .endpoint = {.retries = 5, .request_ms = 600000}};
    struct err err = {0};
    int signal_fd = signals_watch();

    json_object_seed(0); /* before there are threads */
    if (signal_fd < 0)
        (void)err_errno(&err, ERR_INTERNAL, signal_fd, "", NULL, "signalfd");
    int status = EXIT_MAYFLY;
    if (signal_fd < 0 || parse(argc, argv, &o, &err) < 0)
        complain(err.message);
    else
        status = converse(&o, signal_fd);
    if (o.key)
        explicit_bzero(o.key, strlen(o.key));
    free(o.key);
    free(o.from_stdin);
    return status;
}
