/*
 * screen.c: see show.h. In the matrix a column is a control, its name written downwards, and a row is a probe; what a
 * cell says is said by its sign, and by colour only besides.
 */
#include "lab/show.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/utf8.h"

#include "base/banned.h"

enum { ID_WIDTH = 6, COLUMN_WIDTH = 2, TITLE_LEAST = 20, CONTROLS_MAX = 64, WIDTH_MAX = 160 };

/* ------------------------------------------------------------------ reading */

int lab_parse(const char *text, size_t len, const char *what, json_t **ret, struct err *err) {
    static const char *const lists[] = {"controls", "families", "probes", "peers", "faults"};
    json_error_t e;
    json_t *lab = json_loadb(text, len, 0, &e);
    const char *format = json_string_value(json_object_get(lab, "format"));
    int r = 0;

    if (!lab)
        r = err_set(err, ERR_USAGE, -EINVAL, "", NULL, "%.200s: line %d: %.160s", what, e.line,
                    e.text);
    else if (!format || strcmp(format, "mayfly-lab/1") != 0)
        r = err_set(err, ERR_USAGE, -EINVAL, "", "mayfly lab --json FILE makes one",
                    "%.200s: this is not what the lab found: its \"format\" is not mayfly-lab/1",
                    what);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(lists); i++)
        if (!json_is_array(json_object_get(lab, lists[i])))
            r = err_set(err, ERR_USAGE, -EINVAL, "", NULL, "%.200s: \"%s\" is no list", what,
                        lists[i]);
    if (r == 0)
        *ret = lab;
    else
        json_decref(lab);
    return r;
}

int lab_load(const char *path, json_t **ret, struct err *err) {
    char *text _cleanup_free_ = NULL;
    size_t len = 0;
    int r = file_read_all_at(AT_FDCWD, path, 256u << 20, &text, &len);

    if (r < 0)
        return err_errno(err, ERR_USAGE, r, "", NULL, "%.300s", path);
    return lab_parse(text, len, path, ret, err);
}

/* A text, as one line that a terminal does not obey; "" where there is none. Whoever saved it may be anyone. */
struct line {
    char text[400];
};
static struct line as_line(const char *text) {
    struct line l = {.text = ""};
    bool cut = !str_copy(l.text, sizeof(l.text), text ? text : "");

    utf8_make_line(l.text, strlen(l.text), cut);
    return l;
}

static struct line line_of(const json_t *o, const char *member) {
    return as_line(json_string_value(json_object_get(o, member)));
}

/* ------------------------------------------------------------------ signs */

struct look {
    bool utf8, colour;
    int width; /* 0: no matrix */
};

static const struct sign {
    const char *word, *utf8, *ascii, *colour, *means;
} signs[] = {
    {"stopped", "●", "#", "32", "stops it, and nothing else does"},
    {"stopped_too", "◐", "o", "36", "stops it alone; without it others do"},
    {"stopped_alone", "▫", "-", "34", "stops it where nothing else is on, not with some others"},
    {"together", "◇", "+", "33", "needed, together with others"},
    {"through", "·", ".", "2", "does nothing against it"},
    {"untestable", "?", "?", "35", "not testable here"},
};

static const struct sign *sign_of(const char *word) {
    for (size_t i = 0; i < ARRAY_LEN(signs); i++)
        if (strcmp(signs[i].word, word) == 0)
            return &signs[i];
    return &signs[ARRAY_LEN(signs) - 1];
}

static void put_sign(FILE *out, const struct look *look, const struct sign *s) {
    const char *text = look->utf8 ? s->utf8 : s->ascii;

    if (look->colour)
        (void)fprintf(out, "\033[%sm%s\033[0m", s->colour, text);
    else
        (void)fputs(text, out);
}

static void put_bold(FILE *out, const struct look *look, const char *text) {
    (void)fprintf(out, look->colour ? "\033[1m%s\033[0m" : "%s", text);
}

static struct look look_at(FILE *out) {
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR"), *codeset;
    struct winsize w = {0};
    struct look look = {0};

    (void)setlocale(LC_CTYPE, "");
    codeset = nl_langinfo(CODESET);
    look.utf8 = codeset && strcmp(codeset, "UTF-8") == 0;
    if (!isatty(fileno(out)))
        return look;
    look.colour = term && strcmp(term, "dumb") != 0 && !(no_color && *no_color);
    look.width = ioctl(fileno(out), TIOCGWINSZ, &w) == 0 && w.ws_col
                     ? MIN((int)w.ws_col, (int)WIDTH_MAX)
                     : 80;
    return look;
}

/* ------------------------------------------------------------------ the matrix */

