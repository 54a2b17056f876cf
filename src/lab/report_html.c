/*
 * report_html.c: the lab's report as one page. html/page.html is its frame, in which {{NAME}} says where a piece goes;
 * the pieces are made here, so the page can be read, searched and printed where no script runs. html/page.js adds what
 * answers a click, from the same JSON, which the page carries too.
 *
 * Texts from a box could hold markup. None is ever written but by put(), whose arguments are escaped; and the page's
 * own policy allows no script and no style but these two files, by their hashes, and no request to anywhere.
 */
#include "lab/lab.h"

#include <stdarg.h>
#include <string.h>

#include "lab/report.h"

#include "base/banned.h"

static const unsigned char frame[] = {
#include "page.html.inc"
};
static const unsigned char style[] = {
#include "page.css.inc"
};
static const unsigned char script[] = {
#include "page.js.inc"
};
/* sha256 in base64, as Content-Security-Policy has it */
static const unsigned char style_hash[] = {
#include "page.css.hash.inc"
};
static const unsigned char script_hash[] = {
#include "page.js.hash.inc"
};

static void put_escaped(FILE *out, const char *text) {
    static const char *const entities[128] = {
        ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;"};
    const char *c;
    size_t len = 0;

    while ((c = report_next(&text, &len))) {
        if (len == 1 && entities[(unsigned char)*c])
            (void)fputs(entities[(unsigned char)*c], out);
        else
            (void)fwrite(c, 1, len, out);
    }
}

/* printf for markup: what %s brings is escaped, so it is never markup. Besides, %zu, %.1f and %.0f. */
static void put(FILE *out, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void put(FILE *out, const char *fmt, ...) {
    va_list ap;

    va_start(ap, fmt);
    for (const char *p; *fmt; fmt = p) {
        p = fmt + strcspn(fmt, "%");
        (void)fwrite(fmt, 1, (size_t)(p - fmt), out);
        if (strncmp(p, "%s", 2) == 0)
            put_escaped(out, va_arg(ap, const char *)), p += 2;
        else if (strncmp(p, "%zu", 3) == 0)
            (void)fprintf(out, "%zu", va_arg(ap, size_t)), p += 3;
        else if (strncmp(p, "%.1f", 4) == 0)
            (void)fprintf(out, "%.1f", va_arg(ap, double)), p += 4;
        else if (strncmp(p, "%.0f", 4) == 0)
            (void)fprintf(out, "%.0f", va_arg(ap, double)), p += 4;
        else if (*p)
            (void)fputc(*p++, out);
    }
    va_end(ap);
}

/* ------------------------------------------------------------------ head */

static void put_title(FILE *out, const json_t *lab) {
    put(out, "Linux %s, mayfly %s", report_text(lab, "kernel"), report_text(lab, "mayfly"));
}

static void put_facts(FILE *out, const json_t *lab) {
    struct report_fact facts[REPORT_FACTS];

    report_facts(lab, facts);
    for (size_t i = 0; i < REPORT_FACTS; i++)
        put(out, "<div><dt>%s</dt><dd>%s</dd></div>\n", facts[i].name, facts[i].text);
}

static size_t number_of(const json_t *lab, const char *verdict) {
    size_t i, n = 0;
    json_t *probe;

    json_array_foreach(json_object_get(lab, "probes"), i, probe) {
        n += strcmp(report_text(probe, "verdict"), verdict) == 0;
    }
    return n;
}

static void put_tally(FILE *out, const json_t *lab) {
    struct report_sums sums;

    report_sums(lab, &sums);
    put(out,
        "<p class=lead>%zu of %zu probes count: each got through with everything off and was "
        "stopped with everything on. <strong>%zu</strong> of them have no wall to spare: should "
        "one "
        "control fail, they get through.</p>\n<ul class=tally>\n",
        sums.counts, sums.probes, sums.single);
    for (const struct report_verdict *v = report_verdicts; v->name; v++)
        put(out, "<li data-verdict=\"%s\"><b>%zu</b> %s</li>\n", v->name, number_of(lab, v->name),
            v->title);
    put(out, "</ul>\n");
}

/* However many there are, the matrix comes first. */
static void put_notice(FILE *out, const json_t *lab) {
    size_t n = report_size(lab, "faults");

    if (n > 0)
        put(out,
            "<p class=notice><a href=\"#faults-title\">%zu %s</a> found, so not all of this can be "
            "relied on.</p>\n",
            n, n == 1 ? "fault was" : "faults were");
}

static void put_faults(FILE *out, const json_t *lab) {
    size_t i;
    json_t *fault;

    if (report_size(lab, "faults") == 0)
        return;
    put(out, "<section class=faults><h2 id=faults-title>Faults</h2><p>What <code>mayfly lab "
             "--check</code> complains "
             "of.</p><ul>\n");
    json_array_foreach(json_object_get(lab, "faults"), i, fault) {
        put(out, "<li>%s</li>\n", json_string_value(fault));
    }
    put(out, "</ul></section>\n");
}

static void put_legend(FILE *out, const json_t *lab) {
    (void)lab;
    for (const struct report_word *w = report_words; w->name; w++)
        put(out, "<div><dt class=\"m %s\">%s</dt><dd>%s</dd></div>\n", w->name, w->reads, w->says);
}

/* ------------------------------------------------------------------ matrix */

/* A control that cannot be had here is shown fainter. */
static const char *lacking(const json_t *control) {
    return json_is_true(json_object_get(control, "available")) ? "" : " lacking";
}

static void put_matrix_row(FILE *out, const json_t *lab, const json_t *probe, size_t index) {
    const json_t *controls = json_object_get(lab, "controls");
    const char *verdict = report_text(probe, "verdict");
    size_t i;
    json_t *control;

    put(out, "<tr data-p=%zu class=\"v-%s\"><th scope=row><b>%s</b> <span>%s</span>", index,
        verdict, report_text(probe, "id"), report_text(probe, "title"));
    for (const struct report_verdict *v = report_verdicts + 1; v->name; v++)
        if (strcmp(verdict, v->name) == 0)
            put(out, " <i class=tag>%s</i>", v->title);
    put(out, "</th>");
    json_array_foreach(controls, i, control) {
        const char *name = report_text(control, "name");
        const struct report_word *w = report_word(probe, name);

        if (w)
            put(out, "<td class=\"m %s%s\" data-c=\"%s\">%s</td>", w->name, lacking(control), name,
                w->reads);
        else
            put(out, "<td class=none></td>");
    }
    if (report_redundancy(probe))
        put(out, "<td class=num>%.0f</td></tr>\n", json_number_value(report_redundancy(probe)));
    else
        put(out, "<td class=num>–</td></tr>\n");
}

static void put_matrix(FILE *out, const json_t *lab) {
    const json_t *controls = json_object_get(lab, "controls"),
                 *probes = json_object_get(lab, "probes");
    size_t i, j;
    json_t *control, *family, *probe;

    put(out, "<colgroup><col>");
    json_array_foreach(controls, i, control) { put(out, "<col>"); }
    put(out, "<col></colgroup>\n<thead><tr><th scope=col class=corner>Probe</th>");
    json_array_foreach(controls, i, control) {
        put(out, "<th scope=col class=\"c%s\" data-c=\"%s\"><span>%s</span></th>", lacking(control),
            report_text(control, "name"), report_text(control, "name"));
    }
    put(out, "<th scope=col class=c><span>redundancy</span></th></tr></thead>\n");
    json_array_foreach(json_object_get(lab, "families"), i, family) {
        char first[2];
        const char *name = report_text(family, "name"), *rest = report_heading(family, first);
        bool open = false;

        json_array_foreach(probes, j, probe) {
            if (strcmp(report_text(probe, "family"), name) != 0)
                continue;
            if (!open)
                put(out,
                    "<tbody><tr class=family><th colspan=%zu "
                    "scope=rowgroup><span>%s%s</span></th></tr>\n",
                    json_array_size(controls) + 2, first, rest);
            open = true;
            put_matrix_row(out, lab, probe, j);
        }
        if (open)
            put(out, "</tbody>\n");
    }
}

/* ------------------------------------------------------------------ lacks */

static void put_names(FILE *out, const json_t *names) {
    size_t i;
    json_t *name;

    json_array_foreach(names, i, name) {
        put(out, "%s<b>%s</b>", i ? ", " : "", json_string_value(name));
    }
}

static void put_lacks(FILE *out, const json_t *lab) {
    const json_t *lacks = json_object_get(lab, "lacks"),
                 *names = json_object_get(lacks, "controls"),
                 *through = json_object_get(lacks, "through"),
                 *predicted = json_object_get(lacks, "predicted");
    bool here = json_is_true(json_object_get(lacks, "thisHost"));
    size_t i;
    json_t *id;

    if (!json_is_object(lacks))
        return;
    put(out, "<section><h2>%s</h2>\n<p>", here ? "What this host lacks" : "What would get through");
    if (json_array_size(names) == 0) {
        put(out, "This host lacks no control.</p></section>\n");
        return;
    }
    put(out, here ? "It lacks " : "Without ");
    put_names(out, names);
    put(out, "%s %zu of the probes tried get through, ", here ? "; so" : ",",
        json_array_size(through));
    if (json_equal(through, predicted)) {
        put(out, "as <code>mayfly doctor</code> says.</p>\n");
    } else {
        put(out, "where <code>mayfly doctor</code> says %zu: ", json_array_size(predicted));
        put_names(out, predicted);
        put(out, ".</p>\n");
    }
    put(out, "<ul class=reasons>\n");
    json_array_foreach(through, i, id) {
        put(out, "<li><b>%s</b> %s</li>\n", json_string_value(id),
            report_text(report_probe(lab, json_string_value(id)), "title"));
    }
    put(out, "</ul></section>\n");
}

/* ------------------------------------------------------------------ controls */

static double price(const json_t *control, const char *key) {
    return json_number_value(json_object_get(json_object_get(control, "price"), key));
}

static double largest(const json_t *lab, double (*of)(const json_t *, const char *),
                      const char *key) {
    size_t i;
    json_t *control;
    double most = 0;

    json_array_foreach(json_object_get(lab, "controls"), i, control) {
        most = MAX(most, of(control, key));
    }
    return most;
}

static double bought(const json_t *control, const char *key) {
    (void)key;
    return (double)(report_size(control, "sole") + report_size(control, "backs") +
                    report_size(control, "needed"));
}

/* Up to four parts side by side, each of its class, as shares of `whole`. */
static void put_bar(FILE *out, double whole, const char *const *classes, const double *parts,
                    size_t n) {
    double x = 0;

    put(out, "<svg class=bar viewBox=\"0 0 100 6\" preserveAspectRatio=none aria-hidden=true>");
    for (size_t i = 0; i < n && whole > 0; i++) {
        double width = 100 * MAX(parts[i], 0.0) / whole;

        put(out, "<rect class=\"%s\" x=%.1f width=%.1f height=6></rect>", classes[i], x, width);
        x += width;
    }
    put(out, "</svg>");
}

static void put_price(FILE *out, const json_t *control, const char *key, double most) {
    static const char *const classes[] = {"cost"};
    const json_t *value = json_object_get(json_object_get(control, "price"), key);
    double us = json_number_value(value);

    put(out, "<td class=\"num price\" data-label=\"%s\">",
        strcmp(key, "rowsUs") == 0 ? "its rows, µs" : "a run, µs");
    if (!json_is_number(value)) {
        put(out, "–</td>");
        return;
    }
    put(out, "%.1f", us);
    put_bar(out, most, classes, &us, 1);
    put(out, "</td>");
}

static void put_control(FILE *out, const json_t *control, double rows, double run, double most) {
    static const char *const keys[] = {"sole", "backs", "needed"},
                             *const classes[] = {"stopped", "stopped_too", "together"},
                             *const labels[] = {"alone", "with others", "together"};
    double parts[ARRAY_LEN(keys)];

    put(out, "<tr data-c=\"%s\"><th scope=row><b>%s</b> <span>%s</span>",
        report_text(control, "name"), report_text(control, "name"),
        report_text(control, "summary"));
    if (!json_is_true(json_object_get(control, "available")))
        put(out, "<em><b>Not available here:</b> %s</em>", report_text(control, "why"));
    if (*report_text(control, "stopsNothing"))
        put(out, "<em><b>Stops nothing here:</b> %s</em>", report_text(control, "stopsNothing"));
    put(out, "</th>");
    put_price(out, control, "rowsUs", rows);
    put_price(out, control, "runUs", run);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        parts[i] = (double)report_size(control, keys[i]);
        put(out, "<td class=num data-label=\"%s\">%zu</td>", labels[i],
            report_size(control, keys[i]));
    }
    put(out, "<td class=buys>");
    put_bar(out, most, classes, parts, ARRAY_LEN(keys));
    put(out, "</td></tr>\n");
}

static void put_controls(FILE *out, const json_t *lab) {
    double rows = largest(lab, price, "rowsUs"), run = largest(lab, price, "runUs"),
           most = largest(lab, bought, NULL);
    size_t i;
    json_t *control;

    json_array_foreach(json_object_get(lab, "controls"), i, control) {
        put_control(out, control, rows, run, most);
    }
}

/* ------------------------------------------------------------------ probe by probe */

static void put_sets(FILE *out, const json_t *sets) {
    size_t i, j;
    json_t *set, *name;

    if (json_array_size(sets) == 0)
        put(out, "–");
    json_array_foreach(sets, i, set) {
        put(out, "%s<span class=set>", i ? " or " : "");
        json_array_foreach(set, j, name) {
            put(out, "%s<b>%s</b>", j ? " + " : "", json_string_value(name));
        }
        put(out, "</span>");
    }
}

static void put_attempt(FILE *out, const json_t *cell) {
    if (!json_is_object(cell)) {
        put(out, "not tried");
        return;
    }
    put(out, "<span class=\"r %s\">%s</span> <code>%s</code> <code>%s</code>",
        report_text(cell, "result"), report_text(cell, "result"), report_text(cell, "call"),
        report_text(cell, "errno"));
    if (*report_text(cell, "detail"))
        put(out, " <small>%s</small>", report_text(cell, "detail"));
    if (*report_text(cell, "host"))
        put(out, " <small class=host>On the host: %s</small>", report_text(cell, "host"));
}

static void put_probe(FILE *out, const json_t *probe) {
    const json_t *cells = json_object_get(probe, "cells");

    put(out, "<tr><th scope=row><b>%s</b> <span>%s</span>", report_text(probe, "id"),
        report_text(probe, "title"));
    if (*report_text(probe, "echo"))
        put(out, " <small>As in %s</small>", report_text(probe, "echo"));
    put(out, "</th><td data-label=\"smallest sets that stop it\">");
    put_sets(out, json_object_get(probe, "minimal"));
    put(out, "</td><td data-label=\"everything off\">");
    put_attempt(out, json_object_get(cells, "allOff"));
    put(out, "</td><td data-label=\"everything on\">");
    put_attempt(out, json_object_get(cells, "allOn"));
    put(out, "</td></tr>\n");
}

static void put_probes(FILE *out, const json_t *lab) {
    size_t i;
    json_t *probe;

    json_array_foreach(json_object_get(lab, "probes"), i, probe) {
        if (report_counts(probe))
            put_probe(out, probe);
    }
}

static void put_not_counted(FILE *out, const json_t *lab) {
    size_t i;
    json_t *probe;

    for (const struct report_verdict *v = report_verdicts + 1; v->name; v++) {
        if (number_of(lab, v->name) == 0)
            continue;
        put(out, "<h3>%zu %s</h3>\n<p>%s</p>\n<ul class=reasons>\n", number_of(lab, v->name),
            v->title, v->says);
        json_array_foreach(json_object_get(lab, "probes"), i, probe) {
            if (strcmp(report_text(probe, "verdict"), v->name) != 0)
                continue;
            put(out, "<li><b>%s</b> %s", report_text(probe, "id"), report_text(probe, "title"));
            if (*report_text(probe, "why"))
                put(out, " <small>%s</small>", report_text(probe, "why"));
            put(out, "</li>\n");
        }
        put(out, "</ul>\n");
    }
}

/* ------------------------------------------------------------------ others */

static const json_t *all_on(const json_t *probe) {
    return json_object_get(json_object_get(probe, "cells"), "allOn");
}

static const json_t *peer_cell(const json_t *peer, const json_t *probe) {
    return json_object_get(json_object_get(peer, "cells"), report_text(probe, "id"));
}

static void put_result(FILE *out, const json_t *cell) {
    if (json_is_object(cell))
        put(out, "<span class=\"r %s\">%s</span> <code>%s</code>", report_text(cell, "result"),
            report_text(cell, "result"), report_text(cell, "errno"));
    else
        put(out, "not tried");
}

/* Not where it could not be tried: that says nothing of the peer. */
static bool differs(const json_t *cell, const json_t *probe) {
    const char *theirs = report_text(cell, "result"), *mine = report_text(all_on(probe), "result");

    return *theirs && strcmp(theirs, "untestable") != 0 && strcmp(mine, theirs) != 0;
}

static void put_peer_cell(FILE *out, const json_t *peer, const json_t *probe) {
    const json_t *cell = peer_cell(peer, probe);

    put(out, "<td data-label=\"%s\"%s>", report_text(peer, "name"),
        differs(cell, probe) ? " class=differs" : "");
    put_result(out, cell);
    if (*report_text(cell, "explain"))
        put(out, " <small>%s</small>", report_text(cell, "explain"));
    else if (strcmp(report_text(cell, "result"), "untestable") == 0)
        put(out, " <small>%s</small>", report_text(cell, "detail"));
    put(out, "</td>");
}

static void put_peers_table(FILE *out, const json_t *lab, const json_t *peers) {
    size_t i, j;
    json_t *peer, *probe;

    put(out, "<label class=only hidden><input type=checkbox>Only what differs</label>\n"
             "<div class=scroll role=region tabindex=0 aria-label=\"The same probes in "
             "others\"><table class=\"wide peers\">"
             "<thead><tr><th scope=col>Probe</th><th scope=col>mayfly</th>");
    json_array_foreach(peers, i, peer) {
        put(out, "<th scope=col>%s</th>", report_text(peer, "name"));
    }
    put(out, "</tr></thead><tbody>\n");
    json_array_foreach(json_object_get(lab, "probes"), i, probe) {
        put(out, "<tr><th scope=row><b>%s</b> <span>%s</span></th><td data-label=mayfly>",
            report_text(probe, "id"), report_text(probe, "title"));
        put_result(out, all_on(probe));
        put(out, "</td>");
        json_array_foreach(peers, j, peer) { put_peer_cell(out, peer, probe); }
        put(out, "</tr>\n");
    }
    put(out, "</tbody></table></div>\n");
}

static void put_peer(FILE *out, const json_t *lab, const json_t *peer) {
    size_t i, stopped = 0, through = 0, differing = 0;
    json_t *probe;

    json_array_foreach(json_object_get(lab, "probes"), i, probe) {
        const json_t *cell = peer_cell(peer, probe);

        stopped += strcmp(report_text(cell, "result"), "stopped") == 0;
        through += strcmp(report_text(cell, "result"), "through") == 0;
        differing += differs(cell, probe);
    }
    put(out,
        "<dt>%s <span>%s</span></dt><dd><code>%s</code><br>%zu stopped, %zu through; %zu differ "
        "from mayfly</dd>\n",
        report_text(peer, "name"), report_text(peer, "version"), report_text(peer, "command"),
        stopped, through, differing);
}

static void put_peers(FILE *out, const json_t *lab) {
    const json_t *peers = json_object_get(lab, "peers");
    size_t i;
    json_t *peer;

    if (json_array_size(peers) == 0)
        return;
    put(out,
        "<section id=peers><h2 id=peers-title>The same probes in others</h2>\n<p>Each ran with the "
        "flags that are "
        "usual for code one does not trust. Where it differs from mayfly, the cell says why.</p>\n"
        "<dl class=commands>\n");
    json_array_foreach(peers, i, peer) { put_peer(out, lab, peer); }
    put(out, "</dl>\n");
    put_peers_table(out, lab, peers);
    put(out, "</section>\n");
}

/* ------------------------------------------------------------------ the page */

/* JSON in which no tag can begin: "<" occurs in strings only, where it has another spelling. */
static int put_json(const char *bytes, size_t len, void *out) {
    for (size_t i = 0; i < len; i++) {
        if (strchr("<>&", bytes[i]) && bytes[i])
            (void)fprintf(out, "\\u%04x", (unsigned)bytes[i]);
        else
            (void)fputc(bytes[i], out);
    }
    return 0;
}

static void put_data(FILE *out, const json_t *lab) {
    (void)json_dump_callback(lab, put_json, out, JSON_COMPACT | JSON_ENSURE_ASCII);
}

#define PUT_FILE(name)                                                                             \
    static void put_##name(FILE *out, const json_t *lab) {                                         \
        (void)lab;                                                                                 \
        (void)fwrite(name, 1, sizeof(name), out);                                                  \
    }
