/*
 * probes_namespaces.c: new namespaces, capabilities and identities: the ways to more kernel code.
 *
 * What a capability allows is stopped by two controls that look like one: caps gives them up, and
 * identity does by the change from uid 0. Either holds alone, so both are named wherever one is.
 */
#include "lab/families.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

/* The host's root: uid 0 where 0 is the host's. */
#define HOST_ROOT                                                                                  \
    "def host_root():\n"                                                                           \
    "    rows = [list(map(int, r.split())) for r in open(PROC + '/self/uid_map')]\n"               \
    "    return any(r[0] == 0 and r[1] == 0 for r in rows)\n"

/* Where a mount can be tried; in the box's own /tmp, so that it is gone with the box. */
#define PLACE                                                                                      \
    "place = TMP + '/place'\n"                                                                     \
    "os.mkdir(place)\n"

static bool as_root(struct attempt *a, struct finding_of *f UNUSED) {
    lab_set(a, "user", "0");
    return true;
}

/* argv[1]: the host's name; the box's is another, whatever the host is called. */
static bool name_host(struct attempt *a, struct finding_of *f) {
    struct utsname host;

    if (uname(&host) < 0 || !host.nodename[0] || strcmp(host.nodename, "mayfly-lab-box") == 0)
        return lab_untestable(f, "this host has no name of its own");
    lab_set(a, "hostname", "mayfly-lab-box");
    lab_arg(a, "%s", host.nodename);
    return true;
}

static bool name_host_namespace(struct attempt *a, struct finding_of *f) {
    char link[64];
    ssize_t n = readlink("/proc/self/ns/uts", link, sizeof(link) - 1);

    if (n < 0)
        return lab_untestable(f, "/proc/self/ns/uts: errno %d", errno);
    link[n] = '\0';
    if (!name_host(a, f))
        return false;
    lab_arg(a, "%s", link);
    return true;
}

/* Who is at the top of the cgroup namespace already sees nothing above, with one of its own or without. */
static bool is_below(struct attempt *a, struct finding_of *f) {
    static const char *const makers[] = {"memory", "cpu", "pids", "deadline"};
    char text[4096] = "";

    for (size_t i = 0; i < ARRAY_LEN(makers); i++)
        if (!lab_off(a, makers[i]))
            return true;
    if (file_read_at(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) < 0)
        return lab_untestable(f, "/proc/self/cgroup cannot be read");
    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");
        if (len < 2 || strncmp(line + len - 2, ":/", 2) != 0)
            return true;
        line += len + (line[len] == '\n');
    }
    return lab_untestable(f, "the caller is at the top of its cgroup namespace itself");
}

