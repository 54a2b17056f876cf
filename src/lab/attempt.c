/*
 * attempt.c: one attempt: the scratch directory, the policy, a run through the public interface, the
 * verdict, and the host before and after.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "lab/attempt.h"
#include "lab/beside.h"
#include "lab/host_watch.h"
#include "lab/payload.h"
#include "lab/probe.h"
#include "lab/scratch.h"
#include "linux/procfs.h"

#include "base/banned.h"

/* ------------------------------------------------------------------ words for prepare() and judge() */

bool lab_word(const char *words, const char *word) {
    size_t len = strlen(word);

    for (const char *p = words; *p;) {
        size_t n = strcspn(p, " ");
        if (n == len && strncmp(p, word, n) == 0)
            return true;
        p += n + (p[n] == ' ');
    }
    return false;
}

bool lab_next_word(const char **at, char *word, size_t size) {
    size_t n = strcspn(*at, " ");

    if (!n)
        return false;
    (void)snprintf(word, size, "%.*s", (int)n, *at);
    *at += n + ((*at)[n] == ' ');
    return true;
}

bool lab_sees(const char *sees, const char *error) {
    size_t len = strlen(error);

    for (const char *p = sees ? sees : ""; *p;) {
        size_t n = strcspn(p, "|");
        if (n == len && strncmp(p, error, n) == 0)
            return true;
        p += n + (p[n] == '|');
    }
    return false;
}

bool lab_off(const struct attempt *a, const char *control) { return lab_word(a->without, control); }

const char *lab_tmp(const struct attempt *a) { return lab_off(a, "mount") ? a->tmp_dir : "/tmp"; }

bool lab_has_cap(const struct attempt *a, struct finding_of *f, int cap, const char *name) {
    return !lab_off(a, "caps") || prctl(PR_CAPBSET_READ, cap, 0, 0, 0) != 0 ||
           lab_untestable(f, "%s, which it takes, the caller has not either", name);
}

bool lab_tmp_in_memory(struct attempt *a, struct finding_of *f, unsigned mib) {
    const unsigned long long need = 2ull * mib << 20;
    struct statvfs shm;

    if (!lab_off(a, "tmp") && !lab_off(a, "mount"))
        return true;
    if (statvfs("/dev/shm", &shm) < 0 || shm.f_bavail * shm.f_bsize < need)
        return lab_untestable(f, "this host's /dev/shm has no room for %llu bytes", need);
    (void)str_copy(a->tmp_dir, sizeof(a->tmp_dir), "/dev/shm/mayfly-lab-XXXXXX");
    if (!mkdtemp(a->tmp_dir) || chmod(a->tmp_dir, 01777) < 0) {
        int error = errno;

        a->tmp_dir[0] = '\0';
        return lab_untestable(f, "/dev/shm: %s", strerrordesc_np(error));
    }
    return true;
}

double lab_slow(void) {
    const char *value = getenv("MAYFLY_TEST_SLOW");
    double slow = value ? strtod(value, NULL) : 1;

    return slow >= 1 ? slow : 1;
}

/* The first problem counts. */
static void problem(struct attempt *a, const char *what, const char *why) {
    if (!a->problem[0])
        (void)snprintf(a->problem, sizeof(a->problem), "%.40s: %.250s", what, why);
}

void lab_arg(struct attempt *a, const char *fmt, ...) {
    va_list ap;

    if (a->n_args == (int)ARRAY_LEN(a->arg))
        return problem(a, "lab_arg", "more arguments than an attempt takes");
    va_start(ap, fmt);
    (void)vsnprintf(a->arg[a->n_args], sizeof(a->arg[0]), fmt, ap);
    va_end(ap);
    a->n_args++;
}

void lab_set(struct attempt *a, const char *name, const char *fmt, ...) {
    char value[2 * PATH_MAX];
    struct mayfly_error e = {0};
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(value, sizeof(value), fmt, ap);
    va_end(ap);
    if (mayfly_policy_set(a->policy, name, value, &e) < 0)
        problem(a, name, e.message);
}

void lab_found(struct finding_of *f, enum verdict verdict, const char *call, const char *error,
               const char *detail) {
    f->verdict = verdict;
    (void)str_copy(f->call, sizeof(f->call), call);
    (void)str_copy(f->error, sizeof(f->error), error);
    (void)str_copy(f->detail, sizeof(f->detail), detail ? detail : "");
}

