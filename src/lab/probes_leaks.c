/*
 * probes_leaks.c: what one run could leave for the next, or two boxes could tell each other.
 *
 * Not here, since nothing of a box's can stop it: the page cache, whose timing tells what others have
 * read of the same rootfs. LK9 is its like, and shows that the attempts can see such a thing at all.
 */
#include "lab/families.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "lab/host_watch.h"

#include "base/banned.h"

/* argv[1]: the System V key; argv[2]: the POSIX queue's name. What has that name is taken away afterwards, and so must not
 * be another's. */
static bool name_ipc(struct attempt *a, struct finding_of *f) {
    char queue[64];

    if (shmget(lab_ipc_key(), 0, 0) >= 0 || semget(lab_ipc_key(), 0, 0) >= 0 ||
        msgget(lab_ipc_key(), 0) >= 0)
        return lab_untestable(f, "another program has IPC objects of the key %d", lab_ipc_key());
    lab_queue_name(queue, sizeof(queue));
    lab_arg(a, "%d", lab_ipc_key());
    lab_arg(a, "%s", queue);
    return true;
}

#define IPC                                                                                        \
    "key, queue = int(sys.argv[1]), sys.argv[2].encode()\n"                                        \
    "load()\n"                                                                                     \
    "small = (ctypes.c_long * 8)(0, 1, 16)\n"                                                      \
    "os.umask(0)\n"                                                                                \
    "def need(r):\n"                                                                               \
    "    if r == -1:\n"                                                                            \
    "        raise OSError(ctypes.get_errno(), '')\n"                                              \
    "def system_v(flags):\n"                                                                       \
    "    size, mode = ctypes.c_size_t(4096), flags | 0o666\n"                                      \
    "    return [('shmget', lambda: need(libc.shmget(key, size, mode))),\n"                        \
    "            ('semget', lambda: need(libc.semget(key, 1, mode))),\n"                           \
    "            ('msgget', lambda: need(libc.msgget(key, mode)))]\n"                              \
    "def posix(flags):\n"                                                                          \
    "    how = os.O_RDWR | (os.O_CREAT if flags else 0)\n"                                         \
    "    return [('mq_open', lambda: need(libc.mq_open(queue, how, 0o666, small)))]\n"             \
    "def make(calls):\n"                                                                           \
    "    for call, function in calls(0o1000):\n"                                                   \
    "        try:\n"                                                                               \
    "            function()\n"                                                                     \
    "        except OSError as e:\n"                                                               \
    "            return call, e\n"                                                                 \
    "    return call, 'made'\n"
#define MAKE(kind) "stopped(*make(" kind "))\n"

/* Takes away what the host has of it; true if there was any. */
static bool take_away(void) {
    char queue[64];
    int id, found = 0;

    if ((id = shmget(lab_ipc_key(), 0, 0)) >= 0)
        found += shmctl(id, IPC_RMID, NULL) == 0;
    if ((id = semget(lab_ipc_key(), 0, 0)) >= 0)
        found += semctl(id, 0, IPC_RMID) == 0;
    if ((id = msgget(lab_ipc_key(), 0)) >= 0)
        found += msgctl(id, IPC_RMID, NULL) == 0;
    lab_queue_name(queue, sizeof(queue));
    found += mq_unlink(queue) == 0;
    return found > 0;
}

static void find_ipc(struct attempt *a UNUSED, struct finding_of *f) {
    if (take_away())
        lab_found(f, VERDICT_THROUGH, "shmget, semget, msgget, mq_open", "", "left on the host");
}

/* A file of the name argv[1] in /tmp: after the run the host looks for it. */
static bool name_file(struct attempt *a, struct finding_of *f UNUSED) {
    lab_arg(a, "mayfly-lab-left-%d", (int)getpid());
    return true;
}

static void find_file(struct attempt *a, struct finding_of *f) {
    const char *const places[] = {"/tmp", "/dev/shm", a->tmp_dir};
    char path[PATH_MAX];
    int found = 0;

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", places[i], a->arg[0]);
        found += unlink(path) == 0;
    }
    if (found)
        lab_found(f, VERDICT_THROUGH, "open", "", "the file is still there");
}

