/*
 * probes_files.c: the host's files: reaching them, changing them, filling the disk.
 *
 * Landlock lets the box write below /tmp, and that is where the canaries are: so for those it is no
 * second wall, and is not named.
 */
#include "lab/families.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "lab/scratch.h"

#include "base/banned.h"

/* The canary's path as argv[1]. */
static bool name_secret(struct attempt *a, struct finding_of *f UNUSED) {
    lab_arg(a, "%.200s/canary/secret", a->dir);
    return true;
}

/* A root that lies where the box may write, below /tmp or /home, shows nothing: another directory stands in for it. */
static bool stand_in_image(struct attempt *a, struct finding_of *f, char root[PATH_MAX]) {
    char path[PATH_MAX];

    (void)str_copy(a->tmp_dir, sizeof(a->tmp_dir), "/run/mayfly-lab-XXXXXX");
    if (!mkdtemp(a->tmp_dir)) {
        a->tmp_dir[0] = '\0';
        return lab_untestable(
            f, "the rootfs lies where a box may write, and nothing can stand in for it: %s",
            errno_words(-errno));
    }
    (void)snprintf(path, sizeof(path), "%.3900s/etc", a->tmp_dir);
    bool made = chmod(a->tmp_dir, 0755) == 0 && mkdir(path, 0755) == 0;
    (void)snprintf(path, sizeof(path), "%.3900s/etc/passwd", a->tmp_dir);
    int fd = made ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644) : -1;
    if (fd < 0)
        return lab_untestable(f, "%.100s: %s", path, errno_words(-errno));
    (void)close(fd);
    (void)str_copy(root, PATH_MAX, a->tmp_dir);
    return true;
}

/* argv[1]: a file of the image's, wherever the image is. */
static bool image_file(struct attempt *a, struct finding_of *f) {
    const char *rootfs = getenv("MAYFLY_ROOTFS");
    char root[PATH_MAX];

    if (!rootfs || !realpath(rootfs, root))
        return lab_untestable(f, "no rootfs");
    bool shows_nothing = strncmp(root, "/tmp/", 5) == 0 || strncmp(root, "/home/", 6) == 0;
    if (lab_off(a, "mount") && shows_nothing && !stand_in_image(a, f, root))
        return false;
    lab_arg(a, "%.230s/etc/passwd", lab_off(a, "mount") ? root : "");
    lab_set(a, "user", "0");
    return true;
}

/* ------------------------------------------------------------------ FS2, FS3 */

/* argv[1]: the flags to give the root, none; but the host's own root is given those that it has. */
static bool root_flags(struct attempt *a, struct finding_of *f) {
    static const struct {
        unsigned long of_statvfs, of_mount;
    } flags[] = {{ST_RDONLY, MS_RDONLY},    {ST_NOSUID, MS_NOSUID},
                 {ST_NODEV, MS_NODEV},      {ST_NOEXEC, MS_NOEXEC},
                 {ST_NOATIME, MS_NOATIME},  {ST_NODIRATIME, MS_NODIRATIME},
                 {ST_RELATIME, MS_RELATIME}};
    struct statvfs root = {0};
    unsigned long same = 0;

    if (lab_off(a, "mount") && statvfs("/", &root) < 0)
        return lab_untestable(f, "statvfs /: errno %d", errno);
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        same |= root.f_flag & flags[i].of_statvfs ? flags[i].of_mount : 0;
    lab_arg(a, "%lu", lab_off(a, "mount") ? same : 0);
    return true;
}

/* argv[1]: a mount to take away where the box has none on /proc: of the host's mounts, only one that was made for it. */
static bool make_mount(struct attempt *a, struct finding_of *f) {
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%.3000s/canary/mount-here", a->dir);
    if (!lab_off(a, "mount"))
        lab_arg(a, "/mnt");
    else if (mount("none", path, "tmpfs", 0, "size=4k") < 0)
        return lab_untestable(f, "mount: errno %d", errno);
    else
        lab_arg(a, "%.250s", path);
    return true;
}