bool lab_untestable(struct finding_of *f, const char *fmt, ...) {
    va_list ap;

    lab_found(f, VERDICT_UNTESTABLE, "", "", NULL);
    va_start(ap, fmt);
    (void)vsnprintf(f->detail, sizeof(f->detail), fmt, ap);
    va_end(ap);
    return false;
}

/* ------------------------------------------------------------------ the policy */

/* A plan is made to find out, which takes as long as half a box; the host is asked once. */
const char *lab_limits(void) {
    static char answer[256] = "?"; /* by the one thread that makes attempts */
    const char *argv[] = {"true", NULL}, *rootfs = getenv("MAYFLY_ROOTFS");
    mayfly_policy *policy = answer[0] == '?' ? mayfly_policy_new() : NULL;
    struct mayfly_error e = {0};
    char *text = NULL;

    if (policy && mayfly_policy_set(policy, "rootfs", rootfs ? rootfs : "", &e) == 0 &&
        mayfly_policy_command(policy, argv, &e) == 0) {
        bool weak = mayfly_plan_text(policy, &text, &e) < 0 && e.kind == MAYFLY_E_UNSUPPORTED &&
                    lab_word("memory cpu pids", e.control);
        (void)str_copy(answer, sizeof(answer), weak ? e.message : "");
    }
    free(text);
    mayfly_policy_free(policy);
    return answer[0] == '?' ? "" : answer;
}

const char *lab_stays_on(const char *control) {
    if (strcmp(control, "binds") == 0)
        return "it takes nothing away, so nothing gets through without it: it hands in what the "
               "operator names, and an attempt's own files are handed in by it";
    return NULL;
}

/* See probe.h: what stands in for what a control gave. */
void attempt_stand_in(struct attempt *a) {
    if (lab_off(a, "mount")) {
        lab_set(a, "env", "LAB_TMP=%s", a->tmp_dir);
        return;
    }
    lab_set(a, "volume", "%s/box:/mnt:ro", a->dir);
    if (lab_off(a, "tmp"))
        lab_set(a, "volume", "%s:/tmp:rw", a->tmp_dir);
    if (lab_off(a, "proc")) {
        lab_set(a, "volume", "/proc:/srv:rw");
        lab_set(a, "env", "LAB_PROC=/srv");
    }
}

int attempt_bare_policy(struct attempt *a) {
    char name[24];

    a->policy = mayfly_policy_new();
    if (!a->policy)
        return -ENOMEM;
    lab_set(a, "timeout", "%d", (int)(10 * lab_slow()));
    /* Best effort where no cgroup puts the limits in force, as for a user to whom none is delegated. */
    if (lab_limits()[0])
        lab_set(a, "limits", "best-effort");
    for (const char *at = a->without; lab_next_word(&at, name, sizeof(name));)
        if (!lab_stays_on(name))
            lab_set(a, "without", "%s", name);
    return 0;
}

int attempt_policy(struct attempt *a) {
    const char *rootfs = getenv("MAYFLY_ROOTFS");
    int r = attempt_bare_policy(a);

    if (r == 0) {
        lab_set(a, "rootfs", "%s", rootfs ? rootfs : "");
        lab_set(a, "workdir", "%s", lab_off(a, "mount") ? "/" : "/tmp");
    }
    return r;
}

/* ------------------------------------------------------------------ the payload */

/* All of lab.py, or what comes before the mark in it. */
static size_t needed_prelude(const char *payload) {
    static const char *const users[] = {"NR[",   "syscall(",  "tried(",
                                        "room(", "filtered(", "pidfd_of("};
    const char *mark = memmem(lab_prelude, lab_prelude_len, "# ----", 6);

    for (size_t i = 0; i < ARRAY_LEN(users); i++)
        if (strstr(payload, users[i]))
            return lab_prelude_len;
    return mark ? (size_t)(mark - lab_prelude) : lab_prelude_len;
}

int attempt_python(struct attempt *a, const char *name, const char *payload) {
    _cleanup_buf_ struct buf code = {0};

    buf_add(&code, lab_prelude, needed_prelude(payload));
    buf_puts(&code, "\n");
    buf_puts(&code, payload);
    return code.failed ? -ENOMEM : scratch_file(a, name, code.data, code.len, 0644);
}