/* This program's name, backwards: forwards it would be in the payload's own command line. */
static bool name_ourselves(struct attempt *a, struct finding_of *f UNUSED) {
    const char *name = program_invocation_short_name;
    char back[64];
    size_t len = MIN(strlen(name), sizeof(back) - 1);

    for (size_t i = 0; i < len; i++)
        back[i] = name[len - 1 - i];
    back[len] = '\0';
    lab_arg(a, "%s", back);
    return true;
}

/* A descriptor that a careless program leaves open for what it executes. */
static bool leave_fd(struct attempt *a, struct finding_of *f UNUSED) {
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/canary/secret", a->dir);
    a->fd[0] = open(path, O_RDONLY); // NOLINT(android-cloexec-open): that is the point
    return true;
}

/* What a caller has in its environment, as a service has its keys. */
static const char secret_name[] = "MAYFLY_LAB_SECRET";

static bool leave_variable(struct attempt *a UNUSED, struct finding_of *f) {
    return setenv(secret_name, "mayfly-canary", 1) == 0 ||
           lab_untestable(f, "setenv: errno %d", errno);
}

static void take_variable(struct attempt *a UNUSED, struct finding_of *f UNUSED) {
    (void)unsetenv(secret_name);
}

static bool shared_dir(struct attempt *a, struct finding_of *f) {
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/out", a->dir);
    if (mkdir(path, 0700) < 0 || chmod(path, 0777) < 0)
        return lab_untestable(f, "mkdir: errno %d", errno);
    if (!lab_off(a, "mount"))
        lab_set(a, "volume", "%s:/opt:rw", path);
    lab_arg(a, "%.250s/file", lab_off(a, "mount") ? path : "/opt");
    lab_arg(a, "%.1f", 1.2 * lab_slow()); /* for how long its child keeps the lock */
    return true;
}

/* The payload left a process that holds the lock; with its box it must be gone. */
static void try_lock(struct attempt *a, struct finding_of *f) {
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/out/file", a->dir);
    _cleanup_fd_ int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || strcmp(f->error, "locked") != 0)
        (void)lab_untestable(f, "the payload took no lock: %.100s", f->detail);
    else if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        lab_found(f, VERDICT_THROUGH, "flock", "", "the lock outlived the box");
        (void)flock(fd, LOCK_EX); /* until its child is gone as well */
    } else
        lab_found(f, VERDICT_STOPPED, "flock", "released", NULL);
}

/* ------------------------------------------------------------------ with a second box beside */

static bool beside_socket(struct attempt *a, struct finding_of *f UNUSED) {
    lab_arg(a, "mayfly-lab-%d", (int)getpid());
    return lab_beside(a,
                      "import _socket as socket\n"
                      "s = socket.socket(socket.AF_UNIX)\n"
                      "s.bind('\\0' + sys.argv[1])\n"
                      "s.listen()\n"
                      "stay()\n",
                      a->arg[0]);
}

static bool beside_ipc(struct attempt *a, struct finding_of *f) {
    char both[600];

    if (!name_ipc(a, f))
        return false;
    (void)snprintf(both, sizeof(both), "%s %s", a->arg[0], a->arg[1]);
    bool ready =
        lab_beside(a,
                   "sys.argv[1:] = sys.argv[1].split()\n" IPC "make(system_v), make(posix)\n"
                   "stay()\n",
                   both);
    if (!ready)
        (void)take_away();
    return ready;
}

static void take_ipc_away(struct attempt *a UNUSED, struct finding_of *f UNUSED) {
    (void)take_away();
}

static bool beside_key(struct attempt *a, struct finding_of *f UNUSED) {
    lab_arg(a, "mayfly-lab-%d", (int)getpid());
    /* -4: the user's keyring. The key lasts twenty seconds at most. Refused (as it should be) it is no less ready. */
    return lab_beside(
        a,
        "try:\n"
        "    key = syscall(NR['add_key'], b'user', sys.argv[1].encode(), b'x', 1, -4)\n"
        "    syscall(NR['keyctl'], 15, key, 20)\n"
        "except OSError:\n"
        "    pass\n"
        "stay()\n",
        a->arg[0]);
}

static bool beside_file(struct attempt *a, struct finding_of *f UNUSED) {
    lab_arg(a, "%.200s/beside-%d", lab_tmp(a), (int)getpid());
    return lab_beside(a,
                      "open(sys.argv[1], 'w').write('x')\n"
                      "stay()\n",
                      a->arg[0]);
}

