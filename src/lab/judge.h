/*
 * judge.h: from what the attempts of one probe found to what it says of each control. Pure: no kernel, no files.
 *
 * A cell is one attempt: a probe, and the set of controls that were off. What a probe proves, which cells are still
 * worth making, the word for each control, the smallest sets that stop it: all of it is worked out from the cells alone,
 * so the lab, the tests of the probes and the tests of broken controls judge by the same rules.
 */
#ifndef MAYFLY_LAB_JUDGE_H
#define MAYFLY_LAB_JUDGE_H

#include "base/buf.h"
#include "lab/probe.h"
#include "policy/policy.h"

_Static_assert(CTL__N <= 64, "a set of controls is a uint64_t, BIT(CTL_*)");

/* Names, space-separated, and the set. Unknown names are left out. */
uint64_t controls_of(const char *names);
void controls_print(uint64_t set, const char *between, struct buf *out);
enum { CONTROLS_TEXT = CTL__N * 12 };
void controls_text(uint64_t set, char ret[CONTROLS_TEXT]); /* space-separated, for lab_attempt() */

/* One attempt. */
struct cell {
    uint64_t off; /* the controls that were off */
    bool done;
    bool made; /* false: it could not be made, and finding.detail says why */
    struct finding_of finding;
    double ms;
};

/* What is known of one probe. */
struct tried {
    const struct probe *probe;
    uint64_t can;                    /* the controls that this host has and that can be off */
    uint64_t wanted;                 /* of these, the ones that are asked about */
    bool as_user;                    /* who has not all rights himself */
    uint64_t lacks;                  /* asked about too, off together (--lacks) */
    const struct cell *const *cells; /* not all done */
    size_t n;
};
const struct cell *tried_find(const struct tried *t, uint64_t off); /* done; NULL: not (yet) */

/* The sets that are worth switching off now, given what is known; those that are being tried already are among them or
 * not. 0: nothing more is to be learnt. Called again once they are done, since what is asked next depends on it. */
enum { NEXT_MAX = 3 * CTL__N + 4 };
size_t lab_next(const struct tried *t, uint64_t ret_off[NEXT_MAX]);

enum lab_verdict {
    LAB_COUNTS,     /* through with everything off, stopped with everything on */
    LAB_VOID,       /* neither: it proves nothing */
    LAB_UNTESTABLE, /* this host cannot tell */
    LAB_MUST_PASS,  /* no attack: it got through with everything on, as it must */
    LAB_MAYFLY,     /* stopped by how mayfly is built: there is no control to switch off */
};
enum lab_word {
    WORD_THROUGH,     /* the control does nothing against it */
    WORD_STOPPED,     /* it stops it alone, and nothing else does */
    WORD_STOPPED_TOO, /* it stops it alone, and without it others do */
    WORD_ALONE, /* it stops it where nothing else is on, and does not in some company of others */
    WORD_TOGETHER, /* it stops it together with others only: alone it does not */
    WORD_UNTESTABLE,
    WORD__N,
};
extern const char *const lab_verdict_names[], *const lab_word_names[];

enum { MINIMAL_MAX = 16 };
struct judgement {
    enum lab_verdict verdict;
    char why[300]; /* of "void", "untestable"; "" */
    enum lab_word word[CTL__N];
    uint64_t minimal[MINIMAL_MAX]; /* the smallest sets that stop it with everything else off */
    size_t n_minimal;
    int redundancy; /* one less than the fewest controls that were off when it got through; -1: not known */
};
/* `faults`: a line for each thing that is not as the table of probes says. */
void lab_judge(const struct tried *t, struct judgement *ret, struct buf *faults);

#endif
