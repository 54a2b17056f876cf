/*
 * main.c: mayfly-log, the program behind `mayfly log` and behind `--log`: it has the library for digests, which mayfly
 * itself, whose start is part of every run, is to do without.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log/log.h"
#include "runlog/verify.h"

#include "base/banned.h"

static void print_json(const struct verify_report *r) {
    json_t *o =
        json_pack("{s:b,s:I,s:I,s:I,s:I,s:I,s:s,s:s?}", "whole", r->whole, "records",
                  (json_int_t)r->records, "torn", (json_int_t)r->torn, "gaps", (json_int_t)r->gaps,
                  "first", (json_int_t)r->first, "last", (json_int_t)r->last, "digest",
                  r->last_hash, "fault", r->fault[0] ? r->fault : NULL);
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;

    (void)puts(text ? text : "{}");
    free(text);
    json_decref(o);
}

static int verify(const struct asked *a) {
    struct verify_report r;
    struct err err = {0};

    if (runlog_verify(a->file, &r, &err) < 0) {
        complain("%s", err.message);
        return EXIT_TROUBLE;
    }
    if (a->json) {
        print_json(&r);
    } else if (r.whole) {
        (void)printf("%s is whole: %" PRIu64 " records", a->file, r.records);
        if (r.records)
            (void)printf(", %" PRIu64 " to %" PRIu64 ", the last line's digest is %s", r.first,
                         r.last, r.last_hash);
        (void)putchar('\n');
        if (r.torn)
            (void)printf("%" PRIu64 " line%s without an end: the writer died\n", r.torn,
                         r.torn == 1 ? " is" : "s are");
    } else {
        (void)printf("%s is NOT whole: %s\n", a->file, r.fault);
    }
    return r.whole ? 0 : 1;
}

int main(int argc, char **argv) {
    struct asked a;
    struct err err = {0};
    struct timespec now;

    if (argc > 1 && strcmp(argv[1], "record") == 0)
        return record_run(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "log") == 0) { /* as mayfly hands it on */
        argc--;
        argv++;
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (asked_parse(&a, argc, argv, (int64_t)now.tv_sec * 1000, &err) < 0) {
        complain("log: %s", err.message);
        return EXIT_TROUBLE;
    }
    if (a.help) {
        asked_help();
        return 0;
    }
    int status = a.verify ? verify(&a) : show(&a);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    if (errno == EPIPE)
        return 128 + SIGPIPE;
    complain("writing to standard output: %s", errno_words(-errno));
    return EXIT_TROUBLE;
}
