/*
 * fuzz_runlog.c: a line of the run log, and the command line that reads it. What is taken as a record can be written down
 * and read again, so can counters of what was removed; its times are those that it says; and no bytes in the place of a log make `verify` do anything but
 * answer in one line.
 */
#include "fuzz/target.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "log/log.h"
#include "runlog/files.h"
#include "runlog/pruned.h"
#include "runlog/sum.h"

#include "base/banned.h"

static void must_survive(const struct record *r) {
    char *text = json_dumps(r->root, JSON_COMPACT), when[32];
    struct record again;
    int64_t ms = 0;

    if (!text)
        abort();
    fuzz_must(strlen(text) > RUNLOG_LINE || record_parse(text, strlen(text), &again) == 0, "%s",
              text);
    if (strlen(text) <= RUNLOG_LINE) {
        fuzz_must(again.seq == r->seq && again.time_ms == r->time_ms && again.hints == r->hints &&
                      again.exit_code == r->exit_code && strcmp(again.outcome, r->outcome) == 0,
                  "%s", text);
        record_done(&again);
    }
    time_print(r->time_ms, when);
    fuzz_must(time_parse(when, &ms) == 0 && ms == r->time_ms, "%s", when);
    free(text);
}

static void add_up(const struct record *r) {
    static struct sum sum; /* of all there were */
    char *text = NULL;
    size_t len = 0;

    if (!sum.now_ms)
        sum_init(&sum, r->time_ms);
    sum_add(&sum, r);
    fuzz_must(sum.n_cells <= ARRAY_LEN(sum.cell), "%zu", sum.n_cells);
    FILE *to = open_memstream(&text, &len);
    if (!to)
        abort();
    struct sum one;
    sum_init(&one, r->time_ms);
    sum_add(&one, r);
    sum_prometheus(&one, to);
    sum_print(&one, to);
    if (fclose(to) != 0)
        abort();
    for (const char *line = text; *line; line = strchr(line, '\n') + 1)
        fuzz_must(strchr(line, '\n'), "a line without an end: %s", line);
    free(text);
}

/* All lines, as from a file. */
static void read_lines(const uint8_t *data, size_t size) {
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    struct line_reader reader = {.fd = fd};
    const char *line;
    size_t len, all = 0;
    bool complete = true;

    if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) < 0)
        abort();
    while (complete && line_next(&reader, &line, &len, &complete) > 0) {
        struct record r;

        fuzz_must(all + len <= size && memcmp(line, data + all, len) == 0, "at %zu", all);
        all += len + complete;
        if (record_parse(line, len, &r) < 0)
            continue;
        must_survive(&r);
        add_up(&r);
        record_done(&r);
    }
    fuzz_must(all == size, "%zu of %zu bytes", all, size);
    line_reader_done(&reader);
    (void)close(fd);
}

static void read_flags(const uint8_t *data, size_t size) {
    struct fuzz_input in = {data, size};
    char *argv[8] = {NULL};
    struct err err = {0};
    struct asked a;
    int argc = 0;

    while (in.left && argc < 7)
        argv[argc++] = fuzz_text(&in, '\n');
    int r = argc ? asked_parse(&a, argc, argv, INT64_C(1795999106000), &err) : 0;
    if (r < 0)
        fuzz_refusal(&err, r, "");
    for (int i = 0; i < argc; i++)
        free(argv[i]);
}

/* Counters that are taken are the same when they were written down. */
static void read_pruned(const uint8_t *data, size_t size) {
    struct pruned p, again;

    if (pruned_parse((const char *)data, size, &p) < 0)
        return;
    char *text = pruned_text(&p), *second = NULL;
    if (!text)
        abort();
    fuzz_must(pruned_parse(text, strlen(text), &again) == 0, "%s", text);
    second = pruned_text(&again);
    fuzz_must(second && strcmp(text, second) == 0, "%s", text);
    free(text);
    free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size && size < 1 << 20)
        read_lines(data, size);
    if (size)
        read_pruned(data, size);
    if (size && data[0] == '-')
        read_flags(data, size);
    return 0;
}
