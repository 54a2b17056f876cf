/*
 * outer_mounts.c: the tree that the lab works in.
 *
 * The host's root is the lower layer of an overlay whose upper one is memory: a probe that has no mount namespace finds
 * the host's files where they are, may open them for writing as it might on the host, and changes nothing. What else is
 * mounted on the host is read-only, and what the kernel itself tells (/proc, /sys, /dev, cgroups) is of the new
 * namespaces. A user's mounts are locked together, so that no layer can be laid over them: his tree is read-only.
 */
#include "lab/outer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "lab/hostile.h"
#include "linux/sys.h"

#include "base/banned.h"

/* In the new mount namespace /tmp is where the tree is put together: the host's own is not seen any more by then. */
#define BASE "/tmp"
#define ROOT BASE "/root"
#define REMEDY "mayfly lab --where host does without, on the bare host"
#define TMP_OPTIONS "size=1g,nr_inodes=100k,mode=1777"

static int fault(struct err *err, const char *what) {
    return err_errno(err, ERR_SETUP, -errno, "", REMEDY, "the box around the lab: %s", what);
}

static int put(const char *type, const char *place, unsigned long flags, const char *options,
               struct err *err) {
    char target[4200], what[4300];

    (void)snprintf(target, sizeof(target), ROOT "%s", place);
    (void)mkdir(target, 0755);
    if (mount(type, target, type, flags | MS_NOSUID | MS_NOEXEC, options) == 0)
        return 0;
    (void)snprintf(what, sizeof(what), "mounting %s on %s", type, place);
    return fault(err, what);
}

static int read_only(int tree) {
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

    return sys_mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr);
}

static int tree_of(const char *path) {
    return sys_open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
}

static int attach(int tree, const char *target) {
    return sys_move_mount(tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH);
}

/* ------------------------------------------------------------------ the host's tree */

/* With file handles, where the file systems below have them: a probe asks for one. */
static bool overlay_root(bool handles) {
    int fs _cleanup_fd_ = sys_fsopen("overlay");

    (void)mkdir(BASE "/upper", 0755);
    (void)mkdir(BASE "/work", 0755);
    if (fs < 0 || (handles && sys_fsconfig(fs, FSCONFIG_SET_STRING, "nfs_export", "on", 0) < 0) ||
        (handles && sys_fsconfig(fs, FSCONFIG_SET_STRING, "index", "on", 0) < 0) ||
        sys_fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir", "/", 0) < 0 ||
        sys_fsconfig(fs, FSCONFIG_SET_STRING, "upperdir", BASE "/upper", 0) < 0 ||
        sys_fsconfig(fs, FSCONFIG_SET_STRING, "workdir", BASE "/work", 0) < 0 ||
        sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return false;
    int tree _cleanup_fd_ = sys_fsmount(fs, 0);
    return tree >= 0 && attach(tree, ROOT) == 0;
}

/* What of the host's mounts is not made anew. */
static bool is_carried(const char *path) {
    static const char *const own[] = {"/proc", "/sys", "/dev", "/tmp", "/run"};

    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        size_t n = strlen(own[i]);
        if (strncmp(path, own[i], n) == 0 && (path[n] == '\0' || path[n] == '/'))
            return false;
    }
    return path[0] == '/' && path[1];
}

/* mountinfo writes blanks and the like as \ooo. */
static void unescape(char *path) {
    char *out = path;

    for (const char *p = path; *p; out++) {
        if (p[0] == '\\' && p[1] && p[2] && p[3]) {
            *out = (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0'));
            p += 4;
        } else {
            *out = *p++;
        }
    }
    *out = '\0';
}

/* Each with all that is mounted below it, so those below are skipped; one that is gone or hidden is nobody's loss. */
static int carry_mounts(struct err *err) {
    char *text _cleanup_free_ = NULL, last[4096] = "", *save = NULL;
    size_t len = 0;
    int r = file_read_all_at(AT_FDCWD, "/proc/self/mountinfo", 8u << 20, &text, &len);

    if (r < 0)
        return err_errno(err, ERR_SETUP, r, "", REMEDY, "/proc/self/mountinfo");
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char path[4096], target[4200];
        size_t n = strlen(last);

        if (sscanf(line, "%*d %*d %*s %*s %4095s", path) != 1)
            continue;
        unescape(path);
        if (!is_carried(path) || (n && strncmp(path, last, n) == 0 && path[n] == '/'))
            continue;
        (void)str_copy(last, sizeof(last), path);
        (void)snprintf(target, sizeof(target), ROOT "%s", path);
        int tree _cleanup_fd_ = tree_of(path);
        if (tree >= 0 && read_only(tree) < 0)
            return fault(err, "making the host's mounts read-only (Linux 5.12)");
        if (tree >= 0)
            (void)attach(tree, target);
    }
    return 0;
}

