/*
 * probes_processes.c: signals, floods of processes, and outliving the run.
 *
 * Signals go to sentinels that the attempt itself started; a call that would reach everybody carries one
 * that everybody ignores (SIGURG), but for a sentinel: that the call returns 0 says nothing of whom it
 * reached. What must not outlive a run has a mark in its arguments that no
 * other process has, and ends by itself after a few seconds whatever happens.
 */
#include "lab/families.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "lab/attempt.h"

#include "base/banned.h"

#define PROCESS .family = "processes", .kind = PAYLOAD_PYTHON

static double now_ms(void) { return (double)now_ns() / 1e6; }

static void sleep_ms(long ms) {
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&t, NULL);
}

/* ------------------------------------------------------------------ sentinels */

/* The id that the payload has on the host where nothing maps its ids. A change of ids forgets the signal. */
static void become_payload(void) {
    enum { PAYLOAD_ID = 1000 };

    if (geteuid() == 0 && (setgid(PAYLOAD_ID) < 0 || setuid(PAYLOAD_ID) < 0))
        _exit(1);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static bool start_sentinel(struct attempt *a, struct finding_of *f) {
    a->pid[0] = fork();
    if (a->pid[0] < 0)
        return lab_untestable(f, "no sentinel: %s", strerrordesc_np(errno));
    if (a->pid[0] == 0) {
        become_payload();
        for (;;)
            (void)pause();
    }
    lab_arg(a, "%d", (int)a->pid[0]);
    sleep_ms(5); /* until it has that id */
    return true;
}

/* Whether it lives decides, whatever the code says. */
static void judge_sentinel(struct attempt *a, struct finding_of *f) {
    for (int i = 0; i < 20 && f->verdict == VERDICT_THROUGH; i++) {
        if (waitpid(a->pid[0], NULL, WNOHANG) != 0) {
            a->pid[0] = 0;
            return;
        }
        sleep_ms(5);
    }
    if (waitpid(a->pid[0], NULL, WNOHANG) != 0) {
        a->pid[0] = 0;
        lab_found(f, VERDICT_THROUGH, f->call, "", "the sentinel is dead");
    } else if (f->verdict == VERDICT_THROUGH) {
        lab_found(f, VERDICT_STOPPED, f->call, "ESRCH", "the sentinel lives: it hit another");
    }
}

/* One who alone does not ignore the signal. Its end is seen by a pipe: judge() may be in another process, of which it is
 * no child. */
static void on_urgent(int number UNUSED) { _exit(0); }

static bool start_urgent(struct attempt *a, struct finding_of *f) {
    int ready[2];
    char c;

    if (pipe2(ready, O_CLOEXEC) < 0)
        return lab_untestable(f, "pipe: %s", strerrordesc_np(errno));
    a->fd[0] = ready[0];
    a->fd[1] = ready[1];
    a->pid[0] = fork();
    if (a->pid[0] == 0) {
        (void)setpgid(0, 0);
        (void)signal(SIGURG, on_urgent);
        become_payload();
        (void)fd_write_full(ready[1], "x", 1);
        for (;;)
            (void)pause();
    }
    fd_close(&a->fd[1]);
    if (a->pid[0] < 0 || read(ready[0], &c, 1) != 1)
        return lab_untestable(f, "no sentinel: %s", strerrordesc_np(errno));
    return true;
}

/* The payload's process group is that of who made the box where it has no session of its own: here the sentinel's. */
static bool start_in_group(struct attempt *a, struct finding_of *f) {
    bool started = start_urgent(a, f);

    a->group = started ? a->pid[0] : 0;
    return started;
}

static void judge_urgent(struct attempt *a, struct finding_of *f) {
    struct pollfd p = {.fd = a->fd[0]}; /* hung up by its end */

    if (f->verdict == VERDICT_THROUGH && poll(&p, 1, 40) == 0)
        lab_found(f, VERDICT_STOPPED, f->call, "not reached", "only its own processes");
}

/* ------------------------------------------------------------------ marks */

static bool mark(struct attempt *a, struct finding_of *f) {
    (void)f;
    lab_arg(a, "mayfly-mark-%d-%ld", (int)getpid(), (long)(now_ms() * 1000) % 1000000000);
    return true;
}

/* argv[2]: for how many seconds it outlives the run, which is longer than judge_survivor() waits for it to be gone. */
static bool mark_survivor(struct attempt *a, struct finding_of *f) {
    (void)mark(a, f);
    lab_arg(a, "%.1f", 0.8 * lab_slow());
    return true;
}

/* How many processes on the host, not yet dead, have the word among their arguments. */
static int marked(const char *word) {
    DIR *d = opendir("/proc");
    const struct dirent *e;
    int n = 0;

    while (d && (e = readdir(d))) {
        char path[300], text[4096];

        (void)snprintf(path, sizeof(path), "/proc/%s/cmdline", e->d_name);
        _cleanup_fd_ int fd =
            e->d_name[0] >= '0' && e->d_name[0] <= '9' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        ssize_t len = fd >= 0 ? read(fd, text, sizeof(text)) : 0;
        n += len > 0 && memmem(text, (size_t)len, word, strlen(word));
    }
    if (d)
        (void)closedir(d);
    return n;
}

/* Whoever a subreaper got, dead by now or soon. */
static void reap_strays(double ms) {
    double until = now_ms() + ms;

    for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG | __WALL)) >= 0 && now_ms() < until;)
        if (pid == 0)
            sleep_ms(5);
}

