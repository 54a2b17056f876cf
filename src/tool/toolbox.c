/*
 * toolbox.c: see toolbox.h. Here is what a model is told, and how its words become a box's.
 */
#include "tool/toolbox.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/state.h"
#include "base/units.h"
#include "tool/answer.h"
#include "tool/files_in.h"
#include "tool/kept.h"
#include "tool/log.h"
#include "tool/word.h"

#include "base/banned.h"

static const char result_schema[] = {
#include "result_schema.json.inc"
};
static const char probe[] = {
#include "probe.py.inc"
};

enum { MAX_TOOLS = 2, MAX_WORDS = 256, MAX_NAMES = 60 };

struct toolbox {
    struct settings settings;
    struct toolbox_options options;
    struct kept kept;
    struct witness *witness; /* NULL: nothing is logged */
    uint64_t longest_ms;
    struct tool list[MAX_TOOLS];
    struct tool_set set;
};

/* ------------------------------------------------------------------ what the box is */

/* What the first box told. */
struct facts {
    const mayfly_result *limits; /* those of the box */
    const char *version;         /* of Python; NULL: there is none */
    struct buf packages;         /* "numpy, pandas"; empty: none */
    bool keeps_files;            /* --out */
};

static uint64_t limit_value(const mayfly_result *r, const char *name) {
    for (size_t i = 0; i < r->n_limits; i++)
        if (strcmp(r->limits[i].name, name) == 0)
            return r->limits[i].value;
    return 0;
}

static void add_limits(struct buf *b, const mayfly_result *r) {
    char time[32], memory[32], tmp[32], output[32];
    double cpus = (double)limit_value(r, "cpu") / 1000;

    buf_printf(b, "limits: %s of wall clock time",
               format_ms(limit_value(r, "wall"), time, sizeof(time)));
    if (limit_value(r, "cpuTime"))
        buf_printf(b, ", %s of CPU time", format_ms(limit_value(r, "cpuTime"), time, sizeof(time)));
    if (limit_value(r, "memory"))
        buf_printf(b, ", %s of memory",
                   format_bytes(limit_value(r, "memory"), memory, sizeof(memory)));
    if (cpus > 0)
        buf_printf(b, ", %g CPU%s", cpus, cpus == 1 ? "" : "s");
    if (limit_value(r, "pids"))
        buf_printf(b, ", %llu processes and threads", (unsigned long long)limit_value(r, "pids"));
    buf_printf(b, ", %s in /tmp, %s kept of each of stdout and stderr",
               format_bytes(limit_value(r, "tmp"), tmp, sizeof(tmp)),
               format_bytes(limit_value(r, "output"), output, sizeof(output)));
}

static void add_box(struct buf *b, const struct facts *f) {
    buf_puts(
        b,
        "Each call is a new machine, thrown away after it: no variable, file or process stays for "
        "the next call. There is no network at all (no downloads, no pip install). Files can be "
        "written below /tmp, /out and /home/box only, and programs there cannot be executed. There "
        "is "
        "no terminal and no root. Files that are handed in with the call lie below /in. ");
    buf_puts(b, f->keeps_files
                    ? "What is left in /out is kept for the user, each call's in a directory of "
                      "its own. The "
                    : "What is left in /out comes back with the answer, pictures (PNG, JPEG, GIF, "
                      "WebP) as pictures. The ");
    add_limits(b, f->limits);
    buf_puts(
        b, ".\nThe answer has the exit code, stdout and stderr as they are. A program that fails "
           "is an "
           "ordinary answer: read the traceback, correct the code, and call again. One that runs "
           "too long or takes too much memory is killed, and what it had printed is in the answer. "
           "Where the sandbox stopped it, a hint says what to do instead.");
}

static char *python_description(const struct facts *f) {
    _cleanup_buf_ struct buf b = {0};

    buf_printf(
        &b,
        "Run Python code in a sandbox and see what it prints.\nThe code is a whole program for "
        "Python %s with the standard library%s%s. Print what you want to see: the value of the "
        "last expression is not shown. ",
        f->version, f->packages.len ? " and these packages: " : " and no other package",
        f->packages.len ? f->packages.data : "");
    add_box(&b, f);
    return b.failed ? NULL : buf_take(&b);
}

static char *command_description(const struct facts *f) {
    _cleanup_buf_ struct buf b = {0};

    buf_puts(&b,
             "Run a command in a sandbox and see what it prints.\nThe command is a program of the "
             "sandbox's image with its arguments, not a line for a shell; for that write "
             "[\"sh\", \"-c\", \"…\"]. ");
    add_box(&b, f);
    return b.failed ? NULL : buf_take(&b);
}

