/*
 * report.c: the shape of the lab's JSON as a table, held against what was read; and the words for people.
 */
#include "lab/report.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/utf8.h"

#include "base/banned.h"

const struct report_word report_words[] = {
    {"stopped", "stopped", "■", "alone it stops the probe, and nothing else here does"},
    {"stopped_too", "stopped too", "□", "alone it stops the probe, and so do others"},
    {"stopped_alone", "stopped alone", "▫",
     "it stops the probe where nothing else is on, but not in the company of some others"},
    {"together", "together", "◇", "alone it does not stop the probe, together with others it does"},
    {"through", "through", "·", "does nothing against the probe"},
    {"untestable", "untestable", "?", "this host cannot tell"},
    {0},
};

const struct report_verdict report_verdicts[] = {
    {"counts", "counts", "It gets through with everything off and is stopped with everything on."},
    {"void", "void",
     "It proves nothing here: it was stopped with everything off, or got through with everything "
     "on."},
    {"untestable", "untestable", "This host lacks what the attempt needs."},
    {"mayfly", "by construction",
     "It is stopped by how mayfly is built: there is no control to switch off."},
    {"must_pass", "must pass", "It is no attack, and has to get through with everything on."},
    {0},
};

/* ------------------------------------------------------------------ shape */

enum kind { TEXT, WORD, NUMBER, BOOLEAN, OBJECT, LIST, MAP };

struct shape {
    const char *key;
    enum kind kind;
    bool optional;          /* may be null or absent */
    const struct shape *of; /* OBJECT: its fields, ended by a key of NULL; LIST, MAP: of what */
    const char *words;      /* WORD: which, with spaces around each */
};

#define WHERE " box kernel host "
#define RESULTS " stopped through untestable "
#define MATRIX " stopped stopped_too stopped_alone together through untestable "
#define VERDICTS " counts void untestable must_pass mayfly "

static const struct shape text = {.kind = TEXT}, texts = {.kind = LIST, .of = &text},
                          matrix_word = {.kind = WORD, .words = MATRIX};

static const struct shape cell_fields[] = {
    {.key = "result", WORD, .words = RESULTS}, {.key = "call", .optional = true},
    {.key = "errno", .optional = true},        {.key = "detail", .optional = true},
    {.key = "host", .optional = true},         {.key = "ms", NUMBER, true},
    {.key = "explain", .optional = true},    /* a peer's */
    {.key = "off", LIST, true, .of = &text}, /* of a set */
    {.key = "on", LIST, true, .of = &text},    {0},
};
static const struct shape cell = {.kind = OBJECT, .of = cell_fields};

static const struct shape cells_fields[] = {
    {.key = "allOn", OBJECT, true, .of = cell_fields},
    {.key = "allOff", OBJECT, true, .of = cell_fields},
    {.key = "without", MAP, true, .of = &cell},
    {.key = "only", MAP, true, .of = &cell},
    {.key = "sets", LIST, true, .of = &cell},
    {0},
};

static const struct shape probe_fields[] = {
    {.key = "id"},
    {.key = "title"},
    {.key = "family"},
    {.key = "expected", LIST, .of = &text},
    {.key = "sees", LIST, .of = &text},
    {.key = "echo", .optional = true},
    {.key = "mustPass", BOOLEAN},
    {.key = "verdict", WORD, .words = VERDICTS},
    {.key = "why", .optional = true},
    {.key = "minimal", LIST, .of = &texts},
    {.key = "redundancy", NUMBER, true},
    {.key = "matrix", MAP, .of = &matrix_word},
    {.key = "cells", OBJECT, .of = cells_fields},
    {0},
};
static const struct shape probe = {.kind = OBJECT, .of = probe_fields};

static const struct shape price_fields[] = {
    {.key = "rowsUs", NUMBER, true},
    {.key = "runUs", NUMBER, true},
    {.key = "rounds", NUMBER, true},
    {0},
};

static const struct shape control_fields[] = {
    {.key = "name"},
    {.key = "summary"},
    {.key = "source"},
    {.key = "without"},
    {.key = "available", BOOLEAN},
    {.key = "why", .optional = true},
    {.key = "price", OBJECT, true, .of = price_fields},
    {.key = "sole", LIST, .of = &text},
    {.key = "backs", LIST, .of = &text},
    {.key = "needed", LIST, .of = &text},
    {.key = "stopsNothing", .optional = true},
    {0},
};
static const struct shape control = {.kind = OBJECT, .of = control_fields};

static const struct shape family_fields[] = {{.key = "name"}, {.key = "title"}, {0}};
static const struct shape family = {.kind = OBJECT, .of = family_fields};

static const struct shape peer_fields[] = {
    {.key = "name"},
    {.key = "version"},
    {.key = "command"},
    {.key = "cells", MAP, .of = &cell},
    {0},
};
static const struct shape peer = {.kind = OBJECT, .of = peer_fields};

