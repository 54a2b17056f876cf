/*
 * test_judge.c: the judgement, on probes whose walls are known: what is asked is enough to find every one of them, no set is
 * asked for twice, and what is said of each control follows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "lab/judge.h"

#include "base/banned.h"

enum { CELLS_MAX = 512, ROUNDS = 400 };
#define ALL (BIT(CTL__N) - 1)

/* A world in which a probe is stopped if one of the walls stands whole; the first of them only while nothing that spoils
 * it is on. */
struct world {
    uint64_t wall[4], spoils;
    int n;
    struct cell cell[CELLS_MAX];
    const struct cell *cells[CELLS_MAX];
    struct tried tried;
    size_t asked;
};

static enum verdict answer(const struct world *w, uint64_t off) {
    for (int i = 0; i < w->n; i++)
        if ((w->wall[i] & off) == 0 && (i > 0 || (w->spoils & ~off) == 0))
            return VERDICT_STOPPED;
    return VERDICT_THROUGH;
}

static void ask(struct world *w, uint64_t off) {
    if (tried_find(&w->tried, off))
        fail_msg("a set is asked for twice");
    assert_true(w->tried.n < CELLS_MAX);
    struct cell *c = &w->cell[w->tried.n];
    *c = (struct cell){.off = off, .done = true, .made = true};
    c->finding.verdict = answer(w, off);
    (void)snprintf(c->finding.error, sizeof(c->finding.error), "EPERM");
    w->cells[w->tried.n++] = c;
}

static void study(struct world *w, const struct probe *p, uint64_t can) {
    uint64_t off[NEXT_MAX];
    size_t n;

    w->tried = (struct tried){.probe = p, .can = can, .wanted = can, .cells = w->cells};
    while ((n = lab_next(&w->tried, off)) > 0)
        for (size_t i = 0; i < n; i++)
            ask(w, off[i]);
}

static void judge(struct world *w, const struct probe *probe, uint64_t can, struct judgement *ret,
                  struct buf *faults) {
    study(w, probe, can);
    lab_judge(&w->tried, ret, faults);
}

static const struct probe some = {
    .id = "T1", .title = "t", .family = "files", .stopped_by = "mount user", .sees = "EPERM"};

static void has(const struct buf *b, const char *words) {
    if (!b->data || !strstr(b->data, words))
        fail_msg("\"%s\" is not in: %s", words, b->data ? b->data : "");
}

static void two_walls_back_each_other_up(void **state) {
    static struct world w = {.wall = {BIT(CTL_MOUNT), BIT(CTL_USER)}, .n = 2};
    struct judgement j;
    struct buf faults = {0};

    (void)state;
    judge(&w, &some, ALL, &j, &faults);
    assert_int_equal(j.verdict, LAB_COUNTS);
    assert_int_equal(j.word[CTL_MOUNT], WORD_STOPPED_TOO);
    assert_int_equal(j.word[CTL_USER], WORD_STOPPED_TOO);
    assert_int_equal(j.word[CTL_NET], WORD_THROUGH);
    assert_int_equal(j.n_minimal, 2);
    assert_int_equal(j.redundancy, 1);
    assert_int_equal(faults.len, 0);
    buf_done(&faults);
}

static void a_wall_of_two_is_found_behind_one(void **state) {
    static struct world w = {.wall = {BIT(CTL_SECCOMP), BIT(CTL_USER) | BIT(CTL_PROC)}, .n = 2};
    struct judgement j;
    struct buf faults = {0};

    (void)state;
    judge(&w, &some, ALL, &j, &faults);
    assert_int_equal(j.word[CTL_SECCOMP], WORD_STOPPED_TOO);
    assert_int_equal(j.word[CTL_USER], WORD_TOGETHER);
    assert_int_equal(j.word[CTL_PROC], WORD_TOGETHER);
    assert_int_equal(j.redundancy, 1);
    has(&faults, "T1: stops it alone, and is not said to: seccomp");
    has(&faults, "T1: said to stop it, and does not: mount");
    buf_done(&faults);
}

