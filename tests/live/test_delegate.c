/*
 * test_delegate.c: a user on a systemd host gets a cgroup from his manager, limits in it are the
 * kernel's, nothing of it is left; and a manager that is not there, hangs, hangs up or talks nonsense
 * costs bounded time and one line.
 *
 * The managers that misbehave are made here, as sockets. The one that behaves is in the machine of
 * `uml.sh --systemd` (MAYFLY_TEST_MODE=systemd), where this runs in a login session of each of two users.
 */
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "live/live.h"

#include "base/banned.h"

static bool on_systemd(void) {
    const char *mode = getenv("MAYFLY_TEST_MODE");

    return mode && strcmp(mode, "systemd") == 0;
}

static void need_systemd(void) {
    if (!on_systemd())
        live_skip("systemd",
                  "no user manager here; `uml.sh --systemd` boots a machine that has one");
}

/* The program with these arguments and this XDG_RUNTIME_DIR (NULL: as it is), strict limits. */
static struct live_output *run_with(const char *runtime, const char *const *args) {
    const char *old = getenv("XDG_RUNTIME_DIR");
    char *keep = old ? strdup(old) : NULL;
    const char *argv[16] = {"run", "--limits=strict", "--rootfs", live_env("MAYFLY_ROOTFS")};
    size_t n = 4;

    if (runtime)
        assert_int_equal(setenv("XDG_RUNTIME_DIR", runtime, 1), 0);
    while (*args && n < 15)
        argv[n++] = *args++;
    struct live_output *o = live_program(argv, -1);
    if (keep)
        assert_int_equal(setenv("XDG_RUNTIME_DIR", keep, 1), 0);
    else
        assert_int_equal(unsetenv("XDG_RUNTIME_DIR"), 0);
    free(keep);
    return o;
}

/* ------------------------------------------------------------------ managers that misbehave */

enum manner { SILENT, HANGS_UP, TALKS_NONSENSE, NOBODY };

struct manager {
    char dir[64], path[96];
    int fd;
    enum manner manner;
    pthread_t thread;
};

static void *serve(void *arg) {
    const struct manager *m = arg;
    int fd, open_fd = -1;

    while ((fd = accept(m->fd, NULL, NULL)) >= 0) {
        if (m->manner == TALKS_NONSENSE) {
            ssize_t n = write(fd, "HTTP/1.0 400 no\r\n\r\n\0\0\0\0\0\0", 25);
            (void)n;
        }
        if (m->manner == SILENT)
            open_fd = fd; /* one comes */
        else
            (void)close(fd);
    }
    if (open_fd >= 0)
        (void)close(open_fd);
    return NULL;
}

static void manager_start(struct manager *m, enum manner manner) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    m->manner = manner;
    (void)snprintf(m->dir, sizeof(m->dir), "/tmp/mayfly-bus-XXXXXX");
    assert_non_null(mkdtemp(m->dir));
    (void)snprintf(m->path, sizeof(m->path), "%s/bus", m->dir);
    (void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", m->path);
    m->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(m->fd >= 0);
    assert_int_equal(bind(m->fd, (const struct sockaddr *)&a, sizeof(a)), 0);
    if (manner == NOBODY)
        return;
    assert_int_equal(listen(m->fd, 8), 0);
    assert_int_equal(pthread_create(&m->thread, NULL, serve, m), 0);
}

static void manager_stop(struct manager *m) {
    (void)shutdown(m->fd, SHUT_RDWR);
    if (m->manner != NOBODY)
        (void)pthread_join(m->thread, NULL);
    (void)close(m->fd);
    (void)unlink(m->path);
    (void)rmdir(m->dir);
}

static void misbehaves(enum manner manner) {
    const char *const args[] = {"echo", "ran", NULL};
    struct live_host before;
    struct manager m;

    if (geteuid() == 0)
        live_skip("a user", "root asks no manager");
    if (on_systemd())
        live_skip("nothing", "done as a user of the machine itself");
    if (live_has_cgroups())
        live_skip("a user without cgroups", "a cgroup is delegated here, so nobody is asked");
    before = live_look();
    manager_start(&m, manner);
    struct live_output *o = run_with(m.dir, args);
    manager_stop(&m);
    /* Asked in vain, so it is as if there were none: refused in one line, which says both. */
    if (o->exit_code != 125 || o->out[0] || !strstr(o->err, "memory: ") ||
        (!strstr(o->err, "systemd user manager") && !strstr(o->err, "mayfly-delegate")) ||
        strchr(o->err, '\n') != strrchr(o->err, '\n'))
        fail_msg("exit %d\n%s%s", o->exit_code, o->out, o->err);
    if (o->ms > 7000 + 1000 * live_slow())
        fail_msg("%.0f ms", o->ms);
    free(o);
    live_same(before);
}

