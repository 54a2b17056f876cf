/*
 * bpf.c: see bpf.h. Only the instructions that the kernel accepts in a seccomp
 * filter are known; jumps go forward only, so every program ends.
 */
#include "linux/bpf.h"

#include <string.h>

#include "base/banned.h"

struct state {
    uint32_t a, x, mem[BPF_MEMWORDS];
};

/* The kernel refuses an instruction with a stray bit, so what it would mean is not ours to guess. */
static bool well_formed(uint16_t code) {
    switch (BPF_CLASS(code)) {
    case BPF_LD:
    case BPF_LDX:
        return code <= 0xff && BPF_SIZE(code) == BPF_W;
    case BPF_ST:
    case BPF_STX:
        return code == BPF_CLASS(code);
    case BPF_RET:
        return code == (BPF_RET | BPF_K) || code == (BPF_RET | BPF_A);
    case BPF_MISC:
        return code == (BPF_MISC | BPF_TAX) || code == (BPF_MISC | BPF_TXA);
    default: /* ALU and JMP: operation and source fill the byte; two have no source */
        return code <= 0xff && code != (BPF_JMP | BPF_JA | BPF_X) &&
               code != (BPF_ALU | BPF_NEG | BPF_X);
    }
}

static bool alu(struct state *s, uint16_t code, uint32_t k) {
    uint32_t v = BPF_SRC(code) == BPF_X ? s->x : k;

    switch (BPF_OP(code)) {
    case BPF_ADD:
        s->a += v;
        return true;
    case BPF_SUB:
        s->a -= v;
        return true;
    case BPF_MUL:
        s->a *= v;
        return true;
    case BPF_DIV:
        if (!v)
            return false;
        s->a /= v;
        return true;
    case BPF_OR:
        s->a |= v;
        return true;
    case BPF_AND:
        s->a &= v;
        return true;
    case BPF_XOR:
        s->a ^= v;
        return true;
    case BPF_LSH:
    case BPF_RSH:
        if (BPF_SRC(code) == BPF_K && k > 31)
            return false;
        s->a = BPF_OP(code) == BPF_LSH ? s->a << (v & 31) : s->a >> (v & 31);
        return true;
    case BPF_NEG:
        s->a = (uint32_t)-s->a;
        return true;
    default:
        return false;
    }
}

/* How many instructions to skip after a conditional jump. */
static unsigned jump(const struct state *s, const struct sock_filter *i, bool *ok) {
    uint32_t v = BPF_SRC(i->code) == BPF_X ? s->x : i->k;
    bool yes = false;

    switch (BPF_OP(i->code)) {
    case BPF_JEQ:
        yes = s->a == v;
        break;
    case BPF_JGT:
        yes = s->a > v;
        break;
    case BPF_JGE:
        yes = s->a >= v;
        break;
    case BPF_JSET:
        yes = (s->a & v) != 0;
        break;
    default:
        *ok = false;
    }
    return yes ? i->jt : i->jf;
}

static bool load(struct state *s, const struct sock_filter *i, const struct seccomp_data *data) {
    bool x = BPF_CLASS(i->code) == BPF_LDX;
    uint32_t v = 0;

    switch (BPF_MODE(i->code)) {
    case BPF_ABS:
        if (x || i->k % 4 || i->k > sizeof(*data) - 4)
            return false;
        memcpy(&v, (const char *)data + i->k, sizeof(v));
        break;
    case BPF_IMM:
        v = i->k;
        break;
    case BPF_MEM:
        if (i->k >= BPF_MEMWORDS)
            return false;
        v = s->mem[i->k];
        break;
    case BPF_LEN:
        v = sizeof(*data);
        break;
    default:
        return false;
    }
    *(x ? &s->x : &s->a) = v;
    return true;
}

static bool store(struct state *s, const struct sock_filter *i) {
    if (i->k >= BPF_MEMWORDS)
        return false;
    s->mem[i->k] = BPF_CLASS(i->code) == BPF_ST ? s->a : s->x;
    return true;
}

uint32_t bpf_run(const struct sock_filter *code, unsigned short len,
                 const struct seccomp_data *data) {
    struct state s = {0};

    for (size_t pc = 0; pc < len; pc++) {
        const struct sock_filter *i = &code[pc];
        bool ok = well_formed(i->code);

        if (!ok)
            break;
        switch (BPF_CLASS(i->code)) {
        case BPF_RET:
            return BPF_RVAL(i->code) == BPF_A ? s.a : i->k;
        case BPF_LD:
        case BPF_LDX:
            ok = load(&s, i, data);
            break;
        case BPF_ST:
        case BPF_STX:
            ok = store(&s, i);
            break;
        case BPF_ALU:
            ok = alu(&s, i->code, i->k);
            break;
        case BPF_JMP:
            pc += BPF_OP(i->code) == BPF_JA ? i->k : jump(&s, i, &ok);
            break;
        default: /* BPF_MISC: move between the two registers */
            if (i->code == (BPF_MISC | BPF_TXA))
                s.a = s.x;
            else
                s.x = s.a;
        }
        if (!ok)
            break;
    }
    return SECCOMP_RET_KILL_PROCESS;
}
