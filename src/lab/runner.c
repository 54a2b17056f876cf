/*
 * runner.c: see runner.h.
 */
#include "lab/runner.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "lab/scratch.h"

#include "base/banned.h"

/* An attempt has limits of its own; beyond that it hangs. Ending takes what the last attempt takes. */
enum { ATTEMPT_MAX_S = 90, END_MS = 3000, DEATHS_MAX = 20 };

struct worker {
    pid_t pid; /* 0: none */
    int fd;    /* our end; -1 */
    struct board_cell *job;
};

struct queue {
    uint32_t *cell;
    size_t first, n;
};

struct runner {
    struct board_cell *board;
    size_t n_cells, n_done;
    struct queue many, alone;
    struct worker worker[RUNNER_WORKERS];
    unsigned n_workers, deaths;
};

/* ------------------------------------------------------------------ in the worker */

bool runner_own_mounts(void) {
    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0)
        return false;
    bool own = mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
               mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL) == 0;
    if (access("/proc/sys/fs/binfmt_misc/register", F_OK) < 0)
        (void)mount("none", "/proc/sys/fs/binfmt_misc", "binfmt_misc", 0, NULL);
    return own;
}

static const struct probe nothing = {.id = "nothing",
                                     .title = "nothing",
                                     .stopped_by = "",
                                     .kind = PAYLOAD_STATIC,
                                     .payload = "nothing"};

static void make_attempt(struct board_cell *c) {
    char without[CONTROLS_TEXT];
    uint64_t begin = now_ns();

    controls_text(c->cell.off, without);
    c->cell.made = lab_attempt(c->probe, without, &c->cell.finding) == 0;
    c->cell.ms = (double)(now_ns() - begin) / 1e6;
}

/* Until the other end is closed. */
static _Noreturn void work(struct runner *r, int fd) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS};
    struct finding_of none;
    uint32_t i;

    for (size_t k = 0; k < ARRAY_LEN(faults); k++)
        (void)signal(faults[k],
                     SIG_DFL); /* what the caller does then would be done once more here */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)runner_own_mounts();
    (void)lab_attempt(&nothing, "", &none); /* what only a process's first run makes */
    while (read(fd, &i, sizeof(i)) == (ssize_t)sizeof(i)) {
        make_attempt(&r->board[i]);
        if (write(fd, &i, sizeof(i)) != (ssize_t)sizeof(i))
            break;
    }
    _exit(0);
}

/* ------------------------------------------------------------------ workers */

static int start_worker(struct runner *r, struct worker *w, struct err *err) {
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_errno(err, ERR_INTERNAL, -errno, "", NULL, "a socket for the lab's worker");
    pid_t pid = fork();
    if (pid == 0) {
        for (unsigned i = 0; i < r->n_workers; i++)
            fd_close(&r->worker[i].fd); /* or the others would not see ours closed */
        fd_close(&ends[0]);
        work(r, ends[1]);
    }
    fd_close(&ends[1]);
    if (pid < 0) {
        fd_close(&ends[0]);
        return err_errno(err, ERR_INTERNAL, -errno, "", NULL, "a process for the lab's attempts");
    }
    *w = (struct worker){.pid = pid, .fd = ends[0]};
    return 0;
}

static void end_worker(struct worker *w, int *ret_status) {
    fd_close(&w->fd);
    if (w->pid > 0) {
        (void)kill(w->pid, SIGKILL);
        while (waitpid(w->pid, ret_status, 0) < 0 && errno == EINTR)
            ;
        scratch_remove_of(w->pid);
    }
    w->pid = 0;
    w->job = NULL;
}

