/*
 * judge.c: see judge.h.
 *
 * The smallest sets are found from two sides. A set of controls, alone on, that stops the probe is shrunk until no one of
 * it can be missed: that is a wall. A set that has one control of every wall known so far is then switched off: if the
 * probe gets through, no wall was overlooked; if not, there is one more, which is shrunk in turn. What has been tried
 * already is never asked for again, and the order is fixed, so the next question follows from the answers alone.
 */
#include "lab/judge.h"

#include <stdio.h>
#include <string.h>

#include "base/fd.h"

#include "base/banned.h"

const char *const lab_verdict_names[] = {"counts", "void", "untestable", "must_pass", "mayfly"};
const char *const lab_word_names[] = {"through",       "stopped",  "stopped_too",
                                      "stopped_alone", "together", "untestable"};

/* ------------------------------------------------------------------ sets */

uint64_t controls_of(const char *names) {
    uint64_t set = 0;

    for (int i = 0; i < CTL__N; i++)
        if (lab_word(names, control_id_name((enum control_id)i)))
            set |= BIT(i);
    return set;
}

void controls_print(uint64_t set, const char *between, struct buf *out) {
    bool first = true;

    for (int i = 0; i < CTL__N; i++)
        if (set & BIT(i)) {
            buf_printf(out, "%s%s", first ? "" : between, control_id_name((enum control_id)i));
            first = false;
        }
}

void controls_text(uint64_t set, char ret[CONTROLS_TEXT]) {
    size_t len = 0;

    ret[0] = '\0';
    for (int i = 0; i < CTL__N; i++)
        if (set & BIT(i))
            len += (size_t)snprintf(ret + len, CONTROLS_TEXT - len, "%s%s", len ? " " : "",
                                    control_id_name((enum control_id)i));
}

const struct cell *tried_find(const struct tried *t, uint64_t off) {
    for (size_t i = 0; i < t->n; i++)
        if (t->cells[i]->done && t->cells[i]->off == off)
            return t->cells[i];
    return NULL;
}

static bool is(const struct cell *c, enum verdict v) {
    return c && c->made && c->finding.verdict == v;
}
static bool stopped(const struct tried *t, uint64_t off) {
    return is(tried_find(t, off), VERDICT_STOPPED);
}
static bool through(const struct tried *t, uint64_t off) {
    return is(tried_find(t, off), VERDICT_THROUGH);
}

/* All controls are asked about, so that what follows from all of them can be said. */
static bool is_whole(const struct tried *t) { return t->wanted == t->can; }

/* There is a control to switch off, and a reason to. */
static bool has_walls(const struct probe *p) { return p->stopped_by[0] && !p->must_pass; }

/* ------------------------------------------------------------------ the smallest sets */

struct walls {
    uint64_t wall[MINIMAL_MAX];
    size_t n;
    uint64_t cut; /* with one of each wall; off, the probe gets through, if `sure` */
    bool sure;
    uint64_t ask; /* the set to switch off next, if `asks` */
    bool asks;
};

/* A smallest set that has one of every wall. Walls are few and small: all ways are tried. */
static void cut_from(const struct walls *w, size_t i, uint64_t so_far, uint64_t *best) {
    while (i < w->n && (w->wall[i] & so_far))
        i++;
    if (i == w->n) {
        if (!*best || __builtin_popcountll(so_far) < __builtin_popcountll(*best))
            *best = so_far;
        return;
    }
    if (*best && __builtin_popcountll(so_far) + 1 >= __builtin_popcountll(*best))
        return;
    for (int c = 0; c < CTL__N; c++)
        if (w->wall[i] & BIT(c))
            cut_from(w, i + 1, so_far | BIT(c), best);
}

/* Whether the set `on` alone stops it; a question where that is not known. */
static bool stops(const struct tried *t, struct walls *w, uint64_t on) {
    uint64_t off = t->can & ~on;

    if (!tried_find(t, off) && !w->asks) {
        w->asks = true;
        w->ask = off;
    }
    return stopped(t, off);
}

/* First what nobody thinks stops it is left out at once; then one by one. */
static bool shrink(const struct tried *t, struct walls *w, uint64_t on, uint64_t *ret) {
    uint64_t likely = on & controls_of(t->probe->stopped_by);

    if (likely && likely != on && stops(t, w, likely))
        on = likely;
    for (int c = 0; c < CTL__N && !w->asks; c++)
        if ((on & BIT(c)) && on != BIT(c) && stops(t, w, on & ~BIT(c)))
            on &= ~BIT(c);
    *ret = on;
    return !w->asks;
}