/* The whole of it as it is, and read-only. */
static int bound_root(struct err *err) {
    int tree _cleanup_fd_ = tree_of("/");

    if (tree < 0 || read_only(tree) < 0)
        return fault(err, "the host's tree, read-only (Linux 5.12)");
    return attach(tree, ROOT) < 0 ? fault(err, "the host's tree") : 0;
}

/* ------------------------------------------------------------------ what is of the new namespaces */

static int bind_device(const char *name) {
    char from[64], to[64];

    (void)snprintf(from, sizeof(from), "/dev/%s", name);
    (void)snprintf(to, sizeof(to), ROOT "/dev/%s", name);
    int fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    fd_close(&fd);
    return mount(from, to, NULL, MS_BIND, NULL);
}

static int put_devices(struct err *err) {
    static const char *const devices[] = {"null", "zero", "full", "random", "urandom", "tty"};
    static const char *const links[][2] = {{"/proc/self/fd", "fd"},
                                           {"/proc/self/fd/0", "stdin"},
                                           {"/proc/self/fd/1", "stdout"},
                                           {"/proc/self/fd/2", "stderr"},
                                           {"pts/ptmx", "ptmx"}};
    char path[64];
    int r = mount("tmpfs", ROOT "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "size=1m,mode=755") < 0
                ? fault(err, "mounting tmpfs on /dev")
                : 0;

    for (size_t i = 0; r == 0 && i < ARRAY_LEN(devices); i++)
        if (bind_device(devices[i]) < 0)
            r = fault(err, devices[i]);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(links); i++) {
        (void)snprintf(path, sizeof(path), ROOT "/dev/%s", links[i][1]);
        if (symlink(links[i][0], path) < 0)
            r = fault(err, path);
    }
    if (r == 0)
        r = put("devpts", "/dev/pts", 0, "newinstance,ptmxmode=0666,mode=620,gid=5", NULL);
    if (r == -EINVAL) /* in a user namespace without the group tty */
        r = put("devpts", "/dev/pts", 0, "newinstance,ptmxmode=0666,mode=600", err);
    return r;
}

/* One mount for each hierarchy that boxes use, of which the lab's own cgroup is the top. */
static int put_hybrid(const struct cg_layout *cg, struct err *err) {
    int r = 0;
    char dir[64];

    for (int c = 0; r == 0 && c < CG__N; c++) {
        int hier = cg->where[c];
        if (hier >= 0 && cg->hier[hier].version == 1) {
            (void)snprintf(dir, sizeof(dir), "/sys/fs/cgroup/%s", cg_controller_names[c]);
            r = put("cgroup", dir, 0, cg_controller_names[c], err);
        }
    }
    return r == 0 ? put("cgroup2", "/sys/fs/cgroup/unified", 0, NULL, err) : r;
}

static int put_cgroups(const struct cg_layout *cg, struct err *err) {
    /* Not on the host's own, where a user still has that: the same file system is not mounted twice in one place. */
    int r = put("tmpfs", "/sys/fs/cgroup", 0, "size=1m,mode=755", err);

    if (r < 0)
        return r;
    for (int i = 0; i < cg->n; i++)
        if (cg->hier[i].version == 1)
            return put_hybrid(cg, err);
    return put("cgroup2", "/sys/fs/cgroup", 0, NULL, err);
}

