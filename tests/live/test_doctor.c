/*
 * test_doctor.c: the doctor on hosts that are really so. What it says is what runs do: where a default
 * run works it exits with 0, where one is refused with 1, naming the cause and the remedy.
 */
#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "live/lesser.h"

#include "base/banned.h"

static int run_status(bool (*make)(void)) {
    const char *const args[] = {
        "run", "--limits=strict", "--rootfs", live_env("MAYFLY_ROOTFS"), "true", NULL};
    struct answer *a = lesser_run(make, args);
    int status = a->exit_code;

    free(a);
    return status;
}

/* On such a host a default run is refused, and the doctor says why and what to do. */
static void diagnoses(bool (*make)(void), const char *cause, const char *remedy) {
    const char *const words[] = {"doctor", NULL}, *const json[] = {"doctor", "--json", NULL};
    struct live_host before = live_look();
    struct answer *a = lesser_run(make, words);

    if (a->exit_code != 1 || !strstr(a->out, cause) || !strstr(a->out, remedy) || a->err[0] ||
        strstr(a->out, "put in force here, whole"))
        fail_msg("exit %d, without \"%s\" and \"%s\"?\n%s%s", a->exit_code, cause, remedy, a->out,
                 a->err);
    free(a);
    a = lesser_run(make, json);
    if (a->exit_code != 1 || !strstr(a->out, "\"ready\":false"))
        fail_msg("exit %d\n%s", a->exit_code, a->out);
    free(a);
    assert_int_equal(run_status(make), 125);
    live_same(before);
}

static void it_exits_with_0_exactly_where_a_default_run_works(void **state) {
    (void)state;
    const char *const args[] = {"doctor", NULL}, *const verbose[] = {"doctor", "--verbose", NULL};
    struct live_host before = live_look();
    struct answer *a = lesser_run(lesser_nothing, args), *v = lesser_run(lesser_nothing, verbose);
    int run = run_status(lesser_nothing);

    if (a->exit_code != (run == 0 ? 0 : 1) || (a->exit_code == 0) != live_has_cgroups())
        fail_msg("doctor %d, run %d\n%s%s", a->exit_code, run, a->out, a->err);
    if (!strstr(a->out, "was built, used and removed in"))
        fail_msg("no trial:\n%s", a->out);
    assert_true(strlen(v->out) > strlen(a->out));
    free(a);
    free(v);
    live_same(before);
}

static void a_library_gets_the_same_report(void **state) {
    (void)state;
    struct mayfly_error e = {0};
    struct mayfly_report *r = NULL;
    mayfly_policy *policy = live_policy();
    struct live_host before = live_look();

    live_set(policy, "limits", "strict");
    if (mayfly_doctor(policy, 0, &r, &e) < 0)
        fail_msg("%s", e.message);
    live_same(before);
    mayfly_policy_free(policy);
    assert_int_equal(r->ready, live_has_cgroups());
    assert_true(r->n_checks >= 20);
    if (r->trial != 1 || r->trial_ms <= 0)
        fail_msg("the trial: %d, %s", r->trial, r->trial_error.message);
    for (size_t i = 0; i < r->n_checks; i++) {
        const struct mayfly_check *c = &r->checks[i];
        bool limit = strcmp(c->control, "memory") == 0 || strcmp(c->control, "cpu") == 0 ||
                     strcmp(c->control, "pids") == 0;

        assert_true(c->summary[0] && c->source[0] && c->how[0]);
        if (limit && !live_has_cgroups() && c->answer == 0)
            assert_true(c->why[0] && c->remedy[0] && c->best_effort[0] && c->n_through);
        else if (strcmp(c->control, "landlock") == 0 && c->answer == 2)
            assert_true(c->why[0] != '\0');
        else if (c->answer != 1)
            fail_msg("%s: answer %d, though runs work here: %s", c->control, c->answer, c->why);
    }
    mayfly_report_free(r);
}

/* ------------------------------------------------------------------ lesser hosts */

static void a_masked_proc(void **state) {
    (void)state;
    if (geteuid() != 0)
        live_skip("root", "only root can cover parts of /proc");
    diagnoses(lesser_masked_proc, "covered", "systempaths=unconfined");
}

static bool cover_sys(void) {
    return lesser_own_mounts() && mount("none", "/proc/sys", "tmpfs", MS_RDONLY, NULL) == 0;
}

static bool no_proc(void) { return lesser_own_mounts() && umount2("/proc", MNT_DETACH) == 0; }

static bool no_devices(void) {
    return lesser_own_mounts() && mount("none", "/dev", "tmpfs", 0, NULL) == 0;
}