static uint64_t all_of(const struct walls *w) {
    uint64_t all = 0;

    for (size_t i = 0; i < w->n; i++)
        all |= w->wall[i];
    return all;
}

/* A control that stops it when its partners are off and the rest is on, though alone it does not, has a wall that no cut
 * asks for. Without it all get through, so every set that stops it then has it. */
static void find_walls_of_partners(const struct tried *t, struct walls *w) {
    uint64_t partners = controls_of(t->probe->stopped_by) & t->can, wall;

    for (int c = 0; c < CTL__N && w->n < MINIMAL_MAX; c++) {
        uint64_t others = partners & ~BIT(c);

        if (!(partners & ~all_of(w) & BIT(c)) || !through(t, partners) || !stopped(t, others))
            continue;
        if (!shrink(t, w, t->can & ~others, &wall))
            return;
        w->wall[w->n++] = wall;
    }
}

/* False: there is something to ask first. */
static bool find_cut(const struct tried *t, struct walls *w) {
    uint64_t wall;

    for (;;) {
        w->cut = 0;
        cut_from(w, 0, 0, &w->cut);
        const struct cell *cell = tried_find(t, w->cut);
        if (!cell) {
            w->asks = true;
            w->ask = w->cut;
            return false;
        }
        w->sure = is(cell, VERDICT_THROUGH);
        if (!is(cell, VERDICT_STOPPED) || w->n == MINIMAL_MAX)
            return true;
        if (!shrink(t, w, t->can & ~w->cut, &wall))
            return false;
        w->wall[w->n++] = wall;
    }
}

static void find_walls(const struct tried *t, struct walls *w) {
    *w = (struct walls){0};
    for (int c = 0; c < CTL__N && w->n < MINIMAL_MAX; c++)
        if ((t->can & BIT(c)) && stopped(t, t->can & ~BIT(c)))
            w->wall[w->n++] = BIT(c);
    if (through(t, t->can) && find_cut(t, w))
        find_walls_of_partners(t, w);
}

/* ------------------------------------------------------------------ what to try */

static size_t add(uint64_t *list, size_t n, uint64_t off) {
    for (size_t i = 0; i < n; i++)
        if (list[i] == off)
            return n;
    list[n] = off;
    return n + 1;
}

/* All that is said to stop it off together; and each of that on, with its partners off and the rest on. */
static size_t add_partners(const struct tried *t, uint64_t *list, size_t n) {
    uint64_t partners = controls_of(t->probe->stopped_by) & t->can;

    n = add(list, n, partners);
    if (t->probe->may_stop)
        n = add(list, n, partners | (controls_of(t->probe->may_stop) & t->can));
    for (int c = 0; c < CTL__N; c++)
        if (partners & BIT(c))
            n = add(list, n, partners & ~BIT(c));
    return n;
}

static size_t all_sets(const struct tried *t, uint64_t *list) {
    bool walls = has_walls(t->probe);
    size_t n = add(list, 0, 0);

    n = add(list, n, t->can);
    if (t->lacks)
        n = add(list, n, t->lacks);
    for (int c = 0; c < CTL__N; c++)
        if (t->wanted & BIT(c)) {
            n = add(list, n, BIT(c));
            if (walls)
                n = add(list, n, t->can & ~BIT(c));
        }
    return walls && is_whole(t) ? add_partners(t, list, n) : n;
}

size_t lab_next(const struct tried *t, uint64_t ret_off[NEXT_MAX]) {
    uint64_t list[NEXT_MAX];
    const struct cell *on = tried_find(t, 0);
    struct walls walls;
    size_t n = 0;

    if (!on)
        return add(ret_off, 0, 0);
    if (!on->made || on->finding.verdict == VERDICT_UNTESTABLE)
        return 0;
    size_t all = all_sets(t, list);
    for (size_t i = 0; i < all; i++)
        if (!tried_find(t, list[i]))
            n = add(ret_off, n, list[i]);
    if (n || !has_walls(t->probe) || !is_whole(t))
        return n;
    find_walls(t, &walls);
    return walls.asks ? add(ret_off, 0, walls.ask) : 0;
}

/* ------------------------------------------------------------------ words and verdict */

/* It got through, and this control was on. More controls do not always stop more: a mount that belongs to the host can be
 * remounted by nobody in a user namespace; with a mount namespace as well it is the box's own, and can. */
