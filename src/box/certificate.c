/*
 * certificate.c: see certificate.h.
 */
#include "box/certificate.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "control/control.h"
#include "linux/procfs.h"
#include "linux/sys.h"

#include "base/banned.h"

enum { THINGS = 16, DEVICES = 16, PATIENCE_MS = 500, TEXT_LIMIT = 16 << 20 };

static const char *const ns_names[NS__N] = {"user", "pid", "mnt", "net", "ipc", "uts", "cgroup"};

struct thing {
    dev_t dev;
    ino_t ino;
};
struct remembered {
    uint64_t ns[NS__N];
    int pin[NS__N]; /* -1: not ours to open */
    bool pinned;    /* all of them */
    uint64_t end;   /* clock ticks since boot at the box's end */
    struct thing thing[THINGS];
    size_t n_things;
    unsigned device[DEVICES][2]; /* major, minor of its own file systems */
    size_t n_devices;
    struct idmap_extent ids[IDMAP_EXTENTS];
    int n_ids;
    uint64_t temp_bytes;
};

/* ------------------------------------------------------------------ while the box is parked */

static void remember_fd(struct remembered *r, int fd) {
    struct stat st;

    if (fd >= 0 && r->n_things < THINGS && fstat(fd, &st) == 0)
        r->thing[r->n_things++] = (struct thing){st.st_dev, st.st_ino};
}

static bool has_device(const char *mountinfo, unsigned major, unsigned minor) {
    char line[2048];
    struct mount_info m;

    while (proc_next_mount(&mountinfo, line, sizeof(line), &m))
        if (m.major == major && m.minor == minor)
            return true;
    return false;
}

/* File systems that are mounted in the box and not here. */
static void remember_devices(struct remembered *r, const char *inside, const char *outside) {
    char line[2048];
    struct mount_info m;

    while (r->n_devices < DEVICES && proc_next_mount(&inside, line, sizeof(line), &m)) {
        if (has_device(outside, m.major, m.minor))
            continue;
        r->device[r->n_devices][0] = m.major;
        r->device[r->n_devices++][1] = m.minor;
    }
}

static uint64_t bytes_in(const char *path) {
    DIR *dir = opendir(path);
    const struct dirent *entry;
    uint64_t bytes = 0;

    while (dir && (entry = readdir(dir))) {
        struct stat st;
        if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode))
            bytes += (uint64_t)st.st_size;
    }
    if (dir)
        (void)closedir(dir);
    return bytes;
}

static void pin(const struct box *box, struct remembered *r) {
    r->pinned = true;
    for (int i = 0; i < NS__N; i++) {
        char path[64];
        struct stat st;

        (void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)box->ctx.init, ns_names[i]);
        r->pin[i] = open(path, O_RDONLY | O_CLOEXEC);
        if (r->pin[i] < 0 || fstat(r->pin[i], &st) < 0 || st.st_ino != r->ns[i])
            r->pinned = false;
    }
}

int certificate_remember(const struct box *box, struct remembered **ret) {
    const struct idmap_facts *ids = &box->ctx.host->ids;
    struct remembered *r = calloc(1, sizeof(*r));
    char *outside _cleanup_free_ = NULL;
    const int fds[] = {box->in, box->out, box->err, box->report, box->go};

    if (!r)
        return -ENOMEM;
    memcpy(r->ns, box->evidence->ns, sizeof(r->ns));
    pin(box, r);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        remember_fd(r, fds[i]);
    for (int i = 0; i < CG_HIERS; i++)
        remember_fd(r, box->ctx.cgroup[i].dir);
    if (file_read_all_at(AT_FDCWD, "/proc/self/mountinfo", TEXT_LIMIT, &outside, NULL) == 0)
        remember_devices(r, box->evidence->mountinfo, outside);
    r->n_ids = idmap_extents(ids, box->ctx.lease, box->plan->policy->uid, false, r->ids);
    r->temp_bytes = bytes_in(ids->lock_dir);
    *ret = r;
    return 0;
}

void certificate_forget(struct remembered *r) {
    for (int i = 0; r && i < NS__N; i++)
        fd_close(&r->pin[i]);
    free(r);
}

/* ------------------------------------------------------------------ once it is gone */

/* "net:[4026532184]": which of the box's namespaces that is, as a bit; 0: none. */
static unsigned ns_bit(const struct remembered *r, const char *link) {
    for (int i = 0; i < NS__N; i++) {
        size_t len = strlen(ns_names[i]);
        if (r->ns[i] && strncmp(link, ns_names[i], len) == 0 && strncmp(link + len, ":[", 2) == 0 &&
            strtoull(link + len + 2, NULL, 10) == r->ns[i])
            return (unsigned)BIT(i);
    }
    return 0;
}

