/*
 * filters.c: see filters.h.
 */
#include "fuzz/filters.h"

#include <string.h>

#include "fuzz/fuzz.h"
#include "linux/bpf.h"

#include "base/banned.h"

enum { CONSTANTS = 16, WORDS = 4 };

/* The distinct operands, each with what is one less and one more. */
static size_t constants(const struct filter_program *p, uint32_t out[3 * CONSTANTS]) {
    size_t n = 0;

    for (unsigned pc = 0; pc < p->len && n + 3 <= 3 * CONSTANTS; pc++) {
        uint32_t k = p->code[pc].k;
        bool seen =
            BPF_CLASS(p->code[pc].code) == BPF_RET || p->code[pc].code == (BPF_JMP | BPF_JA);

        for (size_t i = 1; i < n && !seen; i += 3)
            seen = out[i] == k;
        if (seen)
            continue;
        out[n++] = k - 1;
        out[n++] = k;
        out[n++] = k + 1;
    }
    return n;
}

/* Arguments whose words are constants: all six the same, or one beside zeros. */
static void with_arguments(struct seccomp_data call, uint32_t low, uint32_t high,
                           void (*each)(void *, const struct seccomp_data *), void *data) {
    uint64_t value = (uint64_t)high << 32 | low;

    for (int i = 0; i < 6; i++)
        call.args[i] = value;
    each(data, &call);
    memset(call.args, 0, sizeof(call.args));
    call.args[low % 6] = value;
    each(data, &call);
}

void filter_samples(const struct filter_program *p,
                    void (*each)(void *data, const struct seccomp_data *call), void *data) {
    static const uint32_t arches[] = {SECCOMP_NATIVE_ARCH, AUDIT_ARCH_I386, 0};
    uint32_t k[3 * CONSTANTS], some[WORDS] = {0, 1, UINT32_MAX};
    size_t n = constants(p, k), n_some = 3;

    for (size_t i = 0; i < n && n_some < WORDS; i += MAX(n / WORDS, 1))
        some[n_some++] = k[i];
    for (size_t i = 0; i < n; i++) {
        for (size_t a = 0; a < ARRAY_LEN(arches); a++)
            each(data, &(struct seccomp_data){.nr = (int)k[i], .arch = arches[a]});
        for (size_t j = 0; j < n_some; j++) {
            const struct seccomp_data call = {.nr = (int)some[j], .arch = SECCOMP_NATIVE_ARCH};
            with_arguments(call, k[i], 0, each, data);
            with_arguments(call, k[i], some[(i + j) % n_some], each, data);
            with_arguments(call, some[(i + j) % n_some], k[i], each, data);
        }
    }
    for (int nr = 0; nr < 512; nr += 1 + nr / 64)
        each(data, &(struct seccomp_data){.nr = nr, .arch = SECCOMP_NATIVE_ARCH});
}

/* ------------------------------------------------------------------ the kernel's check */

static bool instruction_loads(const struct filter_program *p, unsigned pc) {
    const struct sock_filter *i = &p->code[pc];
    unsigned left = p->len - pc - 1u;

    switch (i->code) {
    case BPF_LD | BPF_W | BPF_ABS:
        return i->k % 4 == 0 && i->k < sizeof(struct seccomp_data);
    case BPF_JMP | BPF_JA:
        return i->k < left;
    case BPF_JMP | BPF_JEQ | BPF_K:
    case BPF_JMP | BPF_JGE | BPF_K:
    case BPF_JMP | BPF_JGT | BPF_K:
    case BPF_JMP | BPF_JSET | BPF_K:
    case BPF_JMP | BPF_JEQ | BPF_X:
        return i->jt < left && i->jf < left;
    case BPF_ALU | BPF_LSH | BPF_K:
    case BPF_ALU | BPF_RSH | BPF_K:
        return i->k < 32;
    case BPF_ST:
    case BPF_LD | BPF_MEM:
        return i->k < BPF_MEMWORDS;
    default:
        return true; /* of those that a target makes, the rest has no operand that could be wrong */
    }
}

bool filter_loads(const struct filter_program *p) {
    if (p->len == 0 || p->len > BPF_MAXINSNS || BPF_CLASS(p->code[p->len - 1].code) != BPF_RET)
        return false;
    for (unsigned pc = 0; pc < p->len; pc++)
        if (!instruction_loads(p, pc))
            return false;
    return true;
}

struct pair {
    const struct filter_program *a, *b;
};

static void same_answer(void *data, const struct seccomp_data *call) {
    const struct pair *p = data;
    uint32_t a = bpf_run(p->a->code, p->a->len, call), b = bpf_run(p->b->code, p->b->len, call);

    fuzz_must(a == b, "call %d of 0x%x (0x%llx 0x%llx 0x%llx): 0x%x and 0x%x", call->nr, call->arch,
              (unsigned long long)call->args[0], (unsigned long long)call->args[1],
              (unsigned long long)call->args[2], a, b);
}

void filters_must_agree(const struct filter_program *a, const struct filter_program *b) {
    struct pair p = {a, b};

    filter_samples(a, same_answer, &p);
}