static const struct shape lacks_fields[] = {
    {.key = "controls", LIST, .of = &text},
    {.key = "thisHost", BOOLEAN},
    {.key = "predicted", LIST, .of = &text},
    {.key = "through", LIST, .of = &text},
    {0},
};

static const struct shape lab_fields[] = {
    {.key = "format", WORD, .words = " mayfly-lab/1 "},
    {.key = "mayfly"},
    {.key = "kernel"},
    {.key = "machine"},
    {.key = "where", WORD, .words = WHERE},
    {.key = "as"},
    {.key = "cgroups"},
    {.key = "started"},
    {.key = "seconds", NUMBER},
    {.key = "attempts", NUMBER},
    {.key = "controls", LIST, .of = &control},
    {.key = "families", LIST, .of = &family},
    {.key = "probes", LIST, .of = &probe},
    {.key = "peers", LIST, true, .of = &peer},
    {.key = "lacks", OBJECT, true, .of = lacks_fields}, /* of --lacks */
    {.key = "faults", LIST, true, .of = &text},
    {0},
};
static const struct shape whole = {.kind = OBJECT, .of = lab_fields};

#define REMEDY "give what `mayfly lab --json` wrote; mayfly-lab(5) has its fields"

static int wrong(const char *path, struct err *err, const char *fmt, ...) PRINTF_LIKE(3, 4);
static int wrong(const char *path, struct err *err, const char *fmt, ...) {
    char what[200];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    return err_set(err, ERR_USAGE, -EINVAL, NULL, REMEDY, "the lab's JSON: %s %s",
                   *path ? path : "it", what);
}

static int check(const json_t *value, const struct shape *shape, const char *path, struct err *err);

static int check_fields(const json_t *object, const struct shape *fields, const char *path,
                        struct err *err) {
    int r = 0;

    for (const struct shape *f = fields; f->key && r == 0; f++) {
        char at[160];

        (void)snprintf(at, sizeof(at), "%s%s%s", path, *path ? "." : "", f->key);
        r = check(json_object_get(object, f->key), f, at, err);
    }
    return r;
}

static int check_list(const json_t *list, const struct shape *of, const char *path,
                      struct err *err) {
    int r = 0;

    for (size_t i = 0; i < json_array_size(list) && r == 0; i++) {
        char at[160];

        (void)snprintf(at, sizeof(at), "%.120s[%zu]", path, i);
        r = check(json_array_get(list, i), of, at, err);
    }
    return r;
}

