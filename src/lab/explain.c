/*
 * explain.c: `mayfly lab explain`: one page about a control or a probe: what the kernel does, what mayfly does, what that
 * breaks and leaves open; and then it is tried, here and now, with and without.
 *
 * What can be known from the program is not written down a second time: the rows are those of a plan made on this host,
 * the lines in the source were found when the program was built, the findings are made while one waits.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/complain.h"
#include "base/fd.h"
#include "lab/explain_control.h"
#include "lab/families.h"
#include "lab/lab.h"
#include "lab/options.h"
#include "lab/outer.h"
#include "lab/page.h"
#include "lab/probe.h"
#include "lab/texts.h"
#include "policy/policy.h"

#include "base/banned.h"

enum { NAMES = 400 };

static const char *const verdict_words[] = {"got through", "stopped", "cannot be told here"};

/* ------------------------------------------------------------------ lists of names, with spaces between */

static void add_name(char names[NAMES], const char *name, size_t len) {
    size_t n = strlen(names);

    (void)snprintf(names + n, NAMES - n, "%s%.*s", n ? " " : "", (int)len, name);
}

/* All of `list` but `name`. */
static void without_name(char out[NAMES], const char *list, const char *name) {
    char other[24];

    out[0] = '\0';
    while (lab_next_word(&list, other, sizeof(other)))
        if (strcmp(other, name) != 0)
            add_name(out, other, strlen(other));
}

/* "a", "a and b", "a, b and c" */
static void in_words(char out[NAMES], const char *list) {
    const char *last = strrchr(list, ' ');
    size_t n = 0;

    out[0] = '\0';
    for (const char *p = list; *p && n + 8 < NAMES; p++) {
        const char *text = *p != ' ' ? NULL : p == last ? " and " : ", ";

        n += (size_t)snprintf(out + n, NAMES - n, text ? "%s" : "%.1s", text ? text : p);
    }
}

/* ------------------------------------------------------------------ trying */

/* What one attempt came to, as lines to lay out. */
static void tell(char out[600], const char *what, const char *value) {
    size_t n = strlen(out);

    if (value[0])
        (void)snprintf(out + n, 600 - n, "%s%s%s", n ? "; " : "", what, value);
}

static int try_once(const struct probe *probe, const char *without, struct finding_of *ret) {
    int r = lab_attempt(probe, without, ret);
    bool refused = strcmp(ret->error, "refused") == 0 && !lab_sees(probe->sees, "refused");

    if (r < 0 || refused) /* no run was made, so nothing was stopped */
        ret->verdict = VERDICT_UNTESTABLE;
    return r;
}

static void call_text(const struct finding_of *f, char out[160]) {
    const char *error = f->error[0] ? f->error : f->verdict == VERDICT_THROUGH ? "no error" : "";

    if (f->call[0] || error[0])
        (void)snprintf(out, 160, "%s%s%s", f->call, f->call[0] && error[0] ? ": " : "", error);
    else
        out[0] = '\0';
}

static const char *host_text(const struct finding_of *f) {
    return f->host[0] ? f->host : "as before";
}

/* Two findings, one beside the other, and the host under each. */
static void print_two(const struct page *p, const struct finding_of *left,
                      const struct finding_of *right) {
    char l[160], r[160];

    page_pair(p, "    ", verdict_words[left->verdict], verdict_words[right->verdict]);
    call_text(left, l);
    call_text(right, r);
    page_pair(p, "    ", l, r);
    if (left->detail[0] || right->detail[0])
        page_pair(p, "    ", left->detail, right->detail);
    (void)snprintf(l, sizeof(l), "the host: %.140s", host_text(left));
    (void)snprintf(r, sizeof(r), "the host: %.140s", host_text(right));
    page_pair(p, "    ", l, r);
}

/* One line for one finding: for a list of sets. */
static void print_one(const struct page *p, const char *off, const struct finding_of *f) {
    char call[160], text[600] = "";

    call_text(f, call);
    tell(text, "", verdict_words[f->verdict]);
    tell(text, "", call);
    tell(text, "", f->detail);
    if (f->host[0])
        tell(text, "the host: ", f->host);
    (void)fprintf(p->out, "  %s\n", off);
    page_wrap(p, "      ", text);
    (void)fflush(p->out);
}

