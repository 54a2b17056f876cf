/*
 * test_bpf.c: the interpreter answers as the kernel's would, instruction by instruction, and whatever
 * the kernel would not load is a kill.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "linux/bpf.h"

#include "base/banned.h"

#define S BPF_STMT
#define J BPF_JUMP

static const struct seccomp_data call = {
    .nr = 41,
    .arch = 0xc000003e,
    .instruction_pointer = UINT64_C(0x1122334455667788),
    .args = {UINT64_C(0xaaaaaaaabbbbbbbb), 1, 2, 3, 4, UINT64_C(0xfffffffeffffffff)}};

#define RUN(...)                                                                                   \
    bpf_run((const struct sock_filter[]){__VA_ARGS__},                                             \
            ARRAY_LEN(((const struct sock_filter[]){__VA_ARGS__})), &call)
#define LOAD(at) S(BPF_LD | BPF_W | BPF_ABS, at)
#define RET_A S(BPF_RET | BPF_A, 0)
#define KILLED SECCOMP_RET_KILL_PROCESS
#define assert_u32(a, b) assert_int_equal((uint32_t)(a), (uint32_t)(b))

static void a_constant_is_returned(void **unused) {
    (void)unused;
    assert_u32(RUN(S(BPF_RET | BPF_K, 0x7fff0000)), 0x7fff0000);
    assert_u32(RUN(S(BPF_RET | BPF_K, 0x00050026)), 0x00050026);
}

static void every_word_of_the_call_can_be_read(void **unused) {
    (void)unused;
    for (uint32_t at = 0; at < sizeof(call); at += 4) {
        uint32_t want;
        memcpy(&want, (const char *)&call + at, sizeof(want));
        assert_u32(RUN(LOAD(at), RET_A), want);
    }
    assert_u32(RUN(LOAD(offsetof(struct seccomp_data, nr)), RET_A), 41);
}

static void nothing_but_whole_words_of_the_call_can_be_read(void **unused) {
    (void)unused;
    for (uint32_t at = 0; at < 80; at++)
        if (at % 4 || at >= sizeof(call))
            assert_u32(RUN(LOAD(at), S(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)), KILLED);
    assert_u32(RUN(LOAD(UINT32_MAX), S(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)), KILLED);
    assert_u32(RUN(LOAD(UINT32_MAX - 3), S(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)), KILLED);
}

static void both_registers_load_constants_memory_and_the_length(void **unused) {
    (void)unused;
    assert_u32(RUN(S(BPF_LD | BPF_IMM, 7), RET_A), 7);
    assert_u32(RUN(S(BPF_LDX | BPF_IMM, 8), S(BPF_MISC | BPF_TXA, 0), RET_A), 8);
    assert_u32(RUN(S(BPF_LD | BPF_W | BPF_LEN, 0), RET_A), sizeof(call));
    assert_u32(RUN(S(BPF_LDX | BPF_W | BPF_LEN, 0), S(BPF_MISC | BPF_TXA, 0), RET_A), sizeof(call));
    assert_u32(RUN(S(BPF_LD | BPF_IMM, 7), S(BPF_ST, 15), S(BPF_LD | BPF_IMM, 0),
                   S(BPF_LD | BPF_MEM, 15), RET_A),
               7);
    assert_u32(RUN(S(BPF_LDX | BPF_IMM, 9), S(BPF_STX, 0), S(BPF_LDX | BPF_IMM, 0),
                   S(BPF_LDX | BPF_MEM, 0), S(BPF_MISC | BPF_TXA, 0), RET_A),
               9);
    assert_u32(RUN(S(BPF_LD | BPF_IMM, 5), S(BPF_MISC | BPF_TAX, 0), S(BPF_LD | BPF_IMM, 0),
                   S(BPF_MISC | BPF_TXA, 0), RET_A),
               5);
}

static void memory_has_sixteen_words(void **unused) {
    static const uint16_t uses[] = {BPF_ST, BPF_STX, BPF_LD | BPF_MEM, BPF_LDX | BPF_MEM};

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(uses); i++) {
        assert_u32(RUN(S(BPF_LD | BPF_IMM, 0), S(uses[i], 15), S(BPF_RET | BPF_K, 1)), 1);
        assert_u32(RUN(S(uses[i], 16), S(BPF_RET | BPF_K, 1)), KILLED);
        assert_u32(RUN(S(uses[i], UINT32_MAX), S(BPF_RET | BPF_K, 1)), KILLED);
    }
}

static void arithmetic_is_of_32_bits_and_takes_a_constant_or_the_register(void **unused) {
    static const struct {
        uint16_t op;
        uint32_t a, v, want;
    } rows[] = {
        {BPF_ADD, UINT32_MAX, 2, 1},          {BPF_SUB, 1, 2, UINT32_MAX},
        {BPF_MUL, 0x10000, 0x10001, 0x10000}, {BPF_DIV, 0xffffffff, 16, 0x0fffffff},
        {BPF_OR, 0xf0, 0x0f, 0xff},           {BPF_AND, 0xff, 0x3c, 0x3c},
        {BPF_XOR, 0xff, 0x0f, 0xf0},          {BPF_LSH, 3, 31, 0x80000000},
        {BPF_RSH, 0x80000000, 31, 1},
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_u32(RUN(S(BPF_LD | BPF_IMM, rows[i].a),
                       S((uint16_t)(BPF_ALU | BPF_K | rows[i].op), rows[i].v), RET_A),
                   rows[i].want);
        assert_u32(RUN(S(BPF_LD | BPF_IMM, rows[i].a), S(BPF_LDX | BPF_IMM, rows[i].v),
                       S((uint16_t)(BPF_ALU | BPF_X | rows[i].op), 0), RET_A),
                   rows[i].want);
    }
    assert_u32(RUN(S(BPF_LD | BPF_IMM, 1), S(BPF_ALU | BPF_NEG, 0), RET_A), UINT32_MAX);
}

static void division_by_zero_and_shifts_out_of_range_kill(void **unused) {
    (void)unused;
    assert_u32(RUN(S(BPF_ALU | BPF_DIV | BPF_K, 0), RET_A), KILLED);
    assert_u32(RUN(S(BPF_LDX | BPF_IMM, 0), S(BPF_ALU | BPF_DIV | BPF_X, 0), RET_A), KILLED);
    assert_u32(RUN(S(BPF_ALU | BPF_LSH | BPF_K, 32), RET_A), KILLED);
    assert_u32(RUN(S(BPF_ALU | BPF_RSH | BPF_K, 32), RET_A), KILLED);
    assert_u32(RUN(S(BPF_ALU | BPF_MOD | BPF_K, 2), RET_A), KILLED);
}

/* 1 where the jump was taken, 2 where not */
static uint32_t jumps(uint16_t op, uint32_t a, uint32_t v) {
    uint32_t by_k = RUN(S(BPF_LD | BPF_IMM, a), J((uint16_t)(BPF_JMP | BPF_K | op), v, 1, 0),
                        S(BPF_RET | BPF_K, 2), S(BPF_RET | BPF_K, 1));
    uint32_t by_x = RUN(S(BPF_LD | BPF_IMM, a), S(BPF_LDX | BPF_IMM, v),
                        J((uint16_t)(BPF_JMP | BPF_X | op), 0, 1, 0), S(BPF_RET | BPF_K, 2),
                        S(BPF_RET | BPF_K, 1));

    assert_u32(by_k, by_x);
    return by_k;
}

