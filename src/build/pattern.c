/*
 * pattern.c: see pattern.h.
 *
 * The pattern is taken apart into steps, and all places in it that the path read so far may stand at are kept at once:
 * so the time is that of pattern times path, whatever stars there are.
 */
#include "build/pattern.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/utf8.h"

#include "base/banned.h"

enum step_kind { STEP_CHAR, STEP_ONE, STEP_SET, STEP_STAR, STEP_DEEP, STEP_DIRS };

struct step {
    uint32_t c;
    unsigned short kind, from, len; /* STEP_SET: of the pattern, without the brackets */
};

/* The character at `s`, which is not at its end; a byte that is no UTF-8 is one of its own. Returns its length. */
static size_t take_char(const char *s, uint32_t *ret) {
    static const unsigned char head[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    const unsigned char *u = (const unsigned char *)s;
    bool valid = false;
    size_t len = utf8_step(s, strnlen(s, 4), &valid);

    if (!valid)
        return *ret = 0x110000u + u[0], 1;
    *ret = u[0] & head[len];
    for (size_t i = 1; i < len; i++)
        *ret = *ret << 6 | (u[i] & 0x3fu);
    return len;
}

/* [a-z] at `p`: what it takes with the brackets; 0: it is none. */
static size_t set_length(const char *p) {
    size_t n = 1;

    n += p[n] == '^';
    for (bool first = true; p[n] && (p[n] != ']' || first); first = false) {
        n += p[n] == '\\' ? 1u : 0u;
        if (!p[n])
            return 0;
        n++;
    }
    return p[n] == ']' ? n + 1 : 0;
}

/* The number of steps, or -1: it is not valid. */
static int compile(const char *pattern, struct step steps[PATTERN_BYTES]) {
    int n = 0;

    if (strlen(pattern) >= PATTERN_BYTES)
        return -1;
    for (const char *p = pattern; *p; n++) {
        struct step *s = &steps[n];
        *s = (struct step){.kind = STEP_CHAR};
        if (p[0] == '*' && p[1] == '*') {
            p += 2;
            s->kind = *p == '/' ? STEP_DIRS : STEP_DEEP;
            p += *p == '/';
        } else if (*p == '*') {
            s->kind = STEP_STAR;
            p++;
        } else if (*p == '?') {
            s->kind = STEP_ONE;
            p++;
        } else if (*p == '[') {
            size_t len = set_length(p);
            if (!len)
                return -1;
            s->kind = STEP_SET;
            s->from = (unsigned short)(p + 1 - pattern);
            s->len = (unsigned short)(len - 2);
            p += len;
        } else {
            if (*p == '\\' && !*++p)
                return -1;
            p += take_char(p, &s->c);
        }
    }
    return n;
}

static bool in_set(const char *set, size_t len, uint32_t c) {
    const char *p = set, *end = set + len;
    bool negated = len && *p == '^', found = false;
    uint32_t low, high;

    for (p += negated; p < end;) {
        p += *p == '\\';
        p += take_char(p, &low);
        high = low;
        if (end - p >= 2 && *p == '-') {
            p++;
            p += *p == '\\' && end - p > 1;
            p += take_char(p, &high);
        }
        found |= c >= low && c <= high;
    }
    return c != '/' && found != negated;
}

/* Adds place `at`, and those after it that need no character. */
static void reach(const struct step *steps, int n, bool *set, int at) {
    for (; at <= n && !set[at]; at++) {
        set[at] = true;
        if (at == n || (steps[at].kind != STEP_STAR && steps[at].kind != STEP_DEEP &&
                        steps[at].kind != STEP_DIRS))
            break;
    }
}

bool pattern_matches(const char *pattern, const char *path) {
    struct step steps[PATTERN_BYTES];
    bool now[PATTERN_BYTES + 1] = {0}, next[PATTERN_BYTES + 1];
    bool inside[PATTERN_BYTES + 1] = {0}, inside_next[PATTERN_BYTES + 1]; /* of a STEP_DIRS */
    int n = compile(pattern, steps);

    if (n < 0)
        return false;
    reach(steps, n, now, 0);
    for (const char *p = path; *p;) {
        uint32_t c;
        p += take_char(p, &c);
        memset(next, 0, sizeof(next));
        memset(inside_next, 0, sizeof(inside_next));
        for (int i = 0; i < n; i++) {
            const struct step *s = &steps[i];
            if (!now[i] && !inside[i])
                continue;
            switch ((enum step_kind)s->kind) {
            case STEP_CHAR:
                if (s->c == c)
                    reach(steps, n, next, i + 1);
                break;
            case STEP_ONE:
                if (c != '/')
                    reach(steps, n, next, i + 1);
                break;
            case STEP_SET:
                if (in_set(pattern + s->from, s->len, c))
                    reach(steps, n, next, i + 1);
                break;
            case STEP_STAR:
                if (c != '/')
                    reach(steps, n, next, i);
                break;
            case STEP_DEEP:
                reach(steps, n, next, i);
                break;
            case STEP_DIRS: /* whole directories: what follows begins behind a slash */
                inside_next[i] = true;
                if (c == '/')
                    reach(steps, n, next, i + 1);
                break;
            }
        }
        memcpy(now, next, sizeof(now));
        memcpy(inside, inside_next, sizeof(inside));
    }
    return now[n];
}

bool pattern_is_valid(const char *pattern) {
    struct step steps[PATTERN_BYTES];

    return compile(pattern, steps) >= 0;
}

bool pattern_has_magic(const char *pattern) { return strpbrk(pattern, "*?[\\") != NULL; }

/* ------------------------------------------------------------------ .dockerignore */

static int bad(struct err *err, const char *name, int line, const char *why) {
    return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "%.100s:%d: %s", name, line, why);
}