static ssize_t read_link(int dir, const char *name, char *link, size_t size) {
    ssize_t n = readlinkat(dir, name, link, size - 1);

    link[n > 0 ? n : 0] = '\0';
    return n < 0 ? -errno : n;
}

/* A descriptor that the box still holds in its own right is not left behind: box_close will close it. */
static bool in_ledger(const struct box *box, const struct remembered *r, int fd) {
    const int held[] = {box->pidfd,  box->report,        box->go,           box->in,
                        box->out,    box->err,           box->code,         box->listener,
                        box->cancel, box->ctx.oom_event, box->ctx.lease_fd, box->ctx.userns_fd};

    for (size_t i = 0; i < ARRAY_LEN(held); i++)
        if (held[i] == fd)
            return true;
    for (int i = 0; i < NS__N; i++)
        if (r->pin[i] == fd)
            return true;
    return false;
}

/* An id of the box's that nobody else on the host may have as long as we hold its lease. */
static bool is_box_id(const struct box *box, const struct remembered *r, uint32_t id) {
    if (box->ctx.host->ids.kind == IDMAP_SINGLE || id == box->ctx.host->ids.uid)
        return false;
    for (int i = 0; i < r->n_ids; i++)
        if (id >= r->ids[i].outside && id - r->ids[i].outside < r->ids[i].count)
            return true;
    return false;
}

/* The namespaces that descriptors of a process hold. */
static unsigned held_by_fds(const struct box *box, const struct remembered *r, int proc, bool own) {
    int fd = openat(proc, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    unsigned held = 0;
    char link[64];

    if (!dir) {
        fd_close(&fd);
        return 0;
    }
    while ((entry = readdir(dir)))
        if (!(own && in_ledger(box, r, (int)strtol(entry->d_name, NULL, 10))) &&
            read_link(fd, entry->d_name, link, sizeof(link)) > 0)
            held |= ns_bit(r, link);
    (void)closedir(dir);
    return held;
}

static void look_at_process(const struct box *box, const struct remembered *r, int all, pid_t pid,
                            const char *name, struct certificate *c, unsigned *held) {
    int proc _cleanup_fd_ = openat(all, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct proc_stat stat;
    struct stat dir;
    char path[16], link[64];
    unsigned in = 0;

    if (proc < 0)
        return;
    /* A number that is free again may be another's by now; but not one's who was there before the end. */
    if (!r->pinned && (proc_read_stat(pid, &stat) < 0 || stat.start_time > r->end))
        return;
    for (int i = 0; i < NS__N; i++) {
        (void)snprintf(path, sizeof(path), "ns/%s", ns_names[i]);
        if (read_link(proc, path, link, sizeof(link)) > 0)
            in |= ns_bit(r, link);
    }
    /* The directory's owner is the effective id, of a process that may not be looked into too (proc(5)). */
    bool ids = fstat(proc, &dir) == 0 && is_box_id(box, r, dir.st_uid);
    c->processes += (in & BIT(NS_PID)) || ids;
    *held |= in | held_by_fds(box, r, proc, pid == getpid());
}

static void count_processes(const struct box *box, const struct remembered *r,
                            struct certificate *c, unsigned *held) {
    DIR *dir = opendir("/proc");
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0)
            look_at_process(box, r, dirfd(dir), pid, entry->d_name, c, held);
    }
    if (!dir)
        c->processes = UINT64_MAX;
    else
        (void)closedir(dir);
}

static void count_mounts(const struct remembered *r, struct certificate *c, unsigned *held) {
    char *text _cleanup_free_ = NULL;
    char line[2048];
    struct mount_info m;

    if (file_read_all_at(AT_FDCWD, "/proc/self/mountinfo", TEXT_LIMIT, &text, NULL) < 0) {
        c->mounts = UINT64_MAX;
        return;
    }
    for (const char *p = text; proc_next_mount(&p, line, sizeof(line), &m);) {
        unsigned ns = strcmp(m.fstype, "nsfs") == 0 ? ns_bit(r, m.root) : 0;
        bool own = false;

        for (size_t i = 0; i < r->n_devices; i++)
            own |= m.major == r->device[i][0] && m.minor == r->device[i][1];
        c->mounts += ns || own;
        *held |= ns;
    }
}

static void count_cgroups(const struct box *box, struct certificate *c) {
    for (int i = 0; i < box->ctx.host->cg.n; i++) {
        char path[CG_PATH + CG_NAME + 2];

        (void)snprintf(path, sizeof(path), "%s/%s", box->ctx.host->cg.hier[i].parent,
                       box->ctx.cgroup_name);
        c->cgroups += faccessat(AT_FDCWD, path, F_OK, 0) == 0;
    }
}