/* A directory for output, handed in writable: argv[1] is where the payload sees it, argv[2] a canary. */
static bool hand_in(struct attempt *a, struct finding_of *f) {
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/out", a->dir);
    if (mkdir(path, 0700) < 0 || chmod(path, 0777) < 0)
        return lab_untestable(f, "mkdir %.100s: errno %d", path, errno);
    if (!lab_off(a, "mount"))
        lab_set(a, "volume", "%s:/opt:rw", path);
    lab_arg(a, "%.250s", lab_off(a, "mount") ? path : "/opt");
    lab_arg(a, "%.200s/canary/open", a->dir);
    return true;
}

/* ------------------------------------------------------------------ FS8 */

/* What name_to_handle_at(2) says of the canary; argv[1] its type, argv[2] its bytes. */
static bool take_handle(struct attempt *a, struct finding_of *f) {
    union {
        struct file_handle handle;
        char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } u;
    char path[PATH_MAX], hex[2 * MAX_HANDLE_SZ + 1] = "";
    int mount_id = 0;

    memset(&u, 0, sizeof(u));
    u.handle.handle_bytes = MAX_HANDLE_SZ;
    (void)snprintf(path, sizeof(path), "%s/canary/secret", a->dir);
    if (name_to_handle_at(AT_FDCWD, path, &u.handle, &mount_id, 0) < 0)
        return lab_untestable(f, "name_to_handle_at: errno %d: this file system has no handles",
                              errno);
    for (unsigned i = 0; i < u.handle.handle_bytes; i++)
        (void)snprintf(hex + (size_t)2 * i, 3, "%02x", u.handle.f_handle[i]);
    lab_arg(a, "%d", u.handle.handle_type);
    lab_arg(a, "%s", hex);
    lab_arg(a, "%s", a->box);
    return true;
}

/* ------------------------------------------------------------------ FS9b */

/* A process of the host's, whose root is the host's. */
static bool start_process(struct attempt *a, struct finding_of *f) {
    a->pid[0] = fork();
    if (a->pid[0] < 0)
        return lab_untestable(f, "fork: errno %d", errno);
    if (a->pid[0] == 0) {
        for (;;)
            (void)pause();
    }
    lab_arg(a, "%d", (int)a->pid[0]);
    lab_arg(a, "%.200s/canary/secret", a->dir);
    return true;
}

/* ------------------------------------------------------------------ FS10 */

static bool name_mount_point(struct attempt *a, struct finding_of *f UNUSED) {
    lab_arg(a, "%.200s/canary/mount-here", a->dir);
    return true;
}

/* The host's own table says whether the mount came out. */
static void find_mount(struct attempt *a, struct finding_of *f) {
    const char *const places[] = {"canary/mount-here", "box"};
    bool out = false;

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        char path[PATH_MAX], up[PATH_MAX];
        struct stat here, above;

        (void)snprintf(path, sizeof(path), "%s/%s", a->dir, places[i]);
        (void)snprintf(up, sizeof(up), "%s/%s/..", a->dir, places[i]);
        while (stat(path, &here) == 0 && stat(up, &above) == 0 && here.st_dev != above.st_dev) {
            out = true;
            if (umount2(path, MNT_DETACH) < 0)
                break;
        }
    }
    if (out)
        lab_found(f, VERDICT_THROUGH, "mount", "", "the host has the mount");
    else if (f->verdict == VERDICT_THROUGH)
        lab_found(f, VERDICT_STOPPED, "mount", "private", "the mount stayed in the box");
}

/* ------------------------------------------------------------------ FS11 */

enum { FILL_MIB = 48, MEMORY_MIB = 32 };

static bool small_tmp(struct attempt *a, struct finding_of *f) {
    lab_arg(a, "%d", (int)FILL_MIB);
    lab_set(a, "memory", "%dm", (int)MEMORY_MIB);
    lab_set(a, "tmp-size", "1m");
    return lab_tmp_in_memory(a, f, FILL_MIB);
}

static bool few_inodes(struct attempt *a, struct finding_of *f UNUSED) {
    lab_set(a, "tmp-inodes", "64");
    return true;
}

/* ------------------------------------------------------------------ FS14 */

static bool box_with_scratch(struct attempt *a, struct finding_of *f UNUSED) {
    lab_arg(a, "%.200s/scratch-%d", lab_tmp(a), (int)getpid());
    return lab_beside(a,
                      "open(sys.argv[1], 'w').write('secret')\n"
                      "stay()\n",
                      a->arg[0]);
}

/* ------------------------------------------------------------------ FS15, FS16 */

