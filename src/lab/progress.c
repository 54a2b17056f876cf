/*
 * progress.c: see progress.h. Every line is written in one piece.
 */
#include "lab/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/units.h"

#include "base/banned.h"

enum { BAR_MS = 100, LINE_MS = 10000, CELLS = 24, SURE_AFTER_MS = 2000 };

void progress_begin(struct progress *p, bool quiet) {
    const char *term = getenv("TERM"), *forced = getenv("MAYFLY_LAB_BAR");
    bool terminal = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;

    *p = (struct progress){.begin_ns = now_ns(), .told_ns = now_ns()};
    if (forced) /* by who hands on what is said here */
        terminal = strcmp(forced, "1") == 0;
    p->mode = quiet ? PROGRESS_QUIET : terminal ? PROGRESS_BAR : PROGRESS_LINES;
}

static void say(const struct buf *b) {
    if (!b->failed && b->len)
        (void)fd_write_full(STDERR_FILENO, b->data, b->len);
}

static int terminal_width(void) {
    struct winsize w = {0};

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col ? w.ws_col : 80;
}

static void add_time_left(struct buf *b, uint64_t elapsed_ms, size_t done, size_t total) {
    char text[32];

    if (elapsed_ms < SURE_AFTER_MS || done == 0 || done > total)
        return;
    double left = (double)elapsed_ms / (double)done * (double)(total - done);
    buf_printf(b, ", %s left", format_ms((uint64_t)(left / 1e3 + 1) * 1000, text, sizeof(text)));
}

static void bar(struct progress *p, size_t done, size_t total, uint64_t elapsed_ms,
                const char *what) {
    struct buf line _cleanup_buf_ = {0}, b _cleanup_buf_ = {0};
    size_t full = total ? MIN(done * CELLS / total, (size_t)CELLS) : 0;

    for (size_t i = 0; i < CELLS; i++)
        buf_puts(&line, i < full ? "#" : "-");
    buf_printf(&line, " %zu/%zu", done, total);
    add_time_left(&line, elapsed_ms, done, total);
    if (what)
        buf_printf(&line, "  %s", what);
    if (!line.data)
        return;
    buf_printf(&b, "\r\033[K%.*s", terminal_width() - 1, line.data);
    say(&b);
    p->bar_shown = true;
}

void progress_tick(struct progress *p, size_t done, size_t total, const char *what) {
    struct buf b _cleanup_buf_ = {0};
    uint64_t now = now_ns(), since_ms = (now - p->told_ns) / 1000000u;
    uint64_t elapsed_ms = (now - p->begin_ns) / 1000000u;

    if (p->mode == PROGRESS_QUIET || since_ms < (p->mode == PROGRESS_BAR ? BAR_MS : LINE_MS))
        return;
    p->told_ns = now;
    if (p->mode == PROGRESS_BAR) {
        bar(p, done, total, elapsed_ms, what);
        return;
    }
    buf_printf(&b, "mayfly: lab: %zu of about %zu attempts", done, total);
    add_time_left(&b, elapsed_ms, done, total);
    buf_printf(&b, "%s%s\n", what ? "; now " : "", what ? what : "");
    say(&b);
}

void progress_end(struct progress *p) {
    if (p->bar_shown)
        (void)fd_write_full(STDERR_FILENO, "\r\033[K", 4);
    p->bar_shown = false;
}
