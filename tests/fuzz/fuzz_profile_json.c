/*
 * fuzz_profile_json.c: a seccomp profile from JSON to a filter. What is refused is told with its
 * place. What is accepted means what its rules say: the filter's answer to a call is that of a rule
 * that matches it, or the default where none does; and packing changes no answer.
 */
#include "fuzz/target.h"

#include <errno.h>
#include <seccomp.h>
#include <string.h>

#include "control/seccomp_compile.h"
#include "fuzz/filters.h"
#include "linux/bpf.h"
#include "linux/host.h"
#include "profile_model.h"

#include "base/banned.h"

/* libseccomp takes minutes over a few hundred rules with conditions, and what is looked for here needs two or three. */
enum { MAX_CALLS = 48, MAX_CONDITIONS = 12 };

static bool is_small(const struct profile *p) {
    int calls = 0, conditions = 0;

    for (int i = 0; i < p->n_rules; i++)
        for (const char *const *name = p->rules[i].names; *name; name++) {
            calls++;
            conditions += p->rules[i].n_args;
        }
    return calls <= MAX_CALLS && conditions <= MAX_CONDITIONS;
}

/* ------------------------------------------------------------------ what the rules say */

struct question {
    const struct profile *profile;
    struct filter_program filter;
    int *numbers; /* of the rules' names, rule by rule, in their order */
};

/* Some rule that matches says so; or none does, and it is the default. */
static void must_be_said(void *data, const struct seccomp_data *call) {
    const struct question *q = data;
    const struct profile *p = q->profile;
    uint32_t is = bpf_run(q->filter.code, q->filter.len, call);
    uint32_t fallback = model_answer(p->default_action, p->default_error);
    bool matched = false, said = false;
    uint64_t args[6];
    size_t at = 0;

    memcpy(args, call->args, sizeof(args));
    /* libseccomp takes all numbers from x32's on for x32's, but for one. */
    if (!seccomp_is_native(call) || (unsigned)call->nr >= 0x40000000) {
        fuzz_must(is == SECCOMP_RET_KILL_PROCESS || call->nr == -1, "foreign call %d: 0x%x",
                  call->nr, is);
        return;
    }
    for (int i = 0; i < p->n_rules; i++) {
        const struct profile_rule *rule = &p->rules[i];
        uint32_t answer = model_answer(rule->action, rule->error);

        for (const char *const *name = rule->names; *name; name++, at++) {
            if (q->numbers[at] != call->nr || answer == fallback || !model_rule_matches(rule, args))
                continue;
            matched = true;
            said |= is == answer;
        }
    }
    fuzz_must(matched ? said : is == fallback,
              "call %d (0x%llx 0x%llx 0x%llx): 0x%x, which %s says", call->nr,
              (unsigned long long)call->args[0], (unsigned long long)call->args[1],
              (unsigned long long)call->args[2], is, matched ? "no rule that matches" : "no rule");
}

static void must_mean_its_rules(const struct profile *p, const struct filter_program *filter) {
    struct question q = {p, *filter, malloc(MAX_CALLS * sizeof(int))};
    size_t n = 0;

    if (!q.numbers)
        abort();
    for (int i = 0; i < p->n_rules; i++)
        for (const char *const *name = p->rules[i].names; *name; name++)
            q.numbers[n++] = seccomp_syscall_resolve_name(*name);
    filter_samples(filter, must_be_said, &q);
    free(q.numbers);
}

static void must_compile(const struct profile *p, bool notify) {
    struct sock_filter *plain = NULL, *packed = NULL;
    unsigned short plain_len = 0, packed_len = 0;
    struct err err = {0};
    int r = seccomp_translate(p, notify, &plain, &plain_len, &err);

    if (r < 0) {
        fuzz_refusal(&err, r, "");
        return;
    }
    r = seccomp_compile(p, notify, &packed, &packed_len, &err);
    fuzz_must(r == 0, "%s", err.message);
    const struct filter_program before = {plain, plain_len}, after = {packed, packed_len};
    fuzz_must(filter_loads(&before) && filter_loads(&after), "no filter that loads");
    fuzz_must(packed_len <= plain_len, "%u became %u", plain_len, packed_len);
    filters_must_agree(&before, &after);
    if (!notify)
        must_mean_its_rules(p, &after);
    free(plain);
    free(packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct profile profile = {0};
    struct err err = {0};
    int r =
        profile_from_json((const char *)data, size, seccomp_arch(), KERNEL(6, 1), &profile, &err);

    if (r < 0) {
        fuzz_refusal(&err, r, "seccomp profile: ");
        fuzz_must(strcmp(err.control, "seccomp") == 0, "%s", err.message);
        fuzz_must(!profile.arena.head, "memory of a refused profile is handed out");
        return 0;
    }
    if (is_small(&profile)) {
        must_compile(&profile, false);
        must_compile(&profile, true);
    }
    arena_done(&profile.arena);
    return 0;
}