static bool in_chroot(void) {
    return lesser_own_mounts() && mount("/", "/mnt", NULL, MS_BIND | MS_REC, NULL) == 0 &&
           chroot("/mnt") == 0 && chdir("/") == 0;
}

static bool little_space(void) {
    struct rlimit little = {8 << 20, 8 << 20};

    return setrlimit(RLIMIT_AS, &little) == 0;
}

/* What it says of a host is what is so there, and nothing that is not. */
static void odd_hosts_of_roots(void **state) {
    static const struct {
        bool (*make)(void);
        const char *cause, *remedy, *never;
    } hosts[] = {
        {cover_sys, "/proc/sys: is covered", "umount /proc/sys", "switched off"},
        {no_proc, "no proc is mounted", "mount -t proc proc /proc", "cgroup2 none"},
        {no_devices, "the host has no /dev/null", "mount -t devtmpfs", "proc        a read-only"},
        {in_chroot, "this process is in a chroot", "pivot_root", "seccomp filter of a container"},
    };
    const char *const words[] = {"doctor", NULL};

    (void)state;
    if (geteuid() != 0)
        live_skip("root", "only root can make such");
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        diagnoses(hosts[i].make, hosts[i].cause, hosts[i].remedy);
        struct answer *a = lesser_run(hosts[i].make, words);
        if (strstr(a->out, hosts[i].never))
            fail_msg("\"%s\"?\n%s", hosts[i].never, a->out);
        free(a);
    }
}

static void limits_that_leave_no_room_for_an_interpreter(void **state) {
    const char *const words[] = {"doctor", NULL};
    struct answer *a = lesser_run(little_space, words);

    (void)state;
    if (a->exit_code != 1 || !strstr(a->out, "address space 8 MiB") ||
        !strstr(a->out, "ulimit -v unlimited"))
        fail_msg("exit %d\n%s%s", a->exit_code, a->out, a->err);
    free(a);
}

/* Each kind of namespace has a count of its own, in each user namespace. */
static bool only_too_few(const char *kind) {
    char map[64], path[64];
    unsigned uid = (unsigned)geteuid();

    if (unshare(CLONE_NEWUSER) < 0)
        return false;
    (void)snprintf(map, sizeof(map), "0 %u 1", uid);
    (void)snprintf(path, sizeof(path), "/proc/sys/user/max_%s_namespaces", kind);
    return lesser_write("/proc/self/uid_map", map) &&
           lesser_write("/proc/self/setgroups", "deny") &&
           lesser_write("/proc/self/gid_map", map) && lesser_write(path, "0");
}

static bool no_net(void) { return only_too_few("net"); }
static bool no_cgroup(void) { return only_too_few("cgroup"); }
static bool no_mnt(void) { return only_too_few("mnt"); }

static void a_count_of_namespaces_that_is_used_up_is_named(void **state) {
    static const struct {
        bool (*make)(void);
        const char *control, *sysctl;
    } kinds[] = {{no_net, "NO       net ", "user.max_net_namespaces=10000"},
                 {no_cgroup, "NO       cgroupns ", "user.max_cgroup_namespaces=10000"},
                 {no_mnt, "NO       mount ", "user.max_mnt_namespaces=10000"}};

    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        diagnoses(kinds[i].make, kinds[i].control, kinds[i].sysctl);
}

static bool read_only_cgroups(void) {
    static const char *const mounts[] = {"",      "/memory", "/cpu", "/cpu,cpuacct",
                                         "/pids", "/unified"};
    bool any = false;

    if (!lesser_own_mounts())
        return false;
    for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s", mounts[i]);
        any |= mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) == 0;
    }
    return any;
}

static void cgroups_that_are_mounted_read_only(void **state) {
    (void)state;
    if (geteuid() != 0)
        live_skip("root", "only root can mount so");
    diagnoses(read_only_cgroups, "read-only", "--cgroupns=private");
}

static void user_namespaces_that_are_switched_off(void **state) {
    (void)state;
    diagnoses(lesser_no_user_namespaces, "user namespaces are switched off",
              "user.max_user_namespaces");
}

static bool filter(unsigned nr, unsigned answer, unsigned flags) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog prog = {.len = 4, .filter = code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog) >= 0;
}

static bool no_clone3(void) { return filter(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS, 0); }
static bool no_mount_setattr(void) {
    return filter(SYS_mount_setattr, SECCOMP_RET_ERRNO | EPERM, 0);
}
static bool no_fsopen(void) { return filter(SYS_fsopen, SECCOMP_RET_ERRNO | EPERM, 0); }
static bool no_seccomp(void) { return filter(SYS_seccomp, SECCOMP_RET_ERRNO | EPERM, 0); }
static bool killed_for_pivot_root(void) {
    return filter(SYS_pivot_root, SECCOMP_RET_KILL_PROCESS, 0);
}

