/*
 * attacks.h: which attacks get through where controls are missing.
 *
 * The probes are the lab's (src/lab/probe.h), which no installed program links. This is what of its
 * table the doctor needs: id, title, and the controls that stop it. A test holds the two together.
 */
#ifndef MAYFLY_LIB_ATTACKS_H
#define MAYFLY_LIB_ATTACKS_H

#include "base/defs.h"

struct attack {
    const char *id, *title;
    const char *
        stopped_by; /* names of controls, separated by spaces; with all of them off it gets through */
};
extern const struct attack attacks[];
extern const size_t n_attacks;

/* Of `missing`, BIT(CTL_*): true if all that stops this attack is missing; *ret_thinner: some of it. */
bool attack_gets_through(const struct attack *a, uint64_t missing, bool *ret_thinner);
/* True if `control` is one of those that stop it. */
bool attack_is_stopped_by(const struct attack *a, const char *control);

#endif