PUT_FILE(style)
PUT_FILE(script)
PUT_FILE(style_hash)
PUT_FILE(script_hash)

static const struct piece {
    const char *name;
    void (*put)(FILE *out, const json_t *lab);
} pieces[] = {
    {"title", put_title},
    {"facts", put_facts},
    {"tally", put_tally},
    {"lacks", put_lacks},
    {"notice", put_notice},
    {"faults", put_faults},
    {"legend", put_legend},
    {"matrix", put_matrix},
    {"controls", put_controls},
    {"probes", put_probes},
    {"not-counted", put_not_counted},
    {"peers", put_peers},
    {"data", put_data},
    {"style", put_style},
    {"style-hash", put_style_hash},
    {"script", put_script},
    {"script-hash", put_script_hash},
};

static void put_piece(FILE *out, const json_t *lab, const char *name, size_t len) {
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
        if (strlen(pieces[i].name) == len && memcmp(pieces[i].name, name, len) == 0)
            pieces[i].put(out, lab);
}

int lab_html(const json_t *lab, FILE *out, struct err *err) {
    const unsigned char *at = frame, *end = frame + sizeof(frame);
    int r = report_check(lab, err);

    if (r < 0)
        return r;
    while (at < end) {
        const unsigned char *open = memmem(at, (size_t)(end - at), "{{", 2);
        const unsigned char *close = open ? memmem(open, (size_t)(end - open), "}}", 2) : NULL;

        (void)fwrite(at, 1, (size_t)((close ? open : end) - at), out);
        if (!close)
            break;
        put_piece(out, lab, (const char *)open + 2, (size_t)(close - open) - 2);
        at = close + 2;
    }
    return report_written(out, err);
}