/* ------------------------------------------------------------------ a control */

/* With the control and without it. What else stops the probe is off both times, or nothing would be seen. */
static void demonstrate(const struct page *p, const struct probe *probe, const char *control) {
    char partners[NAMES], all[NAMES], words[NAMES], text[NAMES + 120], left[64], right[64];
    struct finding_of with, without;

    without_name(partners, probe->stopped_by, control);
    if (probe->may_stop)
        add_name(partners, probe->may_stop, strlen(probe->may_stop));
    (void)snprintf(all, sizeof(all), "%.200s%s%.30s", partners, partners[0] ? " " : "", control);
    in_words(words, partners);
    (void)snprintf(text, sizeof(text), "%s%s%s", probe->title,
                   partners[0] ? "; off both times, since they stop it too: " : "", words);
    (void)fprintf(p->out, "  %s%s%s\n", p->bold ? "\033[1m" : "", probe->id,
                  p->bold ? "\033[0m" : "");
    page_wrap(p, "    ", text);
    (void)try_once(probe, partners, &with);
    (void)try_once(probe, all, &without);
    (void)snprintf(left, sizeof(left), "WITH %s", control);
    (void)snprintf(right, sizeof(right), "WITHOUT %s", control);
    page_pair(p, "    ", left, right);
    print_two(p, &with, &without);
    (void)fflush(p->out);
}

static unsigned words(const char *list) {
    unsigned n = *list != '\0';

    for (; *list; list++)
        n += *list == ' ';
    return n;
}

/* The first probe that the fewest controls stop beside this one. NULL: there is none that it stops. */
static const struct probe *best_probe(const char *control) {
    const struct probe *best = NULL;

    for (const struct probe *const *family = probe_families; *family; family++)
        for (const struct probe *probe = *family; probe->id; probe++)
            if (lab_word(probe->stopped_by, control) &&
                (!best || words(probe->stopped_by) < words(best->stopped_by)))
                best = probe;
    return best;
}

/* The page's probes, or else the best there is. */
static void demonstrate_all(const struct page *p, const char *ids, const char *control) {
    const struct probe *best = best_probe(control);

    page_heading(p, "Tried just now, with it and without");
    if (lab_stays_on(control))
        page_wrap(p, "  it stays on in the lab: ", lab_stays_on(control));
    else if (!best)
        page_wrap(p, "  ", "no probe of the lab's tells it on from off");
    else if (!ids[0])
        demonstrate(p, best, control);
    char id[16];
    for (const char *at = best && !lab_stays_on(control) ? ids : "";
         lab_next_word(&at, id, sizeof(id));) {
        const struct probe *probe = probe_find(id);
        if (probe && lab_word(probe->stopped_by, control))
            demonstrate(p, probe, control);
    }
}

/* ------------------------------------------------------------------ a probe */

static void print_payload(const struct page *p, const struct probe *probe) {
    const char *source = probe->payload;
    size_t len = source ? strlen(source) : 0;

    if (probe->kind == PAYLOAD_STATIC)
        len = helper_source(probe->payload, &source);
    page_heading(p, "The code that tries it");
    if (len == 0)
        page_wrap(p, "  ",
                  "no code in a box: mayfly itself is asked for a run that it has to refuse");
    for (const char *end = source + len; source < end;) {
        size_t n = strcspn(source, "\n");

        n = MIN(n, (size_t)(end - source));
        (void)fprintf(p->out, "    %.*s\n", (int)n, source);
        source += n + 1;
    }
}

static void print_walls(const struct page *p, const struct probe *probe) {
    page_heading(p, "What stops it");
    if (probe->must_pass)
        page_wrap(p, "  ", "nothing: it is no attack, and has to get through with everything on");
    else if (!probe->stopped_by[0])
        page_wrap(p, "  ",
                  "how mayfly itself is built (the supervisor, init); that is no control which "
                  "could be switched off");
    char name[24];
    for (const char *at = probe->stopped_by; lab_next_word(&at, name, sizeof(name));)
        control_print_wall(p, name);
    if (probe->may_stop) {
        char words[NAMES];
        in_words(words, probe->may_stop);
        page_wrap(p, "  on some hosts, or in some sets, this does too: ", words);
    }
    if (probe->why_alone)
        page_wrap(p, "  on some hosts it does not get through even so: ", probe->why_alone);
}

