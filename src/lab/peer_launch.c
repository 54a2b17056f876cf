/*
 * peer_launch.c: a peer in place of mayfly: its command line, a run of it, and a result as a judge() reads one.
 */
#include "lab/peer.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "lab/inner.h"
#include "lab/peer_exec.h"

#include "base/banned.h"

enum { LIMIT_MS = 45000 }; /* less than the attempt itself has */

/* ------------------------------------------------------------------ words */

void words_add(struct words *w, const char *fmt, ...) {
    char text[8192];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    char *copy = n < 0 || n >= (int)sizeof(text) || w->n + 1 >= (int)ARRAY_LEN(w->argv)
                     ? NULL
                     : arena_strdup(&w->arena, text);
    if (!copy) {
        w->failed = true;
        return;
    }
    w->argv[w->n++] = copy;
    w->argv[w->n] = NULL;
}

void words_print(const struct words *w, char out[WORDS_COMMAND]) {
    static const char plain[] = "/.,:=_-+@%";
    size_t len = 0;

    out[0] = '\0';
    for (int i = 0; i < w->n && len < WORDS_COMMAND; i++) {
        bool quote = !*w->argv[i];
        for (const char *p = w->argv[i]; *p; p++)
            quote |= !isalnum((unsigned char)*p) && !strchr(plain, *p);
        len += (size_t)snprintf(out + len, WORDS_COMMAND - len, "%s%s%s%s", i ? " " : "",
                                quote ? "'" : "", w->argv[i], quote ? "'" : "");
    }
}

void words_done(struct words *w) { arena_done(&w->arena); }

/* ------------------------------------------------------------------ one run */

/* A result and what it points to; peer_free() ends it. */
struct peer_result {
    struct mayfly_result result; /* first: one pointer serves both */
    struct peer_exec exec;
};

static void peer_free(mayfly_result *result) {
    struct peer_result *r = (struct peer_result *)result;

    if (r)
        peer_exec_done(&r->exec);
    free(r);
}

/* A peer tells of a signal by its own exit code, as a shell does. */
static void tell_end(struct peer_result *r, const struct peer *peer, const struct policy *p) {
    const struct peer_exec *x = &r->exec;
    int status = x->status, code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    bool late = peer->late_code && x->wall_ms >= (double)p->wall_ms;

    if (x->cancelled)
        r->result.outcome = MAYFLY_CANCELLED;
    else if (x->timed_out || (late && (code == peer->late_code || code > 128)))
        r->result.outcome = MAYFLY_TIMED_OUT;
    else
        r->result.outcome = code > 128 && code < 128 + NSIG ? MAYFLY_SIGNALED : MAYFLY_EXITED;
    r->result.exit_code = code;
    r->result.signal = r->result.outcome == MAYFLY_SIGNALED ? code - 128 : 0;
    r->result.wall_ms = x->wall_ms;
    r->result.out = (struct mayfly_stream){
        .data = x->out.data ? x->out.data : "", .len = x->out.len, .total = x->out_total};
    r->result.err = (struct mayfly_stream){
        .data = x->err.data ? x->err.data : "", .len = x->err.len, .total = x->err_total};
}

/* What a runtime that was cut off left mounted below its own directory. */
static void unmount_below(const char *dir) {
    char *text = NULL, *rest = NULL;
    size_t len = 0;

    for (int i = 0; i < 8; i++) { /* mounts on mounts */
        bool found = false;
        if (file_read_all_at(AT_FDCWD, "/proc/self/mountinfo", 8u << 20, &text, &len) < 0)
            return;
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
            char where[PATH_MAX] = "";
            if (sscanf(line, "%*s %*s %*s %*s %4095s", where) == 1 &&
                strncmp(where, dir, strlen(dir)) == 0 && where[strlen(dir)] == '/')
                found |= umount2(where, MNT_DETACH) == 0;
        }
        free(text);
        if (!found)
            return;
    }
}

static void clean_up(const struct peer *peer, const struct job *job) {
    struct words w = {0};
    struct peer_exec x = {.limit_ms = 10000, .dir = job->state};

    if (peer->clean_up) {
        peer->clean_up(&w, job);
        x.argv = w.argv;
        if (!w.failed)
            (void)peer_exec(&x, NULL);
        peer_exec_done(&x);
        words_done(&w);
    }
}

static int run_job(struct peer_launcher *l, struct peer_result *r, struct job *job,
                   struct err *err) {
    struct words w = {0};
    struct bounds bounds;
    int e = bounds_make(&bounds, err);

    if (e < 0)
        return e;
    job->id = bounds.name;
    job->cgroups = bounds.v2;
    e = peer_bundle(job);
    l->peer->command(&w, job);
    if (e < 0 || w.failed)
        e = err_errno(err, ERR_INTERNAL, e < 0 ? e : -E2BIG, "", NULL,
                      "%s: its command line and bundle", l->peer->name);
    r->exec.argv = w.argv;
    r->exec.bounds = &bounds;
    r->exec.dir = job->state;
    if (e == 0)
        e = peer_exec(&r->exec, err);
    if (r->exec.timed_out || r->exec.cancelled || !WIFEXITED(r->exec.status))
        clean_up(l->peer, job);
    bounds_end(&bounds);
    unmount_below(job->state);
    words_done(&w);
    return e;
}

static void export(struct mayfly_error *to, const struct err *from) {
    if (to)
        *to = (struct mayfly_error){.code = from->code, .kind = MAYFLY_E_SETUP};
    if (to)
        (void)str_copy(to->message, sizeof(to->message), from->message);
}

/* Time enough for what would end by itself; slower peers take a second to come and go. */
static unsigned limit_ms(const struct policy *p) {
    return (unsigned)MIN(2 * (double)p->wall_ms + 4000 * lab_slow(), LIMIT_MS * lab_slow());
}

