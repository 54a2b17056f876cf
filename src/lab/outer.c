/*
 * outer.c: see outer.h. Three processes: who called; the keeper, which made the cgroup and removes it; and the first of
 * the new pid namespace, at whose end the kernel kills all that is in it. Each watches the one before it, so that SIGKILL
 * to any of them leaves nothing behind but, if it was the keeper, empty cgroups that `mayfly gc` collects.
 */
#include "lab/outer.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/route.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "linux/host.h"
#include "linux/sys.h"

#include "base/banned.h"

enum { PIDS_MAX = 2048, GRACE_MS = 5000, REMOVE_MS = 3000 };
#define REMEDY "mayfly lab --where host does without, on the bare host"

static int fault(struct err *err, int code, const char *what) {
    return err_errno(err, ERR_SETUP, code, "", REMEDY, "the box around the lab: %s", what);
}

/* ------------------------------------------------------------------ its cgroup */

struct bounds {
    char name[CG_NAME];
    struct cg_layout at; /* where it was made */
    bool made[CG_HIERS];
};

/* All but what the host needs to go on. */
static struct cg_limits limits_of(const struct host *h) {
    const uint64_t spare = UINT64_C(512) << 20;

    return (struct cg_limits){.memory_bytes = MAX(h->memory_bytes / 2, MIN(h->memory_bytes, spare)),
                              .cpu_milli = h->ncpu * 950,
                              .pids = PIDS_MAX,
                              .host_has_swap = h->swap_bytes > 0};
}

static int write_in(const char *dir, const char *file, const char *text) {
    int fd _cleanup_fd_ = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : file_write_at(fd, file, text, strlen(text));
}

static void enable(const char *dir, unsigned which) {
    char text[64];
    size_t len = 0;

    for (int c = 0; c < CG_ACCT; c++)
        if (which & BIT(c))
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s+%s", len ? " " : "",
                                    cg_controller_names[c]);
    if (len)
        (void)write_in(dir, "cgroup.subtree_control", text);
}

/* oom.group is left out: one box that runs out of memory would end the lab. */
static int bound_hier(const struct cg_hier *h, const char *dir, const struct cg_limits *limits) {
    for (int c = 0; c < CG__N; c++) {
        struct cg_setting s[CG_SETTINGS];
        int n =
            h->controllers & BIT(c) ? cg_settings(h->version, (enum cg_controller)c, limits, s) : 0;

        for (int i = 0; i < n; i++) {
            if (strcmp(s[i].file, "memory.oom.group") == 0)
                continue;
            int r = write_in(dir, s[i].file, s[i].value);
            if (r < 0 && !s[i].optional)
                return r;
        }
    }
    return 0;
}

/* v1: without time of its own a group's processes cannot be real-time ones, which a probe would take for a wall. */
static void allow_real_time(const char *dir) { (void)write_in(dir, "cpu.rt_runtime_us", "50000"); }

static void dir_of(const struct bounds *b, int i, char ret[CG_PATH + CG_NAME + 8]) {
    (void)snprintf(ret, CG_PATH + CG_NAME + 8, "%s/%s", b->at.hier[i].parent, b->name);
}

/* A user to whom no cgroup is delegated has none, here as in any run. */
static int make_bounds(struct bounds *b, struct err *err) {
    char dir[CG_PATH + CG_NAME + 8];
    struct host *h _cleanup_free_ = malloc(sizeof(*h));
    uint32_t random = 0;
    int r = h ? host_read(h, NULL) : -ENOMEM;

    if (r < 0)
        return fault(err, r, "looking at the host");
    struct cg_limits limits = limits_of(h);
    b->at = h->cg;
    if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
        random = (uint32_t)h->self.start_time;
    cg_name(&h->self, random, b->name);
    for (int i = 0; i < b->at.n; i++) {
        enable(b->at.hier[i].parent, b->at.hier[i].enable);
        dir_of(b, i, dir);
        b->made[i] = mkdir(dir, 0755) == 0;
        r = b->made[i] ? bound_hier(&b->at.hier[i], dir, &limits) : -errno;
        if (r == 0 && b->at.hier[i].version == 1 && (b->at.hier[i].controllers & BIT(CG_CPU)))
            allow_real_time(dir);
        if (r < 0)
            return fault(err, r, dir);
    }
    return 0;
}