/* ------------------------------------------------------------------ definitions */

/* The arguments that both tools take besides their own. */
static json_t *common_properties(uint64_t longest_ms) {
    return json_pack(
        "{s:o,s:{s:s,s:s},s:{s:s,s:i,s:f,s:s}}", "files", files_in_schema(), "stdin", "type",
        "string", "description",
        "what the program reads from its standard input; without it that is empty", "timeout",
        "type", "number", "exclusiveMinimum", 0, "maximum", (double)longest_ms / 1000,
        "description",
        "seconds of wall clock time until it is killed; the maximum if it is left out");
}

static json_t *input_schema(const char *name, json_t *take_own, uint64_t longest_ms) {
    json_t *properties = json_pack("{s:o}", name, take_own),
           *common = common_properties(longest_ms);

    if (json_object_update(properties, common) < 0) {
        json_decref(properties);
        properties = NULL;
    }
    json_decref(common);
    return json_pack("{s:s,s:o,s:[s],s:b}", "type", "object", "properties", properties, "required",
                     name, "additionalProperties", 0);
}

/* Files of the host's that a call could change: only what the operator has handed in can be. */
static bool reaches_files(const struct settings *s) {
    return settings_have(s, "volume") || settings_have(s, "mount") ||
           settings_have(s, "read-only") || settings_have(s, "");
}

/* Takes all it is given, also where that is nothing for want of memory: then it is NULL. */
static json_t *definition(const struct toolbox *t, const char *name, const char *title,
                          char *take_description, json_t *take_input) {
    char *description _cleanup_free_ = take_description;
    json_t *output = json_loadb(result_schema, sizeof(result_schema), 0, NULL);

    bool harmless = !reaches_files(&t->settings);
    return json_pack("{s:s,s:s,s:s,s:o,s:o,s:{s:b,s:b,s:b}}", "name", name, "title", title,
                     "description", description, "inputSchema", take_input, "outputSchema", output,
                     "annotations", "readOnlyHint", harmless, "destructiveHint", !harmless,
                     "openWorldHint", 0);
}

/* ------------------------------------------------------------------ arguments */

/* What the model asked for, as it lies in its arguments. */
struct asked {
    const char *code, *stdin_data;
    size_t code_len, stdin_len;
    const char *words[MAX_WORDS + 1]; /* of a command; ends with NULL */
    const json_t *files;
    uint64_t timeout_ms;
};

static bool take_text(const json_t *arguments, const char *name, const char **ret,
                      size_t *ret_len) {
    const json_t *value = json_object_get(arguments, name);

    if (!value || json_is_null(value))
        return true;
    *ret = json_string_value(value);
    *ret_len = json_string_length(value);
    return *ret != NULL;
}

static bool take_words(const json_t *list, const char *words[MAX_WORDS + 1]) {
    size_t n = json_array_size(list), i;
    const json_t *word;

    if (n == 0 || n > MAX_WORDS)
        return false;
    json_array_foreach(list, i, word) {
        words[i] = json_word(word);
        if (!words[i])
            return false;
    }
    return words[0] && *words[0];
}

static bool take_timeout(const struct toolbox *t, const json_t *arguments, struct asked *ret) {
    const json_t *value = json_object_get(arguments, "timeout");
    double ms = json_number_value(value) * 1000;

    ret->timeout_ms = t->longest_ms;
    if (!value || json_is_null(value))
        return true;
    if (!json_is_number(value) || !(ms > 0) || ms > (double)t->longest_ms)
        return false;
    ret->timeout_ms = ms < 1 ? 1 : (uint64_t)llround(ms);
    return true;
}

static const char *stranger(const json_t *arguments, const char *own) {
    const char *const known[] = {own, "stdin", "files", "timeout"};
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)arguments, name, value) {
        size_t i = 0;
        while (i < ARRAY_LEN(known) && strcmp(name, known[i]) != 0)
            i++;
        if (i == ARRAY_LEN(known))
            return name;
    }
    return NULL;
}