const struct probe probes_namespaces[] = {
    {
        .id = "NS1",
        .title = "make a user namespace, to be root in it",
        .family = "namespaces",
        .stopped_by = "seccomp user", /* user: user.max_user_namespaces is 0 inside */
        .sees = "EPERM",
        .echo = "CVE-2022-0185: a user namespace gave the capability it takes",
        .kind = PAYLOAD_PYTHON,
        .payload = "attempt('unshare(CLONE_NEWUSER)', syscall, NR['unshare'], 0x10000000)\n",
    },
    {
        .id = "NS1b",
        .title = "make a user namespace by clone, whose flags the filter has to look at",
        .family = "namespaces",
        .stopped_by = "seccomp user",
        .sees = "EPERM",
        .echo = "CVE-2022-0185: a user namespace gave the capability it takes",
        .kind = PAYLOAD_PYTHON,
        .payload = "NR['clone'] = dict(x86_64=56, aarch64=220)[os.uname().machine]\n"
                   "def make():\n"
                   "    if syscall(NR['clone'], 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0) == 0:\n"
                   "        os._exit(0)\n"
                   "attempt('clone(CLONE_NEWUSER)', make)\n",
    },
    {
        .id = "NS2",
        .title = "make any other kind of namespace",
        .family = "namespaces",
        .stopped_by = "caps identity seccomp",
        .sees = "EPERM",
        .echo = "CVE-2022-0492: unshare, then mount a cgroup with a release agent",
        .kind = PAYLOAD_PYTHON,
        .payload =
            "kinds = dict(NEWUTS=0x4000000, NEWIPC=0x8000000, NEWNET=0x40000000,\n"
            "             NEWCGROUP=0x2000000, NEWNS=0x20000, NEWPID=0x20000000)\n"
            "first_through([('unshare(CLONE_%s)' % k, lambda v=v: syscall(NR['unshare'], v))\n"
            "               for k, v in kinds.items()])\n",
    },
    {
        .id = "NS3",
        .title = "clone3 with a new namespace, its flags behind a pointer no filter can follow",
        .family = "namespaces",
        .stopped_by = "caps identity seccomp",
        .sees = "ENOSYS",
        .echo = "CVE-2021-41133: Flatpak's filter could not see what clone3 makes",
        .kind = PAYLOAD_STATIC,
        .payload = "clone3_namespace",
    },
    {
        .id = "NS4",
        .title = "join a namespace by its file",
        .family = "namespaces",
        .stopped_by = "caps identity seccomp",
        .may_stop = "user",
        .sees = "EPERM",
        .echo = "CVE-2022-31214: firejail --join entered a sandbox that was faked",
        .kind = PAYLOAD_PYTHON,
        .payload = "fd = os.open(PROC + '/self/ns/uts', os.O_RDONLY)\n"
                   "attempt('setns', syscall, NR['setns'], fd, 0x4000000)\n",
    },
    {
        .id = "NS6",
        .title = "take a capability, or raise an ambient one",
        .family = "namespaces",
        .stopped_by = "caps identity seccomp",
        .sees = "EPERM",
        .echo = "CVE-2022-24769: Docker left inheritable capabilities to its containers",
        .kind = PAYLOAD_PYTHON,
        .payload = "CHOWN = 1\n"
                   "load()\n"
                   "def take(permitted, effective):\n"
                   "    head = (ctypes.c_uint32 * 2)(0x20080522, 0)\n"
                   "    data = (ctypes.c_uint32 * 6)(effective, permitted, permitted, 0, 0, 0)\n"
                   "    syscall(NR['capset'], head, data)\n"
                   "def ambient():\n"
                   "    if libc.prctl(47, 2, 0, 0, 0) == -1:  # PR_CAP_AMBIENT_RAISE of CAP_CHOWN\n"
                   "        raise OSError(ctypes.get_errno(), '')\n"
                   "first_through([('prctl(PR_CAP_AMBIENT_RAISE)', ambient),\n"
                   "               ('capset', lambda: take(CHOWN, CHOWN))])\n",
    },
    {
        .id = "NS7",
        .title = "setuid(0), as the host's root",
        .family = "namespaces",
        .stopped_by = "user identity seccomp",
        .sees = "EPERM|EINVAL", /* where a single id is mapped, there is no 0 */
        .echo = "CVE-2024-40635: a user id too large made the container root",
        .kind = PAYLOAD_PYTHON,
        .payload = HOST_ROOT
        "try:\n"
        "    os.setresuid(0, 0, 0)\n"
        "except OSError as e:\n"
        "    stopped('setresuid(0)', e)\n"
        "if host_root():\n"
        "    through('setresuid(0)')\n"
        "stopped('setresuid(0)', 'mapped', 'uid 0 of the box is nobody on the host')\n",
    },
    {
        .id = "NS7b",
        .title = "setgroups, into a group of the host's",
        .family = "namespaces",
        .stopped_by = "user caps identity seccomp",
        .sees = "EPERM",
        .echo = "CVE-2014-8989: a namespace dropped groups that were denied access",
        .kind = PAYLOAD_PYTHON,
        .payload =
            HOST_ROOT "try:\n"
                      "    os.setgroups([0])\n"
                      "except OSError as e:\n"
                      "    stopped('setgroups', e)\n"
                      "if host_root():\n"
                      "    through('setgroups')\n"
                      "stopped('setgroups', 'mapped', 'gid 0 of the box is nobody on the host')\n",
    },
    {
        .id = "NS8",
        .title = "break out of a directory with a second chroot",
        .family = "namespaces",
        .stopped_by = "caps identity seccomp",
        .sees = "EPERM",
        .echo = "CVE-2015-2925: a second chroot got out of a bind mount",
        .kind = PAYLOAD_PYTHON,
        .payload = PLACE "before = os.stat('/')\n"
                         "try:\n"
                         "    syscall(NR['chroot'], place.encode())\n"
                         "    os.mkdir('/inner')\n"
                         "    syscall(NR['chroot'], b'/inner')\n"
                         "except OSError as e:\n"
                         "    stopped('chroot', e)\n"
                         "for _ in range(64):\n"
                         "    os.chdir('..')\n"
                         "after = os.stat('.')\n"
                         "if (before.st_dev, before.st_ino) == (after.st_dev, after.st_ino):\n"
                         "    through('chroot')\n"
                         "stopped('chroot', 'held', 'the working directory stayed inside')\n",
    },
    {
        .id = "NS9",
        .title = "mount by the new interface",
        .family = "namespaces",
        .stopped_by = "caps identity seccomp landlock",
        .may_stop = "user",
        .sees = "EPERM",
        .echo = "CVE-2022-0185: a length of fsconfig's wrapped round, and gave root",
        .kind = PAYLOAD_PYTHON,
        .payload = PLACE "call = 'fsopen'\n"
                         "try:\n"
                         "    fs = syscall(NR['fsopen'], b'tmpfs', 0)\n"
                         "    call = 'fsconfig'\n"
                         "    syscall(NR['fsconfig'], fs, 6, None, None, 0)\n"
                         "    call = 'fsmount'\n"
                         "    mnt = syscall(NR['fsmount'], fs, 0, 0)\n"
                         "    call = 'move_mount'\n"
                         "    syscall(NR['move_mount'], mnt, b'', -100, place.encode(), 4)\n"
                         "except OSError as e:\n"
                         "    stopped(call, e)\n"
                         "through(call)\n",
    },
    {
        .id = "NS9b",
        .title = "pivot_root to a tree of its own",
        .family = "namespaces",
        .stopped_by = "caps identity seccomp landlock",
        .may_stop = "user",
        .sees = "EPERM",
        .echo = "CVE-2014-7970: pivot_root in a chroot made a loop of mounts",
        .kind = PAYLOAD_PYTHON,
        /* To a place that is no mount: refused, but only after the look at the caller's rights. One that succeeds changes
         * the root of everybody in the mount namespace. */
        .payload =
            PLACE "tried('pivot_root', place.encode(), place.encode(), past='EBUSY EINVAL')\n",
    },
    {
        .id = "NS10",
        .title = "open its own limits in the host's cgroup tree",
        .family = "namespaces",
        .stopped_by = "mount user landlock",
        .sees = "ENOENT",
        .echo = "CVE-2023-25809: rootless runc left the host's cgroup tree writable",
        .kind = PAYLOAD_PYTHON,
        .payload = "names = ('memory.max', 'memory.limit_in_bytes', 'pids.max', 'release_agent',\n"
                   "         'cgroup.procs', 'tasks')\n"
                   "found = [p for stars in ('', '/*', '/*/*') for name in names\n"
                   "         for p in expand('/sys/fs/cgroup' + stars + '/' + name)]\n"
                   "found = found or ['/sys/fs/cgroup/cgroup.procs']\n"
                   "first_through([('open ' + p, lambda p=p: os.open(p, os.O_WRONLY))\n"
                   "               for p in found])\n",
        .prepare = as_root,
    },
    {
        .id = "NS10b",
        .title = "mount the cgroup tree, and open its own limits there",
        .family = "namespaces",
        .stopped_by = "user caps identity seccomp landlock",
        .sees = "EPERM",
        .echo = "CVE-2022-0492: a cgroup's release_agent, mounted and written, ran as root",
        .kind = PAYLOAD_PYTHON,
        .payload = PLACE
        "call, last = 'mount cgroup', None\n"
        "for line in open(PROC + '/self/cgroup'):\n"
        "    number, names, path = line.strip().split(':', 2)\n"
        "    kind, options = ('cgroup', names) if names else ('cgroup2', '')\n"
        "    if kind == 'cgroup' and names.split(',')[0] not in ('memory', 'pids'):\n"
        "        continue\n"
        "    call = 'mount ' + kind\n"
        "    try:\n"
        "        syscall(NR['mount'], b'none', place.encode(), kind.encode(), 0,\n"
        "                options.encode())\n"
        "        for file in ('memory.max', 'memory.limit_in_bytes', 'pids.max', 'cgroup.procs'):\n"
        "            call = 'open ' + file\n"
        "            full = place + path + '/' + file\n"
        "            if os.path.exists(full):\n"
        "                os.open(full, os.O_WRONLY)\n"
        "                through(call, kind + ' ' + options)\n"
        "    except OSError as e:\n"
        "        last = e\n"
        "stopped(call, last or 'ENOENT')\n",
    },
    {
        .id = "NS11",
        .title = "read the host's name",
        .family = "namespaces",
        .stopped_by = "uts",
        .sees = "another",
        .kind = PAYLOAD_PYTHON,
        .payload = "seen = os.uname().nodename\n"
                   "if seen == sys.argv[1]:\n"
                   "    through('uname', seen)\n"
                   "stopped('uname', 'another', seen)\n",
        .prepare = name_host,
    },
    {
        .id = "NS11b",
        .title = "change the host's name",
        .family = "namespaces",
        .stopped_by = "uts user identity caps seccomp",
        .sees = "EPERM",
        .echo = "LXC issue 2605: a privileged Kubernetes container renamed its host",
        .kind = PAYLOAD_PYTHON,
        /* To what it is. */
        .payload = "try:\n"
                   "    syscall(NR['sethostname'], sys.argv[1].encode(), len(sys.argv[1]))\n"
                   "except OSError as e:\n"
                   "    stopped('sethostname', e)\n"
                   "if sys.argv[2] == os.readlink(PROC + '/self/ns/uts'):\n"
                   "    through('sethostname')\n"
                   "stopped('sethostname', 'own', 'the name that changed is the box\\'s')\n",
        .prepare = name_host_namespace,
    },
    {
        .id = "NS13",
        .title = "read its own place in the host's cgroup tree, which names containers and users",
        .family = "namespaces",
        .stopped_by = "cgroupns",
        .sees = "/",
        .echo = "runc pull 781: /proc/self/cgroup showed containers the host's paths",
        .kind = PAYLOAD_PYTHON,
        .payload =
            "paths = [l.rstrip('\\n').split(':', 2)[2] for l in open(PROC + '/self/cgroup')]\n"
            "below = [p for p in paths if p != '/']\n"
            "if below:\n"
            "    through('read /proc/self/cgroup', below[0])\n"
            "stopped('read /proc/self/cgroup', '/')\n",
        .prepare = is_below,
    },
    {.id = NULL},
};
