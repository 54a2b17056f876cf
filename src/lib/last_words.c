/*
 * last_words.c: see last_words.h.
 */
#include "lib/last_words.h"

#include <string.h>

#include "base/banned.h"

/* ------------------------------------------------------------------ spans */

struct span span_of(const char *s) {
    return (struct span){s, strlen(s)};
}

struct span span_slice(struct span s, size_t from, size_t to) {
    return (struct span){s.at + from, to - from};
}

bool span_is(struct span s, const char *word) {
    return s.len == strlen(word) && memcmp(s.at, word, s.len) == 0;
}

bool span_begins(struct span s, const char *prefix) {
    size_t len = strlen(prefix);

    return s.len >= len && memcmp(s.at, prefix, len) == 0;
}

bool span_ends(struct span s, const char *suffix) {
    size_t len = strlen(suffix);

    return s.len >= len && memcmp(s.at + s.len - len, suffix, len) == 0;
}

static const char *find(struct span s, const char *words) {
    return s.len ? memmem(s.at, s.len, words, strlen(words)) : NULL;
}

bool span_holds(struct span s, const char *words) { return find(s, words) != NULL; }

static bool in_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool span_word(struct span s, const char *word) {
    size_t len = strlen(word);

    for (const char *p; (p = find(s, word)) != NULL;) {
        const char *end = p + len;
        bool starts = p == s.at || !in_name(p[-1]);
        bool stops = end == s.at + s.len || !in_name(*end);

        if (starts && stops)
            return true;
        s = span_slice(s, (size_t)(end - s.at), s.len);
    }
    return false;
}

bool span_skip(struct span *s, const char *prefix) {
    if (!span_begins(*s, prefix))
        return false;
    *s = span_slice(*s, strlen(prefix), s->len);
    return true;
}

bool span_chop(struct span *s, const char *suffix) {
    if (!span_ends(*s, suffix))
        return false;
    s->len -= strlen(suffix);
    return true;
}

bool span_before(struct span s, const char *words, struct span *ret) {
    const char *p = find(s, words);

    if (!p)
        return false;
    *ret = (struct span){s.at, (size_t)(p - s.at)};
    return true;
}

/* ------------------------------------------------------------------ lines */

/* The last line, empty or not, without its newline. */
static struct span cut_line(struct span *text) {
    struct span line = *text;

    if (!text->len)
        return line;
    (void)span_chop(&line, "\n");
    const char *newline = line.len ? memrchr(line.at, '\n', line.len) : NULL;
    size_t start = newline ? (size_t)(newline + 1 - text->at) : 0;
    line = span_slice(line, start, line.len);
    text->len = start;
    return line;
}

struct span last_line(struct span *text) {
    struct span line = {text->at, 0};

    while (text->len && !line.len)
        line = cut_line(text);
    return line;
}

/* ------------------------------------------------------------------ a traceback */

static struct span trimmed(struct span s) {
    while (s.len && *s.at == ' ')
        s = span_slice(s, 1, s.len);
    return s;
}

static bool only_marks(struct span s) {
    for (size_t i = 0; i < s.len; i++)
        if (s.at[i] != '^' && s.at[i] != '~' && s.at[i] != ' ')
            return false;
    return true;
}

/* "  File "/x.py", line 3, in f" -> /x.py */
static bool frame_file(struct span line, struct span *ret) {
    return span_skip(&line, "  File \"") && span_before(line, "\", line ", ret);
}

/* Upwards from the exception's line to the header, noting the frames: the innermost comes first. */
static bool read_frames(struct span *text, struct traceback *t) {
    struct span below = {0}, file;
    bool have_frame = false;

    while (text->len) {
        struct span line = cut_line(text);
        if (span_is(line, "Traceback (most recent call last):"))
            return have_frame;
        if (frame_file(line, &file)) {
            if (!have_frame) {
                t->file = file;
                t->source = below;
            }
            if (!t->caller.len && !span_ends(file, "/subprocess.py"))
                t->caller = below;
            have_frame = true;
            below = (struct span){0};
        } else if (!span_begins(line, "  ")) {
            return false;
        } else if (span_begins(line, "    ") && !only_marks(line)) {
            below = trimmed(line);
        }
    }
    return false;
}

/* "numpy.linalg.LinAlgError": what may stand before the colon. */
static bool is_type(struct span s) {
    for (size_t i = 0; i < s.len; i++)
        if (!in_name(s.at[i]) && s.at[i] != '.')
            return false;
    return s.len > 0;
}

/* What OSError puts after the number: ": 'PATH'" or ": 'PATH' -> 'PATH'". */
static void read_path(struct traceback *t) {
    struct span head, rest;

    if (!span_before(t->message, ": '", &head))
        return;
    rest = span_slice(t->message, head.len + 3, t->message.len);
    if (!span_chop(&rest, "'")) /* looked for in what is left: the one quote may be all there is */
        return;
    t->two_paths = span_holds(rest, "' -> '");
    if (!t->two_paths)
        t->path = rest;
}

static void read_number(struct traceback *t) {
    struct span rest = t->message;
    int n = 0;

    if (!span_skip(&rest, "[Errno "))
        return;
    bool minus = span_skip(&rest, "-");
    size_t digits = 0;
    while (digits < rest.len && digits < 4 && rest.at[digits] >= '0' && rest.at[digits] <= '9')
        n = n * 10 + (rest.at[digits++] - '0');
    if (!digits || digits == rest.len || rest.at[digits] != ']')
        return;
    t->number = minus ? -n : n;
    read_path(t);
}

bool last_traceback(struct span text, struct traceback *ret) {
    struct traceback t = {0};
    struct span line = last_line(&text);

    if (!span_before(line, ": ", &t.type))
        t.type = line;
    else
        t.message = span_slice(line, t.type.len + 2, line.len);
    if (!is_type(t.type) || !read_frames(&text, &t))
        return false;
    read_number(&t);
    t.before = text;
    *ret = t;
    return true;
}

bool last_cause(const struct traceback *t, struct traceback *ret) {
    struct span text = t->before;

    return span_is(last_line(&text),
                   "The above exception was the direct cause of the following exception:") &&
           last_traceback(text, ret);
}

/* ------------------------------------------------------------------ what stands around it */

/* "-----", "Ran 3 tests in 0.001s", "", "FAILED (errors=1)". */
static struct span without_summary(struct span text) {
    struct span rest = text, line = last_line(&rest);

    if (!span_begins(line, "FAILED (") || !span_holds(line, "errors="))
        return text;
    if (!span_begins(last_line(&rest), "Ran ") || !span_begins(last_line(&rest), "----------"))
        return text;
    return rest;
}

/* "    | LINE" -> LINE */
static bool framed(struct span line, struct span *ret) {
    *ret = trimmed(line);
    return span_skip(ret, "| ");
}

/* Between "+-+---- 1 ----" and "+-----": the lines of the last exception in the group. */
static struct span last_of_group(struct span text, char *room, size_t size) {
    struct span rest = text, line, inner;
    size_t at = size;

    if (!span_begins(trimmed(last_line(&rest)), "+------"))
        return text;
    while (rest.len && framed(cut_line(&rest), &inner)) {
        line = inner;
        if (line.len + 1 > at)
            return text;
        room[--at] = '\n';
        at -= line.len;
        memcpy(room + at, line.at, line.len);
    }
    return (struct span){room + at, size - at};
}

struct span bare_words(struct span text, char *room, size_t size) {
    return last_of_group(without_summary(text), room, size);
}