static void count_fds(const struct box *box, const struct remembered *r, struct certificate *c) {
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        int fd = (int)strtol(entry->d_name, NULL, 10);
        struct stat st;

        if (entry->d_name[0] == '.' || in_ledger(box, r, fd) || fstat(fd, &st) < 0)
            continue;
        for (size_t i = 0; i < r->n_things; i++)
            if (st.st_dev == r->thing[i].dev && st.st_ino == r->thing[i].ino) {
                c->fds++;
                break;
            }
    }
    if (!dir)
        c->fds = UINT64_MAX;
    else
        (void)closedir(dir);
}

static const struct {
    const char *file;
    int creator; /* column, from 0 */
} ipc_lists[] = {{"/proc/sysvipc/shm", 9}, {"/proc/sysvipc/msg", 9}, {"/proc/sysvipc/sem", 6}};

/* Objects in our own namespace that an id of the box's made. */
static uint64_t ipc_here(const struct box *box, const struct remembered *r) {
    uint64_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(ipc_lists); i++) {
        char *text _cleanup_free_ = NULL, *line, *rest;

        if (file_read_all_at(AT_FDCWD, ipc_lists[i].file, TEXT_LIMIT, &text, NULL) < 0)
            continue;
        rest = text;
        (void)strsep(&rest, "\n"); /* the heading */
        while ((line = strsep(&rest, "\n"))) {
            char *word = NULL, *words = line;
            int column = -1;
            while (column < ipc_lists[i].creator && words) {
                word = strsep(&words, " ");
                column += *word != '\0';
            }
            n += word && column == ipc_lists[i].creator &&
                 is_box_id(box, r, (uint32_t)strtoul(word, NULL, 10));
        }
    }
    return n;
}

/* In a child of a program that may have threads: no malloc, no stdio. */
static _Noreturn void list_ipc(int ns) {
    unsigned n = 0;

    if (setns(ns, CLONE_NEWIPC) < 0)
        _exit(255);
    for (size_t i = 0; i < ARRAY_LEN(ipc_lists); i++) {
        char text[4096];
        int fd = open(ipc_lists[i].file, O_RDONLY | O_CLOEXEC);
        ssize_t len;
        unsigned lines = 0;

        while ((len = read(fd, text, sizeof(text))) > 0)
            for (ssize_t at = 0; at < len; at++)
                lines += text[at] == '\n';
        n += lines ? lines - 1 : 0; /* the heading */
    }
    _exit((int)MIN(n, 254u));
}

/* The objects in a namespace that lives on. */
static uint64_t ipc_in(int ns) {
    struct clone_args args = {.flags = CLONE_CLEAR_SIGHAND};
    pid_t pid = ns < 0 ? -1 : sys_clone3(&args, sizeof(args));
    int status = 0;

    if (pid == 0)
        list_ipc(ns);
    while (pid > 0 && waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
        ;
    bool known = pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) != 255;
    return known ? (uint64_t)WEXITSTATUS(status) : UINT64_MAX;
}

static void count(const struct box *box, const struct remembered *r, struct certificate *c) {
    uint64_t now = bytes_in(box->ctx.host->ids.lock_dir);
    unsigned held = 0;

    *c = (struct certificate){.temp_bytes = now > r->temp_bytes ? now - r->temp_bytes : 0};
    count_processes(box, r, c, &held);
    count_mounts(r, c, &held);
    count_cgroups(box, c);
    count_fds(box, r, c);
    c->namespaces = (uint64_t)__builtin_popcount(held);
    c->ipc_objects = (held & BIT(NS_IPC)) ? ipc_in(r->pin[NS_IPC]) : ipc_here(box, r);
}

void certificate_count(const struct box *box, struct remembered *r, struct certificate *ret) {
    uint64_t until = now_ns() + (uint64_t)PATIENCE_MS * 1000000u;
    struct timespec boot, pause = {0, 500000};

    (void)clock_gettime(CLOCK_BOOTTIME, &boot);
    uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK);
    r->end = (uint64_t)boot.tv_sec * ticks + (uint64_t)boot.tv_nsec * ticks / 1000000000u;
    for (;;) {
        count(box, r, ret);
        if (!(ret->processes | ret->cgroups | ret->mounts | ret->namespaces | ret->ipc_objects |
              ret->temp_bytes | ret->fds) ||
            now_ns() >= until)
            return;
        (void)nanosleep(&pause, NULL);
        pause.tv_nsec = MIN(pause.tv_nsec * 2, 64000000);
    }
}