static int check_map(const json_t *map, const struct shape *of, const char *path, struct err *err) {
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)map, key, value) {
        char at[160];

        (void)snprintf(at, sizeof(at), "%.100s.%.40s", path, key);
        int r = check(value, of, at, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int check_word(const char *word, const char *words, const char *path, struct err *err) {
    char spaced[64];

    (void)snprintf(spaced, sizeof(spaced), " %s ", word);
    if (strlen(word) + 2 < sizeof(spaced) && !strchr(word, ' ') && strstr(words, spaced))
        return 0;
    return wrong(path, err, "is \"%.40s\" and not one of:%.*s", word, (int)strlen(words) - 1,
                 words);
}

static int check(const json_t *value, const struct shape *shape, const char *path,
                 struct err *err) {
    static const char *const names[] = {
        [TEXT] = "a text",           [WORD] = "a text",      [NUMBER] = "a number",
        [BOOLEAN] = "true or false", [OBJECT] = "an object", [LIST] = "a list",
        [MAP] = "an object"};
    bool fits[] = {[TEXT] = json_is_string(value),   [WORD] = json_is_string(value),
                   [NUMBER] = json_is_number(value), [BOOLEAN] = json_is_boolean(value),
                   [OBJECT] = json_is_object(value), [LIST] = json_is_array(value),
                   [MAP] = json_is_object(value)};

    if (!value || json_is_null(value))
        return shape->optional ? 0 : wrong(path, err, "is missing");
    if (!fits[shape->kind])
        return wrong(path, err, "is not %s", names[shape->kind]);
    switch (shape->kind) {
    case WORD:
        return check_word(json_string_value(value), shape->words, path, err);
    case OBJECT:
        return check_fields(value, shape->of, path, err);
    case LIST:
        return check_list(value, shape->of, path, err);
    case MAP:
        return check_map(value, shape->of, path, err);
    default:
        return 0;
    }
}

/* A probe of a family that is not named would be in no table. */
static int check_families(const json_t *lab, struct err *err) {
    const json_t *families = json_object_get(lab, "families");
    size_t i, j;
    json_t *p, *f;

    json_array_foreach(json_object_get(lab, "probes"), i, p) {
        bool found = false;

        json_array_foreach(families, j, f) {
            found = found || strcmp(report_text(f, "name"), report_text(p, "family")) == 0;
        }
        if (!found)
            return wrong("families", err, "has no \"%.40s\", which probe %.40s is of",
                         report_text(p, "family"), report_text(p, "id"));
    }
    return 0;
}

int report_check(const json_t *lab, struct err *err) {
    int r = check(lab, &whole, "", err);

    return r < 0 ? r : check_families(lab, err);
}

/* ------------------------------------------------------------------ fields */

const char *report_text(const json_t *object, const char *key) {
    const char *value = json_string_value(json_object_get(object, key));

    return value ? value : "";
}

size_t report_size(const json_t *object, const char *key) {
    return json_array_size(json_object_get(object, key));
}

const char *report_heading(const json_t *of_family, char first[2]) {
    const char *title = report_text(of_family, "title");

    first[0] = *title >= 'a' && *title <= 'z' ? (char)(*title - 'a' + 'A') : '\0';
    first[1] = '\0';
    return *first ? title + 1 : title;
}

const json_t *report_probe(const json_t *lab, const char *id) {
    size_t i;
    json_t *p;

    json_array_foreach(json_object_get(lab, "probes"), i, p) {
        if (strcmp(report_text(p, "id"), id) == 0)
            return p;
    }
    return NULL;
}

const struct report_word *report_word(const json_t *of_probe, const char *of_control) {
    const char *name = report_text(json_object_get(of_probe, "matrix"), of_control);

    for (const struct report_word *w = report_words; w->name; w++)
        if (strcmp(w->name, name) == 0)
            return w;
    return NULL;
}

bool report_counts(const json_t *of_probe) {
    return strcmp(report_text(of_probe, "verdict"), report_verdicts[0].name) == 0;
}

const json_t *report_redundancy(const json_t *of_probe) {
    const json_t *value = json_object_get(of_probe, "redundancy");

    return report_counts(of_probe) && json_is_number(value) ? value : NULL;
}

void report_facts(const json_t *lab, struct report_fact facts[REPORT_FACTS]) {
    static const char *const places[][2] = {{"box", "in the lab's outer box"},
                                            {"kernel", "in a kernel of its own"},
                                            {"host", "on the bare host"}};
    const char *where = report_text(lab, "where"), *started = report_text(lab, "started");
    int day = (int)strcspn(started, "T"), end = (int)strcspn(started, "Z");
    double seconds = json_number_value(json_object_get(lab, "seconds"));
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (strcmp(where, places[i][0]) == 0)
            where = places[i][1];
#define FACT(fact, ...)                                                                            \
    do {                                                                                           \
        facts[n].name = (fact);                                                                    \
        (void)snprintf(facts[n].text, sizeof(facts[n].text), __VA_ARGS__);                         \
        n++;                                                                                       \
    } while (0)
    FACT("mayfly", "%.80s", report_text(lab, "mayfly"));
    FACT("Kernel", "Linux %.80s", report_text(lab, "kernel"));
    FACT("Machine", "%.80s", report_text(lab, "machine"));
    FACT("cgroups", "%.80s", report_text(lab, "cgroups"));
    FACT("Run as", "%.80s", report_text(lab, "as"));
    FACT("Where", "%.80s", where);
    FACT("Started", "%.*s %.*s UTC", MIN(day, 40), started, MAX(0, MIN(end - day - 1, 40)),
         started[day] ? started + day + 1 : "");
    FACT("Attempts", "%.0f in %.1f s", json_number_value(json_object_get(lab, "attempts")),
         seconds);
#undef FACT
}

void report_sums(const json_t *lab, struct report_sums *ret) {
    size_t i;
    json_t *p;

    *ret = (struct report_sums){.probes = report_size(lab, "probes")};
    json_array_foreach(json_object_get(lab, "probes"), i, p) {
        const json_t *spare = report_redundancy(p);

        ret->counts += report_counts(p);
        ret->single += spare && json_number_value(spare) < 1;
    }
}

const char *report_next(const char **at, size_t *ret_len) {
    static const char replacement[] = "\xef\xbf\xbd";
    const char *s = *at;
    const unsigned char *u = (const unsigned char *)s;
    bool valid = false, steers = false;

    if (!*s)
        return NULL;
    *ret_len = utf8_step(s, strnlen(s, 4), &valid);
    *at += *ret_len;
    if (*ret_len == 1)
        steers = (u[0] < 0x20 && u[0] != '\t' && u[0] != '\n') || u[0] == 0x7f;
    else if (*ret_len == 2)
        steers = u[0] == 0xc2 && u[1] < 0xa0;
    else if (*ret_len == 3 && u[0] == 0xe2) /* U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069 */
        steers =
            (u[1] == 0x80 && (u[2] == 0x8e || u[2] == 0x8f || (u[2] >= 0xaa && u[2] <= 0xae))) ||
            (u[1] == 0x81 && u[2] >= 0xa6 && u[2] <= 0xa9);
    if (valid && !steers)
        return s;
    *ret_len = strlen(replacement);
    return replacement;
}

int report_written(FILE *out, struct err *err) {
    errno = 0;
    if (fflush(out) == 0 && !ferror(out))
        return 0;
    return err_errno(err, ERR_SETUP, errno ? -errno : -EIO, NULL, "see whether the disk is full",
                     "cannot write the lab's report");
}
