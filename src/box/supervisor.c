/*
 * supervisor.c: one loop that watches a running box.
 *
 * It waits in ppoll(2) for: output of the box, room for its input, room for what
 * is passed on, init's report, the command's execve, a notified system call, an
 * OOM event (cgroup v1), a request to stop, init's death; and never longer than
 * to the next deadline. ppoll rather than epoll and timers in descriptors: ten
 * descriptors cost one call a turn and none to set up, and a regular file can be
 * waited for.
 *
 * The payload's end ends the run, whoever still holds its pipes: init exits, the
 * kernel kills the rest, and only then is what lies in the pipes read out. So
 * there is always an end of file, and no orphan can hold the call.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/box.h"
#include "box/watch.h"
#include "linux/bpf.h"
#include "linux/sys.h"

#include "base/banned.h"

enum {
    CHUNK = 65536,
    PASS_CHUNK = 4096, /* PIPE_BUF: a writable pipe takes that much without blocking (pipe(7)) */
    OOM_RECHECK_NS = 2000000, /* v1 tells of an OOM before anything is killed */
    OOM_WATCH_NS = 300000000,
    MAX_REFUSALS = 1000,    /* named: then they are refused without us */
    PASS_NS = 1000000000,   /* after a kill of ours, for a reader to take what there still is */
    WATCH_NS = 50000000,    /* an eager process can take 100 MB in that time */
    LINGER_NS = 1000000000, /* init has reported the end but is not gone: it gets help */
};

/* Which descriptor stands where in the poll set; -1 is skipped by poll(2). */
enum slot {
    P_INIT,
    P_REPORT,
    P_GO,
    P_OUT,
    P_ERR,
    P_IN,
    P_IN_SOURCE,
    P_PASS_OUT,
    P_PASS_ERR,
    P_LISTENER,
    P_OOM,
    P_CANCEL,
    P_CANCEL_FD,
    P__N,
};

struct stream {
    int *fd; /* the box's pipe; -1 at its end */
    struct capture *kept;
    int pass_fd;   /* also goes there; -1: no, or its reader is gone */
    size_t passed; /* of kept->data */
};

struct run {
    struct box *box;
    const struct box_input *input;
    struct stream out, err;
    size_t fed;    /* of stdin_data */
    int source;    /* of stdin; -1: none, or at its end */
    char *pending; /* read from source, not yet written; CHUNK bytes */
    size_t pending_at, pending_len;
    uint64_t wall_ns, next_cpu_ns, oom_until_ns, next_oom_ns, linger_ns; /* 0: none */
    uint64_t next_watch_ns;                                              /* best effort */
    uint64_t pass_until_ns;                                              /* 0: none */
    unsigned refusals;
    bool dead; /* init is gone */
    bool killed;
    int pass_error; /* -errno: what the box wrote could not be written out */
    char *chunk;
};

static void kill_run(struct run *run) {
    if (!run->killed)
        box_kill(run->box);
    run->killed = true;
}

/* The run is over by our decision; a fact that came after the payload's own end does not count. */
static void stop(struct run *run, bool *fact) {
    if (!run->box->facts.have_status && !run->killed)
        *fact = true;
    kill_run(run);
}

/* ------------------------------------------------------------------ output */

/* At most `most` bytes; how many there were, 0 at the end and where nothing is there. */
static ssize_t read_some(struct run *run, struct stream *s, size_t most) {
    ssize_t n = read(*s->fd, run->chunk, MIN(most, (size_t)CHUNK));

    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? 0 : -errno;
    if (n == 0) {
        fd_close(s->fd);
        return 0;
    }
    int r = capture_add(s->kept, run->chunk, (size_t)n);
    if (s->kept->truncated && run->box->plan->output_kills)
        stop(run, &run->box->facts.output_full);
    return r < 0 && r != -ENOMEM
               ? r
               : n; /* ENOMEM: it is marked as truncated; the run itself is not at fault */
}

static int read_stream(struct run *run, struct stream *s) {
    return (int)MIN(read_some(run, s, CHUNK), (ssize_t)0);
}

/* When the last process of the box is gone, all that it wrote is in the pipe. The pipe's end is not waited for: whoever
 * outside got a copy of its descriptor, by a socket in a volume, would hold the run as long as he likes. */