static void jumps_compare_without_sign(void **unused) {
    (void)unused;
    assert_u32(jumps(BPF_JEQ, 5, 5), 1);
    assert_u32(jumps(BPF_JEQ, 5, 6), 2);
    assert_u32(jumps(BPF_JGT, 0x80000000, 1), 1);
    assert_u32(jumps(BPF_JGT, 5, 5), 2);
    assert_u32(jumps(BPF_JGE, 5, 5), 1);
    assert_u32(jumps(BPF_JGE, 4, 0xffffffff), 2);
    assert_u32(jumps(BPF_JSET, 6, 4), 1);
    assert_u32(jumps(BPF_JSET, 6, 9), 2);
}

static void a_jump_or_an_end_outside_of_the_program_kills(void **unused) {
    const struct sock_filter one = S(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);

    (void)unused;
    assert_u32(RUN(S(BPF_JMP | BPF_JA, 1), S(BPF_RET | BPF_K, 1), S(BPF_RET | BPF_K, 2)), 2);
    assert_u32(RUN(S(BPF_JMP | BPF_JA, 1), S(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)), KILLED);
    assert_u32(RUN(S(BPF_JMP | BPF_JA, UINT32_MAX), S(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)), KILLED);
    assert_u32(RUN(J(BPF_JMP | BPF_JEQ | BPF_K, 0, 200, 0), S(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)),
               KILLED);
    assert_u32(RUN(S(BPF_LD | BPF_IMM, 1)), KILLED);
    assert_u32(bpf_run(&one, 0, &call), KILLED);
}

