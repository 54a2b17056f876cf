/*
 * seccomp_pack.c: see seccomp_pack.h.
 *
 * A compiler of rules tests call by call: a leaf for each of some 200 numbers.
 * But neighbours mostly get the same answer, so the numbers fall into a few dozen
 * ranges. Loading is what a run pays for: the kernel translates every
 * instruction, and then walks the filter once for each of nearly a thousand
 * numbers to find those that are always allowed (kernel/seccomp.c,
 * seccomp_cache_prepare). Both are cheap for a short tree.
 *
 * The program is asked, number by number, where it ends up as long as only the
 * architecture and the number are known: at an answer, or at the code that looks
 * at the arguments. That gives the ranges. The result is a tree of comparisons
 * over them, and the code that looks at arguments, copied. It is written
 * backwards, from the last instruction to the first, so that a jump's target is
 * known when the jump is written: classic BPF only jumps forward.
 */
#include "control/seccomp_pack.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

enum {
    NR_OFFSET = offsetof(struct seccomp_data, nr),
    ARCH_OFFSET = offsetof(struct seccomp_data, arch),
    DENSE = 1024, /* every number below is asked for itself */
    MAX_JUMP = 255,
};

/* Where the program ends up for a number: an answer, or an instruction that reads an argument. */
struct end {
    bool is_answer;
    uint32_t value; /* the answer, or the instruction's index */
};

struct range {
    uint32_t first; /* up to the next range's */
    struct end end;
};

/* What the program says when only these two are known. False: it is of another shape. */
static bool walk(const struct sock_filter *code, unsigned len, uint32_t arch, uint32_t nr,
                 struct end *ret) {
    uint32_t a = 0;

    for (unsigned pc = 0; pc < len; pc++) {
        const struct sock_filter *i = &code[pc];
        bool yes;

        switch (i->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            if (i->k != NR_OFFSET && i->k != ARCH_OFFSET) {
                *ret = (struct end){false, pc};
                return true;
            }
            a = i->k == NR_OFFSET ? nr : arch;
            continue;
        case BPF_RET | BPF_K:
            *ret = (struct end){true, i->k};
            return true;
        case BPF_JMP | BPF_JA:
            pc += i->k;
            continue;
        case BPF_JMP | BPF_JEQ | BPF_K:
            yes = a == i->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            yes = a >= i->k;
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            yes = a > i->k;
            break;
        default:
            return false;
        }
        pc += yes ? i->jt : i->jf;
    }
    return false;
}