static int move_in(const struct bounds *b, pid_t pid, struct err *err) {
    char dir[CG_PATH + CG_NAME + 8], text[24];

    (void)snprintf(text, sizeof(text), "%d", (int)pid);
    for (int i = 0; i < b->at.n; i++) {
        dir_of(b, i, dir);
        int r = b->made[i] ? write_in(dir, "cgroup.procs", text) : 0;
        if (r < 0)
            return fault(err, r, dir);
    }
    return 0;
}

/* v2: who passes controllers on holds no processes. Boxes are made beside the leaf that the lab itself is in. */
static int move_to_leaf(const struct bounds *b, struct err *err) {
    char dir[CG_PATH + CG_NAME + 8], leaf[CG_PATH + CG_NAME + 16];

    for (int i = 0; i < b->at.n; i++) {
        if (b->at.hier[i].version != 2 || !b->made[i])
            continue;
        dir_of(b, i, dir);
        (void)snprintf(leaf, sizeof(leaf), "%s/lab", dir);
        int r = mkdir(leaf, 0755) < 0 ? -errno : write_in(leaf, "cgroup.procs", "0");
        if (r < 0)
            return fault(err, r, leaf);
        enable(dir, b->at.hier[i].controllers);
    }
    return 0;
}

static void remove_bounds(const struct bounds *b) {
    for (int i = 0; i < b->at.n; i++) {
        int fd _cleanup_fd_ =
            b->made[i] ? open(b->at.hier[i].parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        if (fd >= 0)
            (void)cg_remove(fd, b->name, b->at.hier[i].version, REMOVE_MS);
    }
}

/* ------------------------------------------------------------------ inside */

/* With a route to everywhere that leads nowhere, so that an attempt to reach other machines is not stopped by the want
 * of one. */
static int set_up_net(struct err *err) {
    int fd _cleanup_fd_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    char dev[] = "lo";
    struct rtentry route = {.rt_flags = RTF_UP, .rt_dev = dev};

    route.rt_dst.sa_family = route.rt_genmask.sa_family = AF_INET;
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0 || ioctl(fd, SIOCADDRT, &route) < 0)
        return fault(err, -errno, "its loopback");
    return 0;
}

static int build(const struct bounds *b, const char *rootfs, bool root, struct err *err) {
    if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP) < 0)
        return fault(err, -errno, "namespaces");
    int r = move_to_leaf(b, err);
    if (r == 0)
        r = set_up_net(err);
    if (r == 0)
        r = outer_mounts(rootfs, root, &b->at, err);
    host_forget(); /* the cgroups are elsewhere now */
    return r;
}

/* ------------------------------------------------------------------ the keeper */

/* A user's own id, and no other, is the same inside. */
static int map_own_id(struct err *err) {
    uid_t uid = geteuid();
    gid_t gid = getegid();
    char text[64];

    if (unshare(CLONE_NEWUSER) < 0)
        return fault(err, -errno, "a user namespace");
    (void)snprintf(text, sizeof(text), "%u %u 1", (unsigned)uid, (unsigned)uid);
    int r = file_write_at(AT_FDCWD, "/proc/self/uid_map", text, strlen(text));
    if (r == 0)
        r = file_write_at(AT_FDCWD, "/proc/self/setgroups", "deny", 4);
    (void)snprintf(text, sizeof(text), "%u %u 1", (unsigned)gid, (unsigned)gid);
    if (r == 0)
        r = file_write_at(AT_FDCWD, "/proc/self/gid_map", text, strlen(text));
    return r < 0 ? fault(err, r, "its own id in a user namespace") : 0;
}

/* Until it ended, or the lifeline did: then at once in a box, since nothing outlives that, and in good order on the
 * host. */