static void try_without(const struct page *p, const struct probe *probe, const char *without) {
    char names[NAMES], off[NAMES + 16];
    struct finding_of f;

    in_words(names, without);
    (void)snprintf(off, sizeof(off), "%s%s", without[0] ? names : "everything on",
                   without[0] ? " off" : "");
    (void)try_once(probe, without, &f);
    print_one(p, off, &f);
}

static void print_sets(const struct page *p, const struct probe *probe) {
    char name[NAMES], all[NAMES] = "";

    page_heading(p, "Tried just now");
    try_without(p, probe, "");
    add_name(all, probe->stopped_by, strlen(probe->stopped_by));
    if (all[0] && probe->may_stop)
        add_name(all, probe->may_stop, strlen(probe->may_stop));
    for (const char *at = probe->stopped_by; lab_next_word(&at, name, sizeof(name));)
        if (strcmp(name, all) != 0)
            try_without(p, probe, name);
    if (all[0])
        try_without(p, probe, all);
}

static void explain_probe(const struct page *p, const struct probe *probe, bool run) {
    char text[300];

    (void)snprintf(text, sizeof(text), "%s: %.200s", probe->id, probe->title);
    page_title(p, text);
    (void)snprintf(text, sizeof(text), "of the family %s", probe->family);
    page_wrap(p, "  ", text);
    if (probe->echo)
        page_wrap(p, "  It echoes ", probe->echo);
    page_heading(p, "Why such things work");
    for (const struct lab_family *f = lab_families; f->name; f++)
        if (strcmp(f->name, probe->family) == 0)
            page_wrap(p, "  ", f->how);
    print_payload(p, probe);
    print_walls(p, probe);
    page_heading(p, "What the code sees");
    if (probe->must_pass || !probe->sees)
        page_wrap(p, "  ", "that it works");
    else {
        char sees[200];
        size_t n = 0;
        for (const char *at = probe->sees; *at && n + 5 < sizeof(sees); at++)
            n += (size_t)snprintf(sees + n, sizeof(sees) - n, *at == '|' ? " or " : "%.1s", at);
        page_wrap(p, "  ", n ? sees : "nothing");
    }
    page_heading(p, "What is looked at on the host, before and after");
    page_wrap(p, "  ",
              "its mounts, cgroups, processes, descriptors and IPC objects, and files that were "
              "made to be harmed: with any difference it got through, whatever the code says");
    (void)fflush(p->out);
    if (!run)
        return;
    print_sets(p, probe);
    (void)snprintf(text, sizeof(text),
                   "mayfly lab --probe %s tries it with each control off, and alone, and finds the "
                   "smallest sets that stop it.",
                   probe->id);
    (void)fputc('\n', p->out);
    page_wrap(p, "", text);
}

/* ------------------------------------------------------------------ which */

static void list_all(const struct page *p) {
    char lead[32], id[16];

    page_heading(p, "Controls");
    for (int i = 0; i < CTL__N; i++) {
        (void)snprintf(lead, sizeof(lead), "  %-11s ", control_id_name((enum control_id)i));
        page_wrap(p, lead, control_title(control_id_name((enum control_id)i)));
    }
    for (const struct probe *const *family = probe_families; *family; family++) {
        (void)snprintf(lead, sizeof(lead), "Probes: %.20s", (*family)->family);
        page_heading(p, lead);
        for (const struct probe *probe = *family; probe->id; probe++) {
            (void)snprintf(id, sizeof(id), "  %-7s ", probe->id);
            page_wrap(p, id, probe->title);
        }
    }
}

/* ------------------------------------------------------------------ the command */

struct request {
    const char *word, *where; /* what to explain; NULL: list all there is */
    struct options usual;     /* for its root file system */
    bool run, help;
};

static void help(void) {
    (void)printf(
        "usage: mayfly lab explain [FLAGS] [CONTROL | PROBE]\n"
        "One page: what the kernel does, what mayfly does, what it breaks and what it leaves "
        "open; then it is tried.\n"
        "\n"
        "    --no-run        try nothing\n"
        "    --where WHERE   box: with a box around, which protects this host (the default); "
        "or host\n"
        "    --rootfs DIR    of the boxes (MAYFLY_ROOTFS, or one at the usual places)\n"
        "\n"
        "Without a name: all there is to explain.\n");
}