/* A cgroup's kill(2) does not wait for the end of those whom it killed. */
static bool marked_becomes(const char *word, int n, double ms) {
    double until = now_ms() + ms;

    while (n ? marked(word) < n : marked(word) > 0) {
        if (now_ms() > until)
            return false;
        sleep_ms(5);
    }
    return true;
}

static void judge_survivor(struct attempt *a, struct finding_of *f) {
    double limit_ms = 1000 * lab_slow();
    bool gone = marked_becomes(a->arg[0], 0, 500 * lab_slow());
    char text[80];

    (void)marked_becomes(a->arg[0], 0, 3000 * lab_slow()); /* it ends by itself */
    reap_strays(500 * lab_slow());
    if (!gone)
        return lab_found(f, VERDICT_THROUGH, "fork", "", "it outlived the run");
    if (!a->result || a->result->wall_ms > limit_ms)
        return lab_found(f, VERDICT_THROUGH, "fork", "", "it held the run up");
    if (f->verdict != VERDICT_THROUGH)
        return;
    (void)snprintf(text, sizeof(text), "the run took %.0f ms", a->result->wall_ms);
    lab_found(f, VERDICT_STOPPED, "fork", "dead", text);
}

/* ------------------------------------------------------------------ the deadline */

static bool half_a_second(struct attempt *a, struct finding_of *f) {
    (void)f;
    lab_set(a, "timeout", "%dms", (int)(200 * lab_slow()));
    lab_arg(a, "%d", (int)(600 * lab_slow()));
    return true;
}

/* ------------------------------------------------------------------ the caller's terminal */

static bool open_terminal(struct attempt *a, struct finding_of *f) {
    char name[64];

    a->fd[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (a->fd[0] < 0 || grantpt(a->fd[0]) < 0 || unlockpt(a->fd[0]) < 0 ||
        ptsname_r(a->fd[0], name, sizeof(name)) != 0)
        return lab_untestable(f, "no terminal: %s", strerrordesc_np(errno));
    a->fd[1] = open(name, O_RDWR | O_NOCTTY); // NOLINT(android-cloexec-open): to be inherited
    if (a->fd[1] < 0)
        return lab_untestable(f, "%s: %s", name, strerrordesc_np(errno));
    a->terminal = a->fd[1];
    lab_arg(a, "%s", name);
    lab_arg(a, "%d", a->fd[1]);
    return true;
}

/* What was typed in would be there to be read. */
static void judge_terminal(struct attempt *a, struct finding_of *f) {
    int waiting = 0;

    if (ioctl(a->fd[1], FIONREAD, &waiting) == 0 && waiting > 0)
        lab_found(f, VERDICT_THROUGH, "ioctl", "", "something was typed into the terminal");
}

/* ------------------------------------------------------------------ the supervisor is killed */

static const char outlive[] = "import time\n"
                              "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
                              "for i in range(2):\n"
                              "    if os.fork() == 0:\n"
                              "        os.setsid()\n"
                              "        break\n"
                              "time.sleep(float(sys.argv[2]))\n";

static _Noreturn void supervise(struct attempt *a) {
    char seconds[16];
    const char *args[] = {a->arg[0], seconds};
    struct mayfly_error e = {0};
    mayfly_result *result = NULL;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)snprintf(seconds, sizeof(seconds), "%.1f", 1.4 * lab_slow());
    attempt_stand_in(a);
    attempt_command(a, PAYLOAD_PYTHON, "outlive.py", args, 2);
    if (!a->problem[0])
        (void)mayfly_run(a->policy, NULL, &result, &e);
    _exit(1);
}

