/*
 * test_seccomp_pack.c: a packed filter says what it said before, to every call.
 *
 * Filters of random rules come from libseccomp itself; both forms are asked by the interpreter with
 * arguments around every constant that occurs in them, which is where two programs would differ.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/seccomp_pack.h"
#include "linux/bpf.h"

#include "base/banned.h"

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#define FOREIGN AUDIT_ARCH_I386
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#define FOREIGN AUDIT_ARCH_ARM
#endif

struct program {
    struct sock_filter *code;
    unsigned short len;
};

static uint64_t random_state;

static uint32_t any(uint32_t below) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % below;
}

/* Values that make conditions interesting: few bits, small numbers, both words. */
static uint64_t any_value(void) {
    switch (any(5)) {
    case 0:
        return any(8);
    case 1:
        return UINT64_C(1) << any(64);
    case 2:
        return UINT64_C(0xffffffff);
    case 3:
        return (uint64_t)any(1u << 30) << any(33);
    default:
        return 0x5400u + any(64);
    }
}

static void add_random_rule(scmp_filter_ctx ctx) {
    static const enum scmp_compare ops[] = {SCMP_CMP_NE,       SCMP_CMP_LT, SCMP_CMP_LE,
                                            SCMP_CMP_EQ,       SCMP_CMP_GE, SCMP_CMP_GT,
                                            SCMP_CMP_MASKED_EQ};
    static const uint32_t actions[] = {SCMP_ACT_ALLOW, SCMP_ACT_ERRNO(1), SCMP_ACT_NOTIFY,
                                       SCMP_ACT_KILL_PROCESS, SCMP_ACT_LOG};
    struct scmp_arg_cmp args[3];
    /* Most calls have no conditions; many with several would keep libseccomp busy for minutes. */
    unsigned nr = any(330), n = nr % 7 ? 0 : any(3);

    for (unsigned i = 0; i < n; i++) {
        uint64_t mask = any(3) ? UINT64_C(1) << any(64) : any_value();
        args[i] = (struct scmp_arg_cmp){.arg = i * 2, .op = ops[any(ARRAY_LEN(ops))]};
        args[i].datum_a = args[i].op == SCMP_CMP_MASKED_EQ ? mask : any_value();
        args[i].datum_b = any(2) ? mask & any_value() : mask;
    }
    /* Rules that contradict an earlier one are refused; the filter is as good without them. */
    (void)seccomp_rule_add_array(ctx, any(8) ? SCMP_ACT_ALLOW : actions[any(ARRAY_LEN(actions))],
                                 (int)nr, n, args);
}

static struct program export(scmp_filter_ctx ctx) {
    struct program p = {0};
    struct stat st;
    int fd = memfd_create("filter", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(seccomp_export_bpf(ctx, fd), 0);
    assert_int_equal(fstat(fd, &st), 0);
    p.code = malloc((size_t)st.st_size);
    assert_non_null(p.code);
    assert_int_equal(pread(fd, p.code, (size_t)st.st_size, 0), st.st_size);
    p.len = (unsigned short)((size_t)st.st_size / sizeof(*p.code));
    (void)close(fd);
    return p;
}

static struct program random_program(uint64_t seed) {
    random_state = seed * 7919 + 1;
    scmp_filter_ctx ctx = seccomp_init(any(2) ? SCMP_ACT_ERRNO(38) : SCMP_ACT_KILL_PROCESS);

    assert_non_null(ctx);
    (void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 1 + any(2));
    (void)seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH,
                           any(2) ? SCMP_ACT_NOTIFY : SCMP_ACT_KILL_PROCESS);
    for (unsigned i = 0, n = any(500); i < n; i++)
        add_random_rule(ctx);
    struct program p = export(ctx);
    seccomp_release(ctx);
    return p;
}

static struct program copy_of(const struct program *p) {
    struct program c = {malloc(p->len * sizeof(*p->code)), p->len};

    assert_non_null(c.code);
    memcpy(c.code, p->code, p->len * sizeof(*p->code));
    return c;
}

static void same_answer(const struct program *a, const struct program *b,
                        const struct seccomp_data *call) {
    uint32_t was = bpf_run(a->code, a->len, call), is = bpf_run(b->code, b->len, call);

    if (was != is)
        fail_msg("call %d arch %x (%llx %llx %llx): 0x%x became 0x%x", call->nr, call->arch,
                 (unsigned long long)call->args[0], (unsigned long long)call->args[2],
                 (unsigned long long)call->args[4], was, is);
}

