/*
 * answer.c: see answer.h.
 *
 * A model corrects its code by what the interpreter said, so that is handed on as it is. What mayfly adds stands before
 * and after it, in sentences that say who did what: "killed" is never to be taken for a fault of the code's own words.
 */
#include "tool/answer.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/units.h"
#include "base/utf8.h"
#include "json/result_json.h"
#include "tool/files.h"

#include "base/banned.h"

void tool_answer_done(struct tool_answer *answer) {
    free(answer->text);
    free(answer->structured);
    json_decref(answer->more);
    free(answer->kept);
    *answer = (struct tool_answer){0};
}

const struct tool *tool_find(const struct tool_set *set, const char *name) {
    for (size_t i = 0; i < set->n; i++)
        if (strcmp(set->list[i].name, name) == 0)
            return &set->list[i];
    return NULL;
}

static const struct mayfly_limit *limit_of(const mayfly_result *r, const char *name) {
    for (size_t i = 0; i < r->n_limits; i++)
        if (strcmp(r->limits[i].name, name) == 0)
            return &r->limits[i];
    return NULL;
}

static void add_time(struct buf *b, const struct mayfly_limit *ms) {
    char text[32];

    buf_puts(b, format_ms(ms ? ms->value : 0, text, sizeof(text)));
}

static void add_memory_limit(struct buf *b, const mayfly_result *r) {
    const struct mayfly_limit *l = limit_of(r, "memory");
    char text[32];

    if (l)
        buf_printf(b, " of %s", format_bytes(l->value, text, sizeof(text)));
}

static void add_ending(struct buf *b, const mayfly_result *r) {
    switch (r->outcome) {
    case MAYFLY_EXITED:
        buf_printf(b, "exit code: %d\n", r->exit_code);
        return;
    case MAYFLY_SIGNALED:
        buf_printf(b, "The program was ended by signal %d (SIG%s).", r->signal,
                   sigabbrev_np(r->signal) ? sigabbrev_np(r->signal) : "?");
        break;
    case MAYFLY_TIMED_OUT:
        buf_puts(b, "The program was killed after ");
        add_time(b, limit_of(r, "wall"));
        buf_puts(b, ", its limit on the wall clock.");
        break;
    case MAYFLY_CPU_LIMIT:
        buf_puts(b, "The program was killed after ");
        add_time(b, limit_of(r, "cpuTime"));
        buf_puts(b, " of CPU time, its limit.");
        break;
    case MAYFLY_OOM_KILLED:
        buf_puts(b, "The program was killed because it used more memory than its limit");
        add_memory_limit(b, r);
        buf_puts(b, ".");
        break;
    case MAYFLY_OUTPUT_LIMIT:
        buf_puts(b, "The program was killed because it printed more than its limit.");
        break;
    case MAYFLY_CANCELLED:
        buf_puts(b, "The call was cancelled.");
        break;
    case MAYFLY_SETUP_FAILED:
        buf_printf(b, "The program was not started: %s.", r->error.message);
        return;
    }
    buf_puts(b, r->out.len || r->err.len ? " What it had printed until then:\n"
                                         : " It had printed nothing until then.\n");
}

/* Verbatim, but for what is no text. */
static void add_stream(struct buf *b, const char *name, const struct mayfly_stream *s) {
    if (s->total == 0)
        return;
    buf_printf(b, "\n%s:\n", name);
    if (utf8_valid(s->data, s->len)) {
        buf_add(b, s->data, s->len);
    } else {
        char *to = buf_reserve(b, 3 * s->len);
        b->len += to ? utf8_repair(s->data, s->len, to) : 0;
        if (to)
            b->data[b->len] = '\0';
    }
    if (s->len == 0 || s->data[s->len - 1] != '\n')
        buf_puts(b, "\n");
    if (s->truncated)
        buf_printf(b, "[mayfly: only the first %zu of the %llu bytes of %s are kept]\n", s->len,
                   (unsigned long long)s->total, name);
    if (!utf8_valid(s->data, s->len))
        buf_printf(b, "[mayfly: %s is not all UTF-8; the exact bytes are in %sBase64]\n", name,
                   name);
}

static void take_text(struct buf *b, struct tool_answer *ret) {
    ret->len = b->len;
    ret->text = buf_take(b);
}

void answer_result(const mayfly_result *r, bool code_is_ours, char *take_kept,
                   struct tool_answer *ret) {
    const char *slash = take_kept ? strrchr(take_kept, '/') : NULL;
    _cleanup_buf_ struct buf b = {0};

    add_ending(&b, r);
    add_stream(&b, "stdout", &r->out);
    add_stream(&b, "stderr", &r->err);
    files_name(r, slash ? slash + 1 : NULL, &b);
    if (r->outcome == MAYFLY_EXITED && r->n_files == 0 && r->out.total == 0 && r->err.total == 0)
        buf_puts(&b, code_is_ours ? "\nNothing was printed: print() what you want to see.\n"
                                  : "\nNothing was printed.\n");
    for (size_t i = 0; i < r->n_hints; i++)
        buf_printf(&b, "%shint: %s\n", i ? "" : "\n", r->hints[i]);
    *ret = (struct tool_answer){.structured = result_to_json(r),
                                .more = files_content(r),
                                .kept = take_kept,
                                .is_error = r->outcome == MAYFLY_SETUP_FAILED &&
                                            (code_is_ours || r->exit_code < 0)};
    take_text(&b, ret);
}

void answer_failure(const struct mayfly_error *error, struct tool_answer *ret) {
    _cleanup_buf_ struct buf b = {0};

    buf_printf(&b,
               "The sandbox itself failed, and nothing was executed; this is no fault of the code. "
               "mayfly: %s\n",
               error->message);
    *ret = (struct tool_answer){.is_error = true, .structured = error_to_json(error)};
    take_text(&b, ret);
}

void answer_unlogged(const struct mayfly_error *error, struct tool_answer *answer) {
    _cleanup_buf_ struct buf b = {0};

    buf_printf(&b,
               "This call is missing in the log that the operator keeps, which is no fault of the "
               "code. mayfly: %s\n",
               error->message);
    buf_add(&b, answer->text ? answer->text : "", answer->len);
    free(answer->text);
    take_text(&b, answer);
    answer->is_error = true;
}

void answer_mistake(struct tool_answer *ret, const char *fmt, ...) {
    char message[480];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    utf8_make_line(message, strlen(message), n >= (int)sizeof(message));
    *ret = (struct tool_answer){.is_error = true, .text = strdup(message), .len = strlen(message)};
}
