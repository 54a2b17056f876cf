/*
 * cmd_host.c: the commands about the host rather than a run: doctor, gc, version.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "json/result_json.h"

#include "base/banned.h"

/* The switches in argv, each known to the caller; false and a line on stderr for any other word. */
static bool switches(int argc, char **argv, bool *json, bool *all) {
    for (int i = 1; i < argc; i++) {
        if (json && strcmp(argv[i], "--json") == 0)
            *json = true;
        else if (all && strcmp(argv[i], "--all") == 0)
            *all = true;
        else {
            complain("%s: %.64s: no such flag; see --help", argv[0], argv[i]);
            return false;
        }
    }
    return true;
}

static int print_checks(const struct mayfly_check *checks, size_t n, bool json) {
    static const char *const words[] = {"NO", "ok", "covered"};
    int missing = 0;

    for (size_t i = 0; i < n; i++) {
        const struct mayfly_check *c = &checks[i];
        missing += c->answer == 0;
        if (json)
            continue;
        (void)printf("%-8s %-11s %s\n", words[c->answer], c->control, c->summary);
        if (c->why[0])
            (void)printf("%-20s %s\n", "", c->why);
        if (c->answer == 0 && c->remedy[0])
            (void)printf("%-20s remedy: %s\n", "", c->remedy);
    }
    if (json) {
        char *text = checks_to_json(checks, n);
        if (!text)
            return EXIT_MAYFLY;
        (void)puts(text);
        free(text);
    } else if (missing) {
        (void)printf(
            "\n%d of %zu controls cannot be put in force here: a default run is refused.\n",
            missing, n);
    } else {
        (void)printf("\nA default run can be put in force here, whole.\n");
    }
    return missing ? 1 : 0;
}

int cmd_doctor(const struct command *self, int argc, char **argv) {
    struct mayfly_error error = {0};
    struct mayfly_check *checks = NULL;
    mayfly_policy *policy;
    bool json = false;
    size_t n = 0;
    int status = EXIT_MAYFLY;

    (void)self;
    if (!switches(argc, argv, &json, NULL))
        return EXIT_MAYFLY;
    policy = mayfly_policy_new();
    if (policy && mayfly_doctor(policy, &checks, &n, &error) == 0)
        status = print_checks(checks, n, json);
    else
        complain("doctor: %s", policy ? error.message : "out of memory");
    free(checks);
    mayfly_policy_free(policy);
    return status;
}

int cmd_gc(const struct command *self, int argc, char **argv) {
    struct mayfly_gc_report report = {0};
    struct mayfly_error error = {0};
    bool json = false, all = false;

    (void)self;
    if (!switches(argc, argv, &json, &all))
        return EXIT_MAYFLY;
    if (mayfly_gc(all, &report, &error) < 0) {
        complain("gc: %s", error.message);
        return EXIT_MAYFLY;
    }
    if (json)
        (void)printf("{\"found\":%u,\"removed\":%u,\"living\":%u}\n", report.found, report.removed,
                     report.living);
    else
        (void)printf("%u left by dead runs, %u removed; %u of living runs left alone\n",
                     report.found, report.removed, report.living);
    return report.removed == report.found ? 0 : 1;
}

int cmd_version(const struct command *self, int argc, char **argv) {
    (void)self;
    if (!switches(argc, argv, NULL, NULL))
        return EXIT_MAYFLY;
    (void)printf("mayfly %s\n", mayfly_version());
    return 0;
}
