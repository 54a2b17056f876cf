/*
 * probes_resources.c: taking more than its share: memory, time, descriptors, kernel objects, and the
 * supervisor's patience.
 *
 * Limits are set low for an attempt, so that going over one costs the host little even where nothing
 * stops it: twice the memory, a second of processor time, some hundred descriptors.
 */
#include "lab/families.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "lab/host_watch.h"

#include "base/banned.h"

#define RESOURCE .family = "resources", .kind = PAYLOAD_PYTHON

/* ------------------------------------------------------------------ low limits */

/* Without a cgroup these limits are for single processes, or only watched: the result of a run says so, and it was asked
 * for. What holds then is not what these probes are about. */
static bool needs_cgroup(struct finding_of *f) {
    return !lab_limits()[0] ||
           lab_untestable(f, "limits are best effort here: %.150s", lab_limits());
}

static bool little_memory(struct attempt *a, struct finding_of *f) {
    lab_set(a, "memory", "48m");
    return needs_cgroup(f);
}

/* What is written to a disk is no memory of the box's, or not for long. */
static bool little_memory_for_files(struct attempt *a, struct finding_of *f) {
    return little_memory(a, f) && lab_tmp_in_memory(a, f, 60);
}

/* A process outside spins as well: on a host whose processors are others' it gets as little as a box that is held back.
 * (A session may be scheduled as one: then it gets no more than all of the box.) */
static bool little_cpu(struct attempt *a, struct finding_of *f) {
    const double seconds = 0.5;
    int ends[2];

    lab_set(a, "cpus", "0.1");
    lab_set(a, "timeout", "%d", (int)(40 * lab_slow()));
    if (!needs_cgroup(f))
        return false;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return lab_untestable(f, "pipe: %s", strerrordesc_np(errno));
    a->fd[0] = ends[0];
    a->fd[1] = ends[1];
    a->pid[0] = fork();
    if (a->pid[0] == 0) {
        uint64_t end = now_ns() + (uint64_t)(seconds * 1e9);
        while (now_ns() < end)
            ;
        double share = (double)clock() / CLOCKS_PER_SEC / seconds;
        (void)fd_write_full(ends[1], (const char *)&share, sizeof(share));
        _exit(0);
    }
    return a->pid[0] > 0 || lab_untestable(f, "fork: %s", strerrordesc_np(errno));
}

static void judge_cpu(struct attempt *a, struct finding_of *f) {
    double share = 0;

    fd_close(&a->fd[1]);
    (void)fd_read_full(a->fd[0], (char *)&share, sizeof(share));
    if (f->verdict == VERDICT_STOPPED && share < 0.22)
        (void)lab_untestable(f, "this host is too busy: a process outside got %.2f CPUs", share);
}

static bool little_time(struct attempt *a, struct finding_of *f) {
    (void)f;
    lab_set(a, "timeout", "%dms", (int)(200 * lab_slow()));
    lab_arg(a, "%d", (int)(600 * lab_slow()));
    return true;
}

static bool little_cpu_time(struct attempt *a, struct finding_of *f) {
    lab_set(a, "cpu-time", "%dms", (int)(150 * lab_slow()));
    lab_set(a, "timeout", "%d", (int)(40 * lab_slow()));
    lab_arg(a, "%d", (int)(500 * lab_slow()));
    return needs_cgroup(f);
}

/* False: this process's own limit, which the code has without ours, is no higher than what is tried. */
static bool host_allows(struct finding_of *f, int resource, rlim_t more, const char *what) {
    struct rlimit own;

    if (getrlimit((__rlimit_resource_t)resource, &own) < 0 || own.rlim_max < more)
        return lab_untestable(f, "this process itself may have no more %s", what);
    return true;
}

static bool few_files(struct attempt *a, struct finding_of *f) {
    lab_set(a, "ulimit", "nofile=64");
    return host_allows(f, RLIMIT_NOFILE, 1024, "open files");
}

static bool few_signals(struct attempt *a, struct finding_of *f) {
    lab_set(a, "ulimit", "sigpending=64");
    return host_allows(f, RLIMIT_SIGPENDING, 1024, "queued signals");
}

static bool few_queues(struct attempt *a, struct finding_of *f) {
    char name[64];

    lab_queue_name(name, sizeof(name));
    lab_arg(a, "%s", name);
    return host_allows(f, RLIMIT_MSGQUEUE, 400000, "bytes in message queues");
}

