/*
 * attempt.h: the parts of an attempt that other boxes than its own are made of too.
 */
#ifndef MAYFLY_LAB_ATTEMPT_H
#define MAYFLY_LAB_ATTEMPT_H

#include "lab/probe.h"

int attempt_policy(struct attempt *a); /* a new a->policy, with the controls off */
int attempt_bare_policy(
    struct attempt *a); /* the same without a root, and without where to start in it */
void attempt_stand_in(struct attempt *a); /* what stands in for what a control gave: see probe.h */
/* dir/box/NAME, with lab.py before it. */
int attempt_python(struct attempt *a, const char *name, const char *payload);
void attempt_command(struct attempt *a, enum payload_kind kind, const char *name,
                     const char *const *args, int n_args);
/* What the payload's last line says. False: it says no verdict. */
bool attempt_verdict(const mayfly_result *result, struct finding_of *f);

#endif