static bool beside_lock(struct attempt *a, struct finding_of *f UNUSED) {
    lab_arg(a, "/usr/bin/env");
    return lab_beside(a,
                      "import fcntl\n"
                      "fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)\n"
                      "stay()\n",
                      a->arg[0]);
}

/* ------------------------------------------------------------------ the table */

const struct probe probes_leaks[] = {
    {
        .id = "LK1",
        .title = "leave shared memory, semaphores and queues behind",
        .family = "leaks",
        .stopped_by = "ipc seccomp",
        .sees = "ENOSYS",
        .echo = "CVE-2015-7613: System V objects, found half made, gave privileges",
        .kind = PAYLOAD_PYTHON,
        .payload = IPC MAKE("system_v"),
        .prepare = name_ipc,
        .judge = find_ipc,
    },
    {
        .id = "LK1b",
        .title = "leave a POSIX message queue behind",
        .family = "leaks",
        .stopped_by = "ipc seccomp",
        .may_stop = "rlimits",
        .sees = "ENOSYS",
        .kind = PAYLOAD_PYTHON,
        .payload = IPC MAKE("posix"),
        .prepare = name_ipc,
        .judge = find_ipc,
    },
    {
        .id = "LK2",
        .title = "leave files in /tmp and /dev/shm",
        .family = "leaks",
        .stopped_by = "mount",
        .sees = "made",
        .echo = "SGLang pull 28089: /dev/shm was full of what CI jobs had left",
        .kind = PAYLOAD_PYTHON,
        .payload = "for place in ('/tmp', '/dev/shm'):\n"
                   "    try:\n"
                   "        open(place + '/' + sys.argv[1], 'x').write('x')\n"
                   "    except OSError as e:\n"
                   "        if place == '/tmp':\n"
                   "            stopped('open', e)\n"
                   "stopped('open', 'made')\n",
        .prepare = name_file,
        .judge = find_file,
    },
    {
        .id = "LK3",
        .title = "the supervisor's arguments and environment",
        .family = "leaks",
        .stopped_by = "pid",
        .sees = "absent",
        .echo = "CVE-2020-1753: Ansible's passwords were in the list of processes",
        .why_alone = "this host's own /proc hides the processes of others",
        .kind = PAYLOAD_PYTHON,
        .payload = "words = (sys.argv[1][::-1].encode(), b'MAYFLY_' + b'ROOTFS')\n"
                   "own = os.readlink(PROC + '/self') if os.path.islink(PROC + '/self') else ''\n"
                   "for pid in filter(str.isdigit, os.listdir(PROC)):\n"
                   "    if pid == own:\n"
                   "        continue\n"
                   "    for file in ('cmdline', 'environ', 'comm'):\n"
                   "        try:\n"
                   "            text = open('%s/%s/%s' % (PROC, pid, file), 'rb').read()\n"
                   "        except OSError:\n"
                   "            continue\n"
                   "        if any(w[:15] in text for w in words):\n"
                   "            through('read /proc/PID/' + file)\n"
                   "stopped('read /proc/PID', 'absent')\n",
        .prepare = name_ourselves,
    },
    {
        .id = "LK4",
        .title = "descriptors that the caller left open",
        .family = "leaks",
        .stopped_by = "fds",
        .sees = "none",
        .echo = "CVE-2024-21626: runc left a descriptor of a host directory open",
        .kind = PAYLOAD_PYTHON,
        .payload = "for fd in range(3, 256):\n"
                   "    try:\n"
                   "        if os.pread(fd, 13, 0) == b'mayfly-canary':\n"
                   "            through('pread', fd)\n"
                   "    except OSError:\n"
                   "        pass\n"
                   "stopped('pread', 'none')\n",
        .prepare = leave_fd,
    },
    {
        .id = "LK5",
        .title = "an abstract socket of another box",
        .family = "leaks",
        .stopped_by = "net landlock",
        .sees = "ECONNREFUSED",
        .echo = "CVE-2020-15257: containerd's abstract socket was open to containers",
        .kind = PAYLOAD_PYTHON,
        .payload =
            "import _socket as socket\n"
            "attempt('connect', socket.socket(socket.AF_UNIX).connect, '\\0' + sys.argv[1])\n",
        .prepare = beside_socket,
    },
    {
        .id = "LK6",
        .title = "shared memory, semaphores and queues of another box",
        .family = "leaks",
        .stopped_by = "ipc seccomp",
        .sees = "ENOSYS",
        .echo = "CVE-2020-4414: Db2 left its shared memory open to everybody",
        .kind = PAYLOAD_PYTHON,
        .payload = IPC "first_through(system_v(0))\n",
        .prepare = beside_ipc,
        .judge = take_ipc_away,
    },
    {
        .id = "LK6b",
        .title = "a POSIX message queue of another box",
        .family = "leaks",
        .stopped_by = "ipc landlock seccomp",
        .may_stop = "rlimits",
        .sees = "ENOSYS",
        .kind = PAYLOAD_PYTHON,
        .payload = IPC "first_through(posix(0))\n",
        .prepare = beside_ipc,
        .judge = take_ipc_away,
    },
    {
        .id = "LK7",
        .title = "a key in the keyring of another box's user",
        .family = "leaks",
        .stopped_by = "user seccomp",
        .sees = "EPERM|ENOSYS",
        .echo = "keyctl-unmask: a container read the kernel keys of others",
        .kind = PAYLOAD_PYTHON,
        .payload = "SEARCH, UNLINK, USER_KEYRING = 10, 9, -4\n"
                   "try:\n"
                   "    key = syscall(NR['keyctl'], SEARCH, USER_KEYRING, b'user', "
                   "sys.argv[1].encode(), 0)\n"
                   "except OSError as e:\n"
                   "    stopped('keyctl(KEYCTL_SEARCH)', e)\n"
                   "syscall(NR['keyctl'], UNLINK, key, USER_KEYRING)\n"
                   "through('keyctl(KEYCTL_SEARCH)')\n",
        .prepare = beside_key,
    },
    {
        .id = "LK8",
        .title = "leave a lock on a file that was handed in",
        .family = "leaks",
        .stopped_by = "pid",
        .may_stop = "memory cpu pids deadline",
        .sees = "released",
        .echo = "PMSS issue 663: orphans kept a lock, and the next update waited",
        .kind = PAYLOAD_PYTHON,
        .payload = "import fcntl\n"
                   "fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o666)\n"
                   "os.fchmod(fd, 0o666)\n"
                   "fcntl.flock(fd, fcntl.LOCK_EX)\n"
                   "if os.fork() == 0:\n"
                   "    import time\n"
                   "    os.setsid()\n"
                   "    time.sleep(float(sys.argv[2]))\n"
                   "    os._exit(0)\n"
                   "stopped('flock', 'locked')\n",
        .prepare = shared_dir,
        .judge = try_lock,
    },
    {
        .id = "LK9",
        .title = "see a lock of another box's on a file of the rootfs that both have",
        .family = "leaks",
        .stopped_by = "",
        .must_pass = true, /* a channel that stays, as the page cache does; README.md says so */
        .kind = PAYLOAD_PYTHON,
        .payload =
            "import fcntl\n"
            "try:\n"
            "    fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
            "except BlockingIOError:\n"
            "    through('flock')\n"
            "stopped('flock', 'unlocked')\n",
        .prepare = beside_lock,
    },
    {
        .id = "LK10",
        .title = "a file in /tmp of another box",
        .family = "leaks",
        .stopped_by = "mount",
        .sees = "ENOENT",
        .echo = "CVE-2020-15250: JUnit's temporary files could be read by everybody",
        .kind = PAYLOAD_PYTHON,
        .payload = "try:\n"
                   "    os.stat(sys.argv[1])\n"
                   "except OSError as e:\n"
                   "    stopped('stat', e)\n"
                   "through('stat')\n",
        .prepare = beside_file,
    },
    {
        .id = "LK11",
        .title = "a secret in the caller's environment",
        .family = "leaks",
        .stopped_by = "env",
        .sees = "absent",
        .echo = "Codecov, 2021: its uploader sent away the environment of CI jobs",
        .kind = PAYLOAD_PYTHON,
        .payload = "if os.environ.get('MAYFLY_LAB_SECRET') == 'mayfly-canary':\n"
                   "    through('environ')\n"
                   "stopped('environ', 'absent')\n",
        .prepare = leave_variable,
        .judge = take_variable,
    },
    {.id = NULL},
};