/* The codes that a seccomp filter may have (kernel/seccomp.c, seccomp_check_filter). */
static bool kernel_takes(unsigned code) {
    static const uint16_t alu[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_OR,
                                   BPF_AND, BPF_XOR, BPF_LSH, BPF_RSH};
    static const uint16_t jmp[] = {BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET};
    static const uint16_t others[] = {BPF_LD | BPF_W | BPF_ABS,
                                      BPF_LD | BPF_W | BPF_LEN,
                                      BPF_LDX | BPF_W | BPF_LEN,
                                      BPF_LD | BPF_IMM,
                                      BPF_LDX | BPF_IMM,
                                      BPF_LD | BPF_MEM,
                                      BPF_LDX | BPF_MEM,
                                      BPF_ST,
                                      BPF_STX,
                                      BPF_MISC | BPF_TAX,
                                      BPF_MISC | BPF_TXA,
                                      BPF_RET | BPF_K,
                                      BPF_RET | BPF_A,
                                      BPF_JMP | BPF_JA,
                                      BPF_ALU | BPF_NEG};

    for (size_t i = 0; i < ARRAY_LEN(alu); i++)
        if (code == (unsigned)(BPF_ALU | BPF_K | alu[i]) ||
            code == (unsigned)(BPF_ALU | BPF_X | alu[i]))
            return true;
    for (size_t i = 0; i < ARRAY_LEN(jmp); i++)
        if (code == (unsigned)(BPF_JMP | BPF_K | jmp[i]) ||
            code == (unsigned)(BPF_JMP | BPF_X | jmp[i]))
            return true;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (code == others[i])
            return true;
    return false;
}

static void every_other_instruction_kills(void **unused) {
    (void)unused;
    for (unsigned code = 0; code <= 0xffff; code++) {
        /* k = 4 is a word of the call, a place in memory, a shift, and a jump over what allows */
        uint32_t got = RUN(S(BPF_LDX | BPF_IMM, 4), J((uint16_t)code, 4, 0, 0),
                           S(BPF_RET | BPF_K, 1), S(BPF_RET | BPF_K, 1), S(BPF_RET | BPF_K, 1),
                           S(BPF_RET | BPF_K, 1), S(BPF_RET | BPF_K, 1));
        if (kernel_takes(code) != (got != KILLED))
            fail_msg("code 0x%x: the kernel %s it, the interpreter says 0x%x", code,
                     kernel_takes(code) ? "takes" : "refuses", got);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_constant_is_returned),
        cmocka_unit_test(every_word_of_the_call_can_be_read),
        cmocka_unit_test(nothing_but_whole_words_of_the_call_can_be_read),
        cmocka_unit_test(both_registers_load_constants_memory_and_the_length),
        cmocka_unit_test(memory_has_sixteen_words),
        cmocka_unit_test(arithmetic_is_of_32_bits_and_takes_a_constant_or_the_register),
        cmocka_unit_test(division_by_zero_and_shifts_out_of_range_kill),
        cmocka_unit_test(jumps_compare_without_sign),
        cmocka_unit_test(a_jump_or_an_end_outside_of_the_program_kills),
        cmocka_unit_test(every_other_instruction_kills),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