static bool small_files(struct attempt *a, struct finding_of *f) {
    lab_set(a, "ulimit", "fsize=65536");
    return host_allows(f, RLIMIT_FSIZE, 1 << 20, "bytes in a file");
}

static bool little_locked(struct attempt *a, struct finding_of *f) {
    (void)a;
    return host_allows(f, RLIMIT_MEMLOCK, 2 << 20, "locked memory");
}

static bool has_sys_resource(struct attempt *a, struct finding_of *f) {
    return lab_has_cap(a, f, 24, "CAP_SYS_RESOURCE");
}

/* ------------------------------------------------------------------ a crash */

static const char core_pattern[] = "/proc/sys/kernel/core_pattern";

/* Where crashes are a program's business, one must not be made that gets there. */
static bool crash_is_harmless(struct attempt *a, struct finding_of *f) {
    char pattern[256] = "";

    (void)file_read_at(AT_FDCWD, core_pattern, pattern, sizeof(pattern));
    if (pattern[0] != 0 && strchr("|/@", pattern[0]) && lab_off(a, "rlimits"))
        return lab_untestable(f, "a crash would go to this host's core_pattern, %.100s", pattern);
    return host_allows(f, RLIMIT_CORE, 64 << 20, "bytes in a core dump");
}

/* What a handler can do that is seen from here, wherever its root directory is: give the machine another name. */
struct kept {
    char pattern[256], name[65];
};
static const char handler[] = "|/bin/hostname mayfly-handler-ran";

static bool handler_ran(long ms) {
    const struct timespec t = {0, 10000000};
    char name[65] = "";

    for (long waited = 0;; waited += 10) {
        if (gethostname(name, sizeof(name)) == 0 && strcmp(name, "mayfly-handler-ran") == 0)
            return true;
        if (waited > ms)
            return false;
        (void)nanosleep(&t, NULL);
    }
}

static void name_host(const char *name) {
    if (sethostname(name, strlen(name)) < 0)
        fprintf(stderr, "the host's name is not %s any more\n", name);
}

