/*
 * probes_exec.c: executing what should not be executed.
 *
 * The set-user-id program belongs to an id that nobody has, so that it is of no use to others on the
 * machine while it is there; likewise the file capability is the least of all.
 */
#include "lab/families.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lab/payload.h"
#include "lab/scratch.h"

#include "base/banned.h"

enum { NOBODYS_UID = 61239, CAP_BIND = 10 /* CAP_NET_BIND_SERVICE */ };

/* The payload writes argv[1] to /tmp, and executes it there. */
#define COPY_HELPER                                                                                \
    "def copy(source, target):\n"                                                                  \
    "    with open(source, 'rb') as code, open(target, 'wb') as file:\n"                           \
    "        file.write(code.read())\n"                                                            \
    "    os.chmod(target, 0o755)\n"

static bool name_helper(struct attempt *a, struct finding_of *f) {
    if (scratch_file(a, "helper", lab_helper, lab_helper_len, 0755) < 0)
        return lab_untestable(f, "the program to execute cannot be written");
    lab_arg(a, "%.200s/helper", a->box);
    return true;
}

/* ------------------------------------------------------------------ EX7 */

static bool suid_counts(const struct attempt *a, struct finding_of *f) {
    struct statvfs fs;

    if (statvfs(a->dir, &fs) == 0 && fs.f_flag & ST_NOSUID && lab_off(a, "mount"))
        return lab_untestable(f, "this host's /tmp is nosuid itself");
    return true;
}

/* A user cannot make a program set another id than its own. */
static bool make_setuid(struct attempt *a, struct finding_of *f) {
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/box/helper", a->dir);
    if ((geteuid() == 0 && chown(path, NOBODYS_UID, NOBODYS_UID) < 0) || chmod(path, 06755) < 0)
        return lab_untestable(f, "a set-user-id program cannot be made: errno %d", errno);
    return suid_counts(a, f);
}

static bool make_capable(struct attempt *a, struct finding_of *f) {
    char path[PATH_MAX];
    /* struct vfs_cap_data, version 2: magic, then permitted and inheritable, twice; little-endian */
    uint32_t data[5] = {0x02000000, 1u << CAP_BIND, 0, 0, 0};

    (void)snprintf(path, sizeof(path), "%s/box/helper", a->dir);
    lab_arg(a, "%.230s/helper", a->box);
    if (setxattr(path, "security.capability", data, sizeof(data), 0) < 0)
        return lab_untestable(f, "a file capability cannot be set: errno %d", errno);
    return suid_counts(a, f);
}

/* ------------------------------------------------------------------ EX8 */

/* A rootfs of traps: each tells by the canary when something outside the box, or its init, executes it. */
static bool make_traps(struct attempt *a, struct finding_of *f) {
    static const char *const names[] = {
        "bin/gzip", "bin/newuidmap", "usr/bin/gzip",  "usr/bin/newuidmap", "usr/bin/newgidmap",
        "bin/sh",   "sbin/modprobe", "sbin/ldconfig", "etc/ld.so.preload"};
    char path[PATH_MAX], text[2 * PATH_MAX];

    if (scratch_rootfs(a) < 0)
        return lab_untestable(f, "a rootfs cannot be made");
    (void)snprintf(text, sizeof(text), "#!/bin/sh\necho sprung >>%s/canary/open\n", a->dir);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        (void)snprintf(path, sizeof(path), "rootfs/%s", names[i]);
        if (scratch_file(a, path, text, strlen(text), 0755) < 0)
            return lab_untestable(f, "%s cannot be made", names[i]);
    }
    lab_set(a, "rootfs", "%s/box/rootfs", a->dir);
    return true;
}