static bool hand_in_to_read(struct attempt *a, struct finding_of *f) {
    if (scratch_file(a, "handed", "mayfly-canary\n", 14, 0666) < 0)
        return lab_untestable(f, "a file to hand in cannot be made");
    lab_arg(a, "%.200s/handed", a->box);
    return true;
}

/* A device's node does what its numbers say wherever it lies, unless the mount says nodev; that of zeros is harmless. The
 * scratch directory's own mount says so in the box around the lab, so the node gets one that does not. */
static bool hand_in_device(struct attempt *a, struct finding_of *f) {
    char dir[PATH_MAX], path[PATH_MAX];

    (void)snprintf(dir, sizeof(dir), "%.3800s/box/devices", a->dir);
    (void)snprintf(path, sizeof(path), "%.3900s/zero", dir);
    a->mounted = true;
    if (mkdir(dir, 0755) < 0 || mount("none", dir, "tmpfs", MS_NOSUID | MS_NOEXEC, "size=4k") < 0 ||
        mknod(path, S_IFCHR | 0666, (dev_t)makedev(1, 5)) < 0 || chmod(path, 0666) < 0)
        return lab_untestable(f, "a device's node cannot be made here: %s", errno_words(-errno));
    lab_arg(a, "%.200s/devices/zero", a->box);
    return true;
}

/* An image with more in its /dev than a box should have; where the host's is all there is, that has more. */
static bool image_with_devices(struct attempt *a, struct finding_of *f) {
    int r = scratch_rootfs(a);

    if (r == 0)
        r = scratch_file(a, "rootfs/dev/planted", "mayfly-canary\n", 14, 0666);
    if (r < 0)
        return lab_untestable(f, "a rootfs cannot be made: errno %d", -r);
    lab_set(a, "rootfs", "%s/box/rootfs", a->dir);
    lab_arg(a, "/dev/planted");
    lab_arg(a, "/dev/ptmx");
    lab_arg(a, "/dev/kmsg");
    return true;
}

/* ------------------------------------------------------------------ the table */

#define READ_SECRET                                                                                \
    "def read(path):\n"                                                                            \
    "    with open(path) as file:\n"                                                               \
    "        if not file.read().startswith('mayfly-canary'):\n"                                    \
    "            raise OSError(errno.ENOENT, 'another file')\n"

