/*
 * sweep.c: see sweep.h.
 */
#include "box/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "linux/procfs.h"

#include "base/banned.h"

enum { REMOVE_TIMEOUT_MS = 500, MAX_DEPTH = 32 };

static void consider(const struct host *host, int parent, const char *name, int version,
                     struct sweep_report *report) {
    struct cg_owner owner;

    if (!cg_parse_name(name, &owner) || owner.pidns != host->self.pidns)
        return;
    if (proc_alive(owner.pid, owner.start_time)) {
        report->living++;
        return;
    }
    report->found++;
    if (cg_remove(parent, name, version, REMOVE_TIMEOUT_MS) == 0)
        report->removed++;
}

/* `depth` 0: this directory only. Takes the fd. */
static void sweep_dir(const struct host *host, int fd, int version, int depth,
                      struct sweep_report *report) {
    DIR *dir = fdopendir(fd);
    const struct dirent *entry;

    if (!dir) {
        (void)close(fd);
        return;
    }
    while ((entry = readdir(dir))) {
        struct cg_owner owner;

        if (entry->d_name[0] == '.' || (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN))
            continue;
        if (cg_parse_name(entry->d_name, &owner)) {
            consider(host, dirfd(dir), entry->d_name, version, report);
        } else if (depth > 0) {
            int child =
                openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (child >= 0)
                sweep_dir(host, child, version, depth - 1, report);
        }
    }
    (void)closedir(dir);
}

void sweep_near(const struct host *host, struct sweep_report *report) {
    for (int i = 0; i < host->cg.n; i++) {
        int fd = open(host->cg.hier[i].parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0)
            sweep_dir(host, fd, host->cg.hier[i].version, 0, report);
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
    for (int i = 0; i < host->cg.n; i++) {
        char root[CG_PATH];

        root_of(host->cg.hier[i].parent, root, sizeof(root));
        int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0)
            sweep_dir(host, fd, host->cg.hier[i].version, MAX_DEPTH, report);
    }
}