/* What both tools take; false: the answer says what is wrong. */
static bool take_common(const struct toolbox *t, const char *tool, const char *own,
                        const json_t *arguments, struct asked *ret, struct tool_answer *answer) {
    const char *name = stranger(arguments, own);

    ret->files = json_object_get(arguments, "files");
    if (name)
        answer_mistake(
            answer,
            "%s has no argument \"%.64s\"; it takes %s, stdin, files and timeout. Limits are the "
            "operator's, and cannot be asked for.",
            tool, name, own);
    else if (!take_text(arguments, "stdin", &ret->stdin_data, &ret->stdin_len))
        answer_mistake(answer, "%s: \"stdin\" has to be a string.", tool);
    else if (!take_timeout(t, arguments, ret))
        answer_mistake(
            answer,
            "%s: \"timeout\" has to be a number of seconds above 0 and at most %g, which "
            "is this server's limit; leave it out to get that.",
            tool, (double)t->longest_ms / 1000);
    else
        return true;
    return false;
}

/* ------------------------------------------------------------------ calls */

static int make_policy(const struct toolbox *t, uint64_t timeout_ms, mayfly_policy **ret,
                       struct mayfly_error *error) {
    static const char *const out[][2] = {{"out", "-"}, {"out-size", "8m"}, {"out-files", "20"}};
    mayfly_policy *policy = mayfly_policy_new();
    char time[32];
    int r = 0;

    if (!policy) {
        *error = (struct mayfly_error){
            .code = -ENOMEM, .kind = MAYFLY_E_INTERNAL, .message = "out of memory"};
        return -ENOMEM;
    }
    /* What is in an answer goes through the model: less than a run may leave, unless the operator says otherwise. */
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(out); i++)
        r = mayfly_policy_set(policy, out[i][0], out[i][1], error);
    r = r < 0 ? r : settings_apply(&t->settings, policy, error);
    (void)snprintf(time, sizeof(time), "%llums", (unsigned long long)timeout_ms);
    if (r == 0 && timeout_ms)
        r = mayfly_policy_set(policy, "timeout", time, error);
    if (r < 0)
        mayfly_policy_free(policy);
    else
        *ret = policy;
    return r;
}

/* What the box is to be, but for files. */
static int make_wanted(const struct toolbox *t, const struct asked *a, mayfly_policy **ret,
                       struct mayfly_error *error) {
    mayfly_policy *policy = NULL;
    int r = make_policy(t, a->timeout_ms, &policy, error);

    if (r < 0)
        return r;
    r = a->code ? mayfly_policy_python(policy, NULL, error)
                : mayfly_policy_command(policy, a->words, error);
    if (r < 0)
        mayfly_policy_free(policy);
    else
        *ret = policy;
    return r;
}

static int run(const mayfly_policy *policy, const struct asked *a, int cancel_fd,
               mayfly_result **ret_result, struct mayfly_error *error) {
    const struct mayfly_input input = {.code = a->code,
                                       .code_len = a->code_len,
                                       .stdin_data = a->stdin_data,
                                       .stdin_len = a->stdin_len,
                                       .cancel_fd = cancel_fd};

    return mayfly_run(policy, &input, ret_result, error);
}

static void tell(const struct tool_run *run_, const mayfly_result *r) {
    char text[200];

    if (!run_->log)
        return;
    for (size_t i = 0; i < r->n_warnings; i++)
        run_->log(run_, TOOL_WARNING, r->warnings[i]);
    (void)snprintf(text, sizeof(text), "run %s: %s, exit code %d, %.1f ms", r->id,
                   mayfly_outcome_name(r->outcome), r->exit_code, r->wall_ms);
    run_->log(run_, TOOL_INFO, text);
}

static void fail(const struct tool_run *run_, const struct mayfly_error *error,
                 struct tool_answer *ret) {
    if (run_->log)
        run_->log(run_, TOOL_ERROR, error->message);
    answer_failure(error, ret);
}

static void answer(const mayfly_result *result, const struct mayfly_error *error,
                   const struct asked *a, const struct tool_run *run_, char *take_kept,
                   struct tool_answer *ret) {
    kept_end(&take_kept);
    if (result) {
        tell(run_, result);
        answer_result(result, a->code != NULL, take_kept, ret);
    } else {
        fail(run_, error, ret);
        free(take_kept);
    }
}