static int by_value(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* The ranges of numbers with one end each. Between two constants that the program compares with it cannot tell numbers
 * apart, so it is enough to ask at each of them and behind it. Returns how many; 0: another shape; -ENOMEM. */
static int find_ranges(const struct sock_filter *code, unsigned len, uint32_t arch,
                       struct range **ret) {
    size_t n = 0, n_ranges = 0;
    uint32_t *at = malloc((DENSE + 2 * (size_t)len) * sizeof(*at));
    struct range *ranges = malloc((DENSE + 2 * (size_t)len) * sizeof(*ranges));
    bool shaped = at && ranges;

    if (shaped) {
        while (n < DENSE) {
            at[n] = (uint32_t)n;
            n++;
        }
        for (unsigned i = 0; i < len; i++)
            if (BPF_CLASS(code[i].code) == BPF_JMP && code[i].code != (BPF_JMP | BPF_JA)) {
                at[n++] = code[i].k;
                at[n++] = code[i].k + 1; /* after the last number comes the first, which is there */
            }
        qsort(at, n, sizeof(*at), by_value);
    }
    for (size_t i = 0; i < n && shaped; i++) {
        struct end end;

        shaped = walk(code, len, arch, at[i], &end);
        if (!shaped || (n_ranges && ranges[n_ranges - 1].end.is_answer == end.is_answer &&
                        ranges[n_ranges - 1].end.value == end.value))
            continue;
        ranges[n_ranges++] = (struct range){at[i], end};
    }
    int r = !at || !ranges ? -ENOMEM : shaped ? (int)n_ranges : 0;
    free(at);
    if (r <= 0)
        free(ranges);
    else
        *ret = ranges;
    return r;
}

/* ------------------------------------------------------------------ tests of arguments, made simpler */

static bool is_load(const struct sock_filter *i) { return i->code == (BPF_LD | BPF_W | BPF_ABS); }
static bool is_and(const struct sock_filter *i) { return i->code == (BPF_ALU | BPF_AND | BPF_K); }
static bool is_jeq(const struct sock_filter *i) { return i->code == (BPF_JMP | BPF_JEQ | BPF_K); }

/* True where the accumulator is not looked at before it is loaded anew. */
static bool starts_afresh(const struct sock_filter *code, unsigned len, unsigned at) {
    while (at < len && code[at].code == (BPF_JMP | BPF_JA))
        at += 1 + code[at].k;
    return at < len && (is_load(&code[at]) || BPF_CLASS(code[at].code) == BPF_RET);
}

/* load, and, compare: nothing to do where the mask is empty; one instruction that leaves the word in the accumulator
 * where a single bit, or no bit, is asked for. */
static void simplify_mask(struct sock_filter *code, unsigned len, unsigned pc) {
    struct sock_filter *load = &code[pc], *mask = load + 1, *jeq = load + 2;
    bool one_bit = mask->k && !(mask->k & (mask->k - 1)), all_or_nothing = jeq->k == mask->k;

    if (!starts_afresh(code, len, pc + 3 + jeq->jt) ||
        !starts_afresh(code, len, pc + 3 + jeq->jf) || jeq->jt == MAX_JUMP || jeq->jf == MAX_JUMP)
        return;
    if (mask->k == 0)
        *load = (struct sock_filter){BPF_JMP | BPF_JA, 0, 0, 2u + (jeq->k ? jeq->jf : jeq->jt)};
    else if (one_bit && all_or_nothing)
        *mask = (struct sock_filter){BPF_JMP | BPF_JSET | BPF_K, (uint8_t)(jeq->jt + 1),
                                     (uint8_t)(jeq->jf + 1), mask->k};
    else if (jeq->k == 0)
        *mask = (struct sock_filter){BPF_JMP | BPF_JSET | BPF_K, (uint8_t)(jeq->jf + 1),
                                     (uint8_t)(jeq->jt + 1), mask->k};
}

/* Where a jump may go at once when the accumulator holds the word at `held`: through jumps, and past loads of that word. */
static unsigned shortcut(const struct sock_filter *code, unsigned len, unsigned at, uint32_t held) {
    for (;;) {
        if (at < len && code[at].code == (BPF_JMP | BPF_JA))
            at += 1 + code[at].k;
        else if (at < len && is_load(&code[at]) && code[at].k == held)
            at++;
        else
            return at;
    }
}

/* What the accumulator holds before each instruction: the offset of a word, or one of these. */
enum { NOT_REACHED = -2, UNKNOWN = -1 };

static void meet(int64_t *before, int64_t held) {
    *before = *before == NOT_REACHED || *before == held ? held : UNKNOWN;
}

/* One pass is enough, for jumps go forward. */
static void skip_loads(struct sock_filter *code, unsigned len, int64_t *before) {
    for (unsigned pc = 0; pc < len; pc++)
        before[pc] = pc ? NOT_REACHED : UNKNOWN;
    for (unsigned pc = 0; pc < len; pc++) {
        struct sock_filter *i = &code[pc];
        int64_t held = before[pc];

        if (held == NOT_REACHED || BPF_CLASS(i->code) == BPF_RET)
            continue;
        if (i->code == (BPF_JMP | BPF_JA)) {
            if (pc + 1 + i->k < len)
                meet(&before[pc + 1 + i->k], held);
            continue;
        }
        if (BPF_CLASS(i->code) == BPF_JMP) {
            uint8_t *const jumps[] = {&i->jt, &i->jf};
            for (int j = 0; j < 2; j++) {
                unsigned to = pc + 1 + *jumps[j];
                unsigned better = held >= 0 ? shortcut(code, len, to, (uint32_t)held) : to;
                if (better < len && better - pc - 1 <= MAX_JUMP)
                    *jumps[j] = (uint8_t)(better - pc - 1);
                if (pc + 1 + *jumps[j] < len)
                    meet(&before[pc + 1 + *jumps[j]], held);
            }
            continue;
        }
        if (pc + 1 < len)
            meet(&before[pc + 1], is_load(i) ? (int64_t)i->k : UNKNOWN);
    }
}

/* 1, or -ENOMEM. */
static int simplify(struct sock_filter *code, unsigned len) {
    int64_t *before = calloc(len, sizeof(*before));

    if (!before)
        return -ENOMEM;
    for (unsigned pc = 0; pc + 2 < len; pc++)
        if (is_load(&code[pc]) && is_and(&code[pc + 1]) && is_jeq(&code[pc + 2]))
            simplify_mask(code, len, pc);
    skip_loads(code, len, before);
    free(before);
    return 1;
}

/* ------------------------------------------------------------------ writing, from the end to the beginning */

struct writer {
    struct sock_filter
        *out; /* filled from the end: out[size - n] is the first instruction so far */
    unsigned size, n;
    bool full;
    unsigned *
        copied; /* by index in the old program: its distance from the new one's end; 0: not there */
};

/* Positions are counted from the end, so they stand while the program grows at its front. */
static unsigned put(struct writer *w, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k) {
    if (w->n == w->size) {
        w->full = true;
        return w->n;
    }
    w->n++;
    w->out[w->size - w->n] = (struct sock_filter){code, jt, jf, k};
    return w->n;
}

/* How far an instruction that is put next would have to jump. */
static unsigned distance(const struct writer *w, unsigned target) { return w->n - target; }

/* A place that says `answer`, within reach of some instructions to come. */
static unsigned answer_near(struct writer *w, uint32_t answer) {
    const unsigned reach = MAX_JUMP - 8;
    unsigned nearest = w->n > reach ? w->n - reach : 1;

    for (unsigned at = w->n; at >= nearest; at--) {
        const struct sock_filter *i = &w->out[w->size - at];
        if (i->code == (BPF_RET | BPF_K) && i->k == answer)
            return at;
    }
    return put(w, BPF_RET | BPF_K, 0, 0, answer);
}

static unsigned bring_near(struct writer *w, unsigned target) {
    unsigned far = distance(w, target);

    return far <= MAX_JUMP - 8 ? target : put(w, BPF_JMP | BPF_JA, 0, 0, far);
}

static unsigned put_end(struct writer *w, const struct end *end) {
    return end->is_answer ? answer_near(w, end->value) : bring_near(w, w->copied[end->value]);
}

static unsigned put_tree(struct writer *w, const struct range *ranges, size_t n) {
    size_t half = n / 2;

    if (n == 1)
        return put_end(w, &ranges->end);
    unsigned right = put_tree(w, ranges + half, n - half);
    unsigned left = put_tree(w, ranges, half);
    right = bring_near(w, right);
    left = bring_near(w, left);
    return put(w, BPF_JMP | BPF_JGE | BPF_K, (uint8_t)distance(w, right),
               (uint8_t)distance(w, left), ranges[half].first);
}

/* Marks what can be reached from an instruction that looks at arguments. Jumps go forward, so once through is enough. */
static bool mark(const struct sock_filter *code, unsigned len, const struct range *ranges, size_t n,
                 bool *reached) {
    for (size_t i = 0; i < n; i++)
        if (!ranges[i].end.is_answer)
            reached[ranges[i].end.value] = true;
    for (unsigned pc = 0; pc < len; pc++) {
        const struct sock_filter *i = &code[pc];
        bool branches = BPF_CLASS(i->code) == BPF_JMP && i->code != (BPF_JMP | BPF_JA);
        size_t next = pc + 1 + (i->code == (BPF_JMP | BPF_JA) ? i->k : 0);

        if (!reached[pc] || BPF_CLASS(i->code) == BPF_RET)
            continue;
        size_t yes = next + (branches ? i->jt : 0), no = next + (branches ? i->jf : 0);
        if (yes >= len || no >= len)
            return false;
        reached[yes] = reached[no] = true;
    }
    return true;
}

/* The code that looks at arguments, last instruction first. */
static void copy_marked(struct writer *w, const struct sock_filter *code, unsigned len,
                        const bool *reached) {
    for (unsigned pc = len; pc-- > 0;) {
        const struct sock_filter *i = &code[pc];

        if (!reached[pc])
            continue;
        if (BPF_CLASS(i->code) == BPF_RET) {
            w->copied[pc] = answer_near(w, i->k);
        } else if (i->code == (BPF_JMP | BPF_JA)) {
            w->copied[pc] = w->copied[pc + 1 + i->k];
        } else if (BPF_CLASS(i->code) == BPF_JMP) {
            unsigned yes = bring_near(w, w->copied[pc + 1 + i->jt]);
            unsigned no = bring_near(w, w->copied[pc + 1 + i->jf]);
            w->copied[pc] =
                put(w, i->code, (uint8_t)distance(w, yes), (uint8_t)distance(w, no), i->k);
        } else {
            /* It goes on with the next one, which has to be the next one here too. */
            unsigned next = w->copied[pc + 1];
            if (distance(w, next) > 0)
                put(w, BPF_JMP | BPF_JA, 0, 0, distance(w, next));
            w->copied[pc] = put(w, i->code, 0, 0, i->k);
        }
    }
}

/* What libseccomp writes with. Of others it would have to be known what they leave in the registers. */
static bool known_instructions(const struct sock_filter *code, unsigned len) {
    static const uint16_t known[] = {
        BPF_LD | BPF_W | BPF_ABS,  BPF_ALU | BPF_AND | BPF_K,  BPF_RET | BPF_K,
        BPF_JMP | BPF_JA,          BPF_JMP | BPF_JEQ | BPF_K,  BPF_JMP | BPF_JGE | BPF_K,
        BPF_JMP | BPF_JGT | BPF_K, BPF_JMP | BPF_JSET | BPF_K,
    };

    for (unsigned pc = 0; pc < len; pc++) {
        size_t i = 0;
        while (i < ARRAY_LEN(known) && known[i] != code[pc].code)
            i++;
        if (i == ARRAY_LEN(known))
            return false;
    }
    return true;
}

/* Foreign architectures are seen first, and get one answer at once, or this is not a program of the known shape. */
static bool foreign_answer(const struct sock_filter *code, unsigned len, uint32_t arch,
                           uint32_t *ret) {
    if (len < 3 || !is_load(&code[0]) || code[0].k != ARCH_OFFSET || !is_jeq(&code[1]) ||
        code[1].k != arch)
        return false;
    unsigned at = 2u + code[1].jf;
    while (at < len && code[at].code == (BPF_JMP | BPF_JA))
        at += 1 + code[at].k;
    if (at >= len || BPF_CLASS(code[at].code) != BPF_RET)
        return false;
    *ret = code[at].k;
    return true;
}

static void write_all(struct writer *w, const struct sock_filter *code, unsigned len, uint32_t arch,
                      const struct range *ranges, size_t n, const bool *reached, uint32_t foreign) {
    copy_marked(w, code, len, reached);
    unsigned tree = put_tree(w, ranges, n);
    if (distance(w, tree) > 0)
        put(w, BPF_JMP | BPF_JA, 0, 0, distance(w, tree));
    unsigned native = put(w, BPF_LD | BPF_W | BPF_ABS, 0, 0, NR_OFFSET);
    unsigned other = answer_near(w, foreign);
    put(w, BPF_JMP | BPF_JEQ | BPF_K, (uint8_t)distance(w, native), (uint8_t)distance(w, other),
        arch);
    put(w, BPF_LD | BPF_W | BPF_ABS, 0, 0, ARCH_OFFSET);
}

int seccomp_pack(uint32_t arch, struct sock_filter *code, unsigned short *len) {
    struct range *ranges = NULL;
    uint32_t foreign = 0;
    unsigned size = *len;
    int n = known_instructions(code, size) ? simplify(code, size) : 0;

    if (n > 0)
        n = find_ranges(code, size, arch, &ranges);
    if (n <= 0)
        return n;
    bool *reached = calloc(size, sizeof(*reached));
    struct writer w = {.out = calloc(size, sizeof(*w.out)),
                       .size = size,
                       .copied = calloc(size, sizeof(*w.copied))};
    int r = reached && w.out && w.copied ? 0 : -ENOMEM;

    if (r == 0 && foreign_answer(code, size, arch, &foreign) &&
        mark(code, size, ranges, (size_t)n, reached)) {
        write_all(&w, code, size, arch, ranges, (size_t)n, reached, foreign);
        if (!w.full && w.n < size) {
            memcpy(code, w.out + (w.size - w.n), w.n * sizeof(*code));
            *len = (unsigned short)w.n;
        }
    }
    free(reached);
    free(w.out);
    free(w.copied);
    free(ranges);
    return r;
}
