/*
 * report_markdown.c: the lab's report as Markdown: tables by family, for a page that shows GitHub's dialect. Only what
 * matters is in the matrix: a control that does nothing against a probe is not named beside it.
 */
#include "lab/lab.h"

#include <stdarg.h>
#include <string.h>

#include "lab/report.h"

#include "base/banned.h"

/* A text that Markdown neither formats, links nor takes for markup, on one line. */
static void escaped(FILE *out, const char *text) {
    const char *c;
    char before = 0;
    size_t len = 0;

    while ((c = report_next(&text, &len))) {
        if (*c == '\n' || *c == '\t') {
            (void)fputc(' ', out);
            continue;
        }
        if (strchr("\\`*_[]<>|~&#$@", *c) || (*c == ':' && *text == '/') ||
            (*c == '.' && before == 'w')) /* http:// and www. become links */
            (void)fputc('\\', out);
        (void)fwrite(c, 1, len, out);
        before = *c;
    }
}

static void field(FILE *out, const json_t *object, const char *key) {
    escaped(out, report_text(object, key));
}

/* "a, b and c" would hide where one set ends: "a + b" is one. */
static void joined(FILE *out, const json_t *list, const char *between) {
    size_t i;
    json_t *text;

    json_array_foreach(list, i, text) {
        (void)fputs(i ? between : "", out);
        escaped(out, json_string_value(text));
    }
}

static void minimal(FILE *out, const json_t *probe) {
    size_t i;
    json_t *set;

    json_array_foreach(json_object_get(probe, "minimal"), i, set) {
        (void)fputs(i ? "; " : "", out);
        joined(out, set, " + ");
    }
}

/* "□ mount, landlock" for each word that says something. */
static void words(FILE *out, const json_t *lab, const json_t *probe) {
    bool any = false;

    if (strcmp(report_text(probe, "verdict"), "untestable") == 0)
        return; /* so are all its words */
    for (const struct report_word *w = report_words; w->name; w++) {
        bool first = true;
        size_t i;
        json_t *control;

        if (strcmp(w->name, "through") == 0)
            continue;
        json_array_foreach(json_object_get(lab, "controls"), i, control) {
            bool told = strcmp(w->name, "untestable") != 0 ||
                        json_is_true(json_object_get(control, "available"));
            if (report_word(probe, report_text(control, "name")) != w || !told)
                continue;
            (void)fprintf(out, "%s%s", first && any ? "<br>" : "", first ? w->mark : ",");
            (void)fputc(' ', out);
            field(out, control, "name");
            first = false;
            any = true;
        }
    }
}

/* What an attempt came to: "stopped: open EROFS". */
static void cell(FILE *out, const json_t *probe, const char *which) {
    const json_t *c = json_object_get(json_object_get(probe, "cells"), which);

    if (!json_is_object(c)) {
        (void)fputs("–", out);
        return;
    }
    field(out, c, "result");
    (void)fputs(*report_text(c, "call") ? ": " : "", out);
    field(out, c, "call");
    (void)fputs(*report_text(c, "errno") ? " " : "", out);
    field(out, c, "errno");
}

static void probe_row(FILE *out, const json_t *lab, const json_t *probe) {
    (void)fputs("| ", out);
    field(out, probe, "id");
    (void)fputs(" | ", out);
    field(out, probe, "title");
    (void)fputs(*report_text(probe, "echo") ? " (" : "", out);
    field(out, probe, "echo");
    (void)fputs(*report_text(probe, "echo") ? ") | " : " | ", out);
    words(out, lab, probe);
    (void)fputs(" | ", out);
    minimal(out, probe);
    if (report_redundancy(probe))
        (void)fprintf(out, " | %.0f | ", json_number_value(report_redundancy(probe)));
    else
        (void)fputs(" | – | ", out);
    cell(out, probe, "allOff");
    (void)fputs(" | ", out);
    cell(out, probe, "allOn");
    (void)fputs(" |\n", out);
}