/* As containers' default filters do */
static void a_filter_around_us_that_refuses_what_a_box_needs(void **state) {
    (void)state;
    diagnoses(no_clone3, "clone3(2) was tried and is refused (ENOSYS)", "seccomp=unconfined");
    diagnoses(no_mount_setattr, "mount_setattr(2) was tried and is refused (EPERM)", "seccomp=");
    diagnoses(no_fsopen, "fsopen(2)", "seccomp=");
    diagnoses(no_seccomp, "seccomp", "SECCOMP");
}

static void a_filter_that_kills_rather_than_refuses_is_survived(void **state) {
    (void)state;
    diagnoses(killed_for_pivot_root, "could not all be tried", "");
}

/* How many entries a directory has. */
static int entries(const char *path) {
    DIR *list = opendir(path);
    int n = 0;

    assert_non_null(list);
    for (const struct dirent *e; (e = readdir(list));)
        n += e->d_name[0] != '.';
    (void)closedir(list);
    return n;
}

static pid_t start_doctor(void) {
    const char *bin = live_env("MAYFLY_BIN");
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid)
        return pid;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    (void)dup2(null, 1);
    (void)execl(bin, bin, "doctor", NULL);
    _exit(99);
}

/* Sends it while its trial's directory is there. False: it was too quick. */
static bool hit(int sig, const char *tmp) {
    pid_t pid = start_doctor();
    int status = 0;

    while (entries(tmp) == 0)
        if (waitpid(pid, &status, WNOHANG) == pid)
            return false;
    (void)kill(pid, sig);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) && WTERMSIG(status) == sig;
}

static void interrupted_it_leaves_nothing_and_killed_nothing_for_long(void **state) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    const struct rlimit no_core = {0, 0};
    char tmp[] = "/tmp/mayfly-test-XXXXXX";
    bool left = false;
    int status = 0;

    (void)state;
    assert_non_null(mkdtemp(tmp));
    assert_int_equal(setenv("TMPDIR", tmp, 1), 0);
    assert_int_equal(setrlimit(RLIMIT_CORE, &no_core), 0);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        bool done = false;
        for (int tries = 0; tries < 20 && !done; tries++) {
            done = hit(signals[i], tmp);
            assert_int_equal(entries(tmp), 0);
        }
        assert_true(done);
    }
    for (int tries = 0; tries < 20 && !left; tries++)
        left = hit(SIGKILL, tmp) && entries(tmp) == 1;
    assert_true(left);
    assert_true(waitpid(start_doctor(), &status, 0) > 0);
    assert_int_equal(entries(tmp), 0);
    (void)unsetenv("TMPDIR");
    assert_int_equal(rmdir(tmp), 0);
}

/* In a box of mayfly's own, where nothing of what a box needs can be had. */
static void inside_a_box_it_says_what_is_missing(void **state) {
    (void)state;
    const char *bin = live_env("MAYFLY_BIN"), *slash = strrchr(bin, '/');
    char volume[4200];

    assert_non_null(slash);
    (void)snprintf(volume, sizeof(volume), "%.*s:/mnt", (int)(slash - bin), bin);
    mayfly_result *r = live_sh("/mnt/mayfly doctor; echo \"doctor $?\"", "volume", volume, NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    if (!strstr(r->out.data, "doctor 1\n") || !strstr(r->out.data, "is refused"))
        fail_msg("%s%s", r->out.data, r->err.data);
    mayfly_result_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_exits_with_0_exactly_where_a_default_run_works),
        cmocka_unit_test(a_library_gets_the_same_report),
        cmocka_unit_test(a_masked_proc),
        cmocka_unit_test(odd_hosts_of_roots),
        cmocka_unit_test(limits_that_leave_no_room_for_an_interpreter),
        cmocka_unit_test(a_count_of_namespaces_that_is_used_up_is_named),
        cmocka_unit_test(cgroups_that_are_mounted_read_only),
        cmocka_unit_test(user_namespaces_that_are_switched_off),
        cmocka_unit_test(a_filter_around_us_that_refuses_what_a_box_needs),
        cmocka_unit_test(a_filter_that_kills_rather_than_refuses_is_survived),
        cmocka_unit_test(interrupted_it_leaves_nothing_and_killed_nothing_for_long),
        cmocka_unit_test(inside_a_box_it_says_what_is_missing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
