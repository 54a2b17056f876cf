/*
 * inject.c: see inject.h. One tracer for each run; once the fault has been done, the processes run on
 * without stopping at their calls.
 */
#include "fault/inject.h"

#include <limits.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include "linux/host.h"

#include "base/banned.h"

const char *const inject_role_names[IN__N] = {"the supervisor", "init", "the payload's process"};
/* The rootfs comes from the environment, see inject_run. */
const char *const inject_true[] = {"run", "true", NULL};

enum { HANG_S = 30, GONE_MS = 1000, OPTIONS = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL };

/* ------------------------------------------------------------------ one run under ptrace */

struct tracee {
    pid_t pid;
    enum inject_role role;
    bool fresh;   /* its first stop is still to come */
    bool started; /* main() has begun: calls count */
    bool over;    /* another program has been executed */
    int pending;  /* the error to give at the end of the call; 0: none */
    uint64_t nr;  /* of the call it is in */
};

struct tracer {
    const struct inject *in;
    struct inject_result *ret;
    struct tracee t[64];
    size_t n;
    double hit_at;
    unsigned seen;
};

static struct tracee *find(struct tracer *tr, pid_t pid) {
    for (size_t i = 0; i < tr->n; i++)
        if (tr->t[i].pid == pid)
            return &tr->t[i];
    return NULL;
}

static bool wanted(const struct tracer *tr, const struct tracee *t) {
    unsigned last = tr->in->repeat ? tr->in->nth + tr->in->repeat - 1 : UINT32_MAX;

    return t->role == tr->in->role && (tr->seen < last || t->pending);
}

static void resume(struct tracer *tr, struct tracee *t, int sig) {
    (void)ptrace(wanted(tr, t) ? PTRACE_SYSCALL : PTRACE_CONT, t->pid, NULL, (void *)(long)sig);
}

/* The path argument's end, where the call has one. */
static bool path_ends(pid_t pid, const struct __ptrace_syscall_info *s, const char *end) {
    char file[40], text[512] = "";
    uint64_t at = s->entry.args[s->entry.nr == SYS_openat || s->entry.nr == SYS_unlinkat ||
                                s->entry.nr == SYS_mkdirat || s->entry.nr == SYS_faccessat2];

    (void)snprintf(file, sizeof(file), "/proc/%d/mem", (int)pid);
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    /* Byte by byte: the string may end just before a page that is not there. */
    size_t n = 0;
    while (n + 1 < sizeof(text) && pread(fd, text + n, 1, (off_t)(at + n)) == 1 && text[n])
        n++;
    (void)close(fd);
    text[n] = '\0';
    return n >= strlen(end) && strcmp(text + n - strlen(end), end) == 0;
}

/* Files of the kernel's take a value whole or not at all; a transfer of those is never short. */
static bool may_be_short(pid_t pid, uint64_t fd) {
    char file[64], target[256];

    (void)snprintf(file, sizeof(file), "/proc/%d/fd/%llu", (int)pid, (unsigned long long)fd);
    ssize_t n = readlink(file, target, sizeof(target) - 1);
    if (n <= 0)
        return false;
    target[n] = '\0';
    return strncmp(target, "/proc/", 6) != 0 && strncmp(target, "/sys/", 5) != 0 &&
           strncmp(target, "socket:", 7) != 0 && strncmp(target, "anon_inode:", 11) != 0;
}

static bool matches(const struct tracer *tr, const struct tracee *t,
                    const struct __ptrace_syscall_info *s) {
    const int *c = tr->in->calls;
    uint64_t nr = s->entry.nr;

    /* With the arguments that we give them these cannot fail: wait4 is without waiting. */
    if (tr->in->error && (nr == SYS_rt_sigaction || nr == SYS_rt_sigreturn || nr == SYS_wait4))
        return false;
    while (c && *c >= 0 && (uint64_t)*c != nr)
        c++;
    if (c && *c < 0)
        return false;
    if (tr->in->path && !path_ends(t->pid, s, tr->in->path))
        return false;
    return !tr->in->shorten || (s->entry.args[2] > 1 && may_be_short(t->pid, s->entry.args[0]));
}