static void family(FILE *out, const json_t *lab, const json_t *of) {
    size_t i;
    json_t *probe;
    char first[2];
    const char *rest = report_heading(of, first);
    bool any = false;

    json_array_foreach(json_object_get(lab, "probes"), i, probe) {
        if (strcmp(report_text(probe, "family"), report_text(of, "name")) != 0)
            continue;
        if (!any) {
            (void)fputs("\n### ", out);
            escaped(out, first);
            escaped(out, rest);
            (void)fputs("\n\n| probe | what it tries | controls | smallest sets | redundancy | "
                        "everything off | "
                        "everything on |\n|---|---|---|---|--:|---|---|\n",
                        out);
        }
        any = true;
        probe_row(out, lab, probe);
    }
}

static void microseconds(FILE *out, const json_t *control, const char *key) {
    const json_t *value = json_object_get(json_object_get(control, "price"), key);

    if (json_is_number(value))
        (void)fprintf(out, "%.1f | ", json_number_value(value));
    else
        (void)fputs("– | ", out);
}

static void controls(FILE *out, const json_t *lab) {
    size_t i;
    json_t *c;

    (void)fputs("\n## What each control buys, and its price\n\n| control | its rows, µs | a run, "
                "µs | alone ■ | "
                "with others □ | together ◇ | |\n|---|--:|--:|--:|--:|--:|---|\n",
                out);
    json_array_foreach(json_object_get(lab, "controls"), i, c) {
        (void)fputs("| ", out);
        field(out, c, "name");
        (void)fputs(" | ", out);
        microseconds(out, c, "rowsUs");
        microseconds(out, c, "runUs");
        (void)fprintf(out, "%zu | %zu | %zu | ", report_size(c, "sole"), report_size(c, "backs"),
                      report_size(c, "needed"));
        (void)fputs(json_is_true(json_object_get(c, "available")) ? "" : "not available: ", out);
        field(out, c, "why");
        (void)fputs(*report_text(c, "why") && *report_text(c, "stopsNothing") ? "; " : "", out);
        (void)fputs(*report_text(c, "stopsNothing") ? "stops nothing here: " : "", out);
        field(out, c, "stopsNothing");
        (void)fputs(" |\n", out);
    }
}

static void lacks(FILE *out, const json_t *lab) {
    const json_t *lacking = json_object_get(lab, "lacks"),
                 *through = json_object_get(lacking, "through");
    size_t i;
    json_t *id;

    if (!json_is_object(lacking))
        return;
    (void)fputs(json_is_true(json_object_get(lacking, "thisHost"))
                    ? "\n## What this host lacks\n\n"
                    : "\n## What would get through\n\n",
                out);
    (void)fputs(report_size(lacking, "controls") > 0 ? "Without " : "It lacks no control.\n", out);
    joined(out, json_object_get(lacking, "controls"), ", ");
    if (report_size(lacking, "controls") == 0)
        return;
    (void)fprintf(out, ": %zu of the probes tried get through; mayfly doctor says %zu%s",
                  json_array_size(through), report_size(lacking, "predicted"),
                  json_equal(through, json_object_get(lacking, "predicted")) ? ", the same.\n\n"
                                                                             : ": ");
    if (!json_equal(through, json_object_get(lacking, "predicted"))) {
        joined(out, json_object_get(lacking, "predicted"), ", ");
        (void)fputs(".\n\n", out);
    }
    json_array_foreach(through, i, id) {
        (void)fputs("- ", out);
        escaped(out, json_string_value(id));
        (void)fputs(", ", out);
        field(out, report_probe(lab, json_string_value(id)), "title");
        (void)fputc('\n', out);
    }
}