/* One box, with its line in the log, which has `files`: where that cannot be written there is none. */
static void execute(struct toolbox *t, mayfly_policy *policy, const struct asked *a,
                    const char *files, const struct tool_run *run_, struct tool_answer *ret) {
    const struct runlog_run entry = {.source = t->options.source,
                                     .code = a->code,
                                     .code_len = a->code_len,
                                     .command = a->code ? NULL : a->words,
                                     .files = files};
    struct mayfly_error error = {0}, unlogged = {0};
    mayfly_result *result = NULL;
    struct call_log log;
    char *kept = NULL;

    /* The policy that is logged is the operator's, without the call's own directory: its digest is to stay the same. */
    if (call_log_begin(&log, t->options.log, t->witness, &entry, policy, &error) < 0) {
        fail(run_, &error, ret);
        return;
    }
    if (kept_begin(&t->kept, policy, &kept, &error) == 0)
        (void)run(policy, a, run_->cancel_fd, &result, &error);
    int logged = call_log_end(&log, result, &error, &unlogged);
    answer(result, &error, a, run_, kept, ret);
    if (logged < 0) {
        if (run_->log)
            run_->log(run_, TOOL_ERROR, unlogged.message);
        answer_unlogged(&unlogged, ret);
    }
    mayfly_result_free(result);
}

static void call(struct toolbox *t, const char *tool, const struct asked *a,
                 const struct tool_run *run_, struct tool_answer *ret) {
    struct mayfly_error error = {0};
    mayfly_policy *policy = NULL;
    char *files _cleanup_free_ = NULL; /* as the log has them */

    if (make_wanted(t, a, &policy, &error) < 0)
        fail(run_, &error, ret);
    else if (files_in_add(tool, a->files, policy, &files, ret))
        execute(t, policy, a, files, run_, ret);
    mayfly_policy_free(policy);
}

static void run_python(void *owner, const json_t *arguments, const struct tool_run *run_,
                       struct tool_answer *ret) {
    struct toolbox *t = owner;
    struct asked a = {0};

    if (!take_common(t, "run_python", "code", arguments, &a, ret))
        return;
    if (!take_text(arguments, "code", &a.code, &a.code_len) || !a.code)
        answer_mistake(ret, "run_python: \"code\" has to be a string, the whole program.");
    else
        call(t, "run_python", &a, run_, ret);
}

static void run_command(void *owner, const json_t *arguments, const struct tool_run *run_,
                        struct tool_answer *ret) {
    struct toolbox *t = owner;
    struct asked a = {0};

    if (!take_common(t, "run_command", "command", arguments, &a, ret))
        return;
    if (!take_words(json_object_get(arguments, "command"), a.words))
        answer_mistake(
            ret,
            "run_command: \"command\" has to be a list of 1 to %d strings, a program and "
            "its arguments, such as [\"sh\", \"-c\", \"ls -l /\"].",
            MAX_WORDS);
    else
        call(t, "run_command", &a, run_, ret);
}

/* ------------------------------------------------------------------ making one */

static int failed(struct mayfly_error *error, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
static int failed(struct mayfly_error *error, int code, const char *fmt, ...) {
    va_list ap;

    *error = (struct mayfly_error){.code = code,
                                   .kind = code == -ENOMEM ? MAYFLY_E_INTERNAL : MAYFLY_E_SETUP};
    va_start(ap, fmt);
    (void)vsnprintf(error->message, sizeof(error->message), fmt, ap);
    va_end(ap);
    return code;
}

/* The image's words are put before a model: nothing but a version and names comes through. */
static bool is_word(const char *text, const char *also) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    size_t n = 0;

    while (text[n] && (strchr(letters, text[n]) || strchr(also, text[n])))
        n++;
    return n > 0 && n <= 48 && text[n] == '\0';
}

static int read_facts(const mayfly_result *r, char *text, struct facts *f,
                      struct mayfly_error *error) {
    char *save = NULL, *line = strtok_r(text, "\n", &save);

    if (r->outcome == MAYFLY_SETUP_FAILED && r->exit_code == 127)
        return 0; /* no Python */
    if (r->outcome != MAYFLY_EXITED || r->exit_code != 0 || !line || !is_word(line, ".+-~"))
        return failed(
            error, -EPROTO,
            "the image's Python does not work: a first program, which prints its version, "
            "ended with outcome %s, exit code %d; see what mayfly python -c 'import sys; "
            "print(sys.version)' says with the same flags",
            mayfly_outcome_name(r->outcome), r->exit_code);
    f->version = line;
    size_t n = 0;
    for (line = strtok_r(NULL, "\n", &save); line && n < MAX_NAMES;
         line = strtok_r(NULL, "\n", &save))
        if (is_word(line, ""))
            buf_printf(&f->packages, "%s%s", n++ ? ", " : "", line);
    return 0;
}

