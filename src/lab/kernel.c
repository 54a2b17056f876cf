/*
 * kernel.c: see kernel.h.
 *
 * The kernel sees this machine's files through hostfs, so this program is simply there: it is that kernel's init as
 * well, makes the file systems of a small cgroup v2 machine, and runs the very command again, in the usual box. What it
 * found comes back by a file, what it says by the console. The kernel has no exit status, so its init says one, and is
 * then ended, as it is when the one who asked goes away.
 */
#include "lab/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/complain.h"
#include "base/fd.h"
#include "lab/lab.h"
#include "lab/scratch.h"
#include "lab/show.h"
#include "linux/sys.h"

#include "base/banned.h"

#define PROGRAM "linux.uml"
#define JOB                                                                                        \
    "MAYFLY_LAB_JOB" /* names the directory; in the kernel's command line, and so in init's environment */
#define SAID_BEGUN "mayfly-lab: begun"
#define SAID_ENDED "mayfly-lab: ended "
/* A user-mode kernel takes several times as long as the machine's own. */
#define SLOW "8"
enum { MEMORY_MIB = 1536, ARGS_MAX = 64, JOB_MAX = 64 << 10, END_MS = 500 };

/* ------------------------------------------------------------------ in that kernel */

bool kernel_is_init(void) { return getpid() == 1 && getenv(JOB) != NULL; }

/* Debian builds overlayfs as a module, and puts it where its kernel would not look by itself. */
static void load_overlay(void) {
    struct utsname u;
    char path[256];

    if (uname(&u) < 0)
        return;
    (void)snprintf(path, sizeof(path), "/usr/lib/uml/modules/%s/kernel/fs/overlayfs/overlay.ko",
                   u.release);
    int fd _cleanup_fd_ = open(path, O_RDONLY | O_CLOEXEC);
    (void)syscall(SYS_finit_module, fd, "", 0); /* without it, the box's tree is read-only */
}

static void machine(void) {
    static const struct {
        const char *type, *place, *options;
    } mounts[] = {
        {"proc", "/proc", NULL},
        {"sysfs", "/sys", NULL},
        {"cgroup2", "/sys/fs/cgroup", NULL},
        {"devtmpfs", "/dev", NULL},
        {"devpts", "/dev/pts", NULL},
        {"tmpfs", "/dev/shm", "mode=1777"},
        {"tmpfs", "/run", "mode=755"},
    };
    int fd _cleanup_fd_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

    for (size_t i = 0; i < ARRAY_LEN(mounts); i++) {
        if (i > 3)
            (void)mkdir(mounts[i].place, 0755); /* in the new /dev: none on the host's own */
        (void)mount(mounts[i].type, mounts[i].place, mounts[i].type, 0, mounts[i].options);
    }
    load_overlay();
    if (symlink("/proc/self/fd", "/dev/fd") < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0 ||
        sethostname("lab", 3) < 0)
        complain("the lab's kernel: %s", errno_words(errno));
}

/* The words of the command, each ended by a NUL. */
static int read_words(char *text, size_t size, const char *dir, char **argv) {
    char path[4200];
    int n = 0;

    (void)snprintf(path, sizeof(path), "%s/job", dir);
    int fd _cleanup_fd_ = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -errno : fd_read_full(fd, text, size - 1);
    if (len < 0)
        return (int)len;
    text[len] = '\0';
    for (char *p = text; p < text + len && n < ARGS_MAX - 1; p += strlen(p) + 1)
        argv[n++] = p;
    argv[n] = NULL;
    return n;
}

static int again(const char *dir) {
    static char text[JOB_MAX];
    char *argv[ARGS_MAX], exe[PATH_MAX];
    int n = read_words(text, sizeof(text), dir, argv);
    ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

    if (n < 1 || len < 0) {
        complain("the lab's job cannot be read in its kernel: %s", errno_words(n < 0 ? n : errno));
        return EXIT_LAB_TROUBLE;
    }
    exe[len] = '\0';
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    (void)dup2(null, STDOUT_FILENO);
    (void)execv(exe, argv);
    complain("%s: %s", exe, errno_words(errno));
    return EXIT_LAB_TROUBLE;
}

_Noreturn void kernel_init(void) {
    const char *job = getenv(JOB);
    char *dir = strdup(job ? job : "");
    int status = 0;
    pid_t pid, ended;

    machine();
    (void)unsetenv(JOB);
    (void)printf(SAID_BEGUN "\n");
    (void)fflush(stdout);
    pid = fork();
    if (pid == 0)
        _exit(again(dir ? dir : ""));
    do
        ended = wait(&status);
    while (ended != pid && (ended > 0 || errno == EINTR));
    (void)printf("\n" SAID_ENDED "%d\n",
                 WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_LAB_TROUBLE);
    (void)fflush(stdout);
    sync();
    (void)reboot(RB_POWER_OFF);
    for (;;)
        (void)pause();
}

/* ------------------------------------------------------------------ outside */