#ifdef __x86_64__
static void change(pid_t pid, bool nr, bool length, int error) {
    struct user_regs_struct regs;

    if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) < 0)
        return;
    if (nr) /* a call that does nothing, and that every filter lets through */
        regs.orig_rax = SYS_getpid;
    if (length)
        regs.rdx = 1;
    if (error)
        regs.rax = (unsigned long)-(long)error;
    (void)ptrace(PTRACE_SETREGS, pid, NULL, &regs);
}
#else
static void change(pid_t pid, bool nr, bool length, int error) {
    (void)pid, (void)nr, (void)length, (void)error;
}
#endif

static void at_call(struct tracer *tr, struct tracee *t) {
    struct __ptrace_syscall_info s;

    if (ptrace(PTRACE_GET_SYSCALL_INFO, t->pid, (void *)sizeof(s), &s) <= 0)
        return;
    if (s.op == PTRACE_SYSCALL_INFO_EXIT) {
        if (t->pending)
            change(t->pid, false, false, t->pending);
        t->pending = 0;
        t->over = t->over || (t->nr == SYS_execve && !s.exit.is_error);
        return;
    }
    if (s.op != PTRACE_SYSCALL_INFO_ENTRY || t->role != tr->in->role)
        return;
    t->nr = s.entry.nr;
    if (t->over && t->role == IN_PAYLOAD && !tr->in->from_exec)
        return;
    /* The first thing that main() does is to look at its standard descriptors. */
    t->started =
        t->started || t->role != IN_SUPERVISOR || tr->in->from_exec || s.entry.nr == SYS_fcntl;
    if (!t->started || !matches(tr, t, &s) || ++tr->seen < tr->in->nth ||
        (tr->in->repeat && tr->seen >= tr->in->nth + tr->in->repeat))
        return;
    if (tr->ret->hits++ == 0) {
        tr->ret->call = (long)s.entry.nr;
        tr->hit_at = live_now_ms();
    }
    if (tr->in->signal)
        (void)kill(t->pid, tr->in->signal);
    t->pending = tr->in->error;
    /* A close that is interrupted has closed. */
    bool skip = tr->in->error && s.entry.nr != SYS_close;
    if (skip || tr->in->shorten)
        change(t->pid, skip, tr->in->shorten, 0);
}

static void add_child(struct tracer *tr, const struct tracee *parent, int event) {
    unsigned long pid = 0;
    enum inject_role role = IN__N;

    (void)ptrace(PTRACE_GETEVENTMSG, parent->pid, NULL, &pid);
    if (parent->role == IN_SUPERVISOR && event == PTRACE_EVENT_CLONE)
        role = IN_INIT;
    else if (parent->role == IN_INIT && event == PTRACE_EVENT_VFORK)
        role = IN_PAYLOAD;
    struct tracee *t = find(tr, (pid_t)pid);
    if (!t && tr->n < ARRAY_LEN(tr->t)) {
        t = &tr->t[tr->n++];
        *t = (struct tracee){.pid = (pid_t)pid, .fresh = true};
        t->role = role;
    } else if (t) { /* it stopped before its parent told of it, and waits */
        t->role = role;
        resume(tr, t, 0);
    }
}

static void stopped(struct tracer *tr, pid_t pid, int status) {
    struct tracee *t = find(tr, pid);
    int sig = WSTOPSIG(status), event = status >> 16;

    if (!t) { /* a child whose parent has not told yet */
        if (tr->n < ARRAY_LEN(tr->t))
            tr->t[tr->n++] = (struct tracee){.pid = pid, .role = IN__N};
        return;
    }
    if (t->fresh && sig == SIGSTOP) {
        t->fresh = false;
        resume(tr, t, 0);
        return;
    }
    if (sig == (SIGTRAP | 0x80)) {
        at_call(tr, t);
        sig = 0;
    } else if (event) {
        if (event == PTRACE_EVENT_CLONE || event == PTRACE_EVENT_FORK ||
            event == PTRACE_EVENT_VFORK)
            add_child(tr, t, event);
        sig = 0;
    } else if (sig == SIGTRAP) {
        sig = 0; /* execve under the old rules */
    }
    t = find(tr, pid);
    resume(tr, t, sig);
}

