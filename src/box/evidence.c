/*
 * evidence.c: see evidence.h. In the child, so nothing here allocates, prints or locks.
 */
#include "box/evidence.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h> /* renameat */
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "linux/bpf.h"
#include "linux/procfs.h"
#include "linux/sys.h"

#include "base/banned.h"

/* ------------------------------------------------------------------ a place that only Landlock closes */

/* A tmpfs that is mounted nowhere: its files lie below no path, so no rule grants them. Without Landlock all of it may be
 * read and written by anyone who has the descriptor, which is this process only, and until execve. */
static int make_outside(void) {
    int fs _cleanup_fd_ = sys_fsopen("tmpfs");

    if (fs < 0 || sys_fsconfig(fs, FSCONFIG_SET_STRING, "mode", "777", 0) < 0 ||
        sys_fsconfig(fs, FSCONFIG_SET_STRING, "size", "65536", 0) < 0 ||
        sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -1;
    int dir = sys_fsmount(fs, MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    if (dir < 0)
        return -1;
    /* Modes by chmod, since the umask is still the caller's. */
    int file _cleanup_fd_ = -1;
    if (mkdirat(dir, "a", 0777) == 0 && mkdirat(dir, "b", 0777) == 0 &&
        fchmodat(dir, "a", 0777, 0) == 0 && fchmodat(dir, "b", 0777, 0) == 0)
        file = openat(dir, "a/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
    if (file < 0 || fchmod(file, 0666) < 0)
        fd_close(&dir);
    return dir;
}

/* A socket under an abstract name of the kernel's choice. It is from before Landlock, so outside. */
static int make_listener(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (sock >= 0 && bind(sock, (const void *)&address, sizeof(address.sun_family)) == 0 &&
        listen(sock, 1) == 0)
        return sock;
    fd_close(&sock);
    return -1;
}

void evidence_prepare(struct op_ctx *ctx) {
    ctx->outside = make_outside();
    ctx->outside_socket = make_listener();
}

static void tried(struct evidence *e, enum view_wall wall, long r, int refusal) {
    e->wall_tried |= (uint32_t)BIT(wall);
    if (r < 0 && (errno == refusal || (wall == WALL_REFER && errno == EXDEV)))
        e->wall_held |= (uint32_t)BIT(wall);
}

static void try_open(struct evidence *e, enum view_wall wall, int dir, const char *path,
                     int flags) {
    int fd = openat(dir, path, flags | O_CLOEXEC);

    tried(e, wall, fd, EACCES);
    fd_close(&fd);
}

static void try_truncate(struct evidence *e, int dir) {
    int back = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (back >= 0 && fchdir(dir) == 0) {
        tried(e, WALL_TRUNCATE, truncate("a/file", 0), EACCES);
        if (fchdir(back) < 0)
            e->wall_held = 0; /* never seen; but then nothing may run */
    }
    fd_close(&back);
}

static void try_connect(struct evidence *e, int listener) {
    struct sockaddr_un address;
    socklen_t len = sizeof(address);
    int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (sock >= 0 && getsockname(listener, (void *)&address, &len) == 0)
        tried(e, WALL_ABSTRACT, connect(sock, (const void *)&address, len), EPERM);
    fd_close(&sock);
}

static void read_walls(struct evidence *e, struct op_ctx *ctx) {
    int dir = ctx->outside;

    if (dir >= 0) {
        try_open(e, WALL_READ_DIR, dir, "a", O_RDONLY | O_DIRECTORY);
        try_open(e, WALL_READ_FILE, dir, "a/file", O_RDONLY);
        try_open(e, WALL_WRITE_FILE, dir, "a/file", O_WRONLY);
        try_truncate(e, dir);
        tried(e, WALL_MAKE_DIR, mkdirat(dir, "a/made", 0700), EACCES);
        tried(e, WALL_REFER, renameat(dir, "a/file", dir, "b/file"), EACCES);
        tried(e, WALL_REMOVE_FILE, unlinkat(dir, "a/file", 0), EACCES);
    }
    if (ctx->outside_socket >= 0)
        try_connect(e, ctx->outside_socket);
}

/* ------------------------------------------------------------------ what is read */

static const char *const ns_paths[NS__N] = {
    "/proc/self/ns/user", "/proc/self/ns/pid", "/proc/self/ns/mnt",    "/proc/self/ns/net",
    "/proc/self/ns/ipc",  "/proc/self/ns/uts", "/proc/self/ns/cgroup",
};

void evidence_namespaces(uint64_t ns[NS__N]) {
    struct stat st;

    for (int i = 0; i < NS__N; i++)
        ns[i] = stat(ns_paths[i], &st) == 0 ? st.st_ino : 0;
}

/* What does not fit whole is not there: half a list would hide what is in the other half. */
static void read_open(int fd, char *text, size_t size) {
    ssize_t n = fd < 0 ? -1 : fd_read_full(fd, text, size);

    text[n > 0 && (size_t)n < size ? n : 0] = '\0';
}

static void read_text(const char *path, char *text, size_t size) {
    int fd _cleanup_fd_ = open(path, O_RDONLY | O_CLOEXEC);

    read_open(fd, text, size);
}

/* Appends a word to a list; a list that is full says so. */
static void add_word(char *list, size_t size, const char *word, size_t len) {
    size_t at = strlen(list);

    if (at + len + 4 > size) {
        if (at + 2 < size && (at == 0 || list[at - 1] != '+'))
            memcpy(list + at, "+", 2);
        return;
    }
    if (at)
        list[at++] = ' ';
    memcpy(list + at, word, len);
    list[at + len] = '\0';
}

static bool is_ours(const struct op_ctx *ctx, int fd) {
    return fd == ctx->go || fd == ctx->outside || fd == ctx->outside_socket || fd == ctx->status;
}

/* The open descriptors as "0 1 2"; without opendir, which allocates. */
static void read_fds(struct evidence *e, const struct op_ctx *ctx) {
    struct entry {
        uint64_t ino;
        int64_t off;
        unsigned short len;
        unsigned char type;
        char name[];
    };
    char raw[2048] __attribute__((aligned(8)));
    int dir _cleanup_fd_ = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long n;

    e->fds[0] = '\0';
    while (dir >= 0 && (n = syscall(SYS_getdents64, dir, raw, sizeof(raw))) > 0) {
        for (long pos = 0; pos < n;) {
            const struct entry *entry = (const void *)(raw + pos);
            int fd = 0;

            pos += entry->len;
            if (entry->name[0] == '.')
                continue;
            for (const char *p = entry->name; *p; p++)
                fd = fd * 10 + (*p - '0');
            if (fd != dir && !is_ours(ctx, fd))
                add_word(e->fds, sizeof(e->fds), entry->name, strlen(entry->name));
        }
    }
    for (int i = 0; i < 3; i++) {
        struct stat st;
        bool there = fstat(i, &st) == 0;

        e->fd_mode[i] = there ? st.st_mode : 0;
        e->fd_ino[i] = there ? st.st_ino : 0;
    }
}

static uint64_t mount_id_of(const char *path) {
    struct statx x;

    return statx(AT_FDCWD, path, 0, STATX_MNT_ID, &x) == 0 && x.stx_mask & STATX_MNT_ID
               ? x.stx_mnt_id
               : 0;
}

static void read_mount(const char *path, struct view_mount *m) {
    struct statx x;
    struct statfs fs;

    *m = (struct view_mount){0};
    if (statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, STATX_BASIC_STATS | STATX_MNT_ID, &x) < 0 ||
        statfs(path, &fs) < 0) {
        m->error = errno;
        return;
    }
    *m = (struct view_mount){.id = (x.stx_mask & STATX_MNT_ID) ? x.stx_mnt_id : 0,
                             .bytes = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize,
                             .inodes = fs.f_files,
                             .major = x.stx_rdev_major,
                             .minor = x.stx_rdev_minor,
                             .is_char = S_ISCHR(x.stx_mode),
                             .is_regular = S_ISREG(x.stx_mode),
                             .mode = x.stx_mode & 07777u};
}

static void read_mounts(struct evidence *e) {
    const char *text = e->mountinfo;
    char line[2048];
    struct mount_info m;

    read_text("/proc/self/mountinfo", e->mountinfo, sizeof(e->mountinfo));
    for (e->n_mounts = 0;
         e->n_mounts < VIEW_MOUNTS && proc_next_mount(&text, line, sizeof(line), &m);)
        read_mount(m.target, &e->mount[e->n_mounts++]);
    e->root_mount = mount_id_of("/");
    e->up_mount = mount_id_of("/..");
}

/* The devices that /proc/self/net/dev lists, as far as they are up. */
static void read_interfaces(struct evidence *e) {
    char text[4096];
    int sock _cleanup_fd_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    e->interfaces_up[0] = '\0';
    read_text("/proc/self/net/dev", text, sizeof(text));
    for (const char *line = text; sock >= 0 && (line = strchr(line, '\n'));) {
        struct ifreq request = {.ifr_flags = 0};
        size_t blank = strspn(++line, " "), len = strcspn(line + blank, ":\n");

        if (line[blank + len] != ':' || len == 0 || len >= IFNAMSIZ)
            continue;
        memcpy(request.ifr_name, line + blank, len);
        if (ioctl(sock, SIOCGIFFLAGS, &request) == 0 && request.ifr_flags & IFF_UP)
            add_word(e->interfaces_up, sizeof(e->interfaces_up), line + blank, len);
    }
}

static uint64_t left_in_memory(uint64_t from, uint64_t to) {
    uint64_t n = 0;

    for (uint64_t at = from; from && at < to; at++)
        n += *(const char *)(uintptr_t)at != '\0'; // NOLINT(performance-no-int-to-ptr)
    return n;
}

static void read_environment(struct evidence *e, const struct plan *plan, const struct host *host) {
    e->host_bytes = left_in_memory(host->arg_start, host->arg_end) +
                    left_in_memory(host->env_start, host->env_end);
    e->env_hash = e->env_count = 0;
    e->env_names[0] = '\0';
    for (const char *const *entry = plan->envp; entry && *entry; entry++) {
        e->env_hash = view_hash(e->env_hash, *entry);
        e->env_count++;
        add_word(e->env_names, sizeof(e->env_names), *entry, strcspn(*entry, "="));
    }
}

void evidence_collect(struct evidence *e, const struct plan *plan, struct op_ctx *ctx) {
    struct utsname uts;

    evidence_namespaces(e->ns);
    read_text("/proc/self/stat", e->stat, sizeof(e->stat));
    read_text("/proc/self/uid_map", e->uid_map, sizeof(e->uid_map));
    read_text("/proc/self/gid_map", e->gid_map, sizeof(e->gid_map));
    read_text("/proc/self/limits", e->limits, sizeof(e->limits));
    read_text("/proc/self/cgroup", e->cgroup, sizeof(e->cgroup));
    read_text("/proc/sys/user/max_user_namespaces", e->max_user_namespaces,
              sizeof(e->max_user_namespaces));
    read_mounts(e);
    read_interfaces(e);
    read_fds(e, ctx);
    read_environment(e, plan, ctx->host);
    e->securebits = prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);
    e->session = (uint32_t)getsid(0);
    e->pgrp = (uint32_t)getpgrp();
    e->pid = (uint32_t)syscall(SYS_getpid);
    if (uname(&uts) == 0)
        (void)str_copy(e->hostname, sizeof(e->hostname), uts.nodename);
    if (syscall(SYS_getcwd, e->workdir, sizeof(e->workdir)) < 0)
        e->workdir[0] = '\0';
    read_walls(e, ctx);
    fd_close(&ctx->outside);
    fd_close(&ctx->outside_socket);
    ctx->status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
}

/* ------------------------------------------------------------------ the filter */

static void read_calls(struct evidence *e, const struct filter *filter) {
    const unsigned long ones = ~0ul;
    struct seccomp_data call = {.arch = SECCOMP_NATIVE_ARCH,
                                .args = {ones, ones, ones, ones, ones, ones}};

    for (int nr = 0; nr < VIEW_CALLS; nr++) {
        if (!(filter->sample[nr / 64] & BIT(nr % 64)))
            continue;
        call.nr = nr;
        uint32_t answer = bpf_run(filter->code, filter->len, &call) & SECCOMP_RET_ACTION_FULL;
        /* Another answer would hang or kill this process rather than tell it anything. */
        if (answer != SECCOMP_RET_ERRNO && answer != SECCOMP_RET_ALLOW && answer != SECCOMP_RET_LOG)
            continue;
        long r = syscall(nr, ones, ones, ones, ones, ones, ones);
        e->call[nr] = (int16_t)(r < 0 ? errno : 0);
    }
}

void evidence_filtered(struct evidence *e, const struct plan *plan, struct op_ctx *ctx) {
    const struct filter *filter = NULL;

    memset(e->call, 0xff, sizeof(e->call));
    for (size_t i = 0; i < plan->n_ops; i++)
        if (plan->ops[i].kind == OP_SECCOMP)
            filter = plan->ops[i].data;
    read_open(ctx->status, e->status, sizeof(e->status));
    fd_close(&ctx->status);
    if (filter)
        read_calls(e, filter);
}