static int run_peer(struct peer_launcher *l, const struct attempt *a, const struct policy *p,
                    struct peer_result *r, struct err *err) {
    char rootfs[PATH_MAX], state[PATH_MAX];
    struct job job = {
        .policy = p, .rootfs = rootfs, .dir = a->dir, .state = state, .root = geteuid() == 0};

    (void)snprintf(state, sizeof(state), "%.3700s/peer-XXXXXX", a->dir);
    if (!mkdtemp(state))
        return err_errno(err, ERR_SETUP, -errno, "", NULL, "%s: %s", l->peer->name, state);
    if (!realpath(p->rootfs ? p->rootfs : "", rootfs))
        return err_errno(err, ERR_SETUP, -errno, "", NULL, "%s: %s", l->peer->name, p->rootfs);
    int e = run_job(l, r, &job, err);
    if (e == 0)
        tell_end(r, l->peer, p);
    l->cut_off |= r->exec.timed_out;
    return e;
}

static int launch(const struct launcher *launcher, const struct attempt *a,
                  const mayfly_policy *policy, const struct mayfly_input *input,
                  mayfly_result **ret, struct mayfly_error *error) {
    struct peer_launcher *l = (struct peer_launcher *)(uintptr_t)launcher;
    const struct policy *p = lab_inner(policy);
    struct peer_result *r = calloc(1, sizeof(*r));
    struct err err = {0};
    int e;

    if (!r) {
        e = err_oom(&err);
        export(error, &err);
        return e;
    }
    r->exec = (struct peer_exec){.keep = a->fd,
                                 .n_keep = ARRAY_LEN(a->fd),
                                 .copy_fd = input->stdout_fd,
                                 .stdin_fd = MAX(input->stdin_fd, 0),
                                 .cancel_fd = input->cancel_fd,
                                 .in_session = a->terminal >= 0,
                                 .limit_ms = limit_ms(p)};
    e = run_peer(l, a, p, r, &err);
    if (e < 0) {
        peer_free(&r->result);
        export(error, &err);
        return e;
    }
    *ret = &r->result;
    return 0;
}

void peer_launcher_init(struct peer_launcher *ret, const struct peer *peer) {
    *ret =
        (struct peer_launcher){.launcher = {.run = launch, .free_result = peer_free}, .peer = peer};
}

/* ------------------------------------------------------------------ a rootfs as an image */

static int must_work(const char *const *argv, struct err *err) {
    struct peer_exec x = {.argv = argv, .limit_ms = 120000};
    int r = peer_exec(&x, err);

    if (r == 0 && x.status != 0)
        r = err_set(err, ERR_SETUP, -EIO, "", NULL, "%s %s: %.300s", argv[0], argv[1],
                    x.err.data ? x.err.data : "failed");
    peer_exec_done(&x);
    return r;
}

int peer_image_make(const struct peer *peer, const char *rootfs, struct err *err) {
    char file[] = "/tmp/mayfly-lab-image-XXXXXX";
    int fd _cleanup_fd_ = mkostemp(file, O_CLOEXEC);
    int r = fd < 0 ? err_errno(err, ERR_SETUP, -errno, "", NULL, "%s", file)
                   : must_work((const char *[]){"tar", "-C", rootfs, "-cf", file, ".", NULL}, err);

    if (r == 0)
        r = must_work((const char *[]){peer->program, "import", file, PEER_IMAGE, NULL}, err);
    if (fd >= 0)
        (void)unlink(file);
    return r;
}

void peer_image_remove(const struct peer *peer) {
    (void)must_work((const char *[]){peer->program, "rmi", PEER_IMAGE, NULL}, NULL);
}

/* ------------------------------------------------------------------ what is said of it */

int peer_command_line(const struct peer *peer, char ret[WORDS_COMMAND], struct err *err) {
    const char *rootfs = getenv("MAYFLY_ROOTFS"), *argv[] = {"COMMAND", NULL};
    struct words w = {0};
    struct policy *p = policy_new();
    struct job job = {.policy = p,
                      .rootfs = rootfs ? rootfs : "ROOTFS",
                      .dir = "DIR",
                      .state = "STATE",
                      .id = "NAME",
                      .cgroups = "",
                      .root = geteuid() == 0};
    if (!p)
        return err_oom(err);
    int r = policy_set(p, "workdir", "/tmp", err);
    if (r == 0) /* not by policy_set(), which looks whether it is there */
        p->bind[p->n_bind++] = (struct policy_bind){.source = "DIR/box", .target = "/mnt"};
    if (r == 0)
        r = policy_set_argv(p, argv, NULL, err);
    if (r == 0) {
        peer->command(&w, &job);
        words_print(&w, ret);
        r = w.failed ? err_oom(err) : 0;
    }
    words_done(&w);
    policy_free(p);
    return r;
}

int peer_version(const struct peer *peer, char *ret, size_t size, struct err *err) {
    const char *argv[] = {peer->program, "--version", NULL};
    struct peer_exec x = {.argv = argv, .limit_ms = 20000};
    int r = peer_exec(&x, err);

    if (r == 0 && WIFEXITED(x.status) && WEXITSTATUS(x.status) == 127)
        r = err_set(err, ERR_USAGE, -ENOENT, "", NULL,
                    "%s is not installed: no %s in PATH; install it (the package %s), or leave it "
                    "out of --with",
                    peer->name, peer->program, peer->package);
    if (r == 0) {
        const char *text = x.out.data ? x.out.data : "";
        (void)snprintf(ret, size, "%.*s", (int)strcspn(text, "\n"), text);
    }
    peer_exec_done(&x);
    return r;
}