static void on_alarm(int sig) { (void)sig; }

static void trace(struct tracer *tr) {
    const struct sigaction act = {.sa_handler = on_alarm}; /* no SA_RESTART: waitpid is to end */
    struct sigaction old;
    bool alone = tr->in->role == IN_SUPERVISOR;
    int status;

    (void)sigaction(SIGALRM, &act, &old);
    (void)alarm((unsigned)(HANG_S * live_slow()));
    for (;;) {
        /* Were init traced too, the tracer would be in the way of its end. */
        pid_t pid = waitpid(alone ? tr->ret->pid : -1, &status, __WALL);
        if (pid < 0 && errno == EINTR) {
            tr->ret->hung = true;
            (void)kill(tr->ret->pid, SIGKILL);
            continue;
        }
        if (pid < 0)
            break;
        if (WIFSTOPPED(status)) {
            stopped(tr, pid, status);
        } else if (pid == tr->ret->pid) {
            tr->ret->status = status;
            tr->ret->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
            tr->ret->ms = tr->hit_at > 0 ? live_now_ms() - tr->hit_at : 0;
            break;
        }
    }
    (void)alarm(0);
    (void)sigaction(SIGALRM, &old, NULL);
}

static pid_t start(const char *const *argv, int out, int err) {
    const char *bin = getenv("MAYFLY_BIN"), *full[32] = {bin, argv[0]};
    size_t n = 2;
    bool run = strcmp(argv[0], "run") == 0 || strcmp(argv[0], "python") == 0;

    if (run) {
        full[n++] = "--rootfs";
        full[n++] = getenv("MAYFLY_ROOTFS");
        if (!live_has_cgroups())
            full[n++] = "--limits=best-effort";
    }
    for (size_t i = 1; argv[i] && n < ARRAY_LEN(full) - 1; i++)
        full[n++] = argv[i];
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDONLY);
        (void)dup2(null, 0);
        (void)dup2(out, 1);
        (void)dup2(err, 2);
        for (int fd = 3; fd < 64; fd++)
            (void)close(fd);
        (void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        (void)raise(SIGSTOP);
        (void)execv(bin, (char *const *)(uintptr_t)full);
        _exit(99);
    }
    return pid;
}

/* Everything of the box is our child now that its parent is dead: see that it goes. */
static double await_gone(void) {
    double begin = live_now_ms(), limit = GONE_MS * live_slow();
    pid_t pid;

    for (;;) {
        while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) > 0)
            ;
        if (pid < 0)
            return live_now_ms() - begin;
        if (live_now_ms() - begin > limit)
            return -1;
        live_sleep_ms(0.2);
    }
}

static void slurp_fd(int fd, char *text, size_t size) {
    (void)live_slurp(fd, text, size);
    (void)close(fd);
}

void inject_run(const char *const *argv, const struct inject *in, struct inject_result *ret) {
    struct tracer *tr = calloc(1, sizeof(*tr));
    int out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC), status;
    long options = OPTIONS;

    *ret = (struct inject_result){.code = -1, .call = -1};
    if (!tr || out < 0 || err < 0)
        abort();
    tr->in = in;
    tr->ret = ret;
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (in->role != IN_SUPERVISOR)
        options |= PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;
    ret->pid = start(argv, out, err);
    tr->t[tr->n++] = (struct tracee){.pid = ret->pid, .role = IN_SUPERVISOR};
    if (waitpid(ret->pid, &status, 0) == ret->pid && WIFSTOPPED(status)) {
        (void)ptrace(PTRACE_SETOPTIONS, ret->pid, NULL, (void *)options);
        resume(tr, &tr->t[0], 0);
        trace(tr);
    }
    ret->gone = await_gone();
    slurp_fd(out, ret->out, sizeof(ret->out));
    slurp_fd(err, ret->err, sizeof(ret->err));
    free(tr);
}

