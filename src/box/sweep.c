/*
 * sweep.c: see sweep.h.
 */
#include "box/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "linux/procfs.h"

#include "base/banned.h"

enum { REMOVE_TIMEOUT_MS = 500, MAX_DEPTH = 32 };
enum { AT_LEAST = 64 }; /* on a host so busy that the time is up before anything is done */

/* One walk. A run that lives has a cgroup in every hierarchy, so who was just seen alive is not asked for again. */
struct sweep {
    const struct host *host;
    struct sweep_report *report;
    uint64_t until_ns; /* 0: as long as it takes */
    bool judge_foreign;
    uint64_t dead_pidns; /* the last namespace that was found to be */
    struct cg_owner alive[512];
};

static bool is_alive(struct sweep *s, const struct cg_owner *owner) {
    struct cg_owner *seen = &s->alive[(unsigned)owner->pid % ARRAY_LEN(s->alive)];

    if (seen->pid == owner->pid && seen->start_time == owner->start_time)
        return true;
    if (!proc_alive(owner->pid, owner->start_time))
        return false;
    *seen = *owner;
    return true;
}

/* Whole namespaces die with their init, as containers do. */
static bool is_dead_foreign(struct sweep *s, const struct cg_owner *owner) {
    if (!s->judge_foreign)
        return false;
    if (owner->pidns != s->dead_pidns && proc_pidns_alive(owner->pidns) == 0)
        s->dead_pidns = owner->pidns;
    return owner->pidns == s->dead_pidns;
}

static bool is_enough(const struct sweep *s) {
    return s->until_ns && s->report->found >= AT_LEAST && now_ns() >= s->until_ns;
}

static void consider(struct sweep *s, int parent, const char *name, int version) {
    struct sweep_report *report = s->report;
    unsigned wait_ms = REMOVE_TIMEOUT_MS;
    struct cg_owner owner;

    if (!cg_parse_name(name, &owner))
        return;
    bool foreign = owner.pidns != s->host->self.pidns;
    if (foreign && !is_dead_foreign(s, &owner)) {
        report->foreign++;
        return;
    }
    if (!foreign && is_alive(s, &owner)) {
        report->living++;
        return;
    }
    report->found++;
    if (s->until_ns) {
        uint64_t now = now_ns();
        wait_ms = now < s->until_ns ? (unsigned)((s->until_ns - now) / 1000000) : 0;
    }
    if (cg_remove(parent, name, version, wait_ms) == 0)
        report->removed++;
}

/* `depth` 0: this directory only. Takes the fd. */
static void sweep_dir(struct sweep *s, int fd, int version, int depth) {
    DIR *dir = fdopendir(fd);
    const struct dirent *entry;

    if (!dir) {
        (void)close(fd);
        return;
    }
    while (!is_enough(s) && (entry = readdir(dir))) {
        struct cg_owner owner;

        if (entry->d_name[0] == '.' || (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN))
            continue;
        if (cg_parse_name(entry->d_name, &owner)) {
            consider(s, dirfd(dir), entry->d_name, version);
        } else if (depth > 0) {
            int child =
                openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (child >= 0)
                sweep_dir(s, child, version, depth - 1);
        }
    }
    (void)closedir(dir);
}

void sweep_near(const struct host *host, unsigned limit_ms, struct sweep_report *report) {
    struct sweep s = {.host = host, .report = report};

    if (limit_ms)
        s.until_ns = now_ns() + limit_ms * UINT64_C(1000000);
    for (int i = 0; i < host->cg.n; i++) {
        int fd = open(host->cg.hier[i].parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0)
            sweep_dir(&s, fd, host->cg.hier[i].version, 0);
    }
}

/* The mount point above a hierarchy's parent: where the path stops being on the same file system. */
static void root_of(const char *parent, char *root, size_t size) {
    (void)str_copy(root, size, parent);
    if (strncmp(root, "/sys/fs/cgroup", 14) != 0)
        return;
    /* "/sys/fs/cgroup" itself on pure v2; "/sys/fs/cgroup/memory" where v1 is mounted below it. */
    if (faccessat(AT_FDCWD, "/sys/fs/cgroup/cgroup.procs", F_OK, 0) == 0) {
        root[14] = '\0';
        return;
    }
    char *slash = root[14] ? strchr(root + 15, '/') : NULL;
    if (slash)
        *slash = '\0';
}

void sweep_all(const struct host *host, struct sweep_report *report) {
    struct sweep s = {.host = host, .report = report, .judge_foreign = true};

    for (int i = 0; i < host->cg.n; i++) {
        char root[CG_PATH];

        root_of(host->cg.hier[i].parent, root, sizeof(root));
        int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0)
            sweep_dir(&s, fd, host->cg.hier[i].version, MAX_DEPTH);
    }
}