/* What a supervisor that is not there any more was to kill. Its cgroups are collected by whoever comes next. */
static bool kill_supervisor(struct attempt *a, struct finding_of *f) {
    struct mayfly_gc_report report;
    char text[80];

    (void)mark(a, f);
    if (attempt_python(a, "outlive.py", outlive) < 0)
        return lab_untestable(f, "the program to outlive it cannot be written");
    a->pid[0] = fork();
    if (a->pid[0] == 0)
        supervise(a);
    if (a->pid[0] < 0 || !marked_becomes(a->arg[0], 3, 5000 * lab_slow()))
        return lab_untestable(f, "the box did not come to life");
    double start = now_ms();
    (void)kill(a->pid[0], SIGKILL);
    (void)waitpid(a->pid[0], NULL, 0);
    a->pid[0] = 0;
    bool gone = marked_becomes(a->arg[0], 0, 800 * lab_slow());
    (void)snprintf(text, sizeof(text), "%s %.0f ms after the supervisor",
                   gone ? "the last was gone" : "some lived", now_ms() - start);
    lab_found(f, gone ? VERDICT_STOPPED : VERDICT_THROUGH, "fork", gone ? "dead" : "", text);
    (void)marked_becomes(a->arg[0], 0, 4000 * lab_slow());
    reap_strays(1000 * lab_slow());
    (void)mayfly_gc(0, &report, NULL);
    return true;
}

/* ------------------------------------------------------------------ an accomplice outside */

enum {
    HELD_UP_MS = 6000
}; /* longer than a run takes on a busy machine; nobody waits for it but who is held up */

