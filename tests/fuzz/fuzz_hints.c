/*
 * fuzz_hints.c: hints from facts and from what a program prints when it ends, which is all its own.
 * A hint is mayfly's voice: one plain sentence that names its control, whatever was printed; and a
 * program that ended well, with no fact of the kernel's against it, gets none.
 *
 * The first three bytes are the command, the exit status and the rest of the facts; in the seeds they
 * are a letter (p: Python, s: a shell) and two digits. Then comes standard error.
 */
#include "fuzz/target.h"

#include <signal.h>
#include <string.h>

#include "lib/hints.h"

#include "base/banned.h"

static const char *const commands[][4] = {
    {"python3", "-I", "-u", "/home/box/main.py"},
    {"sh", "-c", "x", NULL},
    {"python3", "-c", "import x", NULL},
    {"cat", "/x", NULL, NULL},
};

static void must_be_a_hint(const struct hint *h) {
    const char *name = control_id_name(h->control), *in = strstr(h->sentence, " (control: ");

    fuzz_one_line(h->sentence);
    for (const char *p = h->sentence; *p;
         p++) { /* what it repeats is plain, and so are its own words but for … */
        if (strncmp(p, "\u2026", 3) == 0)
            p += 2;
        else
            fuzz_must((unsigned char)*p < 0x7f, "%s", h->sentence);
    }
    fuzz_must(in && strncmp(in + 11, name, strlen(name)) == 0 &&
                  strncmp(in + 11 + strlen(name), "); ", 3) == 0 && in[11 + strlen(name) + 3],
              "of %s: %s", name, h->sentence);
    fuzz_must(strlen(h->sentence) < HINT_SIZE - 1, "is cut: %s", h->sentence);
}

static void must_be_hints(const struct hint_source *s) {
    struct hints h;

    hints_find(s, &h);
    fuzz_must(h.n <= HINTS_MAX, "%zu of them", h.n);
    for (size_t i = 0; i < h.n; i++) {
        must_be_a_hint(&h.list[i]);
        for (size_t j = 0; j < i; j++)
            fuzz_must(strcmp(h.list[i].sentence, h.list[j].sentence) != 0, "twice: %s",
                      h.list[i].sentence);
    }
}

/* As it would have been, had the program ended well: its words count for nothing. */
static void must_be_none(struct hint_source s, struct box_facts facts) {
    struct hints h;

    facts.usage.pids_refused = 0;
    facts.n_refused = 0;
    s.facts = &facts;
    s.outcome = OUTCOME_EXITED;
    s.exit_code = s.signal = 0;
    s.err_cut = s.out_cut = false;
    hints_find(&s, &h);
    fuzz_must(h.n == 0, "of a program that ended well: %s", h.list[0].sentence);
}

static void take_facts(struct box_facts *f, uint8_t bits) {
    f->usage = (struct cg_usage){.memory_peak_bytes = bits & 1 ? UINT64_MAX : 70u << 20,
                                 .cpu_usec = bits & 2 ? UINT64_MAX : 3000000,
                                 .pids_refused = bits & 4 ? UINT64_MAX : 0};
    f->wall_ns = UINT64_C(10000000000);
    if (bits & 8) {
        f->n_refused = 1;
        f->refused[0] = (struct refused_call){.nr = bits * 3, .times = 1, .args = {bits, bits}};
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const int statuses[] = {1, 126, 127, 2, 6, 4, 128, 153};
    struct fuzz_input in = {data, size};
    uint8_t which = fuzz_byte(&in), status = fuzz_byte(&in), bits = fuzz_byte(&in);
    const char *argv[5] = {NULL};
    struct policy *policy = policy_new();
    struct box_facts facts = {0};
    struct plan plan = {
        .policy = policy, .home = "/home/box", .argv = argv, .image = {.has_home = true}};
    char *err _cleanup_free_ = malloc(MAX(in.left, 1));

    if (!policy || !err)
        abort();
    memcpy(argv,
           commands[which == 'p'   ? 0
                    : which == 's' ? 1
                                   : which % ARRAY_LEN(commands)],
           sizeof(commands[0]));
    if (in.left)
        memcpy(err, in.at, in.left);
    policy->read_only = !(bits & 128);
    if (bits & 64)
        policy->bind[policy->n_bind++] = (struct policy_bind){"/srv", "/data", false};
    take_facts(&facts, bits);
    struct hint_source s = {.plan = &plan,
                            .facts = &facts,
                            .outcome = status < 128 ? OUTCOME_EXITED : (enum outcome)(status % 8),
                            .exit_code = statuses[status % ARRAY_LEN(statuses)],
                            .signal = status < 128 ? 0
                                      : status % 2 ? SIGXCPU
                                                   : SIGSYS,
                            .given = {.stdin_kind = (enum hint_stdin)(bits % 3)},
                            .err = {in.left ? err : NULL, in.left}};
    must_be_hints(&s);
    must_be_none(s, facts);
    policy_free(policy);
    return 0;
}