static int write_payload(struct attempt *a, const struct probe *probe) {
    switch (probe->kind) {
    case PAYLOAD_PYTHON:
        return attempt_python(a, "probe.py", probe->payload);
    case PAYLOAD_STATIC:
        return scratch_file(a, "helper", lab_helper, lab_helper_len, 0755);
    case PAYLOAD_HOST:
        break;
    }
    return 0;
}

static bool exists(const char *path) { return access(path, F_OK) == 0; }

/* With the host's tree in place of the rootfs, its Python may be another one or none: the rootfs's own is started by its
 * own loader. */
static size_t outer_python(char text[4][PATH_MAX], const char **argv) {
    static const struct {
        const char *loader, *libraries;
    } kinds[] = {{"lib64/ld-linux-x86-64.so.2", "usr/lib/x86_64-linux-gnu"},
                 {"lib/ld-linux-aarch64.so.1", "usr/lib/aarch64-linux-gnu"}};
    char root[PATH_MAX];
    const char *rootfs = getenv("MAYFLY_ROOTFS");

    if (!rootfs || !realpath(rootfs, root))
        return 0;
    (void)snprintf(text[2], PATH_MAX, "%.3000s/usr/bin/python3", root);
    if (!exists(text[2]))
        (void)snprintf(text[2], PATH_MAX, "%.3000s/usr/local/bin/python3", root);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        (void)snprintf(text[0], PATH_MAX, "%.3000s/%s", root, kinds[i].loader);
        (void)snprintf(text[1], PATH_MAX, "%.3000s/%s", root, kinds[i].libraries);
        if (!exists(text[0]))
            continue;
        argv[0] = text[0];
        argv[1] = "--library-path";
        argv[2] = text[1];
        argv[3] = text[2];
        return 4;
    }
    return 0;
}

void attempt_command(struct attempt *a, enum payload_kind kind, const char *name,
                     const char *const *args, int n_args) {
    char outer[4][PATH_MAX], file[PATH_MAX];
    const char *argv[16];
    struct mayfly_error e = {0};
    size_t n = 0;

    (void)snprintf(file, sizeof(file), "%s/%s", a->box, kind == PAYLOAD_PYTHON ? name : "helper");
    if (kind == PAYLOAD_PYTHON) {
        if (lab_off(a, "mount"))
            n = outer_python(outer, argv);
        else
            argv[n++] = "python3";
        argv[n++] = "-I";
        argv[n++] =
            "-B"; /* where the root is the host's own and writable, no byte code is left in it */
        argv[n++] = "-S"; /* without what is installed beside it it starts in half the time */
        argv[n++] = file;
    } else {
        argv[n++] = file;
        argv[n++] = name;
    }
    for (int i = 0; i < n_args; i++)
        argv[n++] = args[i];
    argv[n] = NULL;
    if (mayfly_policy_command(a->policy, argv, &e) < 0)
        problem(a, "command", e.message);
}

/* ------------------------------------------------------------------ the verdict */

/* The last line: fields between tabs. */
bool attempt_verdict(const mayfly_result *result, struct finding_of *f) {
    static const char *const words[] = {"THROUGH", "STOPPED", "UNTESTABLE"};
    char line[512], *field[4] = {line, NULL, NULL, NULL};
    const char *end = result->out.data + result->out.len;

    while (end > result->out.data && end[-1] == '\n')
        end--;
    const char *begin = end;
    while (begin > result->out.data && begin[-1] != '\n')
        begin--;
    (void)snprintf(line, sizeof(line), "%.*s", (int)MIN(end - begin, 500), begin);
    for (int i = 1; i < 4; i++) {
        field[i] = strchr(field[i - 1], '\t');
        if (!field[i])
            return false;
        *field[i]++ = '\0';
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(line, words[i]) == 0)
            return lab_found(f, (enum verdict)i, field[1], field[2], field[3]), true;
    return false;
}