static bool was_passed(const struct tried *t, enum control_id c) {
    for (size_t i = 0; i < t->n; i++)
        if (t->cells[i]->done && is(t->cells[i], VERDICT_THROUGH) && !(t->cells[i]->off & BIT(c)))
            return true;
    return false;
}

/* What was seen, not what follows from the walls. */
static int redundancy_of(const struct tried *t) {
    int fewest = CTL__N;

    for (size_t i = 0; i < t->n; i++)
        if (t->cells[i]->done && is(t->cells[i], VERDICT_THROUGH))
            fewest = MIN(fewest, __builtin_popcountll(t->cells[i]->off));
    return fewest - 1;
}

/* `walls`: all controls of all smallest sets. */
static enum lab_word word_of(const struct tried *t, uint64_t walls, enum control_id c) {
    const struct cell *without = tried_find(t, BIT(c)), *only = tried_find(t, t->can & ~BIT(c));

    if (!(t->can & BIT(c)) || !without || !without->made ||
        without->finding.verdict == VERDICT_UNTESTABLE)
        return WORD_UNTESTABLE;
    bool gone = through(t, BIT(c));
    if (!has_walls(t->probe))
        return gone && !t->probe->must_pass ? WORD_TOGETHER : WORD_THROUGH;
    if (!only || !only->made || only->finding.verdict == VERDICT_UNTESTABLE)
        return WORD_UNTESTABLE;
    if (stopped(t, t->can & ~BIT(c)))
        return was_passed(t, c) ? WORD_ALONE : gone ? WORD_STOPPED : WORD_STOPPED_TOO;
    return gone || (walls & BIT(c)) ? WORD_TOGETHER : WORD_THROUGH;
}

/* With everything off that can be, it does not get through: is that a reason, or is the probe void? */
static void not_through(const struct tried *t, const struct cell *off, struct judgement *j) {
    uint64_t fixed = controls_of(t->probe->stopped_by) & ~t->can;
    struct buf names _cleanup_buf_ = {0};

    j->verdict = LAB_UNTESTABLE;
    controls_print(fixed, ", ", &names);
    if (off->made && off->finding.verdict == VERDICT_UNTESTABLE)
        (void)str_copy(j->why, sizeof(j->why), off->finding.detail);
    else if (t->probe->why_alone)
        (void)str_copy(j->why, sizeof(j->why), t->probe->why_alone);
    else if (t->as_user)
        (void)snprintf(j->why, sizeof(j->why),
                       "the caller, no root, has not the rights himself that it takes: %.40s %.30s",
                       off->finding.call, off->finding.error);
    else if (fixed && names.data)
        (void)snprintf(j->why, sizeof(j->why),
                       "it is stopped by %.100s, not to be switched off here", names.data);
    else {
        j->verdict = LAB_VOID;
        (void)snprintf(j->why, sizeof(j->why),
                       "it does not get through with everything off: %.40s %.30s %.150s",
                       off->finding.call, off->finding.error, off->finding.detail);
    }
}

static void set_verdict(const struct tried *t, struct judgement *j) {
    const struct cell *on = tried_find(t, 0), *off = tried_find(t, t->can);

    j->verdict = LAB_VOID;
    if (!on || !on->made)
        (void)snprintf(j->why, sizeof(j->why), "it could not be made: %.250s",
                       on ? on->finding.detail : "the lab was ended");
    else if (on->finding.verdict == VERDICT_UNTESTABLE) {
        j->verdict = LAB_UNTESTABLE;
        (void)str_copy(j->why, sizeof(j->why), on->finding.detail);
    } else if (t->probe->must_pass) {
        j->verdict = is(on, VERDICT_THROUGH) ? LAB_MUST_PASS : LAB_VOID;
        if (j->verdict == LAB_VOID)
            (void)snprintf(j->why, sizeof(j->why), "it must get through, and does not");
    } else if (is(on, VERDICT_THROUGH))
        (void)snprintf(j->why, sizeof(j->why), "it gets through with everything on");
    else if (!t->probe->stopped_by[0])
        j->verdict = LAB_MAYFLY;
    else if (is(off, VERDICT_THROUGH))
        j->verdict = LAB_COUNTS;
    else if (off)
        not_through(t, off, j);
    else
        (void)snprintf(j->why, sizeof(j->why), "the lab was ended before it was tried");
}

/* ------------------------------------------------------------------ faults */