struct machine {
    char dir[64];
    pid_t pid;
    int console, signals, lock;
};

static int fault(struct err *err, int code, const char *what) {
    return err_errno(err, ERR_SETUP, code, "", "mayfly lab --where box does without",
                     "the lab's kernel: %s", what);
}

static bool find_program(char *ret, size_t size) {
    for (const char *p = getenv("PATH"); p && *p;) {
        const char *end = strchrnul(p, ':');
        (void)snprintf(ret, size, "%.*s/" PROGRAM, (int)(end - p), p);
        if (access(ret, X_OK) == 0)
            return true;
        p = *end ? end + 1 : end;
    }
    return false;
}

static void add_word(struct buf *b, const char *word) { buf_add(b, word, strlen(word) + 1); }

/* The same question; how it is shown is decided here. */
static void add_question(struct buf *b, const struct question *q) {
    struct buf probes _cleanup_buf_ = {0}, controls _cleanup_buf_ = {0};

    for (size_t i = 0; i < q->n_probes; i++)
        buf_printf(&probes, "%s%s", i ? "," : "", q->probe[i]->id);
    controls_print(q->controls, ",", &controls);
    add_word(b, "--probe");
    add_word(b, probes.data ? probes.data : "");
    if (q->controls) {
        add_word(b, "--control");
        add_word(b, controls.data ? controls.data : "");
    }
    if (q->lacking) {
        struct buf lacks _cleanup_buf_ = {0};
        controls_print(q->lacks, ",", &lacks);
        add_word(b, "--lacks");
        add_word(b, lacks.data ? lacks.data : "-");
    }
    if (q->peers) {
        add_word(b, "--with");
        add_word(b, q->peers);
    }
    if (q->no_price)
        add_word(b, "--no-price");
    if (q->quiet)
        add_word(b, "--quiet");
    b->failed = b->failed || probes.failed || controls.failed;
}

static int write_job(const struct machine *m, const struct question *q, struct err *err) {
    struct buf b _cleanup_buf_ = {0};
    char path[128], result[128];

    (void)snprintf(result, sizeof(result), "%s/result", m->dir);
    (void)snprintf(path, sizeof(path), "%s/job", m->dir);
    const char *const fixed[] = {"mayfly-lab", "lab", "--rootfs", q->rootfs, "--json", result};
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        add_word(&b, fixed[i]);
    add_question(&b, q);
    int fd _cleanup_fd_ = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int r = b.failed ? -ENOMEM : fd < 0 ? -errno : fd_write_full(fd, b.data, b.len);
    return r < 0 ? fault(err, r, path) : 0;
}

/* The kernel's memory is a file: in /dev/shm where that has room. */
static const char *memory_place(const struct machine *m) {
    struct statvfs s;

    return statvfs("/dev/shm", &s) == 0 && s.f_bavail * s.f_bsize >= (uint64_t)MEMORY_MIB << 20
               ? "/dev/shm"
               : m->dir;
}

static _Noreturn void become_kernel(const struct machine *m, const char *program, int out) {
    char exe[PATH_MAX] = "", init[PATH_MAX + 8], mem[32], dir[80], job[96];
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    bool bar = isatty(STDERR_FILENO);
    sigset_t none;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setsid(); /* the terminal's signals are for who asked */
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (readlink("/proc/self/exe", exe, sizeof(exe) - 1) < 0 || dup2(null, 0) < 0 ||
        dup2(out, 1) < 0 || dup2(out, 2) < 0)
        _exit(EXIT_LAB_TROUBLE);
    (void)setenv("TMPDIR", memory_place(m), 1);
    (void)snprintf(init, sizeof(init), "init=%s", exe);
    (void)snprintf(mem, sizeof(mem), "mem=%dM", (int)MEMORY_MIB);
    (void)snprintf(dir, sizeof(dir), "uml_dir=%s", m->dir);
    (void)snprintf(job, sizeof(job), JOB "=%s", m->dir);
    (void)execl(program, program, "rootfstype=hostfs", "rootflags=/", "rw", mem, "quiet",
                "loglevel=3", "random.trust_cpu=on", dir, "umid=lab", init, "con0=null,fd:1",
                "con=null", job, "MAYFLY_TEST_SLOW=" SLOW,
                bar ? "MAYFLY_LAB_BAR=1" : "MAYFLY_LAB_BAR=0", NULL);
    _exit(EXIT_LAB_TROUBLE);
}

/* The kernel's processes are traced by its first, and would outlive it: so that is the first of a pid namespace. */
static pid_t fork_first(void) {
    struct clone_args args = {.flags = CLONE_NEWPID, .exit_signal = SIGCHLD};

    if (geteuid() != 0)
        args.flags |= CLONE_NEWUSER;
    return sys_clone3(&args, sizeof(args));
}