static int default_verdict(const struct attempt *a, const struct probe *probe,
                           struct finding_of *f) {
    const mayfly_result *r = a->result;
    char error[40];

    if (a->refusal) {
        lab_found(f, VERDICT_STOPPED, "mayfly", "refused", a->refusal->message);
        return probe->judge ? 0 : a->refusal->code;
    }
    if (r->outcome == MAYFLY_CANCELLED) {
        lab_found(f, VERDICT_UNTESTABLE, "", "", "it did not come to its end");
        return -ETIME;
    }
    if (attempt_verdict(r, f))
        return 0;
    /* Too slow to try anything is not stopped, unless time is what the probe is about. */
    if (r->outcome == MAYFLY_TIMED_OUT && probe->sees && !lab_sees(probe->sees, "timed_out")) {
        lab_found(f, VERDICT_UNTESTABLE, "", "timed_out",
                  "it came to no verdict before the deadline");
        return probe->judge ? 0 : -ETIME;
    }
    if (r->outcome == MAYFLY_EXITED || r->outcome == MAYFLY_SETUP_FAILED) {
        lab_found(f, VERDICT_STOPPED, "payload", "no verdict", NULL);
        (void)snprintf(f->detail, sizeof(f->detail), "exit %d: %.60s: %.100s", r->exit_code,
                       r->error.message,
                       r->err.len > 100 ? r->err.data + r->err.len - 100 : r->err.data);
        return probe->judge ? 0 : -EPROTO;
    }
    if (r->outcome == MAYFLY_SIGNALED)
        (void)snprintf(error, sizeof(error), "killed by SIG%s", sigabbrev_np(r->signal));
    else
        (void)snprintf(error, sizeof(error), "%s", mayfly_outcome_name(r->outcome));
    lab_found(f, VERDICT_STOPPED, "", error, r->n_hints ? r->hints[0] : "");
    return 0;
}

/* ------------------------------------------------------------------ one attempt */

/* Whatever is off, an attempt ends: readable once it should have. */
static int give_up_fd(const struct attempt *a) {
    const struct itimerspec when = {.it_value.tv_sec =
                                        (time_t)((lab_off(a, "deadline") ? 15 : 60) * lab_slow())};
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

    if (fd >= 0 && timerfd_settime(fd, 0, &when, NULL) < 0)
        fd_close(&fd);
    return fd;
}

static int run(struct attempt *a, const struct probe *probe, struct finding_of *f) {
    _cleanup_fd_ int give_up = give_up_fd(a);
    struct mayfly_error e = {0};
    mayfly_result *result = NULL;

    if (give_up < 0)
        return -errno;
    a->input.cancel_fd = give_up;
    int r = a->launcher ? a->launcher->run(a->launcher, a, a->policy, &a->input, &result, &e)
                        : mayfly_run(a->policy, &a->input, &result, &e);
    if (r < 0)
        a->refusal = &e;
    a->result = result;
    r = default_verdict(a, probe, f);
    if (r == 0 && probe->judge)
        probe->judge(a, f);
    if (r == -EPROTO || r == -ETIME || a->refusal)
        (void)str_copy(a->problem, sizeof(a->problem), f->detail);
    a->refusal = NULL;
    a->result = NULL;
    (a->launcher ? a->launcher->free_result : mayfly_result_free)(result);
    return r;
}

/* The caller's session and process group are none of the lab's business: where the box is to have a terminal or others of
 * its group to reach for, the run is made by a child that has. */
static int enter_session(const struct attempt *a) {
    if (a->terminal >= 0 && (setsid() < 0 || ioctl(a->terminal, TIOCSCTTY, 0) < 0))
        return -errno;
    return a->group && setpgid(0, a->group) < 0 ? -errno : 0;
}

static int run_in_session(struct attempt *a, const struct probe *probe, struct finding_of *f) {
    struct {
        int r;
        char problem[sizeof(a->problem)];
        struct finding_of found;
    } answer = {.r = -EPIPE};
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    _cleanup_fd_ int out = ends[0];
    pid_t pid = fork();
    if (pid == 0) {
        answer.r = enter_session(a);
        answer.r = answer.r < 0 ? answer.r : run(a, probe, f);
        answer.found = *f;
        (void)str_copy(answer.problem, sizeof(answer.problem), a->problem);
        (void)fd_write_full(ends[1], (const char *)&answer, sizeof(answer));
        _exit(0);
    }
    (void)close(ends[1]);
    if (pid < 0 || fd_read_full(out, (char *)&answer, sizeof(answer)) != (ssize_t)sizeof(answer))
        answer.r = pid < 0 ? -errno : -EPIPE;
    else
        *f = answer.found;
    if (pid > 0)
        (void)waitpid(pid, NULL, 0);
    (void)str_copy(a->problem, sizeof(a->problem), answer.problem);
    return answer.r;
}