/* Every cut goes through `mount`, so only its partners' absence shows what `pid` is worth. */
static void a_wall_behind_a_common_control_is_found(void **state) {
    static struct world w = {
        .wall = {BIT(CTL_MOUNT) | BIT(CTL_PROC) | BIT(CTL_PID), BIT(CTL_MOUNT) | BIT(CTL_LANDLOCK)},
        .n = 2};
    static const struct probe p = {
        .id = "T4", .title = "t", .family = "files", .stopped_by = "pid landlock", .sees = "EPERM"};
    struct judgement j;
    struct buf faults = {0};

    (void)state;
    judge(&w, &p, ALL, &j, &faults);
    assert_int_equal(j.n_minimal, 2);
    assert_int_equal(j.redundancy, 0);
    assert_int_equal(j.word[CTL_PID], WORD_TOGETHER);
    assert_int_equal(j.word[CTL_MOUNT], WORD_TOGETHER);
    assert_int_equal(j.word[CTL_LANDLOCK], WORD_TOGETHER);
    assert_int_equal(j.word[CTL_NET], WORD_THROUGH);
    assert_int_equal(faults.len, 0);
    buf_done(&faults);
}

/* As user against a remount: with the mount namespace on, too, the mounts are the box's own. */
static void a_wall_that_company_spoils_is_none_in_the_box(void **state) {
    static struct world w = {
        .wall = {BIT(CTL_USER), BIT(CTL_CAPS), BIT(CTL_SECCOMP)}, .spoils = BIT(CTL_MOUNT), .n = 3};
    static const struct probe p = {.id = "T5",
                                   .title = "t",
                                   .family = "files",
                                   .stopped_by = "caps seccomp",
                                   .may_stop = "user",
                                   .sees = "EPERM"};
    struct judgement j;
    struct buf faults = {0};

    (void)state;
    judge(&w, &p, ALL, &j, &faults);
    assert_int_equal(j.word[CTL_USER], WORD_ALONE);
    assert_int_equal(j.word[CTL_CAPS], WORD_STOPPED_TOO);
    assert_int_equal(j.word[CTL_SECCOMP], WORD_STOPPED_TOO);
    assert_int_equal(j.redundancy, 1); /* not 2 */
    assert_int_equal(j.n_minimal, 3);
    assert_int_equal(faults.len, 0);
    buf_done(&faults);
}

static void one_wall_alone_is_its_control(void **state) {
    static struct world w = {.wall = {BIT(CTL_NET)}, .n = 1};
    static const struct probe p = {
        .id = "T2", .title = "t", .family = "files", .stopped_by = "net", .sees = "EPERM"};
    struct judgement j;
    struct buf faults = {0};

    (void)state;
    judge(&w, &p, ALL, &j, &faults);
    assert_int_equal(j.word[CTL_NET], WORD_STOPPED);
    assert_int_equal(j.redundancy, 0);
    assert_int_equal(faults.len, 0);
    buf_done(&faults);
}

/* A control whose rows are no-ops: it stops nothing although it is on. */
static void a_broken_control_is_a_fault(void **state) {
    static struct world w = {.n = 0};
    struct judgement j;
    struct buf faults = {0};

    (void)state;
    judge(&w, &some, ALL, &j, &faults);
    assert_int_equal(j.verdict, LAB_VOID);
    has(&faults, "T1 is void: it gets through with everything on");
    buf_done(&faults);
    memset(&w, 0, sizeof(w));
    w.wall[0] = BIT(CTL_MOUNT);
    w.n = 1;
    judge(&w, &some, ALL, &j, &faults);
    has(&faults, "T1: gets through without mount, though others are said to stop it");
    has(&faults, "T1: user is said to stop it, and does not without its partners");
    buf_done(&faults);
}