static void last_words(struct run *run, struct stream *s) {
    int waiting = 0;

    if (*s->fd < 0 || ioctl(*s->fd, FIONREAD, &waiting) < 0)
        waiting = 0;
    while (waiting > 0 && *s->fd >= 0) {
        ssize_t n = read_some(run, s, (size_t)waiting);
        if (n <= 0)
            break;
        waiting -= (int)n;
    }
    fd_close(s->fd);
}

static bool to_pass(const struct stream *s) { return s->pass_fd >= 0 && s->passed < s->kept->len; }

static void reader_gone(struct run *run, struct stream *s) {
    s->pass_fd = -1;
    stop(run, &run->box->facts.cancelled);
}

static void pass_on(struct run *run, struct stream *s) {
    size_t len = MIN(s->kept->len - s->passed, (size_t)PASS_CHUNK);
    ssize_t n = write(s->pass_fd, s->kept->data + s->passed, len);

    if (n > 0)
        s->passed += (size_t)n;
    else if (n < 0 && errno != EINTR && errno != EAGAIN) {
        if (errno != EPIPE && !run->pass_error)
            run->pass_error = -errno;
        reader_gone(run, s);
    }
}

/* ------------------------------------------------------------------ input */

static bool to_feed(const struct run *run) {
    return run->box->in >= 0 && (run->fed < run->input->stdin_len || run->pending_len > 0);
}

static void feed(struct run *run) {
    bool data = run->fed < run->input->stdin_len;
    const char *from =
        data ? (const char *)run->input->stdin_data + run->fed : run->pending + run->pending_at;
    size_t len = data ? run->input->stdin_len - run->fed : run->pending_len;
    ssize_t n = write(run->box->in, from, MIN(len, (size_t)PASS_CHUNK));

    if (n < 0) {
        if (errno != EINTR && errno != EAGAIN)
            fd_close(&run->box->in); /* nobody reads it any more */
        return;
    }
    if (data) {
        run->fed += (size_t)n;
    } else {
        run->pending_at += (size_t)n;
        run->pending_len -= (size_t)n;
    }
}

static void read_source(struct run *run) {
    ssize_t n = read(run->source, run->pending, CHUNK);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    run->pending_at = 0;
    run->pending_len = n > 0 ? (size_t)n : 0;
    if (n <= 0)
        run->source = -1;
}

static void end_of_input(struct run *run) {
    if (run->box->in >= 0 && run->source < 0 && !to_feed(run))
        fd_close(&run->box->in);
}

/* ------------------------------------------------------------------ limits that are watched from here */

static void check_cpu(struct run *run, uint64_t now) {
    struct box *box = run->box;
    int hier = box->ctx.host->cg.where[CG_ACCT];
    uint64_t used_usec = 0, limit_usec = box->plan->cpu_ms * 1000;
    uint64_t cpus = box->ctx.host->ncpu;

    if (plan_has(box->plan, CTL_CPU) && box->ctx.host->cg.where[CG_CPU] >= 0)
        cpus = MIN(cpus, (box->plan->policy->cpu_milli + 999) / 1000);
    if (cg_read_cpu_usec(box->ctx.host->cg.hier[hier].version, box->ctx.cgroup[hier].dir,
                         &used_usec) < 0)
        used_usec = 0;
    if (used_usec >= limit_usec) {
        stop(run, &box->facts.cpu_expired);
        run->next_cpu_ns = 0;
        return;
    }
    /* All CPUs together cannot use up what is left before then. */
    run->next_cpu_ns = now + MAX((limit_usec - used_usec) * 1000 / MAX(cpus, 1u), 1000000u);
}

static void check_oom(struct run *run, uint64_t now) {
    struct box *box = run->box;
    int hier = box->ctx.host->cg.where[CG_MEMORY];
    uint64_t kills = 0;

    run->next_oom_ns = now + OOM_RECHECK_NS;
    if (cg_read_oom_kills(1, box->ctx.cgroup[hier].dir, &kills) == 0 && kills > 0)
        kill_run(run); /* one is killed by the kernel; half a program is worse than none */
    else if (now < run->oom_until_ns)
        return;
    run->next_oom_ns = 0;
}

