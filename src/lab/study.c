/*
 * study.c: see study.h. What is asked next of a probe follows from what is known of it (judge.h); here that becomes
 * attempts, and the answers are kept.
 */
#include "lab/study.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "lab/progress.h"
#include "lab/runner.h"
#include "lib/attacks.h"

#include "base/banned.h"

enum { TURN_MS = 100 };

/* ------------------------------------------------------------------ which controls this host has */

/* Those that cannot be switched off count as if this host had none of them: nothing can be learnt of them here. */
static void keep_on(struct study *s, enum control_id c, const char *why) {
    if (!why || !(s->can & BIT(c)))
        return;
    s->can &= ~BIT(c);
    (void)str_copy(s->host.why[c], sizeof(s->host.why[c]), why);
}

static int look_at_host(struct study *s, struct err *err) {
    int r = available_look(s->question->rootfs, &s->host, err);

    s->can = s->host.here;
    if (r == 0 && !s->host.privileged)
        keep_on(s, CTL_USER, "it cannot be switched off: without it only root can make a box");
    for (int c = 0; r == 0 && c < CTL__N; c++)
        keep_on(s, (enum control_id)c, lab_stays_on(control_id_name((enum control_id)c)));
    if (s->question->lacking)
        s->lacks = s->question->lacks ? s->question->lacks : ~s->host.here & (BIT(CTL__N) - 1);
    return r;
}

/* ------------------------------------------------------------------ the attempts */

struct making {
    struct study *s;
    struct runner *runner;
    bool full; /* an attempt found no room */
};

static struct tried tried_of(const struct study *s, const struct subject *subject) {
    uint64_t wanted = s->question->controls;

    return (struct tried){.probe = subject->probe,
                          .can = s->can,
                          .as_user = geteuid() != 0,
                          .wanted = s->question->lacking ? 0
                                    : wanted             ? wanted & s->can
                                                         : s->can,
                          .lacks = s->lacks & s->can,
                          .cells = subject->cells,
                          .n = subject->n};
}

static bool keep_cell(struct subject *subject, const struct cell *cell) {
    if (subject->n == subject->room) {
        size_t room = subject->room ? 2 * subject->room : 64;
        const struct cell **more =
            realloc(subject->cells, room * sizeof(*more)); // NOLINT(bugprone-sizeof-expression)

        if (!more)
            return false;
        subject->cells = more;
        subject->room = room;
    }
    subject->cells[subject->n++] = cell;
    return true;
}

/* Once all that was asked of it is answered. */
static void ask(struct making *m, struct subject *subject) {
    struct tried t = tried_of(m->s, subject);
    uint64_t off[NEXT_MAX];
    size_t n = subject->n_done == subject->n ? lab_next(&t, off) : 0;

    for (size_t i = 0; i < n; i++) {
        const struct board_cell *c = runner_add(m->runner, subject->probe, off[i]);

        if (!c || !keep_cell(subject, &c->cell)) {
            m->full = true;
            return;
        }
    }
}

static void answered(void *data, const struct board_cell *cell) {
    struct making *m = data;

    for (size_t i = 0; i < m->s->question->n_probes; i++)
        if (m->s->subject[i].probe == cell->probe) {
            m->s->subject[i].n_done++;
            m->s->attempts++;
            ask(m, &m->s->subject[i]);
            return;
        }
}

/* All that will be asked of a probe of which only the first question was asked is a guess. */
static size_t expected_total(const struct study *s) {
    uint64_t off[NEXT_MAX];
    size_t total = 0;

    for (size_t i = 0; i < s->question->n_probes; i++) {
        const struct subject *subject = &s->subject[i];
        const struct cell guess = {.done = true, .made = true, .finding.verdict = VERDICT_STOPPED};
        const struct cell *one = &guess;
        struct tried t = tried_of(s, subject);

        total += subject->n;
        if (subject->n_done == 0) {
            t.cells = &one;
            t.n = 1;
            total += lab_next(&t, off);
        }
    }
    return total;
}

static bool can_be_read(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return fd >= 0 && poll(&p, 1, 0) > 0;
}

static void tell(struct progress *p, const struct making *m) {
    const struct board_cell *now = runner_current(m->runner);

    progress_tick(p, m->s->attempts, expected_total(m->s), now ? now->probe->id : NULL);
}