static int write_pattern(const char *text) {
    _cleanup_fd_ int fd = open(core_pattern, O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -errno;
}

static void crash_outside(void) {
    const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
    pid_t pid = fork();

    if (pid == 0) {
        (void)signal(SIGSEGV, SIG_DFL);
        (void)setrlimit(RLIMIT_CORE, &unlimited);
        (void)raise(SIGSEGV);
        _exit(0);
    }
    if (pid > 0)
        (void)waitpid(pid, NULL, 0);
}

/* Only where the kernel is a test's own. A crash outside shows first that the handler is one. */
static bool piped_core_pattern(struct attempt *a, struct finding_of *f) {
    struct kept *old = calloc(1, sizeof(*old));
    char cpu[512] = "";

    a->state = old;
    (void)file_read_at(AT_FDCWD, "/proc/cpuinfo", cpu, sizeof(cpu));
    if (!strstr(cpu, "User Mode Linux") || geteuid() != 0)
        return lab_untestable(f, "core_pattern is not this test's to change, but on the cgroup v2 "
                                 "kernel that the tests boot as root");
    if (!old || gethostname(old->name, sizeof(old->name)) < 0 ||
        file_read_at(AT_FDCWD, core_pattern, old->pattern, sizeof(old->pattern)) < 0 ||
        write_pattern(handler) < 0)
        return lab_untestable(f, "%s: %s", core_pattern, strerrordesc_np(errno));
    crash_outside();
    bool ran = handler_ran((long)(2000 * lab_slow()));
    name_host(old->name);
    if (ran)
        return true;
    (void)write_pattern(old->pattern);
    return lab_untestable(f, "a crash outside did not run the handler either");
}

static void judge_handler(struct attempt *a, struct finding_of *f) {
    const struct kept *old = a->state;
    bool ran = handler_ran((long)(200 * lab_slow()));

    (void)write_pattern(old->pattern);
    name_host(old->name);
    if (ran)
        lab_found(f, VERDICT_THROUGH, "SIGSEGV", "", "the host's handler ran");
}

/* ------------------------------------------------------------------ output and input */

/* argv[1]: how much to print, which is kept by this very process where nothing stops it; argv[2]: for how long. */
static bool a_moment(struct attempt *a, struct finding_of *f) {
    enum { KEPT_MIB = 8 };

    (void)f;
    /* Python has to start in it, too. */
    lab_set(a, "timeout", "%dms", (int)((lab_slow() > 1 ? 1000 : 300) * lab_slow()));
    lab_arg(a, "%lld", lab_off(a, "capture") ? (long long)KEPT_MIB << 20 : 10LL << 30);
    lab_arg(a, "%.1f", 0.6 * lab_slow());
    return true;
}

static bool bounded(const struct mayfly_stream *s) {
    const size_t default_bytes = 1 << 20;

    return s->truncated && s->len <= default_bytes && s->total > s->len;
}

static void judge_flood(struct attempt *a, struct finding_of *f) {
    const mayfly_result *r = a->result;
    char text[120];

    if (!r)
        return;
    (void)snprintf(text, sizeof(text), "%llu bytes written, %zu kept, %s",
                   (unsigned long long)(r->out.total + r->err.total), r->out.len + r->err.len,
                   mayfly_outcome_name(r->outcome));
    if (r->out.total < 2 << 20)
        (void)lab_untestable(f, "this host is too slow for a flood: %s", text);
    else if (bounded(&r->out) && (!r->err.total || bounded(&r->err)))
        lab_found(f, VERDICT_STOPPED, "write", "truncated", text);
    else
        lab_found(f, VERDICT_THROUGH, "write", "", text);
}

enum { GIB = 1 << 30 };

static bool stdin_of_memory(struct attempt *a, struct finding_of *f) {
    void *zeros = mmap(NULL, GIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (zeros == MAP_FAILED)
        return lab_untestable(f, "no room for a GiB of zeros: %s", strerrordesc_np(errno));
    a->input.stdin_data = zeros;
    a->input.stdin_len = GIB;
    return true;
}

static bool stdin_of_file(struct attempt *a, struct finding_of *f) {
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%.3000s/input", a->dir);
    a->fd[0] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (a->fd[0] < 0 || ftruncate(a->fd[0], GIB) < 0)
        return lab_untestable(f, "%s: %s", path, strerrordesc_np(errno));
    a->input.stdin_fd = a->fd[0];
    return true;
}

static void judge_stdin(struct attempt *a, struct finding_of *f) {
    if (a->input.stdin_data)
        (void)munmap((void *)(uintptr_t)a->input.stdin_data, GIB);
    if (f->verdict == VERDICT_THROUGH && a->result && a->result->outcome == MAYFLY_EXITED)
        lab_found(f, VERDICT_STOPPED, "read", "ended", "nobody waited for it to be read");
    else if (f->verdict == VERDICT_STOPPED)
        lab_found(f, VERDICT_THROUGH, "read", "", "the run did not come to its end");
}

#define CRASH                                                                                      \
    "import resource\n"                                                                            \
    "pid = os.fork()\n"                                                                            \
    "if pid == 0:\n"                                                                               \
    "    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]\n"                                     \
    "    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))\n"                                 \
    "    signal.signal(signal.SIGSEGV, signal.SIG_DFL)\n"                                          \
    "    os.kill(os.getpid(), signal.SIGSEGV)\n"                                                   \
    "    os._exit(0)\n"                                                                            \
    "status = os.waitpid(pid, 0)[1]\n"                                                             \
    "if os.WCOREDUMP(status):\n"                                                                   \
    "    through('SIGSEGV', 'a core was dumped')\n"                                                \
    "stopped('SIGSEGV', 'no core', resource.getrlimit(resource.RLIMIT_CORE))\n"

#define FLOOD(bytes, more)                                                                         \
    "import time\n"                                                                                \
    "end = time.monotonic() + float(sys.argv[2])\n"                                                \
    "part, n = " bytes ", 0\n"                                                                     \
    "while n < int(sys.argv[1]) and time.monotonic() < end:\n"                                     \
    "    n += " more "\n"

const struct probe probes_resources[] = {
    {RESOURCE, .id = "RS1", .title = "allocate without end", .stopped_by = "memory",
     .sees = "oom_killed", .echo = "Odoo runbot pull 493: a build took all memory of its host",
     .prepare = little_memory,
     .payload = "all = [bytearray(os.urandom(4096)) * 1024 for i in range(24)]\n"
                "through('brk', '96 MiB')\n"},
    {RESOURCE, .id = "RS1b", .title = "the same in files in memory", .stopped_by = "memory",
     .sees = "oom_killed", .prepare = little_memory_for_files,
     .payload = "part = bytes(1 << 20)\n"
                "with open(TMP + '/large', 'wb') as f:\n"
                "    for i in range(60):\n"
                "        f.write(part)\n"
                "through('write', '60 MiB')\n"},
    {RESOURCE, .id = "RS1c", .title = "the same in System V shared memory",
     .stopped_by = "memory seccomp", .sees = "ENOSYS|oom_killed|timed_out",
     .echo = "CVE-2021-3759: System V semaphores were charged to nobody", .prepare = little_memory,
     .payload = "size = 96 << 20\n"
                "load()\n"
                "libc.shmat.restype = ctypes.c_void_p\n"
                "key = libc.shmget(0, ctypes.c_size_t(size), 0o1600)\n"
                "if key < 0:\n"
                "    stopped('shmget', ctypes.get_errno())\n"
                "where = libc.shmat(key, None, 0)\n"
                "libc.shmctl(key, 0, None)  # gone with this process, even if it is killed\n"
                "ctypes.memset(where, 1, size)\n"
                "through('shmget', '96 MiB')\n"},
    {RESOURCE, .id = "RS3", .title = "spin on all cores", .alone = true, .stopped_by = "cpu",
     .sees = "throttled", .echo = "GitLab, 2021: miners in free CI made it ask for cards",
     .prepare = little_cpu, .judge = judge_cpu,
     .payload = "import time\n"
                "start = time.monotonic()\n"
                "for i in range(4):\n"
                "    if os.fork() == 0:\n"
                "        while time.monotonic() < start + 0.4:\n"
                "            pass\n"
                "        os._exit(0)\n"
                "for i in range(4):\n"
                "    os.wait()\n"
                "took = os.times()\n"
                "share = (took[2] + took[3]) / (time.monotonic() - start)\n"
                "if share > 0.18:\n"
                "    through('clock', '%.2f CPUs' % share)\n"
                "stopped('clock', 'throttled', '%.2f CPUs' % share)\n"},
    {RESOURCE, .id = "RS4", .title = "sleep for ever", .stopped_by = "deadline",
     .sees = "timed_out", .echo = "OpenHands issue 207: a command without end stalled the agent",
     .prepare = little_time,
     .payload = "import time\n"
                "time.sleep(int(sys.argv[1]) / 1000)\n"
                "through('sleep', 'three times its deadline')\n"},
    {RESOURCE, .id = "RS4b", .title = "compute for ever", .stopped_by = "deadline",
     .sees = "cpu_limit", .echo = "Cloudflare, 2019: one regular expression took every CPU",
     .prepare = little_cpu_time,
     .payload = "import time\n"
                "while time.process_time() < int(sys.argv[1]) / 1000:\n"
                "    pass\n"
                "through('clock', 'three times its CPU time')\n"},
    {RESOURCE, .id = "RS5", .title = "open files without end", .stopped_by = "rlimits",
     .sees = "EMFILE", .echo = "INGInious issue 809: code opened files until the host failed",
     .prepare = few_files,
     .payload = "import resource\n"
                "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
                "resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))\n"
                "attempt('dup', lambda: [os.dup(0) for i in range(200)][0])\n"},
    {RESOURCE, .id = "RS5b", .title = "keep open files in flight between sockets",
     .stopped_by = "rlimits", .sees = "ETOOMANYREFS",
     .echo = "CVE-2013-4312: descriptors in flight got past the limit", .prepare = few_files,
     .payload = "import _socket as socket\n"
                "a, b = socket.socketpair()\n"
                "a.setblocking(False)\n"
                "def fly():\n"
                "    for i in range(150):\n"
                "        send_fds(a, 0)\n"
                "attempt('sendmsg', fly)\n"},
    {RESOURCE, .id = "RS6", .title = "take the inotify instances, which the caller has to share",
     .stopped_by = "user seccomp", .sees = "ENOSYS|EMFILE",
     .echo = "K3s issue 10020: containers used up the inotify instances",
     .payload = "load()\n"
                "made = 0\n"
                "while made < 48:\n"
                "    if libc.inotify_init1(0) < 0:\n"
                "        stopped('inotify_init1', ctypes.get_errno(), '%d were made' % made)\n"
                "    made += 1\n"
                "through('inotify_init1', '%d were made' % made)\n"},
    {RESOURCE, .id = "RS6b", .title = "take the memory of POSIX message queues",
     .stopped_by = "rlimits landlock seccomp", .sees = "ENOSYS|EMFILE|EACCES", .alone = true,
     .echo = "CVE-2017-11176: mq_notify used a socket after it was freed", .prepare = few_queues,
     .payload =
         "queue = sys.argv[1].encode()\n"
         "for i in range(4):\n"
         "    how = room(64, 'qqqq', 0, 10, 8192, 0)\n"
         "    made = libc.mq_open(queue, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600, how)\n"
         "    error = ctypes.get_errno()\n"
         "    libc.mq_unlink(queue)  # open it counts; Landlock has it made, but not opened\n"
         "    if made < 0:\n"
         "        stopped('mq_open', error, '%d were made' % i)\n"
         "through('mq_open', '320 KiB')\n"},
    {RESOURCE, .id = "RS6c", .title = "take timers without end", .stopped_by = "rlimits seccomp",
     .sees = "ENOSYS|EAGAIN",
     .echo = "CVE-2017-18344: a timer of a wrong kind showed kernel memory", .prepare = few_signals,
     .payload = "NR['timer_create'] = dict(x86_64=222, aarch64=107)[os.uname().machine]\n"
                "def take():\n"
                "    for i in range(200):\n"
                "        syscall(NR['timer_create'], 1, None, room(8))\n"
                "attempt('timer_create', take)\n"},
    {RESOURCE, .id = "RS7", .title = "crash, to leave a core dump", .stopped_by = "rlimits",
     .sees = "no core", .echo = "dotnet-docker issue 1215: core dumps filled the host's disk",
     .prepare = crash_is_harmless, .payload = CRASH},
    {RESOURCE, .id = "RS7b", .title = "crash, to run the host's core dump handler as root",
     .stopped_by = "", .sees = "no core",
     .echo = "CVE-2015-1318: Apport, run by the kernel, ran a container's program", .alone = true,
     .prepare = piped_core_pattern, .judge = judge_handler, .payload = CRASH},
    {RESOURCE, .id = "RS8", .title = "10 GB of output in one line, which is no UTF-8",
     .stopped_by = "capture", .sees = "truncated",
     .echo = "CVE-2022-31030: a command's output used up containerd's memory", .prepare = a_moment,
     .judge = judge_flood, .payload = FLOOD("b'\\xff' * 65536", "os.write(1, part)")},
    {RESOURCE, .id = "RS8b", .title = "a flood on both streams at once, of zeros",
     .stopped_by = "capture", .sees = "truncated",
     .echo = "CVE-2022-1708: CRI-O read a command's whole output into memory", .prepare = a_moment,
     .judge = judge_flood,
     .payload = FLOOD("bytes(65536)", "os.write(1, part) + os.write(2, part)")},
    {RESOURCE, .id = "RS9", .title = "never read 1 GB of stdin", .stopped_by = "", .sees = "ended",
     .echo = "codeframe pull 816: a stdin that nobody read outlasted every timeout",
     .prepare = stdin_of_memory, .judge = judge_stdin,
     .payload = "import time\n"
                "time.sleep(0.1)\n"
                "through('read')\n"},
    {RESOURCE, .id = "RS9b", .title = "read one byte of it, from a file, and stop",
     .stopped_by = "", .sees = "ended", .prepare = stdin_of_file, .judge = judge_stdin,
     .payload = "import time\n"
                "os.read(0, 1)\n"
                "time.sleep(0.1)\n"
                "through('read')\n"},

    /* ---------------------------------------------------------------- not in the list of cases */

    {RESOURCE, .id = "RS10", .title = "raise a limit of its own",
     .stopped_by = "user identity caps", .sees = "EPERM", .prepare = has_sys_resource,
     .payload = "import resource\n"
                "NR['prlimit64'] = dict(x86_64=302, aarch64=261)[os.uname().machine]\n"
                "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
                "tried('prlimit64', 0, 7, room(16, 'QQ', hard + 1, hard + 1), None)\n"},
    {RESOURCE, .id = "RS11", .title = "lock memory, which cannot be reclaimed then",
     .stopped_by = "rlimits seccomp", .sees = "ENOSYS|ENOMEM|EPERM", .prepare = little_locked,
     .payload = "page = room(1 << 20)\n"
                "if libc.mlock(page, ctypes.c_size_t(1 << 20)) < 0:\n"
                "    stopped('mlock', ctypes.get_errno())\n"
                "through('mlock', '1 MiB')\n"},
    {RESOURCE, .id = "RS12", .title = "one large file", .stopped_by = "rlimits", .sees = "EFBIG",
     .echo = "CVE-2020-8557: a pod filled its node's disk through /etc/hosts",
     .prepare = small_files,
     .payload = "attempt('ftruncate', os.truncate, os.open(TMP + '/f', os.O_CREAT | os.O_RDWR), "
                "1 << 20)\n"},
    {.id = NULL},
};
