/*
 * doctor.h: the parts of mayfly_doctor(): what is known and what was tried → words.
 */
#ifndef MAYFLY_LIB_DOCTOR_H
#define MAYFLY_LIB_DOCTOR_H

#include "linux/host.h"
#include "linux/tried.h"
#include "mayfly.h"
#include "policy/policy.h"

/* What is not a fact of the host's but of this process's surroundings. */
struct surroundings {
    bool has_bus, has_helper;          /* a user manager's socket; mayfly-delegate */
    char asked[320];                   /* why asking it was in vain; "" */
    uint64_t max_files, max_processes; /* soft limits */
    uint64_t max_space, max_data;      /* RLIMIT_AS and RLIMIT_DATA */
    char no_device[32];                /* one that is not in the host's /dev; "" */
};

/* Pure: from a policy, a host and what was tried there, all but the trial. NULL when memory is out. */
struct mayfly_report *doctor_report(const struct policy *policy, const struct host *host,
                                    const struct tried *tried, const struct surroundings *around);
/* After the trial: sets `ready`. */
void doctor_conclude(struct mayfly_report *report);

/* By which mechanism a control is put in force here, or would be. */
void doctor_how(enum control_id id, const struct policy *policy, const struct host *host,
                struct buf *out);
/* What best effort does instead of a limit; nothing where there is no such thing. */
void doctor_best_effort(enum control_id id, const struct policy *policy, const struct host *host,
                        struct buf *out);

/* Opens and runs a box on a rootfs made for it, which holds one program of some hundred bytes, and fills the report. */
void doctor_trial(const mayfly_policy *policy, struct mayfly_report *report);
/* Removes what doctors that were killed left of such, and adds to the report. */
struct sweep_report;
void doctor_collect(struct sweep_report *report);

#endif