static int add_rule(struct ignore *i, const char *text, size_t len, const char *name, int line,
                    struct err *err) {
    char rule[PATTERN_BYTES], plain[PATTERN_BYTES];
    bool keeps = *text == '!';

    text += keeps;
    len -= keeps;
    if (len >= sizeof(rule))
        return bad(err, name, line, "is too long");
    memcpy(rule, text, len);
    rule[len] = '\0';
    if (!path_plain(rule + strspn(rule, " \t"), true, plain, sizeof(plain)) ||
        !pattern_is_valid(plain))
        return bad(err, name, line, "is no pattern: [ without ], or \\ at its end");
    if (!*plain)
        return 0; /* "/" and ".": Docker passes them over */
    if (i->n == PATTERN_MAX)
        return bad(err, name, line, "too many patterns");
    i->rules[i->n].pattern = arena_strdup(&i->arena, plain);
    i->rules[i->n].keeps = keeps;
    i->any_keeps |= keeps;
    return i->rules[i->n++].pattern ? 0 : err_oom(err);
}

int ignore_parse(const char *text, size_t len, const char *name, struct ignore *ret,
                 struct err *err) {
    const char *end = text + len;
    int r = 0;

    *ret = (struct ignore){0};
    ret->rules = arena_alloc(&ret->arena, PATTERN_MAX * sizeof(*ret->rules));
    if (!ret->rules)
        return err_oom(err);
    if (memchr(text, '\0', len))
        return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "%.100s: is no text", name);
    for (int line = 1; text < end && r == 0; line++) {
        const char *nl = memchr(text, '\n', (size_t)(end - text)), *stop = nl ? nl : end;
        const char *from = text;
        if (*from != '#') {
            while (from < stop && strchr(" \t\r", *from))
                from++;
            while (stop > from && strchr(" \t\r", stop[-1]))
                stop--;
            if (from < stop)
                r = add_rule(ret, from, (size_t)(stop - from), name, line, err);
        }
        text = nl ? nl + 1 : end;
    }
    return r;
}

void ignore_done(struct ignore *i) {
    arena_done(&i->arena);
    *i = (struct ignore){0};
}

/* The path itself, or a directory it lies in. */
static bool fits(const char *pattern, const char *path) {
    char part[4096];

    if (pattern_matches(pattern, path))
        return true;
    if (!str_copy(part, sizeof(part), path))
        return false;
    for (char *slash = strrchr(part, '/'); slash; slash = strrchr(part, '/')) {
        *slash = '\0';
        if (pattern_matches(pattern, part))
            return true;
    }
    return false;
}

bool ignore_has(const struct ignore *i, const char *path) {
    bool ignored = false;

    for (size_t k = 0; k < i->n; k++)
        if (i->rules[k].keeps == ignored && fits(i->rules[k].pattern, path))
            ignored = !i->rules[k].keeps;
    return ignored;
}
