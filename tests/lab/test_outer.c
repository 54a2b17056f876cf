/*
 * test_outer.c: the box around the lab: what is done in it stays in it, whatever a probe may do, and nothing of it is left.
 */
#include "live/live.h"

#include <limits.h>
#include <sys/utsname.h>

#include "base/fd.h"
#include "lab/outer.h"

#include "base/banned.h"

enum { FAILED = 20 };

/* Runs `inside` in the box; its exit status. */
static int in_box(int (*inside)(void *), void *data) {
    char rootfs[PATH_MAX];
    struct err err = {0};
    int status = 0;

    if (!realpath(live_env("MAYFLY_ROOTFS"), rootfs))
        fail_msg("%s: %s", rootfs, strerror(errno));
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS};

        for (size_t k = 0; k < ARRAY_LEN(faults); k++)
            (void)signal(faults[k], SIG_DFL); /* cmocka's would be the tests once more */
        if (lab_outer_enter("box", rootfs, &err) < 0) {
            (void)fprintf(stderr, "%s\n", err.message);
            _exit(FAILED);
        }
        _exit(inside(data));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct host {
    char file[64]; /* in the host's /tmp */
    ino_t ns[4];
};

static const char *const namespaces[] = {"net", "ipc", "uts", "mnt"};

static ino_t inode(const char *ns) {
    char path[64];
    struct stat st;

    (void)snprintf(path, sizeof(path), "/proc/self/ns/%s", ns);
    return stat(path, &st) == 0 ? st.st_ino : 0;
}

static int do_harm(void *data) {
    const struct host *h = data;

    for (size_t i = 0; i < ARRAY_LEN(namespaces); i++)
        if (inode(namespaces[i]) == h->ns[i])
            return 1;
    if (getpid() != 1 || access(h->file, F_OK) == 0)
        return 2;
    int fd = open(h->file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, "x", 1) != 1)
        return 3; /* /tmp is there, and another */
    if (sethostname("harmed", 6) < 0 && errno != EPERM)
        return 4;
    if (geteuid() == 0) {
        /* The tree is as the host's, and what is written to it comes nowhere. */
        fd = open("/etc/passwd", O_WRONLY | O_APPEND | O_CLOEXEC);
        if (fd < 0 || write(fd, "harmed\n", 7) != 7)
            return 5;
        if (unlink("/etc/group") < 0)
            return 6;
    } else if (open("/etc/passwd", O_WRONLY | O_CLOEXEC) >= 0) {
        return 7;
    }
    return 0;
}

static void what_is_done_inside_stays_inside(void **state) {
    struct host h = {.file = "/tmp/mayfly-outer-XXXXXX"};
    struct utsname before, after;
    struct stat passwd, group, now;

    (void)state;
    int fd = mkostemp(h.file, O_CLOEXEC);
    assert_true(fd >= 0);
    for (size_t i = 0; i < ARRAY_LEN(namespaces); i++)
        h.ns[i] = inode(namespaces[i]);
    assert_int_equal(uname(&before), 0);
    assert_int_equal(stat("/etc/passwd", &passwd), 0);
    assert_int_equal(stat("/etc/group", &group), 0);
    assert_int_equal(in_box(do_harm, &h), 0);
    assert_int_equal(uname(&after), 0);
    assert_string_equal(before.nodename, after.nodename);
    assert_int_equal(stat("/etc/passwd", &now), 0);
    assert_true(now.st_size == passwd.st_size && now.st_mtime == passwd.st_mtime);
    assert_int_equal(stat("/etc/group", &now), 0);
    assert_int_equal(stat(h.file, &now), 0);
    assert_int_equal(now.st_size, 0);
    (void)close(fd);
    (void)unlink(h.file);
}

/* More than the box has room for, in processes that do not end: it does not last, and takes nothing with it. */
static int flood(void *data) {
    (void)data;
    for (int i = 0; i < 20000; i++) {
        pid_t pid = fork();
        if (pid == 0)
            for (;;)
                (void)pause();
        if (pid < 0)
            return errno == EAGAIN ? 0 : 1;
    }
    return 2;
}

static void a_flood_ends_at_its_bounds(void **state) {
    (void)state;
    if (geteuid() != 0 || !live_has_cgroups())
        live_skip("root", "only a cgroup bounds the box around the lab");
    assert_int_equal(in_box(flood, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_done_inside_stays_inside),
        cmocka_unit_test(a_flood_ends_at_its_bounds),
    };

    return cmocka_run_group_tests_name("the box around the lab", tests, NULL, NULL);
}