/* Takes what comes through a socket that the operator handed in, and keeps it for a while. */
static bool start_accomplice(struct attempt *a, struct finding_of *f) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    double *started = malloc(sizeof(*started));

    if (!started || (size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s/box/door",
                                     a->dir) >= sizeof(address.sun_path))
        return lab_untestable(f, "%s/box/door is too long for a socket's name", a->dir);
    a->state = started;
    *started = now_ms();
    lab_arg(a, "%.200s/door", a->box);
    a->fd[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (a->fd[0] < 0 || bind(a->fd[0], (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        chmod(address.sun_path, 0777) < 0 || listen(a->fd[0], 1) < 0)
        return lab_untestable(f, "a listener on the host: %s", strerrordesc_np(errno));
    /* What was sent and is not taken is kept by the queue: the accomplice has to do nothing at all. */
    a->pid[0] = fork();
    if (a->pid[0] == 0) {
        sleep_ms((long)(HELD_UP_MS * lab_slow()));
        _exit(0);
    }
    (void)close(a->fd[0]);
    a->fd[0] = -1;
    return true;
}

static void judge_held_up(struct attempt *a, struct finding_of *f) {
    const double *started = a->state;

    if (f->verdict == VERDICT_THROUGH)
        lab_found(f, VERDICT_STOPPED, f->call, "ended", "the run ended without the pipe's end");
    if (now_ms() - *started > HELD_UP_MS * 0.9 * lab_slow())
        lab_found(f, VERDICT_THROUGH, f->call, "", "the run was held up by who has its stdout");
}

static bool few_processes(struct attempt *a, struct finding_of *f) {
    (void)f;
    lab_set(a, "pids-limit", "24");
    return true;
}

static bool short_deadline(struct attempt *a, struct finding_of *f) {
    (void)f;
    lab_set(a, "timeout", "%dms", (int)(200 * lab_slow()));
    lab_arg(a, "%d", (int)(600 * lab_slow()));
    return true;
}

/* Init of its own pid namespace cannot be killed from inside; of any other it would be, and is only asked. */
static bool signals_for_init(struct attempt *a, struct finding_of *f) {
    (void)f;
    lab_arg(a, "%s", lab_off(a, "pid") ? "0" : "19 15 9");
    return true;
}

/* A flood ends at the limit, or at 40, beyond it. The children end with their parent. */
#define FLOOD(start)                                                                               \
    "r, w = os.pipe()\n"                                                                           \
    "n = 0\n" start "try:\n"                                                                       \
    "    while n < 40:\n"                                                                          \
    "        more()\n"                                                                             \
    "        n += 1\n"                                                                             \
    "except (OSError, RuntimeError) as e:\n"                                                       \
    "    stopped('fork', e if isinstance(e, OSError) else 'EAGAIN', '%d were made' % n)\n"         \
    "through('fork', '%d were made' % n)\n"

/* The cgroup's end is that of everything in it, so without the pid namespace it stands in. Which controls have one made
 * depends on the host. */
#define CGROUP "memory cpu pids deadline"

#define OTHERS "pid user landlock"

const struct probe probes_processes[] = {
    /* It returns 0 where there is somebody, and all of them refused. Alone: a sentinel beside would hear it too. */
    {PROCESS, .id = "PS1", .title = "signal everybody: kill(-1)", .stopped_by = OTHERS,
     .may_stop = "caps", .sees = "ESRCH|EPERM|not reached",
     .echo = "kendex pull 1543: a job's kill(-1) ended its CI runner", .alone = true,
     .prepare = start_urgent, .judge = judge_urgent,
     .payload = "attempt('kill', os.kill, -1, signal.SIGURG)\n"},
    /* The box's own init: the kernel hides it from signals from inside that it has no handler for. */
    {PROCESS, .id = "PS1b", .title = "kill and stop init", .stopped_by = "", .may_stop = "identity",
     .sees = "EPERM", .echo = "Conch issue 180: SIGTERM to a sandbox's init made it unreachable",
     .prepare = signals_for_init,
     .payload = "for number in map(int, sys.argv[1].split()):\n"
                "    try:\n"
                "        os.kill(os.getppid(), number)\n"
                "    except OSError as e:\n"
                "        last = e\n"
                "    else:\n"
                "        through('kill', number)\n"
                "stopped('kill', last)\n"},
    {PROCESS, .id = "PS3", .title = "kill a process of the host by its number",
     .stopped_by = OTHERS, .may_stop = "caps", .sees = "ESRCH|EPERM",
     .echo = "s6-overlay issue 359: a container killed the sshd of its host",
     .prepare = start_sentinel, .judge = judge_sentinel,
     .payload = "attempt('kill', os.kill, int(sys.argv[1]), signal.SIGKILL)\n"},
    {PROCESS, .id = "PS3b", .title = "the same by a pidfd", .stopped_by = OTHERS " seccomp",
     .may_stop = "caps", .sees = "ENOSYS|ESRCH|EPERM", .prepare = start_sentinel,
     .judge = judge_sentinel,
     .payload = "def shoot():\n"
                "    signal.pidfd_send_signal(os.pidfd_open(int(sys.argv[1])), signal.SIGKILL)\n"
                "attempt('pidfd_send_signal', shoot)\n"},
    {PROCESS, .id = "PS3c", .title = "slow down a process of the host", .stopped_by = "pid user",
     .may_stop = "caps", .sees = "ESRCH|EPERM", .prepare = start_sentinel,
     .payload = "attempt('setpriority', os.setpriority, os.PRIO_PROCESS, int(sys.argv[1]), 19)\n"},
    {PROCESS, .id = "PS4", .title = "fork twice, setsid, and hold the output open",
     .stopped_by = "pid", .may_stop = CGROUP, .sees = "dead",
     .echo = "Codex issue 5229: a command's children kept it past its timeout",
     .prepare = mark_survivor, .judge = judge_survivor,
     .payload = "import time\n"
                "if os.fork() == 0:\n"
                "    os.setsid()\n"
                "    if os.fork() == 0:\n"
                "        signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
                "        time.sleep(float(sys.argv[2]))\n"
                "    os._exit(0)\n"
                "os.wait()\n"
                "through('fork')\n"},
    {PROCESS, .id = "PS5", .title = "ignore SIGTERM, and stop itself at the deadline",
     .stopped_by = "deadline", .sees = "timed_out",
     .echo = "agent-governance-toolkit pull 3193: code caught SIGTERM, and ran on",
     .prepare = half_a_second,
     .payload = "import time\n"
                "for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:\n"
                "    try:\n"
                "        signal.signal(number, signal.SIG_IGN)\n"
                "    except OSError:\n"
                "        pass\n"
                "signal.signal(signal.SIGCHLD, signal.SIG_DFL)\n"
                "if os.fork() == 0:\n"
                "    time.sleep(int(sys.argv[1]) / 1000)\n"
                "    os.kill(os.getppid(), signal.SIGCONT)\n"
                "    os._exit(0)\n"
                "os.kill(os.getpid(), signal.SIGSTOP)\n"
                "through('kill', 'it outlived its deadline')\n"},
    {PROCESS, .id = "PS6", .title = "a fork bomb", .stopped_by = "pids", .sees = "EAGAIN",
     .echo = "moby issue 6479: nothing stopped a fork bomb in a container",
     .prepare = few_processes,
     .payload = FLOOD("def more():\n"
                      "    if os.fork() == 0:\n"
                      "        os.close(w)\n"
                      "        os.read(r, 1)\n"
                      "        os._exit(0)\n")},
    {PROCESS, .id = "PS6b", .title = "a flood of threads", .stopped_by = "pids", .sees = "EAGAIN",
     .echo = "systemd issue 7879: nspawn containers used up the host's threads",
     .prepare = few_processes,
     .payload =
         "import _thread, threading\n"
         "threading.stack_size(65536)\n" FLOOD("def more():\n"
                                               "    _thread.start_new_thread(os.read, (r, 1))\n")},
    {PROCESS, .id = "PS7", .title = "a flood of zombies of its own", .stopped_by = "pids",
     .sees = "EAGAIN",
     .echo = "k8s-support issue 345: processes that containers leaked made nodes unmanageable",
     .prepare = few_processes,
     .payload = FLOOD("def more():\n"
                      "    if os.fork() == 0:\n"
                      "        os._exit(0)\n")},
    {PROCESS, .id = "PS7b", .title = "a flood of orphans that nobody waits for",
     .stopped_by = "pid", .sees = "reaped",
     .echo = "Docker, 2015: no init reaped the orphans of a container", .prepare = few_processes,
     .payload = "import time\n"
                "r, w = os.pipe()\n"
                "try:\n"
                "    for i in range(30):\n"
                "        if os.fork() == 0:\n"
                "            orphan = os.fork()\n"
                "            if orphan:\n"
                "                os.write(w, b'%d ' % orphan)\n"
                "            os._exit(0)\n"
                "        os.wait()\n"
                "except OSError as e:\n"
                "    through('fork', 'orphans filled the box: ' + name(e))\n"
                "def is_dead(pid):\n"
                "    try:\n"
                "        with open('%s/%s/stat' % (PROC, pid)) as stat:\n"
                "            return stat.read().rpartition(')')[2][1] == 'Z'\n"
                "    except OSError:\n"
                "        return False\n"
                "orphans, end = os.read(r, 4096).decode().split(), time.monotonic() + 0.3\n"
                "while (dead := sum(map(is_dead, orphans))) and time.monotonic() < end:\n"
                "    time.sleep(0.01)\n"
                "if dead:\n"
                "    through('fork', '%d zombies are left' % dead)\n"
                "stopped('fork', 'reaped')\n"},
    /* It takes a descriptor that leaked or the name of the terminal; that it is one's own, or a capability; and the call. */
    {PROCESS, .id = "PS8", .title = "type into the caller's terminal (TIOCSTI)",
     .stopped_by = "seccomp session fds", .sees = "EPERM",
     .echo = "CVE-2017-5226: code in bubblewrap typed into the caller's terminal",
     .why_alone = "dev.tty.legacy_tiocsti is 0 on this host", .prepare = open_terminal,
     .judge = judge_terminal,
     .payload = "import fcntl\n"
                "def type_in(fd):\n"
                "    fcntl.ioctl(fd, 0x5412, b'\\n')\n"
                "def type_into(path):\n"
                "    type_in(os.open(path, os.O_RDWR | os.O_NOCTTY))\n"
                "first_through([('open, ioctl', lambda p=p: type_into(p))\n"
                "               for p in ('/dev/tty', sys.argv[1])]\n"
                "              + [('ioctl', lambda fd=fd: type_in(fd))\n"
                "                 for fd in (int(sys.argv[2]), 0, 1, 2)])\n"},
    {PROCESS, .id = "PS8b", .title = "paste into the caller's terminal (TIOCLINUX)",
     .stopped_by = "seccomp", .sees = "EPERM",
     .echo = "CVE-2023-28100: code in Flatpak pasted into a virtual console",
     .prepare = open_terminal, .judge = judge_terminal,
     .payload = "import fcntl\n"
                "for fd in (int(sys.argv[2]), 0, 1, 2):\n"
                "    try:\n"
                "        fcntl.ioctl(fd, 0x541c, b'\\3')\n"
                "    except OSError as e:\n"
                "        last = e\n"
                "    else:\n"
                "        through('ioctl')\n"
                "if last.errno == errno.ENOTTY and not filtered():\n"
                "    untestable('a selection to paste is what a virtual console has, and no '\n"
                "               'pseudo-terminal')\n"
                "stopped('ioctl', last)\n"},
    {.family = "processes",
     .kind = PAYLOAD_HOST,
     .id = "PS9",
     .title = "outlive a supervisor that is killed",
     .stopped_by = "pid",
     .alone = true, /* anybody's next run collects what is left in the box's cgroups */
     .sees = "dead",
     .echo = "sandlock issue 238: descendants outlived their killed supervisor",
     .payload = outlive,
     .prepare = kill_supervisor},
    {PROCESS, .id = "PS10", .title = "give a child to init (CLONE_PARENT), to outlive the run",
     .stopped_by = "pid", .may_stop = CGROUP, .sees = "dead",
     .echo = "CVE-2009-0028: CLONE_PARENT let a child send any signal up", .prepare = mark_survivor,
     .judge = judge_survivor,
     .payload = "import time\n"
                "NR['clone'] = dict(x86_64=56, aarch64=220)[os.uname().machine]\n"
                "try:\n"
                "    pid = syscall(NR['clone'], 0x8000 | signal.SIGCHLD, 0, 0, 0, 0)\n"
                "except OSError as e:\n"
                "    stopped('clone', e)\n"
                "if pid == 0:\n"
                "    time.sleep(float(sys.argv[2]))\n"
                "    os._exit(0)\n"
                "through('clone')\n"},
    {PROCESS, .id = "PS11", .title = "hand its stdout out by a socket, and hold the run up",
     .stopped_by = "", .sees = "ended|EPERM",
     .echo = "Go issue 23019: Wait waited for whoever held the output", .prepare = start_accomplice,
     .judge = judge_held_up,
     .payload = "import _socket as socket\n"
                "s = socket.socket(socket.AF_UNIX)\n"
                "def hand_out():\n"
                "    s.connect(sys.argv[1])\n"
                "    send_fds(s, 1, 2)\n"
                "attempt('sendmsg', hand_out)\n"},
    /* poll(2) said that there is something to read; if it is gone by then, a read that blocks is past every deadline. */
    {PROCESS, .id = "PS12", .title = "take back what it printed, so that mayfly waits for it",
     .stopped_by = "", .sees = "timed_out|EACCES", .prepare = short_deadline,
     .payload = "try:\n"
                "    fd = os.open(PROC + '/self/fd/1', os.O_RDONLY | os.O_NONBLOCK)\n"
                "except OSError as e:\n"
                "    stopped('open', e)\n"
                "import time\n"
                "end = time.monotonic() + int(sys.argv[1]) / 1000\n"
                "while time.monotonic() < end:\n"
                "    try:\n"
                "        os.write(1, b'x')\n"
                "        os.read(fd, 1)\n"
                "    except OSError:\n"
                "        pass\n"
                "print()\n"
                "through('write', 'it outlived its deadline')\n"},
    {PROCESS, .id = "PS13", .title = "signal the caller's process group: kill(0)",
     .stopped_by = "session user landlock", .may_stop = "caps", .sees = "not reached",
     .prepare = start_in_group, .judge = judge_urgent,
     .payload = "attempt('kill', os.kill, 0, signal.SIGURG)\n"},
    {.id = NULL},
};