/* Characters, not bytes; wide ones are none of ours. */
static void put_cut(FILE *out, const char *text, int width) {
    size_t len = strlen(text), i = 0;
    int n = 0;

    while (i < len && n < width) {
        bool valid;
        i += utf8_step(text + i, len - i, &valid);
        n++;
    }
    if (i < len && n > 0) {
        while (i > 0 && ((unsigned char)text[i - 1] & 0xc0) == 0x80)
            i--;
        (void)fprintf(out, "%.*s…", (int)(i > 0 ? i - 1 : 0), text);
    } else {
        (void)fprintf(out, "%.*s", (int)i, text);
    }
}

/* The names of the controls, from above. */
static void put_names(FILE *out, const json_t *controls) {
    size_t height = 0, i;
    json_t *c;

    json_array_foreach(controls, i, c) { height = MAX(height, strlen(line_of(c, "name").text)); }
    for (size_t row = 0; row < height; row++) {
        (void)fprintf(out, "%*s", ID_WIDTH, "");
        json_array_foreach(controls, i, c) {
            struct line name = line_of(c, "name");
            size_t len = strlen(name.text), above = height - len;
            (void)fprintf(out, "%c ", row >= above ? name.text[row - above] : ' ');
        }
        (void)fputc('\n', out);
    }
}

static void put_probe(FILE *out, const struct look *look, const json_t *controls, const json_t *p) {
    const json_t *matrix = json_object_get(p, "matrix");
    struct line verdict = line_of(p, "verdict");
    int room = look->width - ID_WIDTH - COLUMN_WIDTH * (int)json_array_size(controls) - 1;
    size_t i;
    json_t *c;

    (void)fprintf(out, "%-*.5s", ID_WIDTH, line_of(p, "id").text);
    json_array_foreach(controls, i, c) {
        struct line word = line_of(matrix, line_of(c, "name").text);
        bool plain = strcmp(verdict.text, "counts") != 0 && strcmp(word.text, "through") == 0;

        put_sign(out, look,
                 plain ? &(const struct sign){"", " ", " ", "0", ""} : sign_of(word.text));
        (void)fputc(' ', out);
    }
    if (strcmp(verdict.text, "counts") != 0) {
        const char *said = strcmp(verdict.text, "mayfly") == 0      ? "mayfly itself: "
                           : strcmp(verdict.text, "must_pass") == 0 ? "must pass: "
                           : strcmp(verdict.text, "void") == 0      ? "VOID: "
                                                                    : "not here: ";
        (void)fputs(said, out);
        room -= (int)strlen(said);
    }
    if (room > 0)
        put_cut(out, line_of(p, "title").text, room);
    (void)fputc('\n', out);
}

static void put_legend(FILE *out, const struct look *look) {
    (void)fputc('\n', out);
    for (size_t i = 0; i < ARRAY_LEN(signs); i++) {
        (void)fputs("  ", out);
        put_sign(out, look, &signs[i]);
        (void)fprintf(out, "  %s\n", signs[i].means);
    }
}

/* ------------------------------------------------------------------ the same in words */

static const char *spoken(const char *word) {
    return strcmp(word, "stopped") == 0         ? "stops it, and nothing else"
           : strcmp(word, "stopped_too") == 0   ? "stops it too"
           : strcmp(word, "stopped_alone") == 0 ? "stops it only where nothing else is on"
           : strcmp(word, "together") == 0      ? "needed with others"
                                                : "not testable";
}

/* Only what is said: not that a control does nothing. */
static void put_words(FILE *out, const json_t *p) {
    static const char *const order[] = {"stopped", "stopped_too", "stopped_alone", "together"};
    struct line verdict = line_of(p, "verdict"), why = line_of(p, "why");
    const json_t *matrix = json_object_get(p, "matrix");
    const char *name;
    json_t *word;

    (void)fprintf(out, "%s  %s: %s", line_of(p, "id").text, line_of(p, "title").text, verdict.text);
    if (why.text[0])
        (void)fprintf(out, ": %s", why.text);
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        bool some = false;
        json_object_foreach((json_t *)(uintptr_t)matrix, name, word) {
            if (strcmp(json_string_value(word) ? json_string_value(word) : "", order[i]) != 0)
                continue;
            (void)fprintf(out, "%s%.20s", some ? ", " : "; ", as_line(name).text);
            some = true;
        }
        if (some)
            (void)fprintf(out, " (%s)", spoken(order[i]));
    }
    (void)fputc('\n', out);
}

/* ------------------------------------------------------------------ what follows from it */

/* "mount, user+seccomp" */
static void add_minimal(struct buf *b, const json_t *minimal) {
    size_t i, k;
    json_t *set, *name;

    json_array_foreach(minimal, i, set) {
        buf_puts(b, i ? ", " : "");
        json_array_foreach(set, k, name) {
            buf_printf(b, "%s%.20s", k ? "+" : "", as_line(json_string_value(name)).text);
        }
    }
}

