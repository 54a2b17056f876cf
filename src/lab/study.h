/*
 * study.h: one run of the lab: which probes, which controls, what was found, what that says.
 */
#ifndef MAYFLY_LAB_STUDY_H
#define MAYFLY_LAB_STUDY_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "lab/available.h"
#include "lab/judge.h"

enum { PROBES_MAX = 512 };

/* What is asked for. Fixed before the lab goes where it works. */
struct question {
    const struct probe *probe[PROBES_MAX];
    size_t n_probes;
    uint64_t controls; /* 0: all */
    bool lacking;      /* only what gets through without `lacks`; 0: without what this host lacks */
    uint64_t lacks;
    unsigned jobs; /* 0: one a CPU */
    bool quiet, no_price;
    const char *where;  /* "box", "kernel", "host" */
    const char *rootfs; /* absolute, no link in it */
    const char *peers;  /* "bwrap,runc"; NULL: none */
};

struct subject {
    const struct probe *probe;
    const struct cell **cells;
    struct cell *own; /* after the workers are gone */
    size_t n, room, n_done;
    struct judgement judgement;
    bool predicted, through; /* without what is missed */
};

struct price {
    double rows_us, run_us; /* < 0: not known */
    int rounds;
};

struct study {
    const struct question *question;
    uint64_t can;          /* the controls that this host has and that can be off */
    struct available host; /* its `why` says of the others why not */
    struct subject *subject;
    uint64_t lacks; /* of a question that is `lacking` */
    struct buf faults;
    size_t attempts;
    double seconds;
    char started[32];
    struct price price[CTL__N];
    bool priced;
};

/* Looks at the host, makes the attempts, judges. `stop_fd`: becomes readable where the lab is to end: -EINTR. */
int study_make(const struct question *q, int stop_fd, struct study **ret, struct err *err);
void study_free(struct study *s); /* accepts NULL */
/* Fills the prices. */
int study_price(struct study *s, int stop_fd, struct err *err);

/* As mayfly-lab(5) has it. */
json_t *study_json(const struct study *s, struct err *err);

#endif