const struct probe probes_files[] = {
    {
        .id = "FS1",
        .title = "write to a file of the image's, as its owner",
        .family = "files",
        .stopped_by = "mount user landlock",
        .sees = "EROFS|EACCES", /* EACCES where the rootfs cannot be id-mapped */
        .echo = "CVE-2016-5195: Dirty COW wrote to files that were read-only",
        .kind = PAYLOAD_PYTHON,
        .payload = "attempt('open /etc/passwd', os.open, sys.argv[1], os.O_WRONLY)\n",
        .prepare = image_file,
    },
    {
        .id = "FS2",
        .title = "make the root writable",
        .family = "files",
        /* A user's box has the mount locked as well: it came with the namespace. Root's own is put there
         * by root, and the kernel locks only what it copies itself. */
        .stopped_by = "caps identity seccomp landlock",
        .may_stop = "user",
        .sees = "EPERM",
        .echo = "CVE-2014-5206: a remount in a user namespace undid read-only",
        .kind = PAYLOAD_PYTHON,
        .payload = "REMOUNT_BIND = 32 | 4096\n"
                   "attempt('mount', syscall, NR['mount'], b'none', b'/', None,\n"
                   "        REMOUNT_BIND | int(sys.argv[1]), 0)\n",
        .prepare = root_flags,
    },
    {
        .id = "FS3",
        .title = "unmount what masks a file of /proc",
        .family = "files",
        .stopped_by = "caps identity seccomp landlock",
        .may_stop = "user",
        .sees = "EPERM",
        .echo = "CVE-2014-9717: umount2 uncovered what a locked mount had hidden",
        .kind = PAYLOAD_PYTHON,
        .payload = "masks = [sys.argv[1]]\n"
                   "if masks[0] == '/mnt' and PROC == '/proc':\n"
                   "    mounts = [line.split()[4] for line in open('/proc/self/mountinfo')]\n"
                   "    masks = [m for m in mounts if m.startswith('/proc/')] or masks\n"
                   "attempt('umount2', syscall, NR['umount2'], masks[0].encode(), 2)\n",
        .prepare = make_mount,
    },
    {
        .id = "FS4",
        .title = "put a link to a host's file where output is expected, and write through it",
        .family = "files",
        .stopped_by = "mount",
        .sees = "ENOENT",
        .echo = "CVE-2017-1002101: a link in a pod's volume led to the host",
        .kind = PAYLOAD_PYTHON,
        .payload = "out, canary = sys.argv[1:]\n"
                   "os.symlink(canary, out + '/link')\n"
                   "attempt('open', os.open, out + '/link', os.O_WRONLY)\n",
        .prepare = hand_in,
    },
    {
        .id = "FS5",
        .title = "a terabyte's hole, beside a FIFO and a device, where output is expected",
        .family = "files",
        .stopped_by = "rlimits", /* and nothing of mayfly's opens what the code made */
        .sees = "EFBIG",
        .kind = PAYLOAD_PYTHON,
        .payload = "out = sys.argv[1]\n"
                   "os.mkfifo(out + '/fifo')\n"
                   "try:\n"
                   "    os.mknod(out + '/device', 0o20600, os.makedev(1, 3))\n"
                   "except OSError:\n"
                   "    pass  # FS7\n"
                   "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
                   "fd = os.open(out + '/hole', os.O_WRONLY | os.O_CREAT)\n"
                   "attempt('ftruncate', os.ftruncate, fd, 1 << 40)\n",
        .prepare = hand_in,
    },
    {
        .id = "FS7",
        .title = "make a device node",
        .family = "files",
        .stopped_by = "user caps identity seccomp",
        .sees = "EPERM",
        .echo = "runc issue 5073: mknod was granted whatever the rules said",
        .kind = PAYLOAD_PYTHON,
        .payload = "attempt('mknod', os.mknod, TMP + '/device', 0o20600, os.makedev(1, 3))\n",
    },
    {
        .id = "FS8",
        .title = "open a host's file by its handle, whatever the mounts",
        .family = "files",
        .stopped_by = "user caps identity seccomp",
        .sees = "EPERM",
        .echo = "Shocker, 2014: code in Docker opened host files by guessed handles",
        .kind = PAYLOAD_PYTHON,
        .payload = "kind, data, place = int(sys.argv[1]), bytes.fromhex(sys.argv[2]), sys.argv[3]\n"
                   "handle = len(data).to_bytes(4, 'little') + kind.to_bytes(4, 'little') + data\n"
                   "mount = os.open(place, os.O_RDONLY)\n"
                   "try:\n"
                   "    fd = syscall(NR['open_by_handle_at'], mount, handle, os.O_RDONLY)\n"
                   "except OSError as e:\n"
                   "    stopped('open_by_handle_at', e)\n"
                   "if os.read(fd, 100).startswith(b'mayfly-canary'):\n"
                   "    through('open_by_handle_at')\n"
                   "stopped('open_by_handle_at', 'EBADF')\n",
        .prepare = take_handle,
    },
    {
        .id = "FS9",
        .title = "read a host's file by going up from the root",
        .family = "files",
        .stopped_by = "mount",
        .sees = "ENOENT",
        .echo = "CVE-2015-2925: a renamed directory led out of a bind mount",
        .kind = PAYLOAD_PYTHON,
        .payload = READ_SECRET
        "roots = ('', '/..', '/../../../../../../../..', '/proc/self/root', "
        "'/proc/self/cwd/../..',\n"
        "         '/proc/self/root/..', '/proc/1/root', '/proc/thread-self/root/..')\n"
        "first_through([('open ' + r, lambda r=r: read(r + sys.argv[1])) for r in "
        "reversed(roots)])\n",
        .prepare = name_secret,
    },
    {
        .id = "FS9b",
        .title = "read a host's file by another process's root",
        .family = "files",
        .stopped_by = "pid user caps identity landlock",
        .sees = "ENOENT",
        .echo = "CVE-2016-9962: what entered a container was within its reach",
        .kind = PAYLOAD_PYTHON,
        .payload =
            READ_SECRET "pid, path = sys.argv[1:]\n"
                        "first_through([('open /proc/PID/' + w, lambda w=w: read(PROC + '/' + "
                        "pid + '/' + w + path))\n"
                        "               for w in ('root', 'root/..')])\n",
        .prepare = start_process,
    },
    {
        .id = "FS10",
        .title = "mount something where the host sees it",
        .family = "files",
        .stopped_by = "mount user caps identity seccomp landlock",
        .sees = "EPERM",
        .echo = "runc issue 2404: mounts of containers appeared on the host",
        .kind = PAYLOAD_PYTHON,
        .payload = "place = sys.argv[1] if os.path.exists(sys.argv[1]) else '/mnt'\n"
                   "attempt('mount', syscall, NR['mount'], b'none', place.encode(), b'tmpfs', 0,\n"
                   "        b'size=4k')\n",
        .prepare = name_mount_point,
        .judge = find_mount,
    },
    {
        .id = "FS11",
        .title = "fill /tmp",
        .family = "files",
        .stopped_by = "tmp memory",
        .sees = "ENOSPC",
        .echo = "CVE-2020-8557: a pod filled its node's disk through /etc/hosts",
        .kind = PAYLOAD_PYTHON,
        .payload = "def fill():\n"
                   "    with open(TMP + '/fill', 'wb', buffering=0) as file:\n"
                   "        for _ in range(int(sys.argv[1])):\n"
                   "            if file.write(bytes(1 << 20)) < 1 << 20:\n"
                   "                raise OSError(errno.ENOSPC, '')\n"
                   "attempt('write', fill)\n",
        .prepare = small_tmp,
    },
    {
        .id = "FS12",
        .title = "use up /tmp's inodes",
        .family = "files",
        .stopped_by = "tmp",
        .sees = "ENOSPC",
        .echo = "Kubernetes issue 32526: nodes kept running out of inodes",
        .kind = PAYLOAD_PYTHON,
        .payload = "def fill():\n"
                   "    for i in range(100):\n"
                   "        os.close(os.open(TMP + '/%d' % i, os.O_CREAT | os.O_WRONLY))\n"
                   "attempt('open', fill)\n",
        .prepare = few_inodes,
    },
    {
        .id = "FS14",
        .title = "read another box's scratch files",
        .family = "files",
        .stopped_by = "pid user landlock",
        .sees = "ENOENT",
        .kind = PAYLOAD_PYTHON,
        .payload = "scratch, last = sys.argv[1], 'ENOENT'\n"
                   "for pid in filter(str.isdigit, os.listdir(PROC)):\n"
                   "    try:\n"
                   "        if open('%s/%s/root%s' % (PROC, pid, scratch)).read() == 'secret':\n"
                   "            through('open /proc/PID/root/tmp')\n"
                   "    except OSError as e:\n"
                   "        last = e if e.errno != errno.ENOENT else last\n"
                   "stopped('open /proc/PID/root/tmp', last)\n",
        .prepare = box_with_scratch,
    },
    {
        .id = "FS15",
        .title = "write to a file that was handed in to be read",
        .family = "files",
        .stopped_by = "mount", /* and binds makes it read-only there */
        .sees = "EROFS",
        .echo = "CVE-2022-0847: Dirty Pipe wrote to files open for reading",
        .kind = PAYLOAD_PYTHON,
        .payload = "attempt('open', os.open, sys.argv[1], os.O_WRONLY)\n",
        .prepare = hand_in_to_read,
    },
    {
        .id = "FS16",
        .title = "open in /dev what the box was not given: the image's, or the host's",
        .family = "files",
        .stopped_by = "dev",
        .sees = "ENOENT",
        .echo = "bubblewrap-tui issue 35: a sandbox was given /dev/mem and the disks",
        .kind = PAYLOAD_STATIC,
        .payload = "open_one",
        .prepare = image_with_devices,
    },
    {
        .id = "FS17",
        .title = "use a device by a node outside of /dev",
        .family = "files",
        .stopped_by =
            "mount", /* each of its mounts has nodev, and so have those of binds and tmp */
        .sees = "EACCES",
        .echo = "CVE-2014-5207: a remount in a user namespace undid nodev",
        .kind = PAYLOAD_PYTHON,
        .payload = "attempt('open', os.open, sys.argv[1], os.O_RDONLY)\n",
        .prepare = hand_in_device,
    },
    {.id = NULL},
};