static int put_kernels(bool root, const struct cg_layout *cg, struct err *err) {
    int r = put("tmpfs", "/tmp", 0, TMP_OPTIONS, err);

    /* Code on /tmp is executed by probes of what a box's own /tmp forbids. */
    if (r == 0 && mount(NULL, ROOT "/tmp", NULL, MS_REMOUNT | MS_BIND | MS_NODEV, NULL) < 0)
        r = fault(err, "/tmp");
    if (r == 0)
        r = put("tmpfs", "/run", MS_NODEV, "size=16m,mode=755", err); /* leases of ids */
    if (r == 0)
        r = put("proc", "/proc", 0, NULL, err);
    if (r == 0 && root)
        r = put_devices(err);
    if (r == 0)
        r = put("tmpfs", "/dev/shm", 0, TMP_OPTIONS, err);
    if (r == 0 && root)
        r = put("mqueue", "/dev/mqueue", 0, NULL, err);
    if (r == 0 && root)
        r = put("sysfs", "/sys", MS_RDONLY, NULL, err);
    if (r == 0 && (root || cg->n > 0))
        r = put_cgroups(cg, err);
    return r;
}

/* ------------------------------------------------------------------ all of it */

static void make_way(const char *path) {
    char target[4200];

    (void)snprintf(target, sizeof(target), ROOT "%s", path);
    for (char *p = target + strlen(ROOT) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        (void)mkdir(target, 0755);
        *p = '/';
    }
    (void)mkdir(target, 0755);
}

/* Probes start the program that takes images in, which where it lies below /tmp would be hidden. -1: it is not. */
static int programs_tree(char dir[PATH_MAX]) {
    const char *program = hostile_program();

    if (!program || is_carried(program))
        return -1;
    (void)str_copy(dir, PATH_MAX, program);
    *strrchr(dir, '/') = '\0';
    return tree_of(dir);
}

static int put_programs(int tree, const char *path, struct err *err) {
    char target[4200];

    if (tree < 0)
        return 0;
    (void)snprintf(target, sizeof(target), ROOT "%s", path);
    make_way(path);
    return read_only(tree) < 0 || attach(tree, target) < 0 ? fault(err, path) : 0;
}

/* Apart from the tree, so that it is what it is on the host: an overlay cannot be id-mapped. It is what boxes are made
 * of, so a probe that has no mount namespace opens its files for writing; root's therefore is writable. */
static int put_rootfs(int tree, const char *path, bool root, struct err *err) {
    char target[4200];

    (void)snprintf(target, sizeof(target), ROOT "%s", path);
    make_way(path);
    if ((!root && read_only(tree) < 0) || attach(tree, target) < 0)
        return fault(err, path);
    return 0;
}

/* A user's subordinate ids are not in the user namespace around the lab: boxes are to do without. */
static void hide_ids(void) {
    (void)mount("/dev/null", ROOT "/etc/subuid", NULL, MS_BIND, NULL);
    (void)mount("/dev/null", ROOT "/etc/subgid", NULL, MS_BIND, NULL);
}

static int enter(struct err *err) {
    if (chdir(ROOT) < 0 || sys_pivot_root(".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
        chdir("/") < 0)
        return fault(err, "entering its tree");
    return 0;
}

int outer_mounts(const char *rootfs, bool root, const struct cg_layout *cg, struct err *err) {
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return fault(err, "private mounts");
    char dir[PATH_MAX];
    int tree _cleanup_fd_ = tree_of(rootfs), programs _cleanup_fd_ = programs_tree(dir);
    if (tree < 0)
        return fault(err, rootfs);
    if (mount("tmpfs", BASE, "tmpfs", MS_NOSUID | MS_NODEV, "size=256m,mode=755") < 0 ||
        mkdir(ROOT, 0755) < 0)
        return fault(err, "a place in memory");
    bool layered = root && (overlay_root(true) || overlay_root(false));
    int r = layered ? carry_mounts(err) : bound_root(err);
    if (r == 0)
        r = put_kernels(root, cg, err);
    if (r == 0)
        r = put_programs(programs, dir, err);
    if (r == 0)
        r = put_rootfs(tree, rootfs, root, err);
    if (!root)
        hide_ids();
    return r == 0 ? enter(err) : r;
}