static void peer(FILE *out, const json_t *lab, const json_t *p) {
    size_t i;
    json_t *probe;

    (void)fputs("\n### ", out);
    field(out, p, "name");
    (void)fputc(' ', out);
    field(out, p, "version");
    (void)fputs("\n\nRun as: ", out);
    field(out, p, "command");
    (void)fputs("\n\n| probe | mayfly | here | why |\n|---|---|---|---|\n", out);
    json_array_foreach(json_object_get(lab, "probes"), i, probe) {
        const json_t *theirs =
            json_object_get(json_object_get(p, "cells"), report_text(probe, "id"));

        if (!theirs)
            continue;
        (void)fputs("| ", out);
        field(out, probe, "id");
        (void)fputs(" | ", out);
        field(out, json_object_get(json_object_get(probe, "cells"), "allOn"), "result");
        (void)fputs(" | ", out);
        field(out, theirs, "result");
        (void)fputs(" | ", out);
        field(out, theirs, *report_text(theirs, "explain") ? "explain" : "detail");
        (void)fputs(" |\n", out);
    }
}

static void not_counted(FILE *out, const json_t *lab) {
    size_t i;
    json_t *probe;

    for (const struct report_verdict *v = report_verdicts + 1; v->name; v++) {
        bool any = false;

        json_array_foreach(json_object_get(lab, "probes"), i, probe) {
            if (strcmp(report_text(probe, "verdict"), v->name) != 0)
                continue;
            if (!any)
                (void)fprintf(out, "\n### %s\n\n%s\n\n", v->title, v->says);
            any = true;
            (void)fputs("- ", out);
            field(out, probe, "id");
            (void)fputs(", ", out);
            field(out, probe, "title");
            (void)fputs(*report_text(probe, "why") ? ": " : "", out);
            field(out, probe, "why");
            (void)fputc('\n', out);
        }
    }
}

static void head(FILE *out, const json_t *lab) {
    struct report_fact facts[REPORT_FACTS];
    struct report_sums sums;

    report_facts(lab, facts);
    report_sums(lab, &sums);
    (void)fputs("# What each control stops\n\n", out);
    for (size_t i = 0; i < REPORT_FACTS; i++) {
        (void)fprintf(out, "- %s: ", facts[i].name);
        escaped(out, facts[i].text);
        (void)fputc('\n', out);
    }
    (void)fprintf(out,
                  "\n%zu of %zu probes count: they get through with everything off and are stopped "
                  "with everything on. %zu of them have no wall to spare: should one control fail, "
                  "they get through.\n",
                  sums.counts, sums.probes, sums.single);
    if (report_size(lab, "faults") > 0)
        (void)fprintf(out,
                      "\n**Faults: %zu**, listed at the end; not all of this can be relied on.\n",
                      report_size(lab, "faults"));
    (void)fputs("\n## Probes\n\n", out);
    for (const struct report_word *w = report_words; w->name; w++)
        (void)fprintf(out, "- %s %s: %s\n", w->mark, w->reads, w->says);
}

static void faults(FILE *out, const json_t *lab) {
    size_t i;
    json_t *fault;

    if (report_size(lab, "faults") > 0)
        (void)fputs("\n## Faults\n\n", out);
    json_array_foreach(json_object_get(lab, "faults"), i, fault) {
        (void)fputs("- ", out);
        escaped(out, json_string_value(fault));
        (void)fputc('\n', out);
    }
}

int lab_markdown(const json_t *lab, FILE *out, struct err *err) {
    size_t i;
    json_t *item;
    int r = report_check(lab, err);

    if (r < 0)
        return r;
    head(out, lab);
    json_array_foreach(json_object_get(lab, "families"), i, item) { family(out, lab, item); }
    controls(out, lab);
    lacks(out, lab);
    if (report_size(lab, "peers") > 0)
        (void)fputs("\n## The same probes in others\n", out);
    json_array_foreach(json_object_get(lab, "peers"), i, item) { peer(out, lab, item); }
    (void)fputs("\n## Probes that do not count\n", out);
    not_counted(out, lab);
    faults(out, lab);
    return report_written(out, err);
}