static void oom_event(struct run *run) {
    uint64_t count, now = now_ns();

    if (read(run->box->ctx.oom_event, &count, sizeof(count)) != (ssize_t)sizeof(count))
        return;
    run->oom_until_ns = now + OOM_WATCH_NS;
    check_oom(run, now);
}

static void note_refusal(struct box_facts *facts, const struct seccomp_data *call) {
    struct refused_call *known = facts->refused;

    for (unsigned i = 0; i < facts->n_refused; i++, known++)
        if (known->nr == call->nr && known->args[0] == call->args[0]) {
            known->times++;
            return;
        }
    if (facts->n_refused == FACTS_REFUSED)
        return;
    facts->n_refused++;
    *known = (struct refused_call){.nr = call->nr, .times = 1};
    memcpy(known->args, call->args, sizeof(known->args));
}

/* A call that the filter refuses: its thread is blocked until we answer. A refusal is answered as the filter would have;
 * a call of a foreign architecture by killing. Code that does nothing but make refused calls would keep us busy at its
 * pleasure, so there is an end to that: with the listener closed the kernel answers alone, with ENOSYS. */
static void notified(struct run *run) {
    struct box *box = run->box;
    struct seccomp_notif call;
    int r = sys_seccomp_receive(box->listener, &call);

    if (r < 0) {
        if (r != -EINTR && r != -ENOENT)
            fd_close(&box->listener);
        return;
    }
    if (!seccomp_is_native(&call.data)) {
        box->facts.foreign_nr = call.data.nr;
        box->facts.foreign_arch = call.data.arch;
        stop(run, &box->facts.foreign_call);
        return;
    }
    note_refusal(&box->facts, &call.data);
    (void)sys_seccomp_refuse(box->listener, call.id, EPERM);
    if (++run->refusals == MAX_REFUSALS)
        fd_close(&box->listener);
}

