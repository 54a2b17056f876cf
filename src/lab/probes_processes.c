/*
 * probes_processes.c: signals, floods of processes, and outliving the run.
 *
 * Signals go to sentinels that the attempt itself started, and where a call would reach everybody it
 * carries signal 0, which only asks. What must not outlive a run has a mark in its arguments that no
 * other process has, and ends by itself after a few seconds whatever happens.
 */
#include "lab/families.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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

#include "base/banned.h"

#define PROCESS .family = "processes", .kind = PAYLOAD_PYTHON

static double now_ms(void) { return (double)now_ns() / 1e6; }

static void sleep_ms(long ms) {
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&t, NULL);
}

/* ------------------------------------------------------------------ sentinels */

/* A process of the id that the payload has on the host where nothing maps its ids. */
static bool start_sentinel(struct attempt *a, struct finding_of *f) {
    enum { PAYLOAD_ID = 1000 };

    a->pid[0] = fork();
    if (a->pid[0] < 0)
        return lab_untestable(f, "no sentinel: %s", strerrordesc_np(errno));
    if (a->pid[0] == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (geteuid() == 0 && (setgid(PAYLOAD_ID) < 0 || setuid(PAYLOAD_ID) < 0))
            _exit(1);
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

/* ------------------------------------------------------------------ marks */

static bool mark(struct attempt *a, struct finding_of *f) {
    (void)f;
    lab_arg(a, "mayfly-mark-%d-%ld", (int)getpid(), (long)(now_ms() * 1000) % 1000000000);
    return true;
}

/* The cgroup's end is that of everything in it, so without the pid namespace it stands in; which control has one made
 * depends on the host. What is then left is what mayfly would do alone. */
static void without_cgroups(struct attempt *a) {
    static const char *const controls[] = {"memory", "cpu", "pids", "deadline"};

    for (size_t i = 0; i < ARRAY_LEN(controls); i++)
        if (!lab_off(a, controls[i]))
            lab_set(a, "without", "%s", controls[i]);
}

static bool mark_survivor(struct attempt *a, struct finding_of *f) {
    if (lab_off(a, "deadline"))
        without_cgroups(a);
    return mark(a, f);
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
    double limit_ms = 4000 * lab_slow();
    bool gone = marked_becomes(a->arg[0], 0, 500 * lab_slow());
    char text[80];

    (void)marked_becomes(a->arg[0], 0, 5000 * lab_slow()); /* it ends by itself */
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
    lab_set(a, "timeout", "%dms", (int)(500 * lab_slow()));
    lab_arg(a, "%d", (int)(1500 * lab_slow()));
    return true;
}

/* ------------------------------------------------------------------ the caller's terminal */

static bool open_terminal(struct attempt *a, struct finding_of *f) {
    char name[64];

    a->fd[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (a->fd[0] < 0 || grantpt(a->fd[0]) < 0 || unlockpt(a->fd[0]) < 0 ||
        ptsname_r(a->fd[0], name, sizeof(name)) != 0)
        return lab_untestable(f, "no terminal: %s", strerrordesc_np(errno));
    a->fd[1] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (a->fd[1] < 0)
        return lab_untestable(f, "%s: %s", name, strerrordesc_np(errno));
    a->input.stdin_fd = a->fd[1];
    return true;
}

/* What was typed in would be there to be read. */
static void judge_terminal(struct attempt *a, struct finding_of *f) {
    int waiting = 0;

    if (ioctl(a->fd[1], FIONREAD, &waiting) == 0 && waiting > 0)
        lab_found(f, VERDICT_THROUGH, "ioctl", "", "something was typed into the terminal");
}

/* ------------------------------------------------------------------ the supervisor is killed */

static const char outlive[] = "import os, signal, sys, time\n"
                              "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
                              "for i in range(2):\n"
                              "    if os.fork() == 0:\n"
                              "        os.setsid()\n"
                              "        break\n"
                              "time.sleep(float(sys.argv[2]))\n";

static _Noreturn void supervise(struct attempt *a) {
    char seconds[16];
    const char *argv[] = {"python3", "-I", "-c", outlive, a->arg[0], seconds, NULL};
    struct mayfly_error e = {0};
    mayfly_result *result = NULL;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)snprintf(seconds, sizeof(seconds), "%d", (int)(4 * lab_slow()));
    if (mayfly_policy_command(a->policy, argv, &e) == 0)
        (void)mayfly_run(a->policy, NULL, &result, &e);
    _exit(1);
}

/* What a supervisor that is not there any more was to kill. Its cgroups are collected by whoever comes next. */
static bool kill_supervisor(struct attempt *a, struct finding_of *f) {
    struct mayfly_gc_report report;
    char text[80];

    (void)mark(a, f);
    if (lab_off(a, "pid"))
        without_cgroups(a); /* anybody's next run would collect them */
    a->pid[0] = fork();
    if (a->pid[0] == 0)
        supervise(a);
    if (a->pid[0] < 0 || !marked_becomes(a->arg[0], 3, 5000 * lab_slow()))
        return lab_untestable(f, "the box did not come to life");
    double start = now_ms();
    (void)kill(a->pid[0], SIGKILL);
    (void)waitpid(a->pid[0], NULL, 0);
    a->pid[0] = 0;
    bool gone = marked_becomes(a->arg[0], 0, 1000 * lab_slow());
    (void)snprintf(text, sizeof(text), "%s %.0f ms after the supervisor",
                   gone ? "the last was gone" : "some lived", now_ms() - start);
    lab_found(f, gone ? VERDICT_STOPPED : VERDICT_THROUGH, "fork", gone ? "dead" : "", text);
    (void)marked_becomes(a->arg[0], 0, 6000 * lab_slow());
    reap_strays(1000 * lab_slow());
    (void)mayfly_gc(0, &report, NULL);
    return true;
}

/* ------------------------------------------------------------------ an accomplice outside */

/* Takes what comes through a socket that the operator handed in, and keeps it for three seconds. */
static bool start_accomplice(struct attempt *a, struct finding_of *f) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    double *started = malloc(sizeof(*started));

    if (!started || (size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s/box/door",
                                     a->dir) >= sizeof(address.sun_path))
        return lab_untestable(f, "%s/box/door is too long for a socket's name", a->dir);
    a->state = started;
    *started = now_ms();
    a->fd[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (a->fd[0] < 0 || bind(a->fd[0], (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        chmod(address.sun_path, 0777) < 0 || listen(a->fd[0], 1) < 0)
        return lab_untestable(f, "a listener on the host: %s", strerrordesc_np(errno));
    /* What was sent and is not taken is kept by the queue: the accomplice has to do nothing at all. */
    a->pid[0] = fork();
    if (a->pid[0] == 0) {
        sleep_ms((long)(3000 * lab_slow()));
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
    if (now_ms() - *started > 2500 * lab_slow())
        lab_found(f, VERDICT_THROUGH, f->call, "", "the run was held up by who has its stdout");
}

static bool few_processes(struct attempt *a, struct finding_of *f) {
    (void)f;
    lab_set(a, "pids-limit", "24");
    return true;
}

static bool short_deadline(struct attempt *a, struct finding_of *f) {
    (void)f;
    lab_set(a, "timeout", "%dms", (int)(500 * lab_slow()));
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

#define OTHERS "pid user landlock"

const struct probe probes_processes[] = {
    {PROCESS, .id = "PS1", .title = "signal everybody: kill(-1)", .stopped_by = "pid",
     .sees = "ESRCH|EPERM", .prepare = start_sentinel,
     .payload = "attempt('kill', os.kill, -1, 0)\n"},
    /* The box's own init: the kernel hides it from signals from inside that it has no handler for. */
    {PROCESS, .id = "PS1b", .title = "kill and stop init", .stopped_by = "", .sees = "EPERM",
     .payload = "if os.getpid() > 9:\n"
                "    untestable('this is not a pid namespace of its own')\n"
                "for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL):\n"
                "    try:\n"
                "        os.kill(1, number)\n"
                "    except OSError as e:\n"
                "        last = e\n"
                "    else:\n"
                "        through('kill', number)\n"
                "stopped('kill', last)\n"},
    {PROCESS, .id = "PS3", .title = "kill a process of the host by its number",
     .stopped_by = OTHERS, .sees = "ESRCH|EPERM", .prepare = start_sentinel,
     .judge = judge_sentinel,
     .payload = "attempt('kill', os.kill, int(sys.argv[1]), signal.SIGKILL)\n"},
    {PROCESS, .id = "PS3b", .title = "the same by a pidfd", .stopped_by = OTHERS " seccomp",
     .sees = "ENOSYS|ESRCH|EPERM", .prepare = start_sentinel, .judge = judge_sentinel,
     .payload = "def shoot():\n"
                "    signal.pidfd_send_signal(os.pidfd_open(int(sys.argv[1])), signal.SIGKILL)\n"
                "attempt('pidfd_send_signal', shoot)\n"},
    {PROCESS, .id = "PS3c", .title = "slow down a process of the host", .stopped_by = "pid user",
     .sees = "ESRCH|EPERM", .prepare = start_sentinel,
     .payload = "attempt('setpriority', os.setpriority, os.PRIO_PROCESS, int(sys.argv[1]), 19)\n"},
    {PROCESS, .id = "PS4", .title = "fork twice, setsid, and hold the output open",
     .stopped_by = "pid deadline", .sees = "dead", .prepare = mark_survivor,
     .judge = judge_survivor,
     .payload = "import time\n"
                "if os.fork() == 0:\n"
                "    os.setsid()\n"
                "    if os.fork() == 0:\n"
                "        signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
                "        time.sleep(3)\n"
                "    os._exit(0)\n"
                "os.wait()\n"
                "through('fork')\n"},
    {PROCESS, .id = "PS5", .title = "ignore SIGTERM, and stop itself at the deadline",
     .stopped_by = "deadline", .sees = "timed_out", .prepare = half_a_second,
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
     .prepare = few_processes,
     .payload = FLOOD("def more():\n"
                      "    if os.fork() == 0:\n"
                      "        os.close(w)\n"
                      "        os.read(r, 1)\n"
                      "        os._exit(0)\n")},
    {PROCESS, .id = "PS6b", .title = "a flood of threads", .stopped_by = "pids", .sees = "EAGAIN",
     .prepare = few_processes,
     .payload =
         "import _thread, threading\n"
         "threading.stack_size(65536)\n" FLOOD("def more():\n"
                                               "    _thread.start_new_thread(os.read, (r, 1))\n")},
    {PROCESS, .id = "PS7", .title = "a flood of zombies of its own", .stopped_by = "pids",
     .sees = "EAGAIN", .prepare = few_processes,
     .payload = FLOOD("def more():\n"
                      "    if os.fork() == 0:\n"
                      "        os._exit(0)\n")},
    {PROCESS, .id = "PS7b", .title = "a flood of orphans that nobody waits for", .stopped_by = "",
     .sees = "reaped", .prepare = few_processes,
     .payload = "import time\n"
                "try:\n"
                "    for i in range(40):\n"
                "        if os.fork() == 0:\n"
                "            if os.fork() == 0:\n"
                "                os._exit(0)\n"
                "            os._exit(0)\n"
                "        os.wait()\n"
                "except OSError as e:\n"
                "    through('fork', 'orphans filled the box: ' + name(e))\n"
                "time.sleep(0.2)\n"
                "dead = 0\n"
                "for pid in filter(str.isdigit, os.listdir('/proc')):\n"
                "    try:\n"
                "        dead += open('/proc/%s/stat' % pid).read().rpartition(')')[2][1] == 'Z'\n"
                "    except OSError:\n"
                "        pass\n"
                "if dead:\n"
                "    through('fork', '%d zombies are left' % dead)\n"
                "stopped('fork', 'reaped')\n"},
    {PROCESS, .id = "PS8", .title = "type into the caller's terminal (TIOCSTI)",
     .stopped_by = "seccomp session", .sees = "EPERM", .echo = "CVE-2017-5226",
     .why_alone = "the code's stdin is a pipe of mayfly's, never the caller's terminal",
     .prepare = open_terminal, .judge = judge_terminal,
     .payload = "import fcntl\n"
                "def type_in(fd):\n"
                "    fcntl.ioctl(fd, 0x5412, b'x')\n"
                "first_through([('ioctl', lambda: type_in(os.open('/dev/tty', os.O_RDWR)))] +\n"
                "              [('ioctl', lambda fd=fd: type_in(fd)) for fd in (0, 1, 2)])\n"},
    {PROCESS, .id = "PS8b", .title = "paste into the caller's terminal (TIOCLINUX)",
     .stopped_by = "seccomp session", .sees = "EPERM", .echo = "CVE-2023-28100",
     .why_alone = "the code's stdin is a pipe of mayfly's, never the caller's terminal",
     .prepare = open_terminal, .judge = judge_terminal,
     .payload = "import fcntl\n"
                "first_through([('ioctl', lambda fd=fd: fcntl.ioctl(fd, 0x541c, b'\\3'))\n"
                "               for fd in (0, 1, 2)])\n"},
    {.family = "processes",
     .kind = PAYLOAD_HOST,
     .id = "PS9",
     .title = "outlive a supervisor that is killed",
     .stopped_by = "pid",
     .sees = "dead",
     .payload = outlive,
     .prepare = kill_supervisor},
    {PROCESS, .id = "PS10", .title = "give a child to init (CLONE_PARENT), to outlive the run",
     .stopped_by = "pid deadline", .sees = "dead", .prepare = mark_survivor,
     .judge = judge_survivor,
     .payload = "import time\n"
                "NR['clone'] = dict(x86_64=56, aarch64=220)[os.uname().machine]\n"
                "try:\n"
                "    pid = syscall(NR['clone'], 0x8000 | signal.SIGCHLD, 0, 0, 0, 0)\n"
                "except OSError as e:\n"
                "    stopped('clone', e)\n"
                "if pid == 0:\n"
                "    time.sleep(3)\n"
                "    os._exit(0)\n"
                "through('clone')\n"},
    {PROCESS, .id = "PS11", .title = "hand its stdout out by a socket, and hold the run up",
     .stopped_by = "", .sees = "ended|EPERM", .prepare = start_accomplice, .judge = judge_held_up,
     .payload = "import socket\n"
                "s = socket.socket(socket.AF_UNIX)\n"
                "def hand_out():\n"
                "    s.connect('/mnt/door')\n"
                "    socket.send_fds(s, [b'x'], [1, 2])\n"
                "attempt('sendmsg', hand_out)\n"},
    /* poll(2) said that there is something to read; if it is gone by then, a read that blocks is past every deadline. */
    {PROCESS, .id = "PS12", .title = "take back what it printed, so that mayfly waits for it",
     .stopped_by = "", .sees = "timed_out|EACCES", .prepare = short_deadline,
     .payload = "try:\n"
                "    fd = os.open('/proc/self/fd/1', os.O_RDONLY | os.O_NONBLOCK)\n"
                "except OSError as e:\n"
                "    stopped('open', e)\n"
                "while True:\n"
                "    try:\n"
                "        os.write(1, b'x')\n"
                "        os.read(fd, 1)\n"
                "    except OSError:\n"
                "        pass\n"},
    {.id = NULL},
};
