/*
 * progress.c: see progress.h. Every line is written in one piece, and the bar is wiped before any other line.
 */
#include "fetch/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/units.h"
#include "fetch/error_json.h"

#include "base/banned.h"

enum { BAR_MS = 100, LINE_MS = 5000, EVENT_MS = 500, QUIET_AT_FIRST_MS = 500, SIZE_TEXT = 32 };
enum { BAR_CELLS_MIN = 10, BAR_CELLS_MAX = 40 };

enum progress_mode progress_mode_of_terminal(void) {
    const char *term = getenv("TERM");

    return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0 ? PROGRESS_BAR
                                                                      : PROGRESS_PLAIN;
}

static void write_all(int fd, const struct buf *b) {
    if (!b->failed && b->len)
        (void)fd_write_full(fd, b->data, b->len);
}

/* ------------------------------------------------------------------ lines and events */

static void wipe_bar(struct progress *p, struct buf *b) {
    if (p->bar_shown)
        buf_puts(b, "\r\033[K");
    p->bar_shown = false;
}

PRINTF_LIKE(2, 3)
static void say(struct progress *p, const char *fmt, ...) {
    struct buf b _cleanup_buf_ = {0};
    char line[1200];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    wipe_bar(p, &b);
    buf_printf(&b, "mayfly: %s\n", line);
    write_all(STDERR_FILENO, &b);
}

/* Takes the object over. */
static void tell(const char *event, json_t *o) {
    struct buf b _cleanup_buf_ = {0};
    json_t *all =
        json_pack("{ss}", "event", event); /* first, for those who read it with their eyes */

    if (!all || json_object_update(all, o) < 0)
        return json_decref(all), json_decref(o);
    json_decref(o);
    char *text = json_dumps(all, JSON_COMPACT);
    if (text)
        buf_printf(&b, "%s\n", text);
    write_all(STDOUT_FILENO, &b);
    free(text);
    json_decref(all);
}

/* ------------------------------------------------------------------ the bar */

static unsigned terminal_width(void) {
    struct winsize w = {0};

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col ? w.ws_col : 80;
}

/* Bytes a second since the beginning; 0 while that cannot be said. */
static uint64_t rate(const struct progress *p, uint64_t now) {
    uint64_t ms = (now - p->begin_ns) / 1000000u;

    return ms < QUIET_AT_FIRST_MS || p->here < p->begin_here
               ? 0
               : (p->here - p->begin_here) * 1000 / ms;
}

static void figures(const struct progress *p, uint64_t now, char *out, size_t size) {
    char here[SIZE_TEXT], all[SIZE_TEXT], speed[SIZE_TEXT], left[SIZE_TEXT] = "";
    uint64_t per_s = rate(p, now);
    int n = snprintf(out, size, "%s of %s", format_bytes(p->here, here, sizeof(here)),
                     format_bytes(p->bytes, all, sizeof(all)));

    if (per_s == 0 || n < 0 || (size_t)n >= size)
        return;
    uint64_t left_s = p->bytes > p->here ? (p->bytes - p->here) / per_s + 1 : 0;
    (void)format_ms(left_s * 1000, left, sizeof(left));
    (void)snprintf(out + n, size - (size_t)n, ", %s/s, %s left",
                   format_bytes(per_s, speed, sizeof(speed)), left);
}

/* The name goes first where there is no room, then the bar. */
static void draw_bar(struct progress *p, uint64_t now) {
    struct buf b _cleanup_buf_ = {0};
    char text[200];

    figures(p, now, text, sizeof(text));
    size_t width = terminal_width(), rest = strlen(text) + 4, name = strlen(p->name) + 1;
    bool named = width >= rest + name + BAR_CELLS_MIN;
    size_t taken = named ? rest + name : rest;
    size_t cells = width >= taken + BAR_CELLS_MIN ? MIN(width - taken, (size_t)BAR_CELLS_MAX) : 0;
    size_t full = p->bytes ? (size_t)(MIN(p->here, p->bytes) * cells / p->bytes) : cells;
    buf_printf(&b, "\r\033[K%s%s%s", named ? p->name : "", named ? " " : "", cells ? "[" : "");
    for (size_t i = 0; i < cells; i++)
        buf_puts(&b, i < full ? "#" : ".");
    buf_printf(&b, "%s%.*s", cells ? "] " : "", (int)MAX(width, (size_t)2) - 1, text);
    write_all(STDERR_FILENO, &b);
    p->bar_shown = true;
}

void progress_tick(struct progress *p, uint64_t here) {
    static const unsigned every_ms[] = {
        [PROGRESS_PLAIN] = LINE_MS, [PROGRESS_BAR] = BAR_MS, [PROGRESS_JSON] = EVENT_MS};
    uint64_t now = now_ns();
    char text[200];

    p->here = here;
    if (!p->ticked)
        p->begin_here = here; /* what was resumed says nothing of the speed */
    p->ticked = true;
    if (p->mode == PROGRESS_QUIET || now - p->told_ns < every_ms[p->mode] * UINT64_C(1000000) ||
        now - p->begin_ns < QUIET_AT_FIRST_MS * UINT64_C(1000000))
        return;
    bool moved = here != p->told_here;
    p->told_ns = now;
    p->told_here = here;
    figures(p, now, text, sizeof(text));
    if (p->mode == PROGRESS_BAR)
        draw_bar(p, now);
    else if (p->mode == PROGRESS_JSON && moved)
        tell("progress",
             json_pack("{sI sI}", "bytesHere", (json_int_t)here, "bytes", (json_int_t)p->bytes));
    else if (p->mode == PROGRESS_PLAIN)
        say(p, "%s: %s", p->name, text);
}