/* ------------------------------------------------------------------ what must hold afterwards */

static int lines(const char *text) {
    int n = 0;

    for (const char *p = text; *p; p++)
        n += *p == '\n';
    return n;
}

/* A cgroup whose name says that this process owns it. */
static bool has_cgroup(pid_t pid) {
    bool found = false;

    for (int i = 0; i < host_facts()->cg.n; i++) {
        DIR *dir = opendir(host_facts()->cg.hier[i].parent);
        for (const struct dirent *e; dir && (e = readdir(dir));) {
            struct cg_owner owner;
            found = found || (cg_parse_name(e->d_name, &owner) && owner.pid == pid);
        }
        if (dir)
            (void)closedir(dir);
    }
    return found;
}

void inject_check_rest(struct inject_sweep *sweep, const struct inject_result *r,
                       const char *what) {
    const struct inject none = {
        .role = IN_SUPERVISOR, .nth = UINT32_MAX, .repeat = 1, .calls = (const int[]){-1}};
    struct inject_result *next = malloc(sizeof(*next));

    if (!next)
        abort();
    if (r->hung)
        inject_say(sweep, "%s: hung for %d s", what, HANG_S);
    if (r->gone < 0)
        inject_say(sweep, "%s: a process is alive %d ms after the supervisor's end", what, GONE_MS);
    if (lines(r->err) > 1)
        inject_say(sweep, "%s: more than a line: %s", what, r->err);
    inject_run(inject_true, &none, next);
    if (next->code != 0 || next->err[0])
        inject_say(sweep, "%s: the next run: status %x: %s", what, (unsigned)next->status,
                   next->err);
    /* The dead are taken off their cgroup when the kernel gets to it, which on a busy machine may be after the next run's
     * rmdir(2); then it is for the run after that. */
    for (int i = 0; i < 3 && has_cgroup(r->pid); i++) {
        (void)usleep(100000);
        inject_run(inject_true, &none, next);
    }
    if (has_cgroup(r->pid))
        inject_say(sweep, "%s: a cgroup of it is left after the next runs", what);
    free(next);
}

bool inject_check_end(struct inject_sweep *sweep, const struct inject_result *r, int code,
                      const char *what) {
    bool refused = r->code == 125 && strncmp(r->err, "mayfly: ", 8) == 0 && lines(r->err) == 1 &&
                   r->err[strlen(r->err) - 1] == '\n';

    if (!refused && r->code != code)
        inject_say(sweep, "%s: wait status %x, exit status %d, and on stderr: %s", what,
                   (unsigned)r->status, r->code, r->err[0] ? r->err : "nothing");
    return refused;
}

unsigned inject_step(unsigned n) { return getenv("MAYFLY_TEST_LONG") ? 1 : n; }