static void cell_faults(const struct tried *t, const struct cell *c, struct buf *faults) {
    char names[CONTROLS_TEXT];
    const char *what = NULL;

    if (!c->made)
        what = "could not be made";
    else if (c->finding.host[0])
        what = "the host is not the same";
    if (!what)
        return;
    controls_text(c->off, names);
    buf_printf(faults, "%s without [%s]: %s: %s %s %s %s\n", t->probe->id,
               c->off == t->can ? "everything" : names, what, c->finding.call, c->finding.error,
               c->finding.detail, c->finding.host);
}

/* What is said to stop it is in a wall, and what stops it alone is said to. Only where all were asked about. */
static void expectation_faults(const struct tried *t, const struct judgement *j,
                               struct buf *faults) {
    const char *may = t->probe->may_stop;
    uint64_t said = controls_of(t->probe->stopped_by) & t->can, alone = 0, missed = said;

    if (!is_whole(t) || j->verdict != LAB_COUNTS)
        return;
    for (int c = 0; c < CTL__N; c++) {
        if (j->word[c] == WORD_STOPPED || j->word[c] == WORD_STOPPED_TOO)
            alone |= BIT(c);
        if (j->word[c] != WORD_THROUGH)
            missed &= ~BIT(c);
    }
    alone &= ~said & ~(may ? controls_of(may) : 0);
    if (missed) {
        buf_printf(faults, "%s: said to stop it, and does not: ", t->probe->id);
        controls_print(missed, ", ", faults);
        buf_puts(faults, "\n");
    }
    if (alone) {
        buf_printf(faults, "%s: stops it alone, and is not said to: ", t->probe->id);
        controls_print(alone, ", ", faults);
        buf_puts(faults, "\n");
    }
}

/* With all off that is said to stop it, and that may by the way, it gets through. */
static void together_faults(const struct tried *t, const struct judgement *j, struct buf *faults) {
    const char *may = t->probe->may_stop;
    uint64_t partners = controls_of(t->probe->stopped_by) & t->can;
    const struct cell *c = tried_find(t, partners | (may ? controls_of(may) & t->can : 0));

    if (j->verdict == LAB_COUNTS && !through(t, partners) && is(c, VERDICT_STOPPED))
        buf_printf(faults, "%s: stopped with all off that is said to stop it: %s %s %s\n",
                   t->probe->id, c->finding.call, c->finding.error, c->finding.detail);
}

/* With one of them off the others still have to stop it. */
static void partner_faults(const struct tried *t, struct buf *faults) {
    uint64_t partners = controls_of(t->probe->stopped_by) & t->can;

    if (__builtin_popcountll(partners) < 2)
        return;
    for (int c = 0; c < CTL__N; c++) {
        if (!(partners & BIT(c)))
            continue;
        const char *name = control_id_name((enum control_id)c);
        if (through(t, BIT(c)))
            buf_printf(faults, "%s: gets through without %s, though others are said to stop it\n",
                       t->probe->id, name);
        if (through(t, partners & ~BIT(c)))
            buf_printf(faults, "%s: %s is said to stop it, and does not without its partners\n",
                       t->probe->id, name);
    }
}

static void find_faults(const struct tried *t, const struct judgement *j, struct buf *faults) {
    const struct cell *on = tried_find(t, 0);

    for (size_t i = 0; i < t->n; i++)
        if (t->cells[i]->done)
            cell_faults(t, t->cells[i], faults);
    if (j->verdict == LAB_VOID)
        buf_printf(faults, "%s is void: %s\n", t->probe->id, j->why);
    if (is(on, VERDICT_STOPPED) && !t->probe->must_pass &&
        !lab_sees(t->probe->sees, on->finding.error))
        buf_printf(faults, "%s: the code sees %s and should see %s: %s %s\n", t->probe->id,
                   on->finding.error[0] ? on->finding.error : "nothing", t->probe->sees,
                   on->finding.call, on->finding.detail);
    expectation_faults(t, j, faults);
    together_faults(t, j, faults);
    partner_faults(t, faults);
}

void lab_judge(const struct tried *t, struct judgement *ret, struct buf *faults) {
    struct walls w = {0};
    uint64_t walls;

    *ret = (struct judgement){.redundancy = -1};
    set_verdict(t, ret);
    if (ret->verdict == LAB_COUNTS && is_whole(t))
        find_walls(t, &w);
    walls = all_of(&w);
    memcpy(ret->minimal, w.wall, sizeof(w.wall));
    ret->n_minimal = w.n;
    if (w.sure)
        ret->redundancy = redundancy_of(t);
    for (int c = 0; c < CTL__N; c++)
        ret->word[c] = word_of(t, walls, (enum control_id)c);
    find_faults(t, ret, faults);
}
