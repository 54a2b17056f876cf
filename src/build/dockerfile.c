/*
 * dockerfile.c: see dockerfile.h.
 */
#include "build/dockerfile.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/utf8.h"

#include "base/banned.h"

static const struct {
    const char *name;
    bool json;                       /* has a JSON form */
    bool heredocs;                   /* takes here-documents */
    const char *flags[DOCKER_FLAGS]; /* that it takes */
} keywords[DOCKER__N] = {
    [DOCKER_ADD] = {"ADD", true, true, {"chown", "chmod", "link"}},
    [DOCKER_ARG] = {"ARG", false, false, {0}},
    [DOCKER_CMD] = {"CMD", true, false, {0}},
    [DOCKER_COPY] = {"COPY", true, true, {"from", "chown", "chmod", "link"}},
    [DOCKER_ENTRYPOINT] = {"ENTRYPOINT", true, false, {0}},
    [DOCKER_ENV] = {"ENV", false, false, {0}},
    [DOCKER_EXPOSE] = {"EXPOSE", false, false, {0}},
    [DOCKER_FROM] = {"FROM", false, false, {"platform"}},
    [DOCKER_HEALTHCHECK] = {"HEALTHCHECK",
                            false,
                            false,
                            {"interval", "timeout", "start-period", "start-interval", "retries"}},
    [DOCKER_LABEL] = {"LABEL", false, false, {0}},
    [DOCKER_MAINTAINER] = {"MAINTAINER", false, false, {0}},
    [DOCKER_ONBUILD] = {"ONBUILD", false, false, {0}},
    [DOCKER_RUN] = {"RUN", true, true, {"network"}},
    [DOCKER_SHELL] = {"SHELL", true, false, {0}},
    [DOCKER_STOPSIGNAL] = {"STOPSIGNAL", false, false, {0}},
    [DOCKER_USER] = {"USER", false, false, {0}},
    [DOCKER_VOLUME] = {"VOLUME", true, false, {0}},
    [DOCKER_WORKDIR] = {"WORKDIR", false, false, {0}},
};

const char *docker_keyword_name(enum docker_keyword k) {
    return k < DOCKER__N ? keywords[k].name : "?";
}

const char *docker_flag(const struct docker_line *l, const char *name) {
    for (int i = 0; i < l->n_flags; i++)
        if (strcmp(l->flags[i].name, name) == 0)
            return l->flags[i].value;
    return NULL;
}

static int refuse_at(const struct dockerfile *d, int line, struct err *err, const char *remedy,
                     const char *what) {
    return err_set(err, ERR_USAGE, -EINVAL, "", remedy, "%.100s:%d: %s", d->name, line, what);
}

int docker_refuse(const struct dockerfile *d, const struct docker_line *l, struct err *err,
                  const char *remedy, const char *fmt, ...) {
    char words[360];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    return err_set(err, ERR_USAGE, -EINVAL, "", remedy, "%.100s:%d: %s: %s", d->name, l->line,
                   docker_keyword_name(l->keyword), words);
}

/* ------------------------------------------------------------------ lines */

struct reader {
    struct dockerfile *d;
    const char *at, *end;
    int line; /* of what is at `at` */
    size_t cap;
    struct err *err;
};

static const char spaces[] = " \t\r\v\f";

/* The next line of the text, without its end; false at the end. */
static bool next_line(struct reader *r, const char **ret, size_t *ret_len) {
    if (r->at >= r->end)
        return false;
    const char *nl = memchr(r->at, '\n', (size_t)(r->end - r->at));
    *ret = r->at;
    *ret_len = (size_t)((nl ? nl : r->end) - r->at);
    if (*ret_len && (*ret)[*ret_len - 1] == '\r')
        --*ret_len;
    r->at = nl ? nl + 1 : r->end;
    r->line++;
    return true;
}

static size_t leading_spaces(const char *s, size_t len) {
    size_t n = 0;

    while (n < len && memchr(spaces, s[n], sizeof(spaces) - 1))
        n++;
    return n;
}