static void add_tool(struct toolbox *t, const char *name, json_t *take_definition,
                     void (*function)(void *, const json_t *, const struct tool_run *,
                                      struct tool_answer *)) {
    t->list[t->set.n++] =
        (struct tool){.name = name, .definition = take_definition, .call = function};
}

static int define(struct toolbox *t, const struct facts *f, struct mayfly_error *error) {
    if (f->version)
        add_tool(t, "run_python",
                 definition(t, "run_python", "Run Python code", python_description(f),
                            input_schema("code",
                                         json_pack("{s:s,s:s}", "type", "string", "description",
                                                   "the whole program"),
                                         t->longest_ms)),
                 run_python);
    if (t->options.allow_run)
        add_tool(t, "run_command",
                 definition(
                     t, "run_command", "Run a command", command_description(f),
                     input_schema("command",
                                  json_pack("{s:s,s:{s:s},s:i,s:i,s:s}", "type", "array", "items",
                                            "type", "string", "minItems", 1, "maxItems", MAX_WORDS,
                                            "description", "the program and its arguments"),
                                  t->longest_ms)),
                 run_command);
    if (t->set.n == 0)
        return failed(error, -ENOENT,
                      "the image has no python3, so there is no tool to offer; name one that has "
                      "(--image python:3.12-slim), or offer its commands with --allow-run");
    for (size_t i = 0; i < t->set.n; i++)
        if (!t->list[i].definition)
            return failed(error, -ENOMEM, "out of memory");
    return 0;
}

/* Whether calls can be logged, and where the code cannot have a hand in it. */
static int prepare_log(struct toolbox *t, const mayfly_policy *policy, struct mayfly_error *error) {
    struct mayfly_error within = {0};
    struct runlog *log = NULL;
    struct err err = {0};
    char usual[4096];

    if (!t->options.log)
        return 0;
    const char *path = state_log_path(t->options.log->target, usual, sizeof(usual));
    int r = path ? mayfly_policy_outside(policy, path, &within) : 0;
    if (r < 0)
        return failed(error, r, "run log: %.400s; or log nothing: --no-log", within.message);
    r = runlog_open(t->options.log, &log, &err);
    runlog_close(log);
    return r < 0 ? failed(error, r, "%s; or log nothing: --no-log", err.message)
                 : witness_new(t->options.log, &t->witness, error);
}

static int look(struct toolbox *t, struct mayfly_error *error) {
    const struct asked a = {.code = probe, .code_len = sizeof(probe)};
    mayfly_result *result = NULL;
    mayfly_policy *policy = NULL;
    struct facts f = {0};
    int r = make_wanted(t, &a, &policy, error);

    r = r < 0 ? r : prepare_log(t, policy, error);
    if (r < 0) {
        mayfly_policy_free(policy);
        return r;
    }
    const char *out = mayfly_policy_text(policy, "out");
    f.keeps_files = out && strcmp(out, "-") != 0;
    if (f.keeps_files && !(t->kept.dir = strdup(out)))
        r = failed(error, -ENOMEM, "out of memory");
    r = r < 0 ? r : run(policy, &a, 0, &result, error);
    mayfly_policy_free(policy);
    if (r < 0 || !result)
        return r;
    char *text _cleanup_free_ = strndup(result->out.data, result->out.len);
    f.limits = result;
    t->longest_ms = limit_value(result, "wall");
    r = text ? read_facts(result, text, &f, error) : failed(error, -ENOMEM, "out of memory");
    if (r == 0)
        r = define(t, &f, error);
    buf_done(&f.packages);
    mayfly_result_free(result);
    return r;
}

int toolbox_new(struct settings *take_settings, const struct toolbox_options *options,
                struct toolbox **ret, struct mayfly_error *error) {
    struct toolbox *t = calloc(1, sizeof(*t));

    if (!t) {
        settings_done(take_settings);
        return failed(error, -ENOMEM, "out of memory");
    }
    t->settings = *take_settings;
    *take_settings = (struct settings){0};
    t->options = *options;
    t->set.list = t->list;
    t->set.owner = t;
    int r = look(t, error);
    t->set.longest_s = (double)t->longest_ms / 1000;
    if (r < 0)
        toolbox_free(t);
    else
        *ret = t;
    return r;
}

void toolbox_free(struct toolbox *t) {
    if (!t)
        return;
    for (size_t i = 0; i < t->set.n; i++)
        json_decref(t->list[i].definition);
    settings_done(&t->settings);
    witness_free(t->witness);
    free(t->kept.dir);
    free(t);
}

const struct tool_set *toolbox_tools(const struct toolbox *t) { return &t->set; }
