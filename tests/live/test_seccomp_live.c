/*
 * test_seccomp_live.c: the default filter in the kernel: it answers as the interpreter says it would,
 * ordinary programs work under it, and a foreign call reaches the supervisor's end and nothing else.
 *
 * Each test forks, gives up its capabilities, loads the filter and passes the listener to the parent,
 * just as a box's payload does, but with no box around it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/protocol.h"
#include "control/control.h"
#include "control/seccomp_compile.h"
#include "linux/bpf.h"
#include "linux/procfs.h"
#include "linux/sys.h"

#include "base/banned.h"

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#endif

enum { LAST = 600, NOT_LOADED = 99 };

/* Written by the child, read by the parent. */
struct shared {
    char said[256];
    char status[4096];
};

struct run {
    int status; /* as wait's */
    bool notified;
    uint32_t arch;
    int nr;
};

struct fixture {
    struct policy *policy;
    struct host *host;
    struct plan *plan;
    const struct filter *filter;
    struct shared *shared;
};

static int set_up(void **state) {
    struct fixture *f = calloc(1, sizeof(*f));
    struct err err = {0};

    assert_non_null(f);
    f->policy = policy_new();
    f->host = calloc(1, sizeof(*f->host));
    assert_true(f->policy && f->host);
    f->plan = plan_alloc(f->policy, f->host);
    assert_non_null(f->plan);
    if (control_find("seccomp")->plan(f->policy, f->host, f->plan, &err) < 0)
        fail_msg("%s", err.message);
    f->filter = f->plan->ops[0].data;
    f->shared =
        mmap(NULL, sizeof(*f->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(f->shared != MAP_FAILED);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;

    (void)munmap(f->shared, sizeof(*f->shared));
    plan_free(f->plan);
    policy_free(f->policy);
    free(f->host);
    free(f);
    return 0;
}

/* ------------------------------------------------------------------ a child under the filter */

typedef int child_fn(const struct fixture *f);

/* Should the filter not hold, what is tried must still do no harm to the machine. */
static bool give_up_capabilities(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};

    return syscall(SYS_capset, &header, none) == 0;
}

/* cmocka catches faults, to go on with the next test; in a child that would run the tests once more. */
static void faults_are_fatal(void) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS};

    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        (void)signal(faults[i], SIG_DFL);
}

static _Noreturn void child(const struct fixture *f, const struct filter *filter, int sock,
                            child_fn *fn) {
    struct sock_fprog prog = {.len = filter->len,
                              .filter = (struct sock_filter *)(uintptr_t)filter->code};
    struct msg m = {.kind = MSG_LISTENER};

    faults_are_fatal();
    if (!give_up_capabilities() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        _exit(NOT_LOADED);
    int fd = sys_seccomp_load(&prog, filter->notify ? 1u << 3 : 0);
    if (fd < 0 || (filter->notify && msg_send(sock, &m, fd) < 0))
        _exit(NOT_LOADED);
    if (filter->notify)
        (void)close(fd);
    (void)close(sock);
    _exit(fn(f));
}

/* Until the end, answers what is notified as the supervisor does. */
static void watch(int listener, pid_t pid, struct run *run) {
    struct pollfd p = {.fd = listener, .events = POLLIN};
    struct seccomp_notif call;
    int n;

    /* POLLHUP: nobody is left under the filter */
    while ((n = poll(&p, 1, 20000)) == 1 && p.revents & POLLIN &&
           sys_seccomp_receive(listener, &call) == 0 && seccomp_is_native(&call.data))
        (void)sys_seccomp_refuse(listener, call.id, EPERM);
    if (n == 1 && p.revents & POLLIN) {
        run->notified = true;
        run->nr = call.data.nr;
        run->arch = call.data.arch;
        (void)kill(pid, SIGKILL);
    } else if (!(p.revents & POLLHUP)) {
        (void)kill(pid, SIGKILL);
    }
}

static struct run run_with(struct fixture *f, const struct filter *filter, child_fn *fn) {
    struct run run = {.nr = -1};
    int sock[2], listener = -1;
    struct msg m;

    memset(f->shared, 0, sizeof(*f->shared));
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock), 0);
    (void)fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        child(f, filter, sock[1], fn);
    (void)close(sock[1]);
    if (filter->notify && msg_recv(sock[0], &m, &listener) == 1 && listener >= 0) {
        watch(listener, pid, &run);
        (void)close(listener);
    }
    (void)close(sock[0]);
    assert_int_equal(waitpid(pid, &run.status, 0), pid);
    if (WIFEXITED(run.status) && WEXITSTATUS(run.status) == NOT_LOADED)
        fail_msg("the filter could not be loaded");
    return run;
}