static int boot(struct machine *m, struct err *err) {
    char program[PATH_MAX];
    int ends[2];

    if (!find_program(program, sizeof(program)))
        return err_set(err, ERR_SETUP, -ENOENT, "",
                       "install the package user-mode-linux, or use --where box",
                       "the lab's kernel: no program " PROGRAM " in PATH");
    if (pipe2(ends, O_CLOEXEC) < 0)
        return fault(err, -errno, "a pipe");
    m->pid = fork_first();
    if (m->pid == 0)
        become_kernel(m, program, ends[1]);
    fd_close(&ends[1]);
    m->console = ends[0];
    return m->pid < 0 ? fault(err, -errno, "a process") : 0;
}

/* At SIGTERM it ends its own processes; what does not go that way is killed. */
static void halt(struct machine *m) {
    const struct timespec moment = {0, 10000000};
    pid_t gone = 0;

    if (m->pid <= 0)
        return;
    (void)kill(m->pid, SIGTERM);
    for (int ms = 0; ms < END_MS && gone == 0; ms += 10) {
        gone = waitpid(m->pid, NULL, WNOHANG);
        if (gone == 0)
            (void)nanosleep(&moment, NULL);
    }
    if (gone == 0 && kill(m->pid, SIGKILL) == 0)
        (void)waitpid(m->pid, NULL, 0);
    m->pid = 0;
}

/* What the lab says in there is said here, but for what the kernel says of itself. */
struct console {
    struct buf text;
    size_t shown;
    bool begun, ended;
    int status;
};

static void show_console(struct console *c) {
    const char *text = c->text.data ? c->text.data : "";
    const char *begun = c->begun ? NULL : strstr(text, SAID_BEGUN), *ended;

    if (begun) {
        c->begun = true;
        c->shown = (size_t)(begun - text) + strlen(SAID_BEGUN);
        c->shown += strspn(text + c->shown, "\r\n");
    }
    ended = c->begun ? strstr(text + c->shown, SAID_ENDED) : NULL;
    size_t end = ended ? (size_t)(ended - text) : c->text.len;
    if (c->begun && end > c->shown)
        (void)fd_write_full(STDERR_FILENO, text + c->shown, end - c->shown);
    c->shown = MAX(c->shown, end);
    if (ended && strchr(ended, '\n')) {
        c->ended = true;
        c->status = (int)strtol(ended + strlen(SAID_ENDED), NULL, 10);
    }
}

/* 0 once the command ended; the signal that came instead; -errno. */
static int listen_to(struct machine *m, struct console *c) {
    struct pollfd p[] = {{.fd = m->console, .events = POLLIN},
                         {.fd = m->signals, .events = POLLIN}};
    struct signalfd_siginfo info;

    while (!c->ended) {
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return -errno;
        if (p[1].revents && read(m->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
            return (int)info.ssi_signo;
        if (!p[0].revents)
            continue;
        char *room = buf_reserve(&c->text, 4096);
        ssize_t n = room ? read(m->console, room, 4095) : -1;
        if (n <= 0)
            return n == 0 ? -EPIPE : room ? -errno : -ENOMEM;
        room[n] = '\0';
        c->text.len += (size_t)n;
        show_console(c);
    }
    return 0;
}

static int take_result(const struct machine *m, json_t **ret, struct err *err) {
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/result", m->dir);
    int r = lab_load(path, ret, err);
    if (r == 0)
        (void)json_object_set_new(*ret, "where", json_string("kernel"));
    return r;
}

static int in_machine(struct machine *m, const struct question *q, json_t **ret, struct err *err) {
    struct console c = {0};
    int r = write_job(m, q, err);

    if (r == 0)
        r = boot(m, err);
    int heard = r == 0 ? listen_to(m, &c) : 0;
    halt(m);
    if (r == 0 && heard < 0)
        r = err_set(err, ERR_SETUP, heard, "", "mayfly lab --where box does without",
                    "the lab's kernel ended before the lab did: %.300s",
                    c.begun || !c.text.data ? "" : c.text.data);
    if (r == 0 && heard == 0 && c.status == 0)
        r = take_result(m, ret, err);
    buf_done(&c.text);
    return r < 0 ? r : heard > 0 ? 128 + heard : c.status;
}

int kernel_study(const struct question *q, json_t **ret, struct err *err) {
    struct machine m = {.console = -1, .signals = -1, .lock = -1};
    sigset_t set, old;

    int made = scratch_dir("kernel", m.dir, sizeof(m.dir), &m.lock);
    if (made < 0) {
        complain("a directory in /tmp for the lab's kernel: %s", errno_words(made));
        return EXIT_LAB_TROUBLE;
    }
    lab_catch_signals(&set, &old);
    m.signals = signalfd(-1, &set, SFD_CLOEXEC);
    int r = in_machine(&m, q, ret, err);
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    fd_close(&m.console);
    fd_close(&m.signals);
    scratch_remove(m.dir);
    fd_close(&m.lock);
    if (r < 0)
        complain("%s", err->message);
    return r < 0 ? EXIT_LAB_TROUBLE : *ret ? -1 : r;
}