static int make_all(struct making *m, int stop_fd, struct err *err) {
    struct study *s = m->s;
    struct progress progress;
    int r = 0;

    for (size_t i = 0; i < s->question->n_probes; i++)
        ask(m, &s->subject[i]);
    progress_begin(&progress, s->question->quiet);
    while (r == 0 && !m->full && runner_left(m->runner) > 0) {
        tell(&progress, m);
        r = runner_turn(m->runner, TURN_MS, stop_fd, answered, m, err);
        if (r == 0 && can_be_read(stop_fd))
            r = err_set(err, ERR_SETUP, -EINTR, "", NULL, "the lab was interrupted");
    }
    progress_end(&progress);
    return r == 0 && m->full ? err_oom(err) : r;
}

/* ------------------------------------------------------------------ a study */

/* The workers' memory goes with them. */
static int own_cells(struct study *s) {
    for (size_t i = 0; i < s->question->n_probes; i++) {
        struct subject *subject = &s->subject[i];
        struct cell *own = calloc(subject->n ? subject->n : 1, sizeof(*own));

        if (!own)
            return -ENOMEM;
        for (size_t k = 0; k < subject->n; k++)
            own[k] = *subject->cells[k];
        for (size_t k = 0; k < subject->n; k++)
            subject->cells[k] = &own[k];
        subject->own = own;
    }
    return 0;
}

/* Where the controls that are missed can be switched off, and where this host has them not: off is what they are. */
static bool gets_through(const struct study *s, const struct subject *subject) {
    struct tried t = tried_of(s, subject);
    const struct cell *c = tried_find(&t, t.lacks);

    return c && c->made && c->finding.verdict == VERDICT_THROUGH;
}

/* What the doctor says of it, who tries nothing, is what is found. */
static void look_at_lack(struct study *s, struct subject *subject) {
    const struct probe *p = subject->probe;
    const struct attack a = {p->id, p->title, p->stopped_by};
    bool thinner;

    subject->predicted =
        attack_gets_through(&a, s->lacks, &thinner) && subject->judgement.verdict != LAB_UNTESTABLE;
    subject->through = !p->must_pass && gets_through(s, subject);
    if (subject->predicted != subject->through)
        buf_printf(&s->faults, "%s: mayfly doctor says that it %s, and it %s\n", p->id,
                   subject->predicted ? "gets through" : "is stopped",
                   subject->through ? "gets through" : "is stopped");
}

static void judge_all(struct study *s) {
    for (size_t i = 0; i < s->question->n_probes; i++) {
        struct subject *subject = &s->subject[i];
        struct tried t = tried_of(s, subject);

        lab_judge(&t, &subject->judgement, &s->faults);
        if (s->question->lacking)
            look_at_lack(s, subject);
    }
}

/* Where not one attempt could be made, nothing is known of any probe. */
static int some_was_made(const struct study *s, struct err *err) {
    const struct cell *last = NULL;

    for (size_t i = 0; i < s->question->n_probes; i++)
        for (size_t k = 0; k < s->subject[i].n; k++) {
            last = s->subject[i].cells[k];
            if (last->made)
                return 0;
        }
    return last ? err_set(err, ERR_SETUP, -EIO, "", NULL, "no attempt could be made: %.300s",
                          last->finding.detail)
                : 0;
}

static unsigned cpus(void) {
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n > 0 ? (unsigned)n : 1;
}

static int fill(struct study *s, int stop_fd, struct err *err) {
    const struct question *q = s->question;
    struct making m = {.s = s};
    time_t now = time(NULL);
    struct tm tm;
    uint64_t begin = now_ns();

    (void)strftime(s->started, sizeof(s->started), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    s->subject = calloc(q->n_probes ? q->n_probes : 1, sizeof(*s->subject));
    if (!s->subject)
        return err_oom(err);
    for (size_t i = 0; i < q->n_probes; i++)
        s->subject[i].probe = q->probe[i];
    int r = look_at_host(s, err);
    if (r == 0)
        r = runner_new(q->jobs ? q->jobs : cpus(), &m.runner, err);
    if (r == 0)
        r = make_all(&m, stop_fd, err);
    if (r == 0 && own_cells(s) < 0)
        r = err_oom(err);
    runner_free(m.runner);
    s->seconds = (double)(now_ns() - begin) / 1e9;
    if (r == 0)
        r = some_was_made(s, err);
    if (r == 0)
        judge_all(s);
    return r;
}

int study_make(const struct question *q, int stop_fd, struct study **ret, struct err *err) {
    struct study *s = calloc(1, sizeof(*s));

    if (!s)
        return err_oom(err);
    s->question = q;
    int r = fill(s, stop_fd, err);
    if (r < 0) {
        study_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

void study_free(struct study *s) {
    if (!s)
        return;
    for (size_t i = 0; s->subject && i < s->question->n_probes; i++) {
        free(s->subject[i].cells);
        free(s->subject[i].own);
    }
    free(s->subject);
    buf_done(&s->faults);
    free(s);
}