static void a_manager_that_never_answers_costs_bounded_time(void **state) {
    (void)state;
    misbehaves(SILENT);
}

static void a_manager_that_hangs_up_is_said(void **state) {
    (void)state;
    misbehaves(HANGS_UP);
}

static void a_manager_that_talks_nonsense_is_said(void **state) {
    (void)state;
    misbehaves(TALKS_NONSENSE);
}

static void a_socket_without_a_manager_is_said(void **state) {
    (void)state;
    misbehaves(NOBODY);
}

/* As root, or with a cgroup of one's own, no manager is looked for. */
static void who_needs_nothing_asks_nobody(void **state) {
    (void)state;
    const char *const args[] = {"echo", "ran", NULL};
    struct manager m;

    if (!live_has_cgroups() || on_systemd())
        live_skip("cgroups", "they would have to be asked for here");
    manager_start(&m, SILENT);
    struct live_output *o = run_with(m.dir, args);
    manager_stop(&m);
    if (o->exit_code != 0 || strcmp(o->out, "ran\n") != 0 || o->ms > 3000 * live_slow())
        fail_msg("exit %d, %.0f ms\n%s%s", o->exit_code, o->ms, o->out, o->err);
    free(o);
}

/* ------------------------------------------------------------------ the one that behaves */

/* Cgroups of ours, scopes and boxes, below this user's slice. */
static int count_ours(const char *dir, int depth) {
    DIR *d = opendir(dir);
    const struct dirent *e;
    int n = 0;

    while (d && depth > 0 && (e = readdir(d))) {
        char path[1024];

        if (e->d_name[0] == '.' || e->d_type != DT_DIR)
            continue;
        (void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        n += strncmp(e->d_name, "mayfly-", 7) == 0;
        n += count_ours(path, depth - 1);
    }
    if (d)
        (void)closedir(d);
    return n;
}

static void nothing_is_left(void) {
    char dir[128];
    int n = -1;

    (void)snprintf(dir, sizeof(dir), "/sys/fs/cgroup/user.slice/user-%u.slice",
                   (unsigned)geteuid());
    for (int i = 0; i < 50 && n; i++) { /* systemd removes a scope when it hears that it is empty */
        n = count_ours(dir, 6);
        if (n)
            live_sleep_ms(100);
    }
    if (n)
        fail_msg("%d cgroups are left below %s", n, dir);
}

static void limits_are_cgroup2_in_a_scope_that_was_asked_for(void **state) {
    (void)state;
    const char *const args[] = {"--json", "--attest", "true", NULL};

    need_systemd();
    struct live_output *o = run_with(NULL, args);
    if (o->exit_code != 0 ||
        !strstr(o->out, "\"memory\":{\"bytes\":268435456,\"enforcedBy\":\"cgroup2\"}") ||
        !strstr(o->out, "\"cpu\":{\"milliCpus\":1000,\"enforcedBy\":\"cgroup2\"}") ||
        !strstr(o->out, "\"pids\":{\"count\":128,\"enforcedBy\":\"cgroup2\"}") ||
        !strstr(o->out, "memory.max is 268435456") || !strstr(o->out, "pids.max is 128"))
        fail_msg("exit %d\n%s%s", o->exit_code, o->out, o->err);
    print_message("a run that asks the manager: %.0f ms\n", o->ms);
    free(o);
    nothing_is_left();
}

static void the_memory_limit_is_the_kernels(void **state) {
    (void)state;
    const char *const args[] = {
        "--memory", "48m", "--timeout", "60s", "python3", "-c", "x = bytearray(200 << 20)", NULL};

    need_systemd();
    struct live_output *o = run_with(NULL, args);
    if (o->exit_code != 137 || !strstr(o->err, "out of memory"))
        fail_msg("exit %d\n%s%s", o->exit_code, o->out, o->err);
    free(o);
    nothing_is_left();
}

static void a_fork_bomb_meets_the_pids_limit(void **state) {
    (void)state;
    const char *const args[] = {"--pids-limit",
                                "10",
                                "--json",
                                "sh",
                                "-c",
                                "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 60 & done; :",
                                NULL};

    need_systemd();
    struct live_output *o = run_with(NULL, args);
    if (!strstr(o->out, "the box allows 10 at once"))
        fail_msg("exit %d\n%s%s", o->exit_code, o->out, o->err);
    free(o);
    nothing_is_left();
}

static void the_boxes_are_below_the_scope_and_die_with_a_killed_mayfly(void **state) {
    (void)state;
    const char *argv[] = {"run",       "--limits=strict",
                          "--rootfs",  live_env("MAYFLY_ROOTFS"),
                          "--timeout", "100s",
                          "sleep",     "100",
                          NULL};
    char path[64], text[1024] = "", dir[1200];
    int out = open("/dev/null", O_WRONLY | O_CLOEXEC);
    bool there = false;

    need_systemd();
    pid_t pid = live_spawn(argv, -1, out, out);
    (void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    for (int i = 0; i < 300 && !there; i++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        size_t n = live_slurp(fd, text, sizeof(text));
        (void)close(fd);
        text[n ? n - 1 : 0] = '\0';
        /* In a leaf of its own scope; the box is the leaf's sibling. */
        char *slash = strrchr(text, '/');
        if (slash && strstr(text, "/app.slice/mayfly-") && strstr(slash, "/mayfly-")) {
            *slash = '\0';
            (void)snprintf(dir, sizeof(dir), "/sys/fs/cgroup%s", text + 3);
            there = count_ours(dir, 1) == 2;
        }
        live_sleep_ms(50);
    }
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    (void)close(out);
    if (!there)
        fail_msg("no leaf and box in a scope of mayfly's: %s", text);
    nothing_is_left();
}

/* A stopped manager is the one that hangs. */
static void a_stopped_manager_costs_bounded_time(void **state) {
    (void)state;
    const char *const args[] = {"true", NULL};
    char path[300], text[64];
    pid_t manager = 0;
    DIR *d = opendir("/proc");
    const struct dirent *e;

    need_systemd();
    assert_non_null(d);
    while (!manager && (e = readdir(d))) {
        struct stat st;
        (void)snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
        if (e->d_name[0] < '0' || e->d_name[0] > '9' || stat(path, &st) < 0 ||
            st.st_uid != geteuid())
            continue;
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        (void)live_slurp(fd, text, sizeof(text));
        (void)close(fd);
        if (strcmp(text, "systemd\n") == 0)
            manager = (pid_t)strtol(e->d_name, NULL, 10);
    }
    (void)closedir(d);
    assert_true(manager > 1);
    assert_int_equal(kill(manager, SIGSTOP), 0);
    struct live_output *o = run_with(NULL, args);
    assert_int_equal(kill(manager, SIGCONT), 0);
    if (o->exit_code != 125 || !strstr(o->err, "no answer in time") ||
        o->ms > 7000 + 1000 * live_slow())
        fail_msg("exit %d, %.0f ms\n%s%s", o->exit_code, o->ms, o->out, o->err);
    free(o);
    live_sleep_ms(500);
    nothing_is_left();
}

/* Last, since it moves this very process. */
static void a_library_asks_when_it_is_told_to(void **state) {
    (void)state;
    struct mayfly_error e = {0};
    mayfly_policy *policy = live_policy();
    const char *argv[] = {"true", NULL};
    mayfly_result *r = NULL;

    need_systemd();
    live_set(policy, "limits", "strict");
    assert_int_equal(mayfly_policy_command(policy, argv, &e), 0);
    if (mayfly_run(policy, NULL, &r, &e) == 0)
        fail_msg("a cgroup was found without asking");
    assert_string_equal(e.control, "memory");
    char helper[4096];
    (void)snprintf(helper, sizeof(helper), "%s-delegate", live_env("MAYFLY_BIN"));
    double start = live_now_ms();
    if (mayfly_delegate(policy, helper, &e) != 1)
        fail_msg("%s", e.message);
    print_message("mayfly_delegate: %.0f ms\n", live_now_ms() - start);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mayfly_delegate(policy, helper, &e), 0); /* not needed any more */
        r = live_run(policy, NULL);
        live_expect(r, MAYFLY_EXITED, 0);
        assert_string_equal(r->limits[0].enforced_by, "cgroup2");
        mayfly_result_free(r);
    }
    mayfly_policy_free(policy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_needs_nothing_asks_nobody),
        cmocka_unit_test(a_manager_that_never_answers_costs_bounded_time),
        cmocka_unit_test(a_manager_that_hangs_up_is_said),
        cmocka_unit_test(a_manager_that_talks_nonsense_is_said),
        cmocka_unit_test(a_socket_without_a_manager_is_said),
        cmocka_unit_test(limits_are_cgroup2_in_a_scope_that_was_asked_for),
        cmocka_unit_test(the_memory_limit_is_the_kernels),
        cmocka_unit_test(a_fork_bomb_meets_the_pids_limit),
        cmocka_unit_test(the_boxes_are_below_the_scope_and_die_with_a_killed_mayfly),
        cmocka_unit_test(a_stopped_manager_costs_bounded_time),
        cmocka_unit_test(a_library_asks_when_it_is_told_to),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
