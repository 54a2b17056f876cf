/*
 * evidence.c: see evidence.h.
 */
#include "box/evidence.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

static const char *const ns_paths[NS__N] = {
    "/proc/self/ns/user", "/proc/self/ns/pid", "/proc/self/ns/mnt",    "/proc/self/ns/net",
    "/proc/self/ns/ipc",  "/proc/self/ns/uts", "/proc/self/ns/cgroup",
};

static void read_namespaces(uint64_t ns[NS__N]) {
    struct stat st;

    for (int i = 0; i < NS__N; i++)
        ns[i] = stat(ns_paths[i], &st) == 0 ? st.st_ino : 0;
}

static void read_text(const char *path, char *text, size_t size) {
    text[0] = '\0';
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = fd_read_full(fd, text, size - 1);
    text[n > 0 ? n : 0] = '\0';
    (void)close(fd);
}

/* The open descriptors as "0 1 2"; without opendir, which allocates. */
static void read_fds(char *out, size_t size, int hidden) {
    struct entry {
        uint64_t ino;
        int64_t off;
        unsigned short len;
        unsigned char type;
        char name[];
    };
    char raw[2048] __attribute__((aligned(8)));
    size_t at = 0;
    int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    out[0] = '\0';
    if (dir < 0)
        return;
    long n = syscall(SYS_getdents64, dir, raw, sizeof(raw));
    for (long pos = 0; pos < n;) {
        const struct entry *e = (const void *)(raw + pos);
        int fd = 0;

        pos += e->len;
        if (e->name[0] == '.')
            continue;
        for (const char *p = e->name; *p; p++)
            fd = fd * 10 + (*p - '0');
        size_t len = strlen(e->name);
        if (fd == hidden || fd == dir || at + len + 2 > size)
            continue;
        if (at)
            out[at++] = ' ';
        memcpy(out + at, e->name, len + 1);
        at += len;
    }
    (void)close(dir);
}

void evidence_collect(struct evidence *e, int hidden_fd) {
    read_namespaces(e->ns);
    read_text("/proc/self/status", e->status, sizeof(e->status));
    read_text("/proc/self/uid_map", e->uid_map, sizeof(e->uid_map));
    read_text("/proc/self/gid_map", e->gid_map, sizeof(e->gid_map));
    read_text("/proc/self/limits", e->limits, sizeof(e->limits));
    read_text("/proc/self/mountinfo", e->mountinfo, sizeof(e->mountinfo));
    read_fds(e->fds, sizeof(e->fds), hidden_fd);
    e->session = (uint32_t)getsid(0);
    e->pgrp = (uint32_t)getpgrp();
    e->pid = (uint32_t)syscall(SYS_getpid);
}

void evidence_view(const struct evidence *e, const struct plan *plan, const int *cgroup_fd,
                   struct view *ret) {
    *ret = (struct view){.status = e->status,
                         .mountinfo = e->mountinfo,
                         .uid_map = e->uid_map,
                         .gid_map = e->gid_map,
                         .limits = e->limits,
                         .fds = e->fds,
                         .session = e->session,
                         .pgrp = e->pgrp,
                         .pid = e->pid,
                         .cgroup_fd = cgroup_fd,
                         .plan = plan};
    memcpy(ret->ns, e->ns, sizeof(e->ns));
    read_namespaces(ret->host_ns);
}