/* The child's function must end by itself, and say nothing. */
static void must_do(struct fixture *f, child_fn *fn) {
    struct run run = run_with(f, f->filter, fn);

    if (run.notified)
        fail_msg("call %d of 0x%x was notified", run.nr, run.arch);
    if (!WIFEXITED(run.status) || WEXITSTATUS(run.status) != 0)
        fail_msg("%s (status 0x%x)", f->shared->said, (unsigned)run.status);
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            int errno_ = errno;                                                                    \
            (void)snprintf(f->shared->said, sizeof(f->shared->said), "%s: errno %d", #condition,   \
                           errno_);                                                                \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)
#define REFUSED(want, ...) CHECK(syscall(__VA_ARGS__) == -1 && errno == (want))

/* ------------------------------------------------------------------ refusals */

/* Linux keeps these two, uretprobe and uprobe, from every filter (since 6.14 and 6.18): the kernel's own
 * trampolines make them, and made by anyone else they are a SIGILL. */
static bool past_every_filter(int nr) {
#if defined(__x86_64__)
    return nr == 335 || nr == 336;
#else
    return nr < 0;
#endif
}

/* Every number whose call would not be executed, with arguments that fit nothing. */
static int all_refusals(const struct fixture *f) {
    struct seccomp_data call = {.arch = NATIVE};

    memset(call.args, 0xff, sizeof(call.args));
    for (int nr = 0; nr <= LAST; nr++) {
        call.nr = nr;
        uint32_t answer = bpf_run(f->filter->code, f->filter->len, &call);
        if ((answer & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_ERRNO || past_every_filter(nr))
            continue;
        errno = 0;
        (void)snprintf(f->shared->said, sizeof(f->shared->said), "call %d ended it", nr);
        long r = syscall(nr, -1L, -1L, -1L, -1L, -1L, -1L);
        if (r != -1 || errno != (int)(answer & SECCOMP_RET_DATA)) {
            (void)snprintf(f->shared->said, sizeof(f->shared->said), "call %d: %ld, errno %d", nr,
                           r, errno);
            return 1;
        }
    }
    return 0;
}

static void the_kernel_refuses_what_the_interpreter_says(void **state) {
    must_do(*state, all_refusals);
}

static int attacks(const struct fixture *f) {
    int pair[2];
    char tiocsti = 'x';

    REFUSED(EPERM, SYS_memfd_create, "x", 0);
    REFUSED(EPERM, SYS_io_uring_setup, 1, NULL);
    REFUSED(EPERM, SYS_userfaultfd, 1);
    REFUSED(EPERM, SYS_keyctl, 0, -1, 1);
    REFUSED(EPERM, SYS_bpf, 0, NULL, 0);
    REFUSED(EPERM, SYS_unshare, 0x10000000);
    REFUSED(EPERM, SYS_clone, 0x10000000 | SIGCHLD, 0, 0, 0, 0);
    REFUSED(ENOSYS, SYS_clone3, NULL, 0);
    REFUSED(EPERM, SYS_ptrace, 0, 0, 0, 0);
    REFUSED(EPERM, SYS_personality, 0x0040000);
    REFUSED(EPERM, SYS_ioctl, 0, 0x5412, &tiocsti);
    REFUSED(EPERM, SYS_ioctl, 0, 0x5412 | (1L << 32), &tiocsti);
    REFUSED(EPERM, SYS_ioctl, 0, 0x541c | (1L << 63), &tiocsti);
    REFUSED(EPERM, SYS_socket, 16, SOCK_RAW, 0);       /* netlink */
    REFUSED(EPERM, SYS_socket, 40, SOCK_STREAM, 0);    /* vsock */
    REFUSED(EPERM, SYS_socket, 38, SOCK_SEQPACKET, 0); /* alg */
    REFUSED(EPERM, SYS_socket, 17, SOCK_RAW, 0);       /* packet */
    REFUSED(EPERM, SYS_socket, AF_INET, SOCK_RAW, 1);
    CHECK(syscall(SYS_socket, 16L | (1L << 32), SOCK_RAW, 0) == -1);
    REFUSED(ENOSYS, 9999);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    return 0;
}

static void what_attacks_need_is_refused(void **state) { must_do(*state, attacks); }

/* ------------------------------------------------------------------ ordinary work */

static void *in_thread(void *arg) {
    *(int *)arg = 1;
    return NULL;
}

static int work(const struct fixture *f) {
    char path[] = "/tmp/mayfly-seccomp-XXXXXX";
    pthread_t thread;
    int ran = 0, status = 0;

    CHECK(pthread_create(&thread, NULL, in_thread, &ran) == 0);
    CHECK(pthread_join(thread, NULL) == 0 && ran == 1);
    int fd = mkostemp(path, O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK(write(fd, "x", 1) == 1 && ftruncate(fd, 0) == 0 && close(fd) == 0);
    fd = creat(path, 0600);
    CHECK(fd >= 0 && isatty(fd) == 0 && errno == ENOTTY && close(fd) == 0 && unlink(path) == 0);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && listen(fd, 1) == 0 && close(fd) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)execl("/bin/sh", "sh", "-c", "x=$(echo 7 | cat) && [ $x = 7 ]", (char *)NULL);
        _exit(127);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    return 0;
}

static void threads_files_sockets_and_commands_work(void **state) { must_do(*state, work); }

/* ------------------------------------------------------------------ foreign calls */

#if defined(__x86_64__)
/* getpid of the 32-bit interface; its number is writev's in the 64-bit one, which fails. */
static int int80_getpid(void) {
    int r;

    __asm__ volatile("int $0x80" : "=a"(r) : "a"(20), "b"(-1), "c"(0), "d"(0) : "memory");
    return r;
}

static int make_int80(const struct fixture *f) {
    (void)snprintf(f->shared->said, sizeof(f->shared->said), "%d", int80_getpid());
    return 0;
}

static int make_x32(const struct fixture *f) {
    (void)snprintf(f->shared->said, sizeof(f->shared->said), "%ld",
                   syscall(0x40000000L | SYS_getpid));
    return 0;
}

/* Without a filter, in a process of its own: where the kernel has no such interface it is a fault. */
static bool kernel_has_int80(void) {
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        faults_are_fatal();
        _exit(int80_getpid() == getpid() ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status == 0;
}

static void need_int80(void) {
    if (!kernel_has_int80()) {
        print_message("SKIPPED: int 0x80 is a fault on this machine\n");
        skip();
    }
}

static void a_32_bit_call_is_named_and_not_executed(void **state) {
    struct fixture *f = *state;

    need_int80();
    struct run run = run_with(f, f->filter, make_int80);
    assert_true(run.notified);
    assert_int_equal(run.nr, 20);
    assert_int_equal(run.arch, AUDIT_ARCH_I386);
    assert_true(WIFSIGNALED(run.status) && WTERMSIG(run.status) == SIGKILL);
    assert_string_equal(f->shared->said, "");
}

static void an_x32_call_is_named_and_not_executed(void **state) {
    struct fixture *f = *state;
    struct run run = run_with(f, f->filter, make_x32);

    assert_true(run.notified);
    assert_int_equal(run.nr, 0x40000000 | SYS_getpid);
    assert_int_equal(run.arch, AUDIT_ARCH_X86_64);
    assert_true(WIFSIGNALED(run.status) && WTERMSIG(run.status) == SIGKILL);
    assert_string_equal(f->shared->said, "");
}

/* As a profile that refuses sendmsg makes it. */
static void killed_without_listener(struct fixture *f, child_fn *fn) {
    const struct profile all = {.default_action = PROFILE_ALLOW};
    struct sock_filter *code = NULL;
    struct filter filter = {.notify = false};
    struct err err = {0};

    if (seccomp_compile(&all, false, &code, &filter.len, &err) < 0)
        fail_msg("%s", err.message);
    filter.code = code;
    struct run run = run_with(f, &filter, fn);
    free(code);
    assert_true(WIFSIGNALED(run.status) && WTERMSIG(run.status) == SIGSYS);
    assert_string_equal(f->shared->said, "");
}

static void without_a_listener_a_32_bit_call_is_killed(void **state) {
    need_int80();
    killed_without_listener(*state, make_int80);
}

static void without_a_listener_an_x32_call_is_killed(void **state) {
    killed_without_listener(*state, make_x32);
}
#endif

/* ------------------------------------------------------------------ evidence */

static int read_status(const struct fixture *f) {
    CHECK(file_read_at(AT_FDCWD, "/proc/self/status", f->shared->status,
                       sizeof(f->shared->status)) > 0);
    return 0;
}

static void the_kernel_shows_that_it_is_in_force(void **state) {
    struct fixture *f = *state;
    static struct evidence inside;
    struct op op = {.kind = OP_SECCOMP, .data = f->filter};
    struct plan plan = {.ops = &op, .n_ops = 1};
    struct view view = {.inside = &inside, .plan = &plan};
    struct finding finding = {.in_force = false};
    const struct control *control = control_find("seccomp");

    must_do(f, read_status);
    (void)str_copy(inside.status, sizeof(inside.status), f->shared->status);
    control->verify(&view, &finding);
    if (!finding.in_force)
        fail_msg("%s", finding.evidence);
    assert_int_equal(read_status(f), 0); /* our own: has no filter of the box's */
    (void)str_copy(inside.status, sizeof(inside.status), f->shared->status);
    control->verify(&view, &finding);
    if (finding.in_force)
        fail_msg("without a filter: %s", finding.evidence);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_kernel_refuses_what_the_interpreter_says),
        TEST(what_attacks_need_is_refused),
        TEST(threads_files_sockets_and_commands_work),
#if defined(__x86_64__)
        TEST(a_32_bit_call_is_named_and_not_executed),
        TEST(an_x32_call_is_named_and_not_executed),
        TEST(without_a_listener_a_32_bit_call_is_killed),
        TEST(without_a_listener_an_x32_call_is_killed),
#endif
        TEST(the_kernel_shows_that_it_is_in_force),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