static void what_stands_whatever_is_off_makes_the_probe_void(void **state) {
    static struct world w = {.wall = {0}, .n = 1};
    struct judgement j;
    struct buf faults = {0};

    (void)state;
    judge(&w, &some, ALL, &j, &faults);
    assert_int_equal(j.verdict, LAB_VOID);
    has(&faults, "it does not get through with everything off");
    buf_done(&faults);
    /* Unless what cannot be off here is said to stop it. */
    memset(&w, 0, sizeof(w));
    w.n = 1;
    judge(&w, &some, ALL & ~BIT(CTL_USER), &j, &faults);
    assert_int_equal(j.verdict, LAB_UNTESTABLE);
    assert_int_equal(j.word[CTL_USER], WORD_UNTESTABLE);
    assert_int_equal(faults.len, 0);
    buf_done(&faults);
}

/* The fewest controls that have one of every wall, the slow way. */
static int smallest_cut(const struct world *w) {
    for (int size = 1; size <= w->n; size++)
        for (uint64_t set = 0; set < BIT(12); set++) {
            bool all = __builtin_popcountll(set) == size;
            for (int i = 0; i < w->n; i++)
                all = all && (w->wall[i] & set);
            if (all)
                return size;
        }
    return -1;
}

static bool is_listed(const struct judgement *j, uint64_t wall) {
    for (size_t i = 0; i < j->n_minimal; i++)
        if (j->minimal[i] == wall)
            return true;
    return false;
}

/* What is found is a wall, none is in another, and the redundancy is what it is. */
static void whatever_the_walls_they_are_found(void **state) {
    static struct world w;
    uint32_t seed = 12345;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct judgement j;
        struct buf faults = {0};

        memset(&w, 0, sizeof(w));
        w.n = 1 + round % 4;
        for (int i = 0; i < w.n; i++) {
            seed = seed * 1664525 + 1013904223;
            w.wall[i] = BIT(seed >> 8 & 11);
            if (seed >> 20 & 1)
                w.wall[i] |= BIT(seed >> 12 & 11);
            if ((seed >> 21 & 3) == 3)
                w.wall[i] |= BIT(seed >> 16 & 7);
        }
        judge(&w, &some, ALL, &j, &faults);
        assert_int_equal(j.verdict, LAB_COUNTS);
        assert_int_equal(j.redundancy, smallest_cut(&w) - 1);
        for (int i = 0; i < w.n; i++)
            if (__builtin_popcountll(w.wall[i]) == 1 && !is_listed(&j, w.wall[i]))
                fail_msg("round %d: a wall of one is not found", round);
        for (size_t i = 0; i < j.n_minimal; i++) {
            assert_int_equal(answer(&w, ALL & ~j.minimal[i]), VERDICT_STOPPED);
            for (int c = 0; c < CTL__N; c++)
                if (j.minimal[i] & BIT(c))
                    assert_int_equal(answer(&w, (ALL & ~j.minimal[i]) | BIT(c)), VERDICT_THROUGH);
        }
        buf_done(&faults);
    }
}

static void what_is_not_an_attack_is_asked_little(void **state) {
    static struct world w = {.n = 0};
    static const struct probe p = {
        .id = "T3", .title = "t", .family = "files", .stopped_by = "", .must_pass = true};
    struct judgement j;
    struct buf faults = {0};

    (void)state;
    study(&w, &p, ALL);
    assert_int_equal(w.tried.n, 2 + CTL__N);
    lab_judge(&w.tried, &j, &faults);
    assert_int_equal(j.verdict, LAB_MUST_PASS);
    assert_int_equal(faults.len, 0);
    buf_done(&faults);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_walls_back_each_other_up),
        cmocka_unit_test(a_wall_of_two_is_found_behind_one),
        cmocka_unit_test(a_wall_behind_a_common_control_is_found),
        cmocka_unit_test(a_wall_that_company_spoils_is_none_in_the_box),
        cmocka_unit_test(one_wall_alone_is_its_control),
        cmocka_unit_test(a_broken_control_is_a_fault),
        cmocka_unit_test(what_stands_whatever_is_off_makes_the_probe_void),
        cmocka_unit_test(whatever_the_walls_they_are_found),
        cmocka_unit_test(what_is_not_an_attack_is_asked_little),
    };

    return cmocka_run_group_tests_name("judge", tests, NULL, NULL);
}