/* One logical line: comments and empty lines out, continued ones put together. False at the end. */
static bool logical_line(struct reader *r, struct buf *ret, int *ret_line) {
    const char *s;
    size_t len;
    bool begun = false;

    ret->len = 0;
    while (next_line(r, &s, &len)) {
        size_t lead = leading_spaces(s, len);
        if (lead == len || s[lead] == '#')
            continue; /* within a continued line, too */
        if (!begun) {
            *ret_line = r->line;
            s += lead;
            len -= lead;
        }
        begun = true;
        size_t n = len;
        while (n && memchr(spaces, s[n - 1], sizeof(spaces) - 1))
            n--;
        bool goes_on = n && s[n - 1] == r->d->escape;
        buf_add(ret, s, goes_on ? n - 1 : len);
        if (!goes_on)
            break;
    }
    return begun;
}

/* "# escape=`" and "# syntax=…", which stand before everything else. */
static int take_directives(struct reader *r) {
    for (;;) {
        struct reader ahead = *r;
        const char *s;
        size_t len;
        char name[16], value[256];
        if (!next_line(&ahead, &s, &len))
            return 0;
        char line[300];
        if (len >= sizeof(line))
            return 0;
        memcpy(line, s, len);
        line[len] = '\0';
        if (sscanf(line, " # %15[A-Za-z] = %255s", name, value) != 2 &&
            sscanf(line, " #%15[A-Za-z] = %255s", name, value) != 2)
            return 0;
        if (strcasecmp(name, "escape") == 0) {
            if (strcmp(value, "\\") != 0 && strcmp(value, "`") != 0)
                return refuse_at(r->d, ahead.line, r->err, "write \\ or `",
                                 "escape: no such escape character");
            r->d->escape = value[0];
        } else if (strcasecmp(name, "syntax") == 0) {
            /* What it means is what is understood here; another language would be another program. */
            if (strncmp(value, "docker/dockerfile", 17) != 0 &&
                strncmp(value, "docker.io/docker/dockerfile", 27) != 0)
                return refuse_at(r->d, ahead.line, r->err, "leave the line out",
                                 "syntax: only docker/dockerfile's is understood");
        } else if (strcasecmp(name, "check") != 0) {
            return 0; /* a comment */
        }
        *r = ahead;
    }
}

/* ------------------------------------------------------------------ here-documents */

static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* "<<EOF", "<<-EOF", "<<'EOF'": the delimiter at `s`, which points behind "<<". Returns what it takes; 0: it is none. */
static size_t delimiter(const char *s, bool *ret_tabs, bool *ret_expand, char *ret, size_t size) {
    const char *p = s;

    *ret_tabs = *p == '-';
    p += *ret_tabs;
    char quote = *p == '"' || *p == '\'' ? *p++ : '\0';
    *ret_expand = !quote;
    size_t n = 0;
    while (is_name(p[n]) || (quote && p[n] && p[n] != quote && p[n] != '\n') ||
           (n && (p[n] == '.' || p[n] == '-')))
        n++;
    if (n == 0 || n >= size || (quote && p[n] != quote))
        return 0;
    memcpy(ret, p, n);
    ret[n] = '\0';
    return (size_t)(p - s) + n + (quote ? 1 : 0);
}

static int read_body(struct reader *r, int line, const char *name, bool tabs, const char **ret) {
    _cleanup_buf_ struct buf body = {0};
    const char *s;
    size_t len;

    while (next_line(r, &s, &len)) {
        size_t skip = 0;
        while (tabs && skip < len && s[skip] == '\t')
            skip++;
        s += skip;
        len -= skip;
        if (len == strlen(name) && memcmp(s, name, len) == 0) {
            *ret = arena_strndup(&r->d->arena, body.data ? body.data : "", body.len);
            return *ret && !body.failed ? 0 : err_oom(r->err);
        }
        buf_add(&body, s, len);
        buf_puts(&body, "\n");
    }
    char words[200];
    (void)snprintf(words, sizeof(words), "<<%.100s: its end is missing", name);
    return refuse_at(r->d, line, r->err, "write the same word on a line of its own", words);
}