static int make(struct attempt *a, const struct probe *probe, struct finding_of *f) {
    const char *args[ARRAY_LEN(a->arg)];

    if (lab_off(a, "mount"))
        (void)snprintf(a->box, sizeof(a->box), "%.3800s/box", a->dir);
    else
        (void)str_copy(a->box, sizeof(a->box), "/mnt");
    int r = attempt_policy(a);
    if (r == 0)
        r = write_payload(a, probe);
    if (r < 0)
        return r;
    if (probe->prepare && !probe->prepare(a, f))
        return a->problem[0] ? -EINVAL : 0;
    if (probe->kind == PAYLOAD_HOST)
        return 0;
    attempt_stand_in(a);
    for (int i = 0; i < a->n_args; i++)
        args[i] = a->arg[i];
    attempt_command(a, probe->kind, probe->kind == PAYLOAD_PYTHON ? "probe.py" : probe->payload,
                    args, a->n_args);
    if (a->problem[0])
        return -EINVAL;
    return a->terminal >= 0 || a->group ? run_in_session(a, probe, f) : run(a, probe, f);
}

/* Without a mount namespace what the payload mounted is the caller's now, and in the way of removing the directory. */
static void detach_mounts(const char *dir) {
    _cleanup_free_ char *text = NULL;
    char line[PATH_MAX + 512];
    struct mount_info m;
    size_t len = strlen(dir), n = 0;

    if (!len || file_read_all_at(AT_FDCWD, "/proc/self/mountinfo", 8u << 20, &text, &n) < 0)
        return;
    for (const char *p = text; proc_next_mount(&p, line, sizeof(line), &m);)
        if (strncmp(m.target, dir, len) == 0 && m.target[len] == '/')
            while (umount2(m.target, MNT_DETACH) == 0) /* one on top of another */
                ;
}

/* What prepare() made; and what outlived the box, which the comparison has to name. */
static void release(struct attempt *a) {
    if (a->beside)
        beside_end(a->beside);
    for (size_t i = 0; i < ARRAY_LEN(a->pid); i++)
        if (a->pid[i] > 0) {
            (void)kill(a->pid[i], SIGKILL);
            (void)waitpid(a->pid[i], NULL, __WALL);
        }
    for (size_t i = 0; i < ARRAY_LEN(a->fd); i++)
        fd_close(&a->fd[i]);
    if (a->mounted || lab_off(a, "mount"))
        detach_mounts(a->dir);
    free(a->state);
    mayfly_policy_free(a->policy);
    lab_reap_dead();
}

int lab_attempt(const struct probe *probe, const char *without, struct finding_of *ret) {
    return lab_attempt_by(NULL, probe, without, ret);
}

int lab_attempt_by(const struct launcher *launcher, const struct probe *probe, const char *without,
                   struct finding_of *ret) {
    struct attempt a = {.without = without,
                        .launcher = launcher,
                        .terminal = -1,
                        .fd = {-1, -1, -1, -1},
                        .lock = -1};
    struct host_state before, after;
    char canary[PATH_MAX];

    *ret = (struct finding_of){.verdict = VERDICT_UNTESTABLE};
    int r = scratch_make(&a);
    if (r < 0) {
        (void)snprintf(ret->detail, sizeof(ret->detail), "scratch directory: %s", errno_words(r));
        scratch_remove(a.dir);
        fd_close(&a.lock);
        return r;
    }
    (void)snprintf(canary, sizeof(canary), "%s/canary", a.dir);
    lab_host_look(canary, &before);
    r = make(&a, probe, ret);
    if (r < 0)
        (void)str_copy(ret->detail, sizeof(ret->detail), a.problem[0] ? a.problem : errno_words(r));
    release(&a);
    lab_host_look(canary, &after);
    if (!lab_host_same(&before, &after, ret->host, sizeof(ret->host)) &&
        strncmp(ret->host, "processes: new", 14) == 0)
        lab_kill_strays();
    lab_host_forget(&before);
    lab_host_forget(&after);
    scratch_remove(a.dir);
    if (strncmp(a.tmp_dir, a.dir, strlen(a.dir)) != 0)
        scratch_remove(a.tmp_dir);
    fd_close(&a.lock);
    return r;
}
