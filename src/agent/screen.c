/*
 * screen.c: see screen.h.
 */
#include "agent/screen.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/units.h"
#include "base/utf8.h"

#include "base/banned.h"

enum { MAX_LINES = 24, MAX_LINE_BYTES = 300 };

void screen_init(struct screen *s, bool quiet, bool json) {
    *s = (struct screen){.live = !json && isatty(STDOUT_FILENO) == 1,
                         .detailed = !json && !quiet && isatty(STDERR_FILENO) == 1,
                         .quiet = quiet,
                         .json = json};
}

static void out(struct screen *s, const char *text, size_t len) {
    if (s->error == 0)
        s->error = fd_write_full(STDOUT_FILENO, text, len);
}

/* C0, DEL and C1 (which is two bytes), but for newlines and tabs. */
static size_t control_bytes(const char *text, size_t len) {
    unsigned char c = (unsigned char)text[0];

    if ((c < ' ' && c != '\n' && c != '\t') || c == 0x7f)
        return 1;
    return c == 0xc2 && len > 1 && (unsigned char)text[1] < 0xa0 ? 2 : 0;
}

static void add_shown(struct buf *b, const char *text, size_t len) {
    for (size_t i = 0, n; i < len; i += n ? n : 1) {
        n = control_bytes(text + i, len - i);
        if (n == 0)
            buf_add(b, text + i, 1);
    }
}

void screen_text(struct screen *s, const char *text, size_t len) {
    _cleanup_buf_ struct buf b = {0};

    if (!s->live)
        return;
    add_shown(&b, text, len);
    if (b.failed || b.len == 0)
        return;
    out(s, b.data, b.len);
    s->in_line = b.data[b.len - 1] != '\n';
}

static void end_line(struct screen *s) {
    if (s->in_line)
        out(s, "\n", 1);
    s->in_line = false;
}

void screen_answer(struct screen *s, const char *text, size_t len) {
    if (s->json)
        return;
    if (s->live) {
        end_line(s);
        return;
    }
    out(s, text, len);
    if (len > 0 && text[len - 1] != '\n')
        out(s, "\n", 1);
}

/* In one write: others may write there too. */
static void err_line(const char *before, const char *text, size_t len) {
    char line[1024];

    int n = snprintf(line, sizeof(line) - 1, "%s%.*s", before, (int)MIN(len, sizeof(line)), text);
    size_t end = MIN((size_t)n, sizeof(line) - 2);
    utf8_make_line(line, end, (size_t)n > end);
    line[end] = '\n';
    (void)fd_write_full(STDERR_FILENO, line, end + 1);
}

void screen_note(struct screen *s, const char *line) {
    if (s->json || s->quiet)
        return;
    end_line(s);
    err_line("mayfly: agent: ", line, strlen(line));
}

/* A text's first lines, set in. */
static void show_lines(const char *text, size_t len) {
    size_t lines = 0;

    while (len > 0 && lines++ < MAX_LINES) {
        const char *end = memchr(text, '\n', len);
        size_t n = end ? (size_t)(end - text) : len;
        err_line("  | ", text, MIN(n, (size_t)MAX_LINE_BYTES));
        n += end ? 1 : 0;
        text += n;
        len -= n;
    }
    if (len > 0)
        err_line("  | ", "…", strlen("…"));
}

void screen_call(struct screen *s, unsigned step, const char *tool, const json_t *arguments) {
    const json_t *code = json_object_get(arguments, "code");
    char text[200], *words _cleanup_free_ = NULL;

    if (s->json || s->quiet)
        return;
    (void)snprintf(text, sizeof(text), "step %u: %.100s", step, tool);
    screen_note(s, text);
    if (!s->detailed)
        return;
    if (!code)
        words = json_dumps(arguments, JSON_COMPACT | JSON_ENCODE_ANY);
    const char *shown = code ? json_string_value(code) : words;
    if (shown)
        show_lines(shown, strlen(shown));
}

void screen_result(struct screen *s, const char *tool, const struct tool_answer *answer) {
    const char *end = answer->text ? memchr(answer->text, '\n', answer->len) : NULL;
    _cleanup_buf_ struct buf b = {0};

    if (s->json || s->quiet || !answer->text)
        return;
    buf_printf(&b, "%.100s: ", tool);
    buf_add(&b, answer->text, end ? (size_t)(end - answer->text) : answer->len);
    if (!b.failed)
        screen_note(s, b.data);
    if (s->detailed && end)
        show_lines(end + 1, answer->len - (size_t)(end + 1 - answer->text));
}

void screen_files(struct screen *s, const char *tool, const json_t *result, const char *kept) {
    const json_t *one;
    char line[1000], size[32];
    size_t i;

    if (s->json || s->quiet)
        return;
    json_array_foreach(json_object_get(result, "files"), i, one) {
        uint64_t bytes = (uint64_t)json_integer_value(json_object_get(one, "bytes"));
        (void)snprintf(line, sizeof(line), "%.100s: %s %.400s/%.400s (%s)", tool,
                       kept ? "has made" : "left", kept ? kept : "/out",
                       json_string_value(json_object_get(one, "name")),
                       format_bytes(bytes, size, sizeof(size)));
        screen_note(s, line);
    }
    json_array_foreach(json_object_get(result, "filesSkipped"), i, one) {
        (void)snprintf(line, sizeof(line), "%.100s: not brought back: /out/%.600s: %.200s", tool,
                       json_string_value(json_object_get(one, "name")),
                       json_string_value(json_object_get(one, "reason")));
        screen_note(s, line);
    }
}