/* Every number with plain arguments, then numbers at random with arguments made of the program's own constants. */
static void same_program(const struct program *a, const struct program *b) {
    static const int odd[] = {0x3fffffff, 0x40000000, 0x40000001, 0x40000139, 0x7fffffff, -2, -1};

    for (int nr = 0; nr < 1100; nr++) {
        same_answer(a, b, &(struct seccomp_data){.nr = nr, .arch = NATIVE});
        same_answer(a, b, &(struct seccomp_data){.nr = nr, .arch = FOREIGN});
    }
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        same_answer(a, b, &(struct seccomp_data){.nr = odd[i], .arch = NATIVE});
        same_answer(a, b, &(struct seccomp_data){.nr = odd[i], .arch = ~NATIVE});
    }
    for (int i = 0; i < 20000; i++) {
        struct seccomp_data call = {.nr = (int)any(335), .arch = NATIVE};
        for (int arg = 0; arg < 6; arg++) {
            uint64_t low = a->code[any(a->len)].k + any(3) - 1, high = any(2) ? 0 : any_value();
            call.args[arg] = any(3) ? (low & 0xffffffff) | high << 32 : any_value();
        }
        same_answer(a, b, &call);
    }
}

/* What the kernel's own check wants (kernel/seccomp.c, net/core/filter.c): jumps land inside, the end is an answer. */
static void must_be_loadable(const struct program *p) {
    assert_true(p->len > 0);
    assert_int_equal(BPF_CLASS(p->code[p->len - 1].code), BPF_RET);
    for (unsigned pc = 0; pc < p->len; pc++) {
        const struct sock_filter *i = &p->code[pc];
        if (i->code == (BPF_JMP | BPF_JA))
            assert_true(pc + 1 + i->k < p->len);
        else if (BPF_CLASS(i->code) == BPF_JMP)
            assert_true(pc + 1 + i->jt < p->len && pc + 1 + i->jf < p->len);
    }
}

static void filters_of_random_rules_say_the_same_when_packed(void **unused) {
    (void)unused;
    unsigned before = 0, after = 0;

    for (uint64_t seed = 0; seed < 60; seed++) {
        struct program plain = random_program(seed), packed = copy_of(&plain);

        assert_int_equal(seccomp_pack(NATIVE, packed.code, &packed.len), 0);
        assert_true(packed.len <= plain.len);
        must_be_loadable(&packed);
        same_program(&plain, &packed);
        before += plain.len;
        after += packed.len;
        free(plain.code);
        free(packed.code);
    }
    print_message("%u instructions became %u\n", before, after);
    assert_true(after < before);
}

static void neighbours_with_one_answer_become_one_range(void **unused) {
    (void)unused;
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(38));

    assert_non_null(ctx);
    for (int nr = 0; nr < 200; nr++)
        assert_int_equal(seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0), 0);
    struct program plain = export(ctx), packed = copy_of(&plain);
    seccomp_release(ctx);
    assert_int_equal(seccomp_pack(NATIVE, packed.code, &packed.len), 0);
    same_program(&plain, &packed);
    /* The architecture, the number, 200, x32 and its one exception: not two hundred comparisons. */
    assert_true(packed.len <= 12);
    free(plain.code);
    free(packed.code);
}

static void a_program_of_another_shape_is_left_as_it_is(void **unused) {
    (void)unused;
    struct sock_filter by_number[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, 0}, /* asks for the number first: any architecture's */
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 39},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS},
    };
    struct sock_filter arithmetic[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, 4},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 3, NATIVE},
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},
        {BPF_ALU | BPF_ADD | BPF_K, 0, 0, 7},
        {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 46},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    unsigned short len = ARRAY_LEN(by_number);
    struct sock_filter was[ARRAY_LEN(arithmetic)];

    memcpy(was, by_number, sizeof(by_number));
    assert_int_equal(seccomp_pack(NATIVE, by_number, &len), 0);
    assert_int_equal(len, ARRAY_LEN(by_number));
    assert_memory_equal(was, by_number, sizeof(by_number));
    len = ARRAY_LEN(arithmetic);
    memcpy(was, arithmetic, sizeof(arithmetic));
    assert_int_equal(seccomp_pack(NATIVE, arithmetic, &len), 0);
    assert_int_equal(len, ARRAY_LEN(arithmetic));
    assert_memory_equal(was, arithmetic, sizeof(arithmetic));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters_of_random_rules_say_the_same_when_packed),
        cmocka_unit_test(neighbours_with_one_answer_become_one_range),
        cmocka_unit_test(a_program_of_another_shape_is_left_as_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