/* The value of a flag, in the same word behind "=" or the next word; NULL: `word` is another flag, or has none. */
static const char *value_of(const char *flag, const char *word, int argc, char **argv, int *i) {
    size_t len = strlen(flag);

    if (strncmp(word, flag, len) != 0)
        return NULL;
    if (word[len] == '=')
        return word + len + 1;
    return word[len] || *i + 1 >= argc ? NULL : argv[++*i];
}

static int take_word(struct request *rq, int argc, char **argv, int *i, struct err *err) {
    const char *word = argv[*i], *value;

    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return rq->help = true, 0;
    if (strcmp(word, "--no-run") == 0)
        return rq->run = false, 0;
    if ((value = value_of("--where", word, argc, argv, i)))
        return rq->where = value, 0;
    if ((value = value_of("--rootfs", word, argc, argv, i)))
        return rq->usual.question.rootfs = value, 0;
    if (word[0] == '-')
        return err_set(err, ERR_USAGE, -EINVAL, "", "see mayfly lab explain --help",
                       "%s: there is no such flag, or its value is missing", word);
    if (rq->word)
        return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "%s: one name at a time", word);
    return rq->word = word, 0;
}

static int take_words(struct request *rq, int argc, char **argv, struct err *err) {
    int r = 0;

    for (int i = 1; r == 0 && i < argc; i++)
        r = take_word(rq, argc, argv, &i, err);
    if (r == 0 && strcmp(rq->where, "box") != 0 && strcmp(rq->where, "host") != 0)
        r = err_set(err, ERR_USAGE, -EINVAL, "", NULL, "--where: \"%.40s\" is neither box nor host",
                    rq->where);
    if (r == 0 && rq->word && !control_title(rq->word) && !probe_find(rq->word))
        r = err_set(err, ERR_USAGE, -EINVAL, "", "mayfly lab explain lists them",
                    "%.40s: is neither a control nor a probe", rq->word);
    return r;
}

static int explain_control(const struct page *p, const char *name, bool run, struct err *err) {
    struct control_page page;
    int r = control_print_page(p, name, err);

    (void)fflush(p->out);
    if (r < 0 || !run)
        return r;
    control_print_cost(p, name);
    control_print_evidence(p, name);
    (void)control_page(name, &page);
    demonstrate_all(p, page.probes, name);
    return 0;
}

/* From here on the boxes are made where nothing of the host's can be harmed. */
static int find_place(struct request *rq, struct err *err) {
    int r = options_rootfs(&rq->usual, err);

    if (r == 0 && setenv("MAYFLY_ROOTFS", rq->usual.rootfs, 1) < 0)
        r = err_oom(err);
    return r < 0 || !rq->run ? r : lab_outer_enter(rq->where, rq->usual.rootfs, err);
}

static int explain(struct request *rq, struct err *err) {
    const struct probe *probe = rq->word ? probe_find(rq->word) : NULL;
    struct page page;

    page_init(&page, stdout);
    if (!rq->word)
        return list_all(&page), 0;
    int r = find_place(rq, err);
    if (r == 0 && probe)
        explain_probe(&page, probe, rq->run);
    else if (r == 0)
        r = explain_control(&page, rq->word, rq->run, err);
    return r;
}

int lab_explain_command(int argc, char **argv) {
    struct request rq = {.where = "box", .run = true};
    struct err err = {0};
    int r = take_words(&rq, argc, argv, &err);

    if (r == 0 && rq.help)
        help();
    else if (r == 0)
        r = explain(&rq, &err);
    if (r < 0)
        complain("lab explain: %s", err.message);
    else if ((fflush(stdout) != 0 || ferror(stdout)) && errno != EPIPE) {
        complain("lab explain: standard output could not be written");
        return EXIT_LAB_TROUBLE;
    }
    return r == 0 ? 0 : err.kind == ERR_USAGE ? EXIT_LAB_USAGE : EXIT_LAB_TROUBLE;
}
