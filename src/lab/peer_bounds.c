/*
 * peer_bounds.c: see peer_bounds.h.
 *
 * On v1 a runtime makes its cgroup below that of who calls it, so it is bounded there. On v2 a cgroup with processes
 * passes no controllers on: there the caller is in a leaf beside, and the runtime is told where to make its own.
 */
#include "lab/peer_bounds.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "linux/host.h"

#include "base/banned.h"

/* Far above what any probe takes where nothing stops it, far below what would hurt the machine. */
static const struct cg_limits limits = {
    .memory_bytes = UINT64_C(768) << 20, .cpu_milli = 2000, .pids = 400};

enum { KILL_MS = 3000 };
static const char tree[] = "/sys/fs/cgroup";

static int write_limits(int version, unsigned controllers, int dirfd) {
    for (int c = 0; c < CG__N; c++) {
        struct cg_setting settings[CG_SETTINGS];
        int n = controllers & BIT(c)
                    ? cg_settings(version, (enum cg_controller)c, &limits, settings)
                    : 0;

        for (int i = 0; i < n; i++) {
            int r = file_write_at(dirfd, settings[i].file, settings[i].value,
                                  strlen(settings[i].value));
            if (r == -EINVAL && c == CG_CPU) /* v1: what is above allows less already */
                continue;
            if (r < 0 && !(settings[i].optional && r == -ENOENT))
                return r;
        }
    }
    return 0;
}

/* Of the wanted controllers each that can be passed on; what cannot is not needed by who is in the leaf. */
static void pass_on(int dirfd, unsigned controllers) {
    char word[24];

    for (int c = 0; c < CG__N; c++)
        if (controllers & BIT(c) & ~BIT(CG_ACCT)) {
            int n = snprintf(word, sizeof(word), "+%s", cg_controller_names[c]);
            (void)file_write_at(dirfd, "cgroup.subtree_control", word, (size_t)n);
        }
}

static int open_dir(int at, const char *name) {
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

static int make_in(struct bounds *b, const struct cg_hier *h) {
    int i = b->n, own, r;

    b->hier[i].own = b->hier[i].enter = -1;
    b->hier[i].version = h->version;
    b->hier[i].parent = open_dir(AT_FDCWD, h->parent);
    if (b->hier[i].parent < 0)
        return b->hier[i].parent;
    b->n++;
    if (h->version == 2)
        pass_on(b->hier[i].parent, h->enable);
    if (mkdirat(b->hier[i].parent, b->name, 0755) < 0)
        return -errno;
    own = b->hier[i].own = open_dir(b->hier[i].parent, b->name);
    if (own < 0)
        return own;
    r = write_limits(h->version, h->controllers, own);
    if (r == 0 && h->version == 2) {
        pass_on(own, h->controllers);
        r = mkdirat(own, "caller", 0755) < 0 ? -errno : 0;
    }
    if (r < 0)
        return r;
    b->hier[i].enter = open_dir(own, h->version == 2 ? "caller" : ".");
    return MIN(b->hier[i].enter, 0);
}

int bounds_make(struct bounds *ret, struct err *err) {
    const unsigned wanted = BIT(CG_MEMORY) | BIT(CG_CPU) | BIT(CG_PIDS);
    const struct host *host = host_facts();
    uint32_t random = 0;

    *ret = (struct bounds){0};
    if (!host)
        return err_errno(err, ERR_INTERNAL, -errno, "", NULL, "the facts of this host");
    while (random == 0) /* 0 is the name of a supervisor's leaf */
        if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
            random = (uint32_t)now_ns();
    cg_name(&host->self, random, ret->name);
    for (int i = 0; i < host->cg.n; i++) {
        const struct cg_hier *h = &host->cg.hier[i];
        if (!(h->controllers & wanted))
            continue;
        int r = make_in(ret, h);
        if (r < 0) {
            bounds_end(ret);
            return err_errno(err, ERR_SETUP, r, "", "as root, or in a cgroup that was delegated",
                             "bounds for a peer: a cgroup below %s", h->parent);
        }
        if (h->version == 2 && strncmp(h->parent, tree, strlen(tree)) == 0)
            (void)snprintf(ret->v2, sizeof(ret->v2), "%.400s/%.90s", h->parent + strlen(tree),
                           ret->name);
    }
    return 0;
}

int bounds_enter(const struct bounds *b) {
    for (int i = 0; i < b->n; i++) {
        int r = file_write_at(b->hier[i].enter, "cgroup.procs", "0", 1);
        if (r < 0)
            return r;
    }
    return 0;
}

/* A runtime that places its cgroups itself does it at one path in every hierarchy of v1. */
static void sweep(const char *name) {
    DIR *d = opendir(tree);
    const struct dirent *e;

    while (d && (e = readdir(d))) {
        int dir = e->d_name[0] == '.' || e->d_type != DT_DIR ? -1 : open_dir(dirfd(d), e->d_name);
        if (dir >= 0)
            (void)cg_remove(dir, name, 1, KILL_MS);
        fd_close(&dir);
    }
    if (d)
        (void)closedir(d);
}

void bounds_end(struct bounds *b) {
    for (int i = b->n - 1; i >= 0; i--) {
        fd_close(&b->hier[i].enter);
        fd_close(&b->hier[i].own);
        (void)cg_remove(b->hier[i].parent, b->name, b->hier[i].version, KILL_MS);
        fd_close(&b->hier[i].parent);
    }
    b->n = 0;
    if (b->name[0])
        sweep(b->name);
}