int runner_new(unsigned workers, struct runner **ret, struct err *err) {
    struct runner *r = calloc(1, sizeof(*r));

    if (!r)
        return err_oom(err);
    r->n_workers = MAX(1, MIN(workers, (unsigned)RUNNER_WORKERS));
    for (unsigned i = 0; i < r->n_workers; i++)
        r->worker[i].fd = -1;
    r->many.cell = calloc(RUNNER_CELLS, sizeof(uint32_t));
    r->alone.cell = calloc(RUNNER_CELLS, sizeof(uint32_t));
    r->board = mmap(NULL, RUNNER_CELLS * sizeof(*r->board), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (r->board == MAP_FAILED)
        r->board = NULL;
    if (!r->many.cell || !r->alone.cell || !r->board) {
        runner_free(r);
        return err_oom(err);
    }
    *ret = r;
    return 0;
}

static bool some_live(struct runner *r) {
    bool some = false;

    for (unsigned i = 0; i < r->n_workers; i++) {
        struct worker *w = &r->worker[i];

        if (w->pid > 0 && waitpid(w->pid, NULL, WNOHANG) != 0) {
            scratch_remove_of(w->pid);
            w->pid = 0;
        }
        some = some || w->pid > 0;
    }
    return some;
}

void runner_free(struct runner *r) {
    const struct timespec moment = {0, 10000000};

    if (!r)
        return;
    for (unsigned i = 0; i < r->n_workers; i++)
        fd_close(&r->worker[i].fd);
    for (int ms = 0; ms < END_MS && some_live(r); ms += 10)
        (void)nanosleep(&moment, NULL);
    for (unsigned i = 0; i < r->n_workers; i++)
        end_worker(&r->worker[i], NULL);
    if (r->board)
        (void)munmap(r->board, RUNNER_CELLS * sizeof(*r->board));
    free(r->many.cell);
    free(r->alone.cell);
    free(r);
}

/* ------------------------------------------------------------------ jobs */

const struct board_cell *runner_add(struct runner *r, const struct probe *probe, uint64_t off) {
    struct queue *q = probe->alone ? &r->alone : &r->many;

    if (r->n_cells == RUNNER_CELLS)
        return NULL;
    r->board[r->n_cells] = (struct board_cell){.probe = probe, .cell.off = off};
    q->cell[q->n++] = (uint32_t)r->n_cells;
    return &r->board[r->n_cells++];
}

size_t runner_left(const struct runner *r) { return r->n_cells - r->n_done; }

const struct board_cell *runner_current(const struct runner *r) {
    for (unsigned i = 0; i < r->n_workers; i++)
        if (r->worker[i].job)
            return r->worker[i].job;
    return NULL;
}

/* Those that may go on beside others come first, so that the machine is idle only once. */
static struct board_cell *next_job(struct runner *r) {
    const struct board_cell *now = runner_current(r);

    if (r->many.first < r->many.n)
        return now && now->probe->alone ? NULL : &r->board[r->many.cell[r->many.first++]];
    if (r->alone.first < r->alone.n && !now)
        return &r->board[r->alone.cell[r->alone.first++]];
    return NULL;
}

static int hand_out(struct runner *r, struct err *err) {
    for (unsigned i = 0; i < r->n_workers; i++) {
        struct worker *w = &r->worker[i];
        struct board_cell *job = w->job ? NULL : next_job(r);

        if (!job)
            continue;
        int code = w->pid > 0 ? 0 : start_worker(r, w, err);
        if (code < 0)
            return code;
        uint32_t number = (uint32_t)(job - r->board);
        job->begun_ns = now_ns();
        w->job = job;
        (void)fd_send(w->fd, &number, sizeof(number), -1, 0); /* one that died is seen below */
    }
    return 0;
}

/* ------------------------------------------------------------------ answers */

typedef void done_fn(void *data, const struct board_cell *cell);

static void is_done(struct runner *r, struct worker *w, done_fn *done, void *data) {
    struct board_cell *c = w->job;

    w->job = NULL;
    c->cell.done = true;
    r->n_done++;
    done(data, c);
}

static void died(struct runner *r, struct worker *w, const char *why, done_fn *done, void *data) {
    struct board_cell *c = w->job;
    struct worker gone = *w;
    int status = 0;

    end_worker(&gone, &status);
    w->pid = 0;
    w->fd = -1;
    r->deaths++;
    if (!c)
        return;
    c->cell.made = false;
    c->cell.ms = (double)(now_ns() - c->begun_ns) / 1e6;
    c->cell.finding = (struct finding_of){.verdict = VERDICT_UNTESTABLE};
    if (why)
        (void)str_copy(c->cell.finding.detail, sizeof(c->cell.finding.detail), why);
    else
        (void)snprintf(c->cell.finding.detail, sizeof(c->cell.finding.detail),
                       "the process that made the attempt died: %s %d",
                       WIFSIGNALED(status) ? "signal" : "exit status",
                       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    is_done(r, w, done, data);
}

static void look_at_worker(struct runner *r, struct worker *w, bool readable, done_fn *done,
                           void *data) {
    uint64_t limit_ns = (uint64_t)(ATTEMPT_MAX_S * lab_slow()) * 1000000000u;
    char why[80];
    uint32_t number;

    if (readable) {
        if (read(w->fd, &number, sizeof(number)) == (ssize_t)sizeof(number) && w->job)
            is_done(r, w, done, data);
        else
            died(r, w, NULL, done, data);
    } else if (w->job && now_ns() - w->job->begun_ns > limit_ns) {
        (void)snprintf(why, sizeof(why), "the attempt took longer than %.0f s",
                       ATTEMPT_MAX_S * lab_slow());
        died(r, w, why, done, data);
    }
}

int runner_turn(struct runner *r, int wait_ms, int stop_fd, done_fn *done, void *data,
                struct err *err) {
    struct pollfd p[RUNNER_WORKERS + 1];
    int code = hand_out(r, err);

    if (code < 0)
        return code;
    for (unsigned i = 0; i < r->n_workers; i++)
        p[i] = (struct pollfd){.fd = r->worker[i].fd, .events = POLLIN};
    p[r->n_workers] = (struct pollfd){.fd = stop_fd, .events = POLLIN};
    if (poll(p, r->n_workers + 1, wait_ms) < 0 && errno != EINTR)
        return err_errno(err, ERR_INTERNAL, -errno, "", NULL, "waiting for the lab's attempts");
    for (unsigned i = 0; i < r->n_workers; i++)
        if (r->worker[i].pid > 0)
            look_at_worker(r, &r->worker[i], p[i].revents != 0, done, data);
    if (r->deaths > DEATHS_MAX)
        return err_set(err, ERR_INTERNAL, -ECHILD, "", "mayfly lab --probe PROBE tries them apart",
                       "%u of the processes that make the lab's attempts died", r->deaths);
    return 0;
}