static void put_minimal(FILE *out, const struct look *look, const json_t *probes) {
    bool begun = false;
    size_t i;
    json_t *p;

    json_array_foreach(probes, i, p) {
        struct buf sets _cleanup_buf_ = {0};
        const json_t *redundancy = json_object_get(p, "redundancy");

        if (json_array_size(json_object_get(p, "minimal")) == 0)
            continue;
        if (!begun) {
            (void)fputc('\n', out);
            put_bold(out, look, "Smallest sets that stop it, and how many walls may fall\n");
        }
        begun = true;
        add_minimal(&sets, json_object_get(p, "minimal"));
        (void)fprintf(out, "  %-*.5s", ID_WIDTH, line_of(p, "id").text);
        if (json_is_integer(redundancy))
            (void)fprintf(out, "%2lld  ", (long long)json_integer_value(redundancy));
        else
            (void)fputs(" ?  ", out);
        (void)fprintf(out, "%s\n", sets.data ? sets.data : "");
    }
}

static size_t count(const json_t *control, const char *list) {
    return json_array_size(json_object_get(control, list));
}

static void put_price(FILE *out, const json_t *c) {
    const json_t *price = json_object_get(c, "price"), *run = json_object_get(price, "runUs");

    if (!json_is_object(price)) {
        (void)fprintf(out, "%9s %9s", "", "");
        return;
    }
    (void)fprintf(out, "%9.0f ", json_number_value(json_object_get(price, "rowsUs")));
    if (json_is_number(run))
        (void)fprintf(out, "%9.0f", json_number_value(run));
    else
        (void)fprintf(out, "%9s", "");
}

/* Nothing was found of it, and there is no reason for that but the choice of probes. */
static bool was_not_asked(const json_t *lab, const json_t *c) {
    size_t i;
    json_t *probe;

    json_array_foreach(json_object_get(lab, "probes"), i, probe) {
        struct line word = line_of(json_object_get(probe, "matrix"), line_of(c, "name").text);

        if (word.text[0] && strcmp(word.text, "through") != 0 &&
            strcmp(word.text, "untestable") != 0)
            return false;
    }
    return !line_of(c, "stopsNothing").text[0] && !json_is_object(json_object_get(c, "price"));
}

static void put_controls(FILE *out, const struct look *look, const json_t *lab) {
    size_t i, silent = 0;
    bool busy = false;
    json_t *c;

    (void)fputc('\n', out);
    put_bold(out, look,
             "Controls: probes that only it stops, that it stops too, that need it; µs of its "
             "rows, µs of a run\n");
    json_array_foreach(json_object_get(lab, "controls"), i, c) {
        struct line nothing = line_of(c, "stopsNothing");

        if (was_not_asked(lab, c)) {
            silent++;
            continue;
        }
        (void)fprintf(out, "  %-11.20s %4zu %4zu %4zu ", line_of(c, "name").text, count(c, "sole"),
                      count(c, "backs"), count(c, "needed"));
        put_price(out, c);
        busy = busy || json_is_null(json_object_get(json_object_get(c, "price"), "runUs"));
        if (nothing.text[0])
            (void)fprintf(out, "  stops nothing here: %s", nothing.text);
        (void)fputc('\n', out);
    }
    if (busy)
        (void)fprintf(out, "  Where µs of a run is empty, the machine was too busy to tell.\n");
    if (silent > 0)
        (void)fprintf(out, "  Of %zu others the chosen probes tell nothing.\n", silent);
}

/* Why none of the probes could be tried in it; "": some could. */
static struct line never_ran(const json_t *cells) {
    struct line why = {""};
    const char *id;
    json_t *cell;

    json_object_foreach((json_t *)(uintptr_t)cells, id, cell) {
        struct line detail = line_of(cell, "detail");

        if (strcmp(line_of(cell, "result").text, "untestable") != 0 ||
            (why.text[0] && strcmp(why.text, detail.text) != 0))
            return (struct line){""};
        why = detail;
    }
    return why;
}

/* What differs in each of the others, and why. */
static void put_peers(FILE *out, const struct look *look, const json_t *peers) {
    size_t i;
    json_t *peer, *cell;
    const char *id;

    json_array_foreach(peers, i, peer) {
        json_t *cells = json_object_get(peer, "cells");
        struct line never = never_ran(cells);
        size_t differ = 0;

        json_object_foreach(cells, id, cell) {
            differ += json_object_get(cell, "explain") || json_object_get(cell, "fault");
        }
        (void)fputc('\n', out);
        put_bold(out, look, line_of(peer, "version").text);
        if (never.text[0])
            (void)fprintf(out, ": %s\n", never.text);
        else
            (void)fprintf(out, ": %zu of %zu are not as in mayfly\n", differ,
                          json_object_size(cells));
        json_object_foreach(cells, id, cell) {
            if (json_object_get(cell, "explain"))
                (void)fprintf(out, "  %-*.5s%-8.10s %s\n", ID_WIDTH, as_line(id).text,
                              line_of(cell, "result").text, line_of(cell, "explain").text);
        }
    }
}