/* "<<" begins a word, or stands behind the number of a descriptor: $((1<<2)) is arithmetic. */
static bool begins_heredoc(const char *text, const char *p) {
    if (p[0] != '<' || p[1] != '<')
        return false;
    while (p > text && p[-1] >= '0' && p[-1] <= '9')
        p--;
    return p == text || p[-1] == ' ' || p[-1] == '\t';
}

/* Finds the "<<"s outside of quotes, and reads what follows the line. */
static int take_heredocs(struct reader *r, struct docker_line *l) {
    char quote = '\0', name[128];
    bool tabs, expand;

    for (const char *p = l->text; *p; p++) {
        if (quote) {
            quote = *p == quote ? '\0' : quote;
            continue;
        }
        if (*p == r->d->escape && p[1]) {
            p++;
            continue;
        }
        if (*p == '"' || *p == '\'')
            quote = *p;
        if (!begins_heredoc(l->text, p))
            continue;
        if (p[2] == '<') { /* bash's <<<: no document */
            p += 2;
            continue;
        }
        size_t n = delimiter(p + 2, &tabs, &expand, name, sizeof(name));
        if (n == 0)
            continue;
        struct docker_heredoc *list =
            arena_alloc(&r->d->arena, (l->n_heredocs + 1) * sizeof(*list));
        if (!list)
            return err_oom(r->err);
        if (l->n_heredocs)
            memcpy(list, l->heredocs, l->n_heredocs * sizeof(*list));
        l->heredocs = list;
        struct docker_heredoc *h = &list[l->n_heredocs++];
        *h = (struct docker_heredoc){.name = arena_strdup(&r->d->arena, name), .expand = expand};
        if (!h->name)
            return err_oom(r->err);
        int code = read_body(r, l->line, name, tabs, &h->body);
        if (code < 0)
            return code;
        p += 1 + n;
    }
    return 0;
}

/* ------------------------------------------------------------------ one instruction */

static int find_keyword(const char *s, size_t len) {
    for (int k = 0; k < DOCKER__N; k++)
        if (strlen(keywords[k].name) == len && strncasecmp(keywords[k].name, s, len) == 0)
            return k;
    return -1;
}

static bool takes_flag(enum docker_keyword k, const char *name) {
    for (int i = 0; i < DOCKER_FLAGS && keywords[k].flags[i]; i++)
        if (strcmp(keywords[k].flags[i], name) == 0)
            return true;
    return false;
}

/* The words that begin with "--". Returns where the rest begins, or NULL with an error. */
static const char *take_flags(struct reader *r, struct docker_line *l, const char *s) {
    while (strncmp(s, "--", 2) == 0) {
        size_t len = strcspn(s, " \t"), name = strcspn(s, "= \t");
        struct docker_flag f = {
            .name = arena_strndup(&r->d->arena, s + 2, name - 2),
            .value =
                arena_strndup(&r->d->arena, s + name + (name < len), len - name - (name < len)),
        };
        if (!f.name || !f.value)
            return (void)err_oom(r->err), NULL;
        if (!*f.name)
            return (void)docker_refuse(r->d, l, r->err, NULL, "-- is no flag"), NULL;
        if (!takes_flag(l->keyword, f.name))
            return (void)docker_refuse(r->d, l, r->err, "leave it out",
                                       "--%.60s is not supported here", f.name),
                   NULL;
        if (docker_flag(l, f.name))
            return (void)docker_refuse(r->d, l, r->err, NULL, "--%.60s is given twice", f.name),
                   NULL;
        l->flags[l->n_flags++] = f;
        s += len;
        s += strspn(s, spaces);
    }
    return s;
}

/* Text that looks like JSON's and is none is the shell's, as Docker has it. */
static int take_json(struct reader *r, struct docker_line *l) {
    json_t *list = l->text[0] == '[' ? json_loads(l->text, 0, NULL) : NULL, *e;
    size_t i;
    int code = 0;

    if (!json_is_array(list)) {
        json_decref(list);
        return 0;
    }
    const char **texts = arena_alloc(&r->d->arena, (json_array_size(list) + 1) * sizeof(*texts));
    if (!texts) {
        json_decref(list);
        return err_oom(r->err);
    }
    json_array_foreach(list, i, e) {
        if (!json_is_string(e)) {
            json_decref(list);
            return 0;
        }
        texts[i] = arena_strdup(&r->d->arena, json_string_value(e));
        if (!texts[i])
            code = -ENOMEM;
    }
    json_decref(list);
    l->json = code < 0 ? NULL : texts;
    return code < 0 ? err_oom(r->err) : 0;
}

