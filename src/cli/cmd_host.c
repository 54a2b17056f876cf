/*
 * cmd_host.c: the commands about the host rather than a run: doctor, gc, version.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "json/result_json.h"

#include "base/banned.h"

struct a_switch {
    const char *name; /* NULL: the end */
    bool *is_set;
};

/* The switches in argv; false and a line on stderr for any other word. */
static bool switches(int argc, char **argv, const struct a_switch *known) {
    for (int i = 1; i < argc; i++) {
        const struct a_switch *s = known;

        while (s->name && strcmp(s->name, argv[i]) != 0)
            s++;
        if (!s->name) {
            complain("%s: %.64s: no such flag; see --help", argv[0], argv[i]);
            return false;
        }
        *s->is_set = true;
    }
    return true;
}

/* ------------------------------------------------------------------ doctor */

enum { INDENT = 13 };

/* "            lead: text"; nothing for an empty text. */
static void print_under(const char *lead, const char *text) {
    if (text[0])
        (void)printf("%-*s%s%s\n", INDENT, "", lead, text);
}

static void print_attacks(const char *lead, const struct mayfly_attack *list, size_t n) {
    if (!n)
        return;
    (void)printf("%-*s%s", INDENT, "", lead);
    for (size_t i = 0; i < n; i++)
        (void)printf("%s%s %s", i ? "; " : "", list[i].id, list[i].title);
    (void)printf("\n");
}

static void print_check(const struct mayfly_check *c, bool verbose) {
    static const char *const words[] = {"NO", "ok", "covered"};

    (void)printf("%-8s %-11s %s\n", words[c->answer], c->control,
                 c->answer == 1 && !verbose ? c->how : c->summary);
    if (c->answer != 1 || verbose)
        print_under(c->answer == 0 ? "how it would be: " : "how: ", c->how);
    if (verbose)
        print_under("see: ", c->source);
    print_under(c->answer == 1 ? "could be better: " : "why: ", c->why);
    if (c->answer != 1 || verbose)
        print_under("remedy: ", c->remedy);
    if (c->answer == 1)
        return;
    print_under("without it: ", c->answer == 0 || verbose ? c->without : "");
    if (c->answer == 0)
        print_under("--limits=best-effort: ",
                    c->best_effort[0] ? c->best_effort : "refused then too");
    print_attacks("gets through: ", c->through, c->n_through);
    if (verbose)
        print_attacks("one wall less against: ", c->thinner, c->n_thinner);
}

static void print_report(const struct mayfly_report *r, bool verbose) {
    size_t missing = 0;

    (void)printf("Linux %s, as %s\n\n", r->kernel, r->root ? "root" : "a user");
    for (size_t i = 0; i < r->n_checks; i++) {
        print_check(&r->checks[i], verbose);
        missing += r->checks[i].answer == 0;
    }
    (void)printf("\n");
    for (size_t i = 0; i < r->n_looks; i++) {
        const struct mayfly_look *l = &r->looks[i];
        (void)printf("%-8s %s: %s\n", l->good ? "ok" : "note", l->name, l->found);
        print_under("remedy: ", l->remedy);
    }
    for (size_t i = 0; i < r->n_features; i++) {
        const struct mayfly_feature *f = &r->features[i];
        if (verbose || !f->here)
            (void)printf("%-8s %s (Linux %s)%s%s\n", f->here ? "ok" : "note", f->name, f->since,
                         f->here ? "" : " is not here: ", f->here ? "" : f->without);
    }
    (void)printf("\n");
    if (r->trial > 0)
        (void)printf("A box with %s was built, used and removed in %.1f ms.\n",
                     r->trial_best_effort ? "--limits=best-effort" : "everything", r->trial_ms);
    else
        (void)printf("%s: %s\n", r->trial < 0 ? "A box" : "A box was tried and failed",
                     r->trial_error.message);
    if (r->ready)
        (void)printf("A default run can be put in force here, whole.\n");
    else if (missing)
        (void)printf("%zu of %zu controls cannot be put in force here: a default run is refused.\n",
                     missing, r->n_checks);
    else
        (void)printf("A default run does not work here.\n");
}

int cmd_doctor(const struct command *self, int argc, char **argv) {
    struct mayfly_error error = {0};
    struct mayfly_report *report = NULL;
    mayfly_policy *policy;
    bool json = false, verbose = false;
    char *text = NULL;
    int status = EXIT_MAYFLY;

    (void)self;
    if (!switches(argc, argv, (struct a_switch[]){{"--json", &json}, {"--verbose", &verbose}, {0}}))
        return EXIT_MAYFLY;
    policy = mayfly_policy_new();
    if (policy && mayfly_doctor(policy, 1, &report, &error) == 0)
        status = report->ready ? 0 : 1;
    else
        complain("doctor: %s", policy ? error.message : "out of memory");
    if (report && !json)
        print_report(report, verbose);
    else if (report && (text = report_to_json(report)))
        (void)puts(text);
    else if (report)
        status = EXIT_MAYFLY;
    if (fflush(stdout) != 0)
        status = EXIT_MAYFLY;
    free(text);
    mayfly_report_free(report);
    mayfly_policy_free(policy);
    return status;
}

void help_gc(const struct command *self) {
    help_short(self);
    (void)fputs(
        "\n"
        "  --all    look through every cgroup hierarchy, for what runs with another "
        "--cgroup-parent or from\n"
        "           another login left; without it, only where a run started here makes its own\n"
        "  --json   print the counts as JSON\n"
        "\nExit status 1 when something could not be removed. Living runs are left alone.\n",
        stdout);
}

int cmd_gc(const struct command *self, int argc, char **argv) {
    struct mayfly_gc_report report = {0};
    struct mayfly_error error = {0};
    bool json = false, all = false;

    (void)self;
    if (!switches(argc, argv, (struct a_switch[]){{"--json", &json}, {"--all", &all}, {0}}))
        return EXIT_MAYFLY;
    if (mayfly_gc(all, &report, &error) < 0) {
        complain("gc: %s", error.message);
        return EXIT_MAYFLY;
    }
    if (json)
        (void)printf("{\"found\":%u,\"removed\":%u,\"living\":%u,\"foreign\":%u}\n", report.found,
                     report.removed, report.living, report.foreign);
    else
        (void)printf("%u left by dead runs, %u removed; %u of living runs left alone\n",
                     report.found, report.removed, report.living);
    if (!json && report.foreign)
        (void)printf("%u of runs in other pid namespaces left alone%s\n", report.foreign,
                     all ? "" : "; --all looks whether anything lives there");
    return report.removed == report.found ? 0 : 1;
}

int cmd_version(const struct command *self, int argc, char **argv) {
    (void)self;
    if (!switches(argc, argv, (struct a_switch[]){{0}}))
        return EXIT_MAYFLY;
    (void)printf("mayfly %s\n", mayfly_version());
    return 0;
}
