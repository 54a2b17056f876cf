/*
 * fuzz_seccomp_pack.c: any program that the kernel would load, packed: no longer than it was, still
 * one to load, and with the same answer to every call. Five bytes are an instruction.
 */
#include "fuzz/target.h"

#include <string.h>

#include "control/seccomp_pack.h"
#include "fuzz/filters.h"
#include "linux/bpf.h"

#include "base/banned.h"

enum { MAX_CODE = 96 };

static const uint16_t codes[] = {
    BPF_LD | BPF_W | BPF_ABS,
    BPF_JMP | BPF_JEQ | BPF_K,
    BPF_JMP | BPF_JGE | BPF_K,
    BPF_JMP | BPF_JGT | BPF_K,
    BPF_RET | BPF_K,
    BPF_ALU | BPF_AND | BPF_K,
    BPF_JMP | BPF_JSET | BPF_K,
    BPF_JMP | BPF_JA,
    /* what libseccomp does not write */
    BPF_RET | BPF_A,
    BPF_ALU | BPF_ADD | BPF_K,
    BPF_ALU | BPF_RSH | BPF_K,
    BPF_LD | BPF_IMM,
    BPF_ST,
    BPF_LD | BPF_MEM,
    BPF_MISC | BPF_TAX,
    BPF_JMP | BPF_JEQ | BPF_X,
};

/* Constants that occur in filters, for half of the operands. */
static uint32_t operand(struct fuzz_input *in, uint8_t how) {
    static const uint32_t usual[] = {SECCOMP_NATIVE_ARCH, AUDIT_ARCH_I386,       0x40000000,
                                     UINT32_MAX,          SECCOMP_RET_ALLOW,     0x80000000,
                                     0x7e020000,          SECCOMP_RET_ERRNO | 1, 0x10000};
    uint32_t k = (uint32_t)fuzz_number(in, 2);

    return how & 0x80 ? usual[k % ARRAY_LEN(usual)] : k;
}

static struct sock_filter instruction(struct fuzz_input *in, unsigned left) {
    uint8_t how = fuzz_byte(in);
    struct sock_filter i = {.code = codes[how % ARRAY_LEN(codes)], .k = operand(in, how)};
    uint8_t jt = fuzz_byte(in), jf = fuzz_byte(in);

    if (BPF_CLASS(i.code) == BPF_JMP && i.code != (BPF_JMP | BPF_JA)) {
        i.jt = (uint8_t)(jt % left);
        i.jf = (uint8_t)(jf % left);
    } else if (i.code == (BPF_JMP | BPF_JA)) {
        i.k %= left;
    } else if (i.code == (BPF_LD | BPF_W | BPF_ABS)) {
        i.k = i.k % 16 * 4;
    } else if (i.code == (BPF_ALU | BPF_RSH | BPF_K)) {
        i.k %= 32;
    } else if (i.code == BPF_ST || i.code == (BPF_LD | BPF_MEM)) {
        i.k %= BPF_MEMWORDS;
    }
    return i;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input in = {data, size};
    unsigned n = (unsigned)MIN(size / 5, MAX_CODE);
    struct sock_filter plain[MAX_CODE + 1];

    for (unsigned i = 0; i < n; i++)
        plain[i] = instruction(&in, n - i);
    plain[n++] = (struct sock_filter){.code = BPF_RET | BPF_K, .k = SECCOMP_RET_KILL_PROCESS};
    struct sock_filter *packed _cleanup_free_ = malloc(n * sizeof(*packed));
    unsigned short len = (unsigned short)n;
    const struct filter_program before = {plain, (unsigned short)n};

    if (!packed)
        abort();
    memcpy(packed, plain, n * sizeof(*packed));
    fuzz_must(filter_loads(&before), "the target makes programs that do not load");
    fuzz_must(seccomp_pack(SECCOMP_NATIVE_ARCH, packed, &len) == 0, "memory");
    const struct filter_program after = {packed, len};
    fuzz_must(len <= n, "%u instructions became %u", n, len);
    fuzz_must(filter_loads(&after), "of %u instructions, it does not load any more", len);
    filters_must_agree(&before, &after);
    return 0;
}