const char *inject_call_name(long nr, char text[24]) {
    static const struct {
        long nr;
        const char *name;
    } names[] = {
        {SYS_openat, "openat"},     {SYS_read, "read"},       {SYS_write, "write"},
        {SYS_close, "close"},       {SYS_mkdirat, "mkdirat"}, {SYS_unlinkat, "unlinkat"},
        {SYS_clone3, "clone3"},     {SYS_recvmsg, "recvmsg"}, {SYS_sendmsg, "sendmsg"},
        {SYS_ppoll, "ppoll"},       {SYS_waitid, "waitid"},   {SYS_mmap, "mmap"},
        {SYS_munmap, "munmap"},     {SYS_execve, "execve"},   {SYS_fcntl, "fcntl"},
        {SYS_pipe2, "pipe2"},       {SYS_prctl, "prctl"},     {SYS_socketpair, "socketpair"},
        {SYS_eventfd2, "eventfd2"},
#ifdef SYS_open
        {SYS_open, "open"},
#endif
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (names[i].nr == nr)
            return names[i].name;
    (void)snprintf(text, 24, "call %ld", nr);
    return text;
}

/* ------------------------------------------------------------------ sweeps */

enum { WORKERS = 2 };

struct inject_sweep {
    int fd;
};

__attribute__((format(printf, 3, 0))) static void put(struct inject_sweep *sweep, char kind,
                                                      const char *fmt, va_list ap) {
    char line[PIPE_BUF];

    line[0] = kind;
    (void)vsnprintf(line + 1, sizeof(line) - 2, fmt, ap);
    for (char *p = line; *p; p++)
        if (*p == '\n')
            *p = ' ';
    size_t len = strlen(line);
    line[len++] = '\n';
    if (write(sweep->fd, line, len) != (ssize_t)len)
        abort();
}

void inject_say(struct inject_sweep *sweep, const char *fmt, ...) {
    va_list ap;

    va_start(ap, fmt);
    put(sweep, '!', fmt, ap);
    va_end(ap);
}

void inject_note(struct inject_sweep *sweep, const char *fmt, ...) {
    va_list ap;

    va_start(ap, fmt);
    put(sweep, '.', fmt, ap);
    va_end(ap);
}

/* The pipe's lines, those of a kind, until its writers are gone. */
static unsigned sort_lines(FILE *from, FILE *said, FILE *notes) {
    char *line = NULL;
    size_t size = 0;
    unsigned calls = 0;

    while (getline(&line, &size, from) > 0) {
        if (line[0] == '#')
            calls += (unsigned)strtoul(line + 1, NULL, 10);
        else
            (void)fputs(line + 1, line[0] == '!' ? said : notes);
    }
    free(line);
    return calls;
}

unsigned inject_sweep(inject_one one, const void *arg, unsigned step, char **ret_notes) {
    int ends[2];
    pid_t worker[WORKERS];
    char *said = NULL, *notes = NULL;
    size_t said_len = 0, notes_len = 0;

#ifndef __x86_64__
    live_skip("x86-64", "faults are injected by changing this processor's registers");
#endif
    (void)live_has_cgroups(); /* asked once, here */
    (void)host_facts();
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    for (unsigned w = 0; w < WORKERS; w++) {
        worker[w] = fork();
        assert_true(worker[w] >= 0);
        if (worker[w] == 0) {
            struct inject_sweep sweep = {.fd = ends[1]};
            unsigned nth = 1 + w * step, n = 0;
            (void)close(ends[0]);
            while (one(&sweep, nth, arg)) {
                nth += WORKERS * step;
                n++;
            }
            (void)dprintf(ends[1], "#%u\n", n);
            _exit(0);
        }
    }
    (void)close(ends[1]);
    FILE *from = fdopen(ends[0], "r"), *to = open_memstream(&said, &said_len),
         *aside = open_memstream(&notes, &notes_len);
    assert_true(from && to && aside);
    unsigned calls = sort_lines(from, to, aside);
    (void)fclose(from);
    (void)fclose(to);
    (void)fclose(aside);
    for (unsigned w = 0; w < WORKERS; w++) {
        int status = 0;
        assert_int_equal(waitpid(worker[w], &status, 0), worker[w]);
        if (status != 0)
            fail_msg("a worker of the sweep ended with wait status %x; said so far:\n%s",
                     (unsigned)status, said);
    }
    if (getenv("MAYFLY_TEST_NOTES"))
        (void)fputs(notes, stderr);
    (void)fputs(said, stderr); /* cmocka would cut it */
    if (said_len)
        fail_msg("the findings are above");
    free(said);
    if (ret_notes)
        *ret_notes = notes;
    else
        free(notes);
    return calls;
}
