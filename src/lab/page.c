/*
 * page.c: see page.h.
 */
#include "lab/page.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/units.h"
#include "base/utf8.h"

#include "base/banned.h"

enum { WIDTH_MIN = 40, WIDTH_MAX = 100, WIDTH_UNKNOWN = 80 };

void page_init(struct page *p, FILE *out) {
    struct winsize w = {0};
    const char *columns = getenv("COLUMNS"), *no_color = getenv("NO_COLOR");
    bool terminal = isatty(fileno(out)) == 1;
    uint32_t width = WIDTH_UNKNOWN;

    *p = (struct page){.out = out, .bold = terminal && !(no_color && *no_color)};
    if (terminal && ioctl(fileno(out), TIOCGWINSZ, &w) == 0 && w.ws_col)
        width = w.ws_col;
    else if (columns && parse_u32(columns, &width) < 0)
        width = WIDTH_UNKNOWN;
    p->columns = terminal ? width : 0;
    p->width = MIN(MAX(width, (uint32_t)WIDTH_MIN), (uint32_t)WIDTH_MAX);
}

/* Bytes in the first character, which is well-formed or stands for what is not. */
static size_t step(const char *text, size_t len) {
    bool valid;

    return utf8_step(text, len, &valid);
}

size_t page_columns(const char *text, size_t len) {
    size_t n = 0;

    for (size_t i = 0; i < len; i += step(text + i, len - i))
        n++;
    return n;
}

void page_title(const struct page *p, const char *text) {
    (void)fprintf(p->out, "%s%s%s\n", p->bold ? "\033[1m" : "", text, p->bold ? "\033[0m" : "");
}

void page_heading(const struct page *p, const char *text) {
    (void)fputc('\n', p->out);
    page_title(p, text);
}

/* How many bytes of `text` make the next line of `room` columns: up to the last space that fits. */
static size_t line_of(const char *text, size_t len, size_t room) {
    size_t used = 0, columns = 0, fits = 0;

    while (used < len && columns < room) {
        used += step(text + used, len - used);
        columns++;
        if (used >= len || text[used] == ' ')
            fits = used;
    }
    return used >= len ? len : fits ? fits : used; /* a word longer than the line is cut */
}

/* The next line of a text that is being laid out; moves on behind it and its space. */
static size_t take_line(const char **text, size_t *len, size_t room, const char **ret_line) {
    size_t n = line_of(*text, *len, room), next = n;

    *ret_line = *text;
    while (next < *len && (*text)[next] == ' ')
        next++;
    *text += next;
    *len -= next;
    return n;
}

static void wrap(const struct page *p, const char *lead, const char *text, size_t len) {
    size_t indent = page_columns(lead, strlen(lead));
    size_t room = p->width > indent + 10 ? p->width - indent : 10;
    const char *line;

    (void)fputs(lead, p->out);
    do {
        size_t n = take_line(&text, &len, room, &line);
        (void)fprintf(p->out, "%.*s\n%*s", (int)n, line, len ? (int)indent : 0, "");
    } while (len);
}

void page_cut(const struct page *p, size_t used, const char *text) {
    size_t len = strlen(text), room = p->columns > used + 10 ? p->columns - used : 10, n = 0;
    bool cut = p->columns && page_columns(text, len) > room;

    for (size_t c = 0; cut && c + 1 < room; c++)
        n += step(text + n, len - n);
    (void)fprintf(p->out, "%.*s%s\n", (int)(cut ? n : len), text, cut ? "…" : "");
}

void page_wrap(const struct page *p, const char *lead, const char *text) {
    wrap(p, lead, text, strlen(text));
}

/* What a line is: the rest of a paragraph or of a point, unless it says otherwise. */
enum line_kind { LINE_EMPTY, LINE_POINT, LINE_KEPT, LINE_MORE };

static enum line_kind kind_of(const char *line, size_t len) {
    if (len == 0)
        return LINE_EMPTY;
    if (len >= 2 && memcmp(line, "- ", 2) == 0)
        return LINE_POINT;
    return len >= 4 && memcmp(line, "    ", 4) == 0 ? LINE_KEPT : LINE_MORE;
}

/* Appends a line's words to a paragraph. */
static void join(char *paragraph, size_t size, size_t *used, const char *line, size_t len) {
    for (; len && *line == ' '; line++, len--)
        ;
    if (*used + len + 2 > size)
        len = size - MIN(*used + 2, size);
    if (*used)
        paragraph[(*used)++] = ' ';
    memcpy(paragraph + *used, line, len);
    *used += len;
}

void page_text(const struct page *p, const char *indent, const char *text, size_t len) {
    const char *end = text + len;

    while (text < end) {
        char paragraph[4096], lead[32];
        size_t n = strcspn(text, "\n"), used = 0;
        enum line_kind kind = kind_of(text, n);

        if (kind == LINE_EMPTY || kind == LINE_KEPT) {
            (void)fprintf(p->out, "%s%.*s\n", n ? indent : "", (int)n, text);
            text += n + 1;
            continue;
        }
        (void)snprintf(lead, sizeof(lead), "%s%s", indent, kind == LINE_POINT ? "- " : "");
        size_t skip = kind == LINE_POINT ? 2 : 0;
        do {
            join(paragraph, sizeof(paragraph), &used, text + skip, n - skip);
            text += n + 1;
            skip = 0;
            n = text < end ? strcspn(text, "\n") : 0;
        } while (text < end && kind_of(text, n) == LINE_MORE);
        wrap(p, lead, paragraph, used);
    }
}

void page_pair(const struct page *p, const char *indent, const char *left, const char *right) {
    size_t left_len = strlen(left), right_len = strlen(right);
    size_t room = (p->width - strlen(indent) - 3) / 2;

    do {
        const char *l = "", *r = "";
        size_t n = take_line(&left, &left_len, room, &l);
        size_t m = take_line(&right, &right_len, room, &r);
        size_t blank = room - page_columns(l, n);

        (void)fprintf(p->out, "%s%.*s", indent, (int)n, l);
        if (m)
            (void)fprintf(p->out, "%*s   %.*s", (int)blank, "", (int)m, r);
        (void)fputc('\n', p->out);
    } while (left_len || right_len);
}