static void put_head(FILE *out, const json_t *lab) {
    (void)fprintf(
        out,
        "mayfly %s on Linux %s (%s, cgroups %s), in the %s, as %s: %lld attempts in %.0f s\n\n",
        line_of(lab, "mayfly").text, line_of(lab, "kernel").text, line_of(lab, "machine").text,
        line_of(lab, "cgroups").text, line_of(lab, "where").text, line_of(lab, "as").text,
        (long long)json_integer_value(json_object_get(lab, "attempts")),
        json_number_value(json_object_get(lab, "seconds")));
}

static void put_family(FILE *out, const struct look *look, const json_t *lab,
                       const json_t *family) {
    const json_t *controls = json_object_get(lab, "controls");
    struct line name = line_of(family, "name");
    bool matrix = look->width > 0;
    size_t i;
    json_t *p;

    put_bold(out, look, line_of(family, "title").text);
    (void)fputc('\n', out);
    json_array_foreach(json_object_get(lab, "probes"), i, p) {
        if (strcmp(line_of(p, "family").text, name.text) != 0)
            continue;
        if (matrix)
            put_probe(out, look, controls, p);
        else
            put_words(out, p);
    }
}

static void put_by_id(FILE *out, const json_t *lab, const json_t *id) {
    size_t i;
    json_t *p;

    json_array_foreach(json_object_get(lab, "probes"), i, p) {
        if (json_equal(json_object_get(p, "id"), id))
            (void)fprintf(out, "  %-*.5s%s\n", ID_WIDTH, line_of(p, "id").text,
                          line_of(p, "title").text);
    }
}

/* Of --lacks: the probes that get through, and nothing else. */
static void put_lacks(FILE *out, const struct look *look, const json_t *lab, const json_t *lacks) {
    const json_t *names = json_object_get(lacks, "controls");
    const json_t *through = json_object_get(lacks, "through");
    bool here = json_is_true(json_object_get(lacks, "thisHost"));
    bool agreed = json_equal(through, json_object_get(lacks, "predicted"));
    struct buf b _cleanup_buf_ = {0};
    size_t i;
    json_t *one;

    json_array_foreach(names, i, one) {
        buf_printf(&b, "%s%.20s", i ? ", " : "", as_line(json_string_value(one)).text);
    }
    if (!b.data) {
        (void)fputs("This host lacks no control.\n", out);
        return;
    }
    put_bold(out, look, here ? "This host lacks " : "Without ");
    (void)fprintf(out, "%s, %zu of %zu get through%s\n", b.data, json_array_size(through),
                  json_array_size(json_object_get(lab, "probes")),
                  agreed ? ", as mayfly doctor says" : "");
    json_array_foreach(through, i, one) { put_by_id(out, lab, one); }
}

int lab_screen(const json_t *lab, FILE *out, struct err *err) {
    const json_t *controls = json_object_get(lab, "controls");
    struct look look = look_at(out);
    size_t i;
    json_t *family;

    if (look.width < ID_WIDTH + COLUMN_WIDTH * (int)json_array_size(controls) + TITLE_LEAST)
        look.width = 0;
    const json_t *lacks = json_object_get(lab, "lacks");
    put_head(out, lab);
    if (json_is_object(lacks)) {
        put_lacks(out, &look, lab, lacks);
        return 0;
    }
    if (look.width)
        put_names(out, controls);
    json_array_foreach(json_object_get(lab, "families"), i, family) {
        put_family(out, &look, lab, family);
    }
    if (look.width)
        put_legend(out, &look);
    put_minimal(out, &look, json_object_get(lab, "probes"));
    put_controls(out, &look, lab);
    put_peers(out, &look, json_object_get(lab, "peers"));
    if (fflush(out) != 0)
        return err_errno(err, ERR_SETUP, -errno, "", NULL, "writing what was found");
    return 0;
}

size_t lab_faults(const json_t *lab) {
    const json_t *faults = json_object_get(lab, "faults");
    size_t i;
    json_t *f;

    json_array_foreach(faults, i, f) {
        const json_t *holder = json_pack("{sO}", "f", f);
        (void)fprintf(stderr, "mayfly: lab: %s\n", line_of(holder, "f").text);
        json_decref((json_t *)(uintptr_t)holder);
    }
    return json_array_size(faults);
}