static int watch(pid_t pid, int lifeline, bool box) {
    int fd _cleanup_fd_ = sys_pidfd_open(pid), status = 0;
    struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = lifeline, .events = POLLIN}};

    while (poll(p, 2, -1) < 0 && errno == EINTR)
        ;
    if (!p[0].revents) {
        if (!box)
            (void)poll(p, 1, GRACE_MS);
        (void)kill(pid, SIGKILL);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* With the status of what was inside. */
static _Noreturn void end_like(int status) {
    if (WIFSIGNALED(status)) {
        (void)signal(WTERMSIG(status), SIG_DFL);
        (void)kill(getpid(), WTERMSIG(status));
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 125);
}

struct setting {
    const char *rootfs;
    bool box, root;
    int lifeline;
};

/* Returns inside only. `go` is closed once this process is in its cgroup. */
static int first_inside(const struct setting *s, const struct bounds *b, int go, struct err *err) {
    char c;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setsid(); /* its process group has to have a number in its pid namespace */
    ssize_t n = read(go, &c, 1);
    (void)close(go);
    if (n != 1)
        return err_set(err, ERR_SETUP, -ECANCELED, "", REMEDY,
                       "the keeper of the lab's box is gone");
    return s->box ? build(b, s->rootfs, s->root, err) : 0;
}

/* In the keeper, which does not return but for an error; in its child, which goes on. */
static int keep(const struct setting *s, struct err *err) {
    struct bounds b = {.name = ""};
    int go[] = {-1, -1}, r = 0;

    (void)setsid(); /* the terminal's signals are for who called */
    if (s->box)
        r = make_bounds(&b, err);
    if (r == 0 && s->box && !s->root)
        r = map_own_id(err);
    if (r == 0 && s->box && unshare(CLONE_NEWPID) < 0)
        r = fault(err, -errno, "a pid namespace");
    if (r == 0 && pipe2(go, O_CLOEXEC) < 0)
        r = fault(err, -errno, "a pipe");
    pid_t pid = r == 0 ? fork() : -1;
    if (pid == 0) {
        fd_close(&go[1]);
        return first_inside(s, &b, go[0], err);
    }
    fd_close(&go[0]);
    if (r == 0 && pid < 0)
        r = fault(err, -errno, "a process");
    if (r == 0)
        r = move_in(&b, pid, err);
    if (r < 0) {
        fd_close(&go[1]);
        if (pid > 0 && kill(pid, SIGKILL) == 0)
            (void)waitpid(pid, NULL, 0);
        remove_bounds(&b);
        return r;
    }
    (void)fd_write_full(go[1], "g", 1);
    fd_close(&go[1]);
    int status = watch(pid, s->lifeline, s->box);
    remove_bounds(&b);
    end_like(status);
}

/* ------------------------------------------------------------------ outside */

int outer_start(const char *where, const char *rootfs, struct outer *ret, int *ret_stop,
                struct err *err) {
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return fault(err, -errno, "a pipe");
    struct setting s = {.rootfs = rootfs,
                        .box = strcmp(where, "box") == 0,
                        .root = geteuid() == 0,
                        .lifeline = ends[0]};
    (void)fflush(NULL); /* or what is buffered would be written twice */
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[1]);
        *ret_stop = ends[0];
        int r = keep(&s, err);
        return r < 0 ? r : 1;
    }
    (void)close(ends[0]);
    *ret = (struct outer){.keeper = pid, .lifeline = ends[1]};
    if (pid > 0)
        return 0;
    fd_close(&ret->lifeline);
    return fault(err, -errno, "a process");
}

int outer_wait(struct outer *o) {
    int status = 0;

    while (o->keeper > 0 && waitpid(o->keeper, &status, 0) < 0 && errno == EINTR)
        ;
    o->keeper = 0;
    fd_close(&o->lifeline);
    return status;
}

int outer_end(struct outer *o) {
    fd_close(&o->lifeline);
    return outer_wait(o);
}

int lab_outer_enter(const char *where, const char *rootfs, struct err *err) {
    struct outer o = OUTER_NONE;
    int stop = -1;
    int r = outer_start(where, rootfs, &o, &stop, err);

    if (r == 0)
        end_like(outer_wait(&o));
    return r < 0 ? r : 0;
}