static uint64_t cpu_time_ns(void) {
    struct timespec t;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Best effort: no cgroup counts, so the processes are added up here. */
static void check_watch(struct run *run, uint64_t now) {
    const struct plan *plan = run->box->plan;
    uint64_t began_ns = cpu_time_ns();
    struct watch_sum sum;

    watch_look(run->box->ctx.init, plan->watch_memory_bytes, run->wall_ns, &sum);
    if (plan->watch_memory_bytes && sum.memory_bytes > plan->watch_memory_bytes)
        stop(run, &run->box->facts.memory_exceeded);
    /* A process that nobody waited for takes its time along: what was seen once stays seen. */
    uint64_t *cpu_usec = &run->box->facts.watched_cpu_usec;
    *cpu_usec = MAX(*cpu_usec, sum.cpu_ms * 1000);
    if (plan->watch_cpu && *cpu_usec >= plan->cpu_ms * 1000)
        stop(run, &run->box->facts.cpu_expired);
    /* Who mostly sleeps gets a CPU when it wakes; who looks all the time is one more among a hundred that compute. */
    uint64_t took_ns = cpu_time_ns() - began_ns;
    run->next_watch_ns = run->killed ? 0 : now + MAX((uint64_t)WATCH_NS, 8 * took_ns);
}

static void check_deadlines(struct run *run) {
    uint64_t now = now_ns();

    if (run->wall_ns && now >= run->wall_ns) {
        stop(run, &run->box->facts.wall_expired);
        run->wall_ns = 0;
    }
    if (run->next_cpu_ns && now >= run->next_cpu_ns)
        check_cpu(run, now);
    if (run->next_oom_ns && now >= run->next_oom_ns)
        check_oom(run, now);
    if (run->next_watch_ns && now >= run->next_watch_ns)
        check_watch(run, now);
    if (run->pass_until_ns && now >= run->pass_until_ns)
        run->out.pass_fd = run->err.pass_fd = -1;
    if (run->linger_ns && now >= run->linger_ns) {
        kill_run(run);
        run->linger_ns = 0;
    }
}

static uint64_t next_deadline(const struct run *run) {
    const uint64_t all[] = {run->wall_ns,   run->next_cpu_ns,   run->next_oom_ns,
                            run->linger_ns, run->pass_until_ns, run->next_watch_ns};
    uint64_t next = 0;

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (all[i] && (!next || all[i] < next))
            next = all[i];
    return next;
}

/* ------------------------------------------------------------------ the loop */

static void fill(const struct run *run, struct pollfd p[P__N]) {
    const struct box *box = run->box;
    bool cancelled = box->facts.cancelled;

    for (int i = 0; i < P__N; i++)
        p[i] = (struct pollfd){.fd = -1};
    if (!run->dead) {
        p[P_INIT] = (struct pollfd){box->pidfd, POLLIN, 0};
        p[P_REPORT] = (struct pollfd){box->report, POLLIN, 0};
        p[P_GO] = (struct pollfd){box->go, POLLIN, 0};
        p[P_LISTENER] = (struct pollfd){box->listener, POLLIN, 0};
        p[P_OOM] = (struct pollfd){box->ctx.oom_event, POLLIN, 0};
        p[P_IN] = (struct pollfd){to_feed(run) ? box->in : -1, POLLOUT, 0};
        bool hungry = box->in >= 0 && !to_feed(run);
        p[P_IN_SOURCE] = (struct pollfd){hungry ? run->source : -1, POLLIN, 0};
    }
    p[P_OUT] = (struct pollfd){*run->out.fd, POLLIN, 0};
    p[P_ERR] = (struct pollfd){*run->err.fd, POLLIN, 0};
    /* Without POLLOUT poll still tells when the reader is gone. */
    p[P_PASS_OUT] = (struct pollfd){run->out.pass_fd, to_pass(&run->out) ? POLLOUT : 0, 0};
    p[P_PASS_ERR] = (struct pollfd){run->err.pass_fd, to_pass(&run->err) ? POLLOUT : 0, 0};
    p[P_CANCEL] = (struct pollfd){cancelled ? -1 : box->cancel, POLLIN, 0};
    p[P_CANCEL_FD] = (struct pollfd){cancelled ? -1 : run->input->cancel_fd, POLLIN, 0};
}

static void handle_pass(struct run *run, struct stream *s, short events) {
    if (events & POLLOUT)
        pass_on(run, s);
    else if (events & (POLLERR | POLLHUP | POLLNVAL))
        reader_gone(run, s);
}

/* A program's own end is passed on however long its reader takes, as any program's would be. But a
 * limit is a limit: a reader that stalls does not hold a killed run. */
static void died(struct run *run) {
    run->dead = true;
    last_words(run, &run->out);
    last_words(run, &run->err);
    if (!run->box->facts.wall_ns)
        run->box->facts.wall_ns = now_ns() - run->box->started_ns;
    run->wall_ns = run->next_cpu_ns = run->next_oom_ns = run->linger_ns = 0;
    run->next_watch_ns = 0;
    if (run->killed && !run->box->facts.have_status)
        run->pass_until_ns = now_ns() + PASS_NS;
}

static void handle_box(struct run *run, const struct pollfd p[P__N]) {
    struct box *box = run->box;

    /* A failed execve is told before its process's end is. */
    if (p[P_GO].revents)
        (void)box_receive(box, FROM_PAYLOAD);
    if (p[P_REPORT].revents) {
        bool had = box->facts.have_status;
        (void)box_receive(box, FROM_INIT);
        if (!had && box->facts.have_status) {
            box->facts.wall_ns = now_ns() - box->started_ns;
            run->linger_ns = now_ns() + LINGER_NS;
            run->wall_ns = run->next_cpu_ns = run->next_watch_ns = 0;
            box_read_usage(box);
        }
    }
    if (box->state == BOX_FAILED)
        kill_run(run);
    if (p[P_LISTENER].revents & POLLIN)
        notified(run);
    else if (p[P_LISTENER].revents)
        fd_close(&box->listener);
    if (p[P_OOM].revents)
        oom_event(run);
    if (p[P_INIT].revents)
        died(run);
}

static int handle(struct run *run, const struct pollfd p[P__N]) {
    int r = 0;

    if (p[P_OUT].revents)
        r = read_stream(run, &run->out);
    if (r == 0 && p[P_ERR].revents)
        r = read_stream(run, &run->err);
    if (p[P_IN].revents)
        feed(run);
    if (p[P_IN_SOURCE].revents)
        read_source(run);
    end_of_input(run);
    handle_pass(run, &run->out, p[P_PASS_OUT].revents);
    handle_pass(run, &run->err, p[P_PASS_ERR].revents);
    if (p[P_CANCEL].revents || p[P_CANCEL_FD].revents) {
        run->box->facts.cancelled = true;
        kill_run(run);
        /* What has not been passed on by now is not waited for. */
        run->out.pass_fd = run->err.pass_fd = -1;
    }
    handle_box(run, p);
    return r;
}

/* True when nothing is left to wait for: init is gone, the pipes are read, all is passed on. */
static bool finished(const struct run *run) {
    return run->dead && *run->out.fd < 0 && *run->err.fd < 0 && !to_pass(&run->out) &&
           !to_pass(&run->err);
}

static int loop(struct run *run) {
    struct pollfd p[P__N];

    while (!finished(run)) {
        struct timespec wait, *timeout = NULL;
        uint64_t next = next_deadline(run);

        fill(run, p);
        if (next) {
            uint64_t now = now_ns(), left = next > now ? next - now : 0;
            wait = (struct timespec){(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
            timeout = &wait;
        }
        int n = ppoll(p, P__N, timeout, NULL);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            int r = handle(run, p);
            if (r < 0)
                return r;
        }
        check_deadlines(run);
    }
    return 0;
}

/* A write to a pipe whose reader is gone raises SIGPIPE in this thread; it must not reach the caller's program. */
static void hold_sigpipe(sigset_t *old, bool *was_pending) {
    sigset_t pipe_only, pending;

    (void)sigemptyset(&pipe_only);
    (void)sigaddset(&pipe_only, SIGPIPE);
    (void)sigpending(&pending);
    *was_pending = sigismember(&pending, SIGPIPE) == 1;
    (void)pthread_sigmask(SIG_BLOCK, &pipe_only, old);
}

static void release_sigpipe(const sigset_t *old, bool was_pending) {
    const struct timespec now = {0, 0};
    sigset_t pipe_only;

    (void)sigemptyset(&pipe_only);
    (void)sigaddset(&pipe_only, SIGPIPE);
    if (!was_pending)
        while (sigtimedwait(&pipe_only, NULL, &now) < 0 && errno == EINTR)
            ;
    (void)pthread_sigmask(SIG_SETMASK, old, NULL);
}

int box_supervise(struct box *box, const struct box_input *input, struct box_output *output,
                  struct err *err) {
    struct run run = {
        .box = box,
        .input = input,
        .out = {.fd = &box->out, .kept = &output->out, .pass_fd = input->stdout_fd},
        .err = {.fd = &box->err, .kept = &output->err, .pass_fd = input->stderr_fd},
        .source = input->stdin_fd,
    };
    sigset_t old;
    bool pending;

    capture_init(&output->out, box->plan->output_bytes);
    capture_init(&output->err, box->plan->output_bytes);
    run.chunk = arena_alloc(&box->arena, CHUNK);
    run.pending = arena_alloc(&box->arena, input->stdin_fd >= 0 ? CHUNK : 1);
    if (!run.chunk || !run.pending)
        return err_oom(err);
    if (box->plan->wall_ms)
        run.wall_ns = box->started_ns + box->plan->wall_ms * 1000000u;
    if (box->plan->cpu_ms && !box->plan->watch_cpu)
        check_cpu(&run, now_ns());
    if (box->plan->watch_memory_bytes || box->plan->watch_cpu)
        run.next_watch_ns = now_ns() + WATCH_NS;
    hold_sigpipe(&old, &pending);
    int r = loop(&run);
    release_sigpipe(&old, pending);
    if (!box->facts.wall_ns)
        box->facts.wall_ns = now_ns() - box->started_ns;
    if (r < 0)
        return err_errno(err, ERR_INTERNAL, r, "", NULL, "supervising the run");
    if (run.pass_error) /* a full disk is not a reader that went away: it loses what was said */
        return err_errno(err, ERR_INTERNAL, run.pass_error, "", NULL,
                         "writing out what the command printed");
    if (box->state == BOX_REFUSED || box->state == BOX_FAILED)
        box->facts.setup_failed = true;
    return 0;
}
