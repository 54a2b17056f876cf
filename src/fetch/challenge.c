/*
 * challenge.c: see challenge.h. A word is a parameter's name if a "=" follows, and else begins the next challenge.
 */
#include "fetch/challenge.h"

#include <string.h>
#include <strings.h>

#include "base/fd.h"

#include "base/banned.h"

enum { WORD_SIZE = 64, VALUE_SIZE = 1024 };

struct parser {
    const char *at;
    struct challenges *out;
    bool in_first_bearer;
};

static bool is_token_char(char c) {
    return c > ' ' && c < 0x7f && !strchr("\"(),/:;<=>?@[\\]{}", c);
}

static void skip(struct parser *p, const char *chars) { p->at += strspn(p->at, chars); }

/* False if it is empty or does not fit. */
static bool take_token(struct parser *p, char *out, size_t size) {
    size_t n = 0;

    while (is_token_char(p->at[n]))
        n++;
    bool fits = n > 0 && n < size;
    memcpy(out, p->at, fits ? n : 0);
    out[fits ? n : 0] = '\0';
    p->at += n;
    return fits;
}

/* "…" with \-escapes, the opening quote being next. False if it has no end or does not fit. */
static bool take_quoted(struct parser *p, char *out, size_t size) {
    size_t n = 0;
    bool fits = true;

    for (p->at++; *p->at && *p->at != '"' && *p->at != '\n'; p->at++) {
        if (*p->at == '\\' && p->at[1] && p->at[1] != '\n')
            p->at++;
        fits = n + 1 < size;
        if (fits)
            out[n++] = *p->at;
        else
            break;
    }
    p->at += strcspn(p->at, fits ? "\"\n" : "\n");
    out[n] = '\0';
    if (*p->at != '"')
        return false;
    p->at++;
    return fits;
}

static void keep(struct parser *p, const char *name, const char *value) {
    struct challenges *c = p->out;

    if (!p->in_first_bearer)
        return;
    if (strcasecmp(name, "realm") == 0)
        (void)str_copy(c->realm, sizeof(c->realm), value);
    else if (strcasecmp(name, "service") == 0 && !str_copy(c->service, sizeof(c->service), value))
        c->service[0] = '\0';
    else if (strcasecmp(name, "scope") == 0)
        (void)str_copy(c->scope, sizeof(c->scope), value);
}

static void begin(struct parser *p, const char *scheme) {
    p->in_first_bearer = strcasecmp(scheme, "bearer") == 0 && !p->out->bearer;
    p->out->bearer = p->out->bearer || p->in_first_bearer;
    p->out->basic = p->out->basic || strcasecmp(scheme, "basic") == 0;
}

/* One word and what belongs to it. False at the end of the line, or where nothing more can be understood. */
static bool step(struct parser *p) {
    char word[WORD_SIZE], value[VALUE_SIZE] = "";

    skip(p, " \t,");
    if (!take_token(p, word, sizeof(word)))
        return false;
    const char *after = p->at;
    skip(p, " \t");
    if (*p->at != '=') {
        begin(p, word);
        return after != p->at || !*after || *after == ',' || *after == '\n';
    }
    skip(p, "="); /* more than one: the end of a token68, which has no value */
    skip(p, " \t");
    if (*p->at == '"') {
        if (!take_quoted(p, value, sizeof(value)))
            return false;
    } else {
        (void)take_token(p, value, sizeof(value));
    }
    keep(p, word, value);
    return true;
}

void challenges_parse(const char *lines, struct challenges *ret) {
    struct parser p = {.at = lines, .out = ret};

    *ret = (struct challenges){0};
    while (*p.at) {
        while (step(&p))
            ;
        p.at += strcspn(p.at, "\n");
        p.at += *p.at == '\n';
        p.in_first_bearer = false;
    }
}