static int add_line(struct reader *r, const struct docker_line *l) {
    struct dockerfile *d = r->d;

    if (d->n_lines == DOCKER_LINES)
        return docker_refuse(d, l, r->err, NULL, "more than %d instructions", DOCKER_LINES);
    if (d->n_lines == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 32;
        struct docker_line *lines = arena_alloc(&d->arena, cap * sizeof(*lines));
        if (!lines)
            return err_oom(r->err);
        if (d->n_lines)
            memcpy(lines, d->lines, d->n_lines * sizeof(*lines));
        d->lines = lines;
        r->cap = cap;
    }
    d->lines[d->n_lines++] = *l;
    return 0;
}

static int take_line(struct reader *r, const char *s, int line) {
    size_t len = strcspn(s, " \t");
    int k = find_keyword(s, len);
    char words[120];

    if (k < 0) {
        (void)snprintf(words, sizeof(words), "%.*s: no such instruction", (int)MIN(len, 60u), s);
        return refuse_at(r->d, line, r->err, NULL, words);
    }
    struct docker_line l = {.keyword = (enum docker_keyword)k, .line = line};
    s += len;
    s += strspn(s, spaces);
    l.said = arena_strdup(&r->d->arena, s);
    if (!l.said)
        return err_oom(r->err);
    s = take_flags(r, &l, s);
    if (!s)
        return r->err && r->err->code ? r->err->code : -EINVAL;
    len = strlen(s);
    while (len && memchr(spaces, s[len - 1], sizeof(spaces) - 1))
        len--;
    l.text = arena_strndup(&r->d->arena, s, len);
    if (!l.text)
        return err_oom(r->err);
    if (!len)
        return docker_refuse(r->d, &l, r->err, NULL, "says nothing");
    int code = keywords[k].json ? take_json(r, &l) : 0;
    if (code == 0 && keywords[k].heredocs && !l.json)
        code = take_heredocs(r, &l);
    return code < 0 ? code : add_line(r, &l);
}

/* ------------------------------------------------------------------ all of it */

/* ARGs may stand before the first FROM; nothing else may. */
static int check_order(const struct dockerfile *d, struct err *err) {
    for (size_t i = 0; i < d->n_lines; i++) {
        if (d->lines[i].keyword == DOCKER_FROM)
            return 0;
        if (d->lines[i].keyword != DOCKER_ARG)
            return docker_refuse(d, &d->lines[i], err, "begin with FROM IMAGE, or FROM scratch",
                                 "stands before the first FROM");
    }
    return err_set(err, ERR_USAGE, -EINVAL, "", "begin with FROM IMAGE, or FROM scratch",
                   "%.100s: has no FROM", d->name);
}

int dockerfile_parse(const char *text, size_t len, const char *name, struct dockerfile *ret,
                     struct err *err) {
    struct err own = {0};
    struct reader r = {.d = ret, .at = text, .end = text + len, .err = err ? err : &own};
    _cleanup_buf_ struct buf line = {0};
    int at = 0, code;

    *ret = (struct dockerfile){.escape = '\\'};
    ret->name = arena_strdup(&ret->arena, name);
    if (!ret->name)
        return err_oom(err);
    if (len > DOCKER_BYTES || memchr(text, '\0', len) || !utf8_valid(text, len))
        return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "%.100s: is %s", ret->name,
                       len > DOCKER_BYTES ? "over 1 MiB" : "no text in UTF-8");
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        r.at += 3;
    code = take_directives(&r);
    while (code == 0 && logical_line(&r, &line, &at)) {
        if (line.failed)
            return err_oom(err);
        code = line.len ? take_line(&r, line.data, at) : 0;
    }
    return code < 0 ? code : check_order(ret, err);
}

void dockerfile_done(struct dockerfile *d) {
    arena_done(&d->arena);
    d->lines = NULL;
    d->n_lines = 0;
}