/* The payload came as far as to run; the canary tells whether something else did. */
static void look_at_traps(struct attempt *a, struct finding_of *f) {
    char path[PATH_MAX];
    struct stat secret, open;

    (void)snprintf(path, sizeof(path), "%s/canary/secret", a->dir);
    int r = stat(path, &secret);
    (void)snprintf(path, sizeof(path), "%s/canary/open", a->dir);
    if (r < 0 || stat(path, &open) < 0 || secret.st_size != open.st_size)
        lab_found(f, VERDICT_THROUGH, "execve", "",
                  "a program of the image's was executed outside");
    else if (f->verdict == VERDICT_THROUGH)
        lab_found(f, VERDICT_STOPPED, "execve", "not executed", NULL);
}

/* ------------------------------------------------------------------ the table */

const struct probe probes_exec[] = {
    {
        .id = "EX1",
        .title = "execute a file that was written to /tmp",
        .family = "exec",
        .stopped_by = "tmp",
        .sees = "EACCES",
        .echo = "Kinsing, 2020: a miner, written to a container's /tmp and run",
        .kind = PAYLOAD_PYTHON,
        .payload =
            COPY_HELPER "copy(sys.argv[1], TMP + '/helper')\n"
                        "attempt('execve', os.execv, TMP + '/helper', ['helper', 'nothing'])\n",
        .prepare = name_helper,
    },
    {
        .id = "EX2",
        .title = "run it through the dynamic loader",
        .family = "exec",
        .stopped_by = "tmp",
        .sees = "EPERM",
        .echo = "DDexec issue 10: ld.so ran what one may not execute",
        .kind = PAYLOAD_PYTHON,
        .payload = COPY_HELPER
        "copy(os.path.realpath('/bin/true'), TMP + '/true')\n"
        "loaders = [d + '/' + n for d in ('/lib64', '/lib') if os.path.isdir(d)\n"
        "           for n in os.listdir(d) if n.startswith('ld-linux')]\n"
        "r, w = os.pipe()\n"
        "pid = os.fork() if loaders else untestable('no dynamic loader of the GNU kind')\n"
        "if pid == 0:\n"
        "    os.dup2(w, 2)\n"
        "    os.execv(loaders[0], [loaders[0], TMP + '/true'])\n"
        "os.close(w)\n"
        "said = os.read(r, 4000).decode()\n"
        "if os.waitpid(pid, 0)[1] == 0:\n"
        "    through('mmap by ld.so')\n"
        "denied = 'failed to map' in said or 'not permitted' in said\n"
        "stopped('mmap by ld.so', 'EPERM' if denied else 'other', said)\n",
    },
    {
        .id = "EX3",
        .title = "load a library that was written to /tmp",
        .family = "exec",
        .stopped_by = "tmp",
        .sees = "EPERM",
        .echo = "CVE-2025-32463: sudo loaded a library out of a user's directory",
        .kind = PAYLOAD_PYTHON,
        .payload =
            COPY_HELPER "load()\n"
                        "loaded = [l.split()[-1] for l in open(PROC + '/self/maps') if '.so' in l "
                        "and ' r-xp ' in l]\n"
                        "copy(loaded[-1], TMP + '/library.so')\n"
                        "try:\n"
                        "    ctypes.CDLL(TMP + '/library.so')\n"
                        "except OSError as e:\n"
                        "    denied = 'failed to map' in str(e) or 'not permitted' in str(e)\n"
                        "    stopped('dlopen', 'EPERM' if denied else 'other', e)\n"
                        "through('dlopen')\n",
    },
    {
        .id = "EX3b",
        .title = "map a file of /tmp to be executed",
        .family = "exec",
        .stopped_by = "tmp",
        .sees = "EPERM|EACCES",
        .kind = PAYLOAD_PYTHON,
        .payload =
            "import mmap\n"
            "load()\n"
            "open(TMP + '/code', 'wb').write(bytes(4096))\n"
            "fd = os.open(TMP + '/code', os.O_RDWR)\n"
            "def protect():\n"
            "    m = mmap.mmap(fd, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE)\n"
            "    address = ctypes.addressof(ctypes.c_char.from_buffer(m))\n"
            "    if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(4096), 5) == -1:\n"
            "        raise OSError(ctypes.get_errno(), '')\n"
            "first_through([('mprotect', protect),\n"
            "               ('mmap', lambda: mmap.mmap(fd, 4096, prot=mmap.PROT_READ | "
            "mmap.PROT_EXEC))])\n",
    },
    {
        .id = "EX5",
        .title = "execute a file that only memory has",
        .family = "exec",
        .stopped_by = "seccomp",
        .sees = "EPERM|ENOSYS",
        .echo = "PyLoose, 2023: Python put a miner into a memfd and ran it",
        .why_alone = "vm.memfd_noexec is set on this host",
        .kind = PAYLOAD_PYTHON,
        .payload = "call = 'memfd_create'\n"
                   "try:\n"
                   "    fd = os.memfd_create('x', os.MFD_CLOEXEC)\n"
                   "    call = 'execveat'\n"
                   "    os.write(fd, open(sys.argv[1], 'rb').read())\n"
                   "    os.execve(fd, ['helper', 'nothing'], {})\n"
                   "except OSError as e:\n"
                   "    stopped(call, e)\n",
        .prepare = name_helper,
    },
    {
        .id = "EX6",
        .title = "a script given to its interpreter; code made in anonymous memory",
        .family = "exec",
        .stopped_by = "",
        .must_pass = true,
        .kind = PAYLOAD_PYTHON,
        .payload = "import mmap\n"
                   "load()\n"
                   "with open(TMP + '/script', 'w') as script:\n"
                   "    script.write('exit 7\\n')\n"
                   "if os.spawnv(os.P_WAIT, '/bin/sh', ['sh', TMP + '/script']) != 7:\n"
                   "    stopped('sh', 'other')\n"
                   "code = {'x86_64': bytes([0xb8, 42, 0, 0, 0, 0xc3]),\n"
                   "        'aarch64': bytes([0x40, 5, 0x80, 0x52, 0xc0, 3, 0x5f, 0xd6])}\n"
                   "m = mmap.mmap(-1, 4096, prot=7)\n"
                   "m.write(code[os.uname().machine])\n"
                   "libc.syscall  # the memory was never code before: no cache holds it\n"
                   "address = ctypes.addressof(ctypes.c_char.from_buffer(m))\n"
                   "if ctypes.CFUNCTYPE(ctypes.c_int)(address)() != 42:\n"
                   "    stopped('call', 'other')\n"
                   "through('mmap(PROT_EXEC)')\n",
    },
    {
        .id = "EX7",
        .title = "execute a set-user-id program",
        .family = "exec",
        .stopped_by = "mount nonewprivs user",
        .sees = "unchanged",
        .echo = "CVE-2021-4034: pkexec took its environment for arguments, and gave root",
        .kind = PAYLOAD_STATIC,
        .payload = "other_uid",
        .prepare = make_setuid,
    },
    {
        .id = "EX7b",
        .title = "execute a program with a file capability",
        .family = "exec",
        .stopped_by = "mount nonewprivs caps", /* with user it is a capability of the box's only */
        .sees = "unchanged",
        .echo = "CVE-2021-3493: overlayfs made a namespace's file capabilities the host's",
        .kind = PAYLOAD_STATIC,
        .payload = "gain_capability",
        .prepare = make_capable,
    },
    {
        .id = "EX8",
        .title = "programs of the image's that something outside might execute",
        .family = "exec",
        .stopped_by = "", /* mayfly executes nothing of the image's but the command, in the box */
        .sees = "not executed",
        .echo = "CVE-2019-14271: docker cp loaded a library of the container's",
        .kind = PAYLOAD_STATIC,
        .payload = "nothing",
        .prepare = make_traps,
        .judge = look_at_traps,
    },
    {.id = NULL},
};