/* ------------------------------------------------------------------ what happens */

void progress_resolved(struct progress *p, const char *full_name, const char *digest,
                       const char *platform, size_t layers, uint64_t missing_bytes) {
    char size[SIZE_TEXT];

    p->bytes = missing_bytes;
    p->begin_ns = p->told_ns = now_ns();
    if (p->mode == PROGRESS_JSON)
        tell("resolved",
             json_pack("{ss ss ss sI sI}", "reference", full_name, "digest", digest, "platform",
                       platform, "layers", (json_int_t)layers, "bytes", (json_int_t)missing_bytes));
    else if (p->mode != PROGRESS_QUIET && missing_bytes)
        say(p, "%s: pulling %s for %s, %zu layer%s", p->name,
            format_bytes(missing_bytes, size, sizeof(size)), platform, layers,
            layers == 1 ? "" : "s");
}

void progress_blob(struct progress *p, const struct descriptor *d, bool was_here) {
    char size[SIZE_TEXT];

    if (p->mode == PROGRESS_JSON)
        tell("blob", json_pack("{ss sI sb}", "digest", d->digest, "size", (json_int_t)d->size,
                               "wasHere", was_here));
    else if (p->mode == PROGRESS_PLAIN && !was_here)
        say(p, "%s: %.19s… is here, %s", p->name, d->digest,
            format_bytes((uint64_t)d->size, size, sizeof(size)));
}

void progress_waiting(struct progress *p, const char *what, int64_t ms, const char *why) {
    char time[SIZE_TEXT];

    if (p->mode == PROGRESS_JSON)
        tell("retry", json_pack("{ss sI ss}", "what", what, "delayMs", (json_int_t)ms, "why", why));
    else if (p->mode != PROGRESS_QUIET)
        say(p, "%s: %s; trying again in %s", what, why,
            format_ms((uint64_t)ms, time, sizeof(time)));
}

void progress_note(struct progress *p, const char *line) {
    if (p->mode == PROGRESS_JSON)
        tell("note", json_pack("{ss}", "message", line));
    else if (p->mode != PROGRESS_QUIET)
        say(p, "%s", line);
}

void progress_unpacking(struct progress *p) {
    struct buf b _cleanup_buf_ = {0};

    if (p->mode == PROGRESS_JSON) {
        tell("unpacking", json_object());
    } else if (p->mode == PROGRESS_BAR) { /* in the bar's place: it is gone in a moment */
        buf_printf(&b, "\r\033[K%.40s: unpacking", p->name);
        write_all(STDERR_FILENO, &b);
        p->bar_shown = true;
    }
}

static const struct {
    const char *name, *words;
    size_t at;
} dropped[] = {
    {"devices", "device files left out", offsetof(struct unpack_summary, devices)},
    {"setid", "setuid and setgid bits taken away", offsetof(struct unpack_summary, setid)},
    {"fileCapabilities", "file capabilities left out", offsetof(struct unpack_summary, filecaps)},
    {"xattrs", "extended attributes left out", offsetof(struct unpack_summary, xattrs)},
};

static uint64_t count_of(const struct unpack_summary *s, size_t i) {
    uint64_t n = 0;

    memcpy(&n, (const char *)s + dropped[i].at, sizeof(n));
    return n;
}

static json_t *dropped_json(const struct unpack_summary *s) {
    json_t *o = json_object();

    for (size_t i = 0; i < ARRAY_LEN(dropped); i++)
        (void)json_object_set_new(o, dropped[i].name, json_integer((json_int_t)count_of(s, i)));
    return o;
}

static void say_dropped(struct progress *p, const struct unpack_summary *s) {
    struct buf b _cleanup_buf_ = {0};

    for (size_t i = 0; i < ARRAY_LEN(dropped); i++)
        if (count_of(s, i))
            buf_printf(&b, "%s%" PRIu64 " %s", b.len ? ", " : "", count_of(s, i), dropped[i].words);
    if (b.len && !b.failed)
        say(p, "%s: unpacked, with %s", p->name, b.data);
}

void progress_done(struct progress *p, const char *full_name, const char *digest, bool was_here,
                   const struct unpack_summary *s) {
    struct buf b _cleanup_buf_ = {0};

    if (p->mode == PROGRESS_JSON) {
        tell("pulled", json_pack("{ss ss sb so}", "reference", full_name, "digest", digest,
                                 "wasHere", was_here, "leftOut", dropped_json(s)));
        return;
    }
    if (p->mode != PROGRESS_QUIET) {
        if (!s->was_there)
            say_dropped(p, s);
        say(p, "%s: %s, %.19s…", p->name, was_here ? "was here already" : "is here now", digest);
    }
    buf_printf(&b, "%s\n", full_name);
    write_all(STDOUT_FILENO, &b);
}

void progress_failed(struct progress *p, const struct err *err) {
    if (p->mode == PROGRESS_JSON)
        tell("error", error_json(err));
    else
        say(p, "%s", err->message);
}
