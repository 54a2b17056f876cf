/*
 * test_hosts.c: on a host that cannot give what a box needs there is one diagnosis, with what to do
 * about it, and the code does not run; on one that can, every control is in force, and the kernel
 * says so. The cases H3 to H7 as far as a test can make such a host, and their like.
 */
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "live/lesser.h"

#include "base/banned.h"

/* ------------------------------------------------------------------ lesser hosts */

/* Run in the box: says so, and names host uid 0 if some id of the box is that. */
static const char script[] = "while read inside outside n; do [ $outside != 0 ] || echo root; done "
                             "</proc/self/uid_map; echo ran";

/* Runs the script by the program on such a host; strict limits, but where no cgroup is to be had. */
static struct answer *run_on(bool (*make)(void)) {
    const char *limits = live_has_cgroups() ? "--limits=strict" : "--limits=best-effort";
    const char *args[] = {"run",  "--rootfs", live_env("MAYFLY_ROOTFS"), limits, "sh", "-c",
                          script, NULL};

    return lesser_run(make, args);
}

/* One line that names the cause and the remedy, mayfly's own exit status, no sign of the code. */
static void refuses(bool (*make)(void), const char *cause, const char *remedy) {
    struct live_host before = live_look();
    struct answer *a = run_on(make);

    if (a->exit_code != 125 || a->out[0] || !strstr(a->err, cause) || !strstr(a->err, remedy) ||
        strncmp(a->err, "mayfly: ", 8) != 0 || strchr(a->err, '\n') != strrchr(a->err, '\n'))
        fail_msg("exit %d, without \"%s\" and \"%s\" in one line?\n%s%s", a->exit_code, cause,
                 remedy, a->out, a->err);
    free(a);
    live_same(before);
}

static void works(bool (*make)(void)) {
    struct answer *a = run_on(make);

    if (a->exit_code != 0 || strcmp(a->out, "ran\n") != 0)
        fail_msg("exit %d\n%s%s", a->exit_code, a->out, a->err);
    free(a);
}

static void the_same_run_works_on_this_host_as_it_is(void **state) {
    (void)state;
    works(lesser_nothing);
}

/* H6: as containers do it */
static void a_masked_proc_is_diagnosed(void **state) {
    (void)state;
    if (geteuid() != 0)
        live_skip("root", "only root can cover parts of /proc");
    refuses(lesser_masked_proc, "/proc", "systempaths=unconfined");
}

/* H6 */
static void switched_off_user_namespaces_are_diagnosed(void **state) {
    (void)state;
    refuses(lesser_no_user_namespaces, "user namespaces are switched off",
            "user.max_user_namespaces");
}

static bool no_sys_admin(void) { return prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0) == 0; }

/* H6: root in a container */
static void root_without_cap_sys_admin_maps_host_root_no_more_than_ever(void **state) {
    (void)state;
    if (geteuid() != 0)
        live_skip("root", "a user never has it");
    works(no_sys_admin);
}

static bool no_setuid(void) {
    return no_sys_admin() && prctl(PR_CAPBSET_DROP, CAP_SETUID, 0, 0, 0) == 0 &&
           prctl(PR_CAPBSET_DROP, CAP_SETGID, 0, 0, 0) == 0;
}

static void root_that_could_map_only_itself_is_refused(void **state) {
    (void)state;
    if (geteuid() != 0)
        live_skip("root", "a user is mapped as itself");
    refuses(no_setuid, "no id but its own, 0", "CAP_SETUID");
}

static bool root_of_a_namespace_in_which_only_root_is(void) {
    return geteuid() == 0 && unshare(CLONE_NEWUSER) == 0 &&
           lesser_write("/proc/self/setgroups", "deny") &&
           lesser_write("/proc/self/uid_map", "0 0 1") &&
           lesser_write("/proc/self/gid_map", "0 0 1");
}

static void a_namespaces_root_that_is_the_hosts_is_refused(void **state) {
    (void)state;
    if (geteuid() != 0)
        live_skip("root", "a user's namespace has no host root in it");
    refuses(root_of_a_namespace_in_which_only_root_is, "host uid 0", "run mayfly outside");
}

static bool few_files(void) {
    const struct rlimit few = {8, 8};

    return setrlimit(RLIMIT_NOFILE, &few) == 0;
}

static void too_few_descriptors_are_diagnosed(void **state) {
    (void)state;
    refuses(few_files, "files", "ulimit -n");
}

static bool under_a_tight_pids_limit(void) {
    const struct rlimit one = {1, 1};

    return geteuid() != 0 && setrlimit(RLIMIT_NPROC, &one) == 0;
}

static void a_user_who_may_start_no_process_gets_an_error(void **state) {
    (void)state;
    struct live_host before = live_look();

    if (geteuid() == 0)
        live_skip("a user", "the limit does not hold for root");
    struct answer *a = run_on(under_a_tight_pids_limit);
    if (a->exit_code != 125 || a->out[0] || strncmp(a->err, "mayfly: ", 8) != 0)
        fail_msg("exit %d\n%s%s", a->exit_code, a->out, a->err);
    free(a);
    live_same(before);
}

static bool without_standard_descriptors(void) {
    /* The program must neither crash nor hand the code something else as 0, 1 or 2. */
    (void)close(0);
    return true;
}

static void a_closed_standard_input_does_no_harm(void **state) {
    (void)state;
    works(without_standard_descriptors);
}

/* ------------------------------------------------------------------ cgroups */

/* H3-like */
static void a_cgroup_parent_that_is_none_is_diagnosed(void **state) {
    (void)state;
    const char *parents[] = {"/no/such/cgroup", "/tmp", "relative", "/sys/fs/cgroup/../../etc",
                             "/proc/self"};
    const char *argv[] = {"true", NULL};
    struct live_host before = live_look();

    for (size_t i = 0; i < sizeof(parents) / sizeof(parents[0]); i++) {
        struct mayfly_error e = {0};
        mayfly_policy *policy = live_policy();
        mayfly_result *r = NULL;

        live_set(policy, "limits", "strict");
        assert_int_equal(mayfly_policy_command(policy, argv, &e), 0);
        if (mayfly_policy_set(policy, "cgroup-parent", parents[i], &e) == 0 &&
            mayfly_run(policy, NULL, &r, &e) == 0) {
            mayfly_result_free(r);
            fail_msg("%s was taken", parents[i]);
        }
        mayfly_policy_free(policy);
        if ((e.kind != MAYFLY_E_UNSUPPORTED && e.kind != MAYFLY_E_USAGE) ||
            !strstr(e.message, parents[i]))
            fail_msg("%s: kind %d: %s", parents[i], e.kind, e.message);
    }
    live_same(before);
}

static char *cgroups_of(pid_t pid) {
    static char text[2][4096];
    static int next;
    char path[64];

    next ^= 1;
    (void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    (void)live_slurp(fd, text[next], sizeof(text[next]));
    (void)close(fd);
    return text[next];
}

/* H5 */
static void other_processes_of_our_cgroup_stay_where_they_are(void **state) {
    (void)state;
    const char *argv[] = {"true", NULL};
    struct mayfly_error e = {0};
    mayfly_policy *policy = live_policy();
    mayfly_result *r = NULL;
    pid_t other = fork();

    assert_true(other >= 0);
    if (other == 0) {
        (void)pause();
        _exit(0);
    }
    char *before = cgroups_of(other);
    assert_int_equal(mayfly_policy_command(policy, argv, &e), 0);
    int answer = mayfly_run(policy, NULL, &r, &e);
    char *after = cgroups_of(other);
    bool same = strcmp(before, after) == 0;
    (void)kill(other, SIGKILL);
    (void)waitpid(other, NULL, 0);
    mayfly_policy_free(policy);

    if (!same)
        fail_msg("moved from\n%s to\n%s", before, after);
    if (answer < 0) /* then it says why not */
        fail_msg("%s", e.message);
    live_expect(r, MAYFLY_EXITED, 0);
    mayfly_result_free(r);
}

/* ------------------------------------------------------------------ every control */

static void expect_all_in_force(const mayfly_result *r) {
    size_t read = 0;

    assert_true(r->n_controls >= 20);
    for (size_t i = 0; i < r->n_controls; i++) {
        const struct mayfly_control *c = &r->controls[i];
        bool limit = strcmp(c->name, "memory") == 0 || strcmp(c->name, "cpu") == 0 ||
                     strcmp(c->name, "pids") == 0 || strcmp(c->name, "deadline") == 0;

        if (c->on != 1)
            fail_msg("%s is off", c->name);
        if (c->in_force == 0 && c->evidence[0] && limit && !live_has_cgroups())
            continue;
        if (c->in_force == 0 && c->evidence[0] && strcmp(c->name, "landlock") == 0)
            continue;
        if (c->in_force != 1 || !c->evidence[0])
            fail_msg("%s: in force %d, evidence \"%s\"", c->name, c->in_force, c->evidence);
        read++;
    }
    assert_true(read >=
                r->n_controls - (live_has_cgroups() ? 1 : 5)); /* landlock, and the limits */
}

static void every_control_is_in_force_with_evidence(void **state) {
    (void)state;
    struct live_host before = live_look();
    mayfly_result *r = live_sh("echo ran", "attest", "true", NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "ran\n");
    expect_all_in_force(r);
    mayfly_result_free(r);
    live_same(before);
}

static void every_control_is_in_force_whatever_the_policy(void **state) {
    (void)state;
    mayfly_result *r = live_python(
        "print('ran')\n", "attest", "true", "read-only", "true", "memory", "100m", "cpus", "0.5",
        "pids-limit", "20", "tmp-size", "1m", "hostname", "other", "user", "5:6", "volume",
        "/etc:/tmp/etc", "tmpfs", "/srv:size=1m", "ulimit", "core=0", "ulimit", "nofile=30", "env",
        "A=b", "workdir", "/tmp", "cpu-time", "5s", NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    expect_all_in_force(r);
    mayfly_result_free(r);
}

/* Exit status of an attested run in a mount namespace whose mounts have been given `propagation`. */
static int run_with_mounts(unsigned long propagation) {
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("none", "/", NULL, MS_REC | MS_SHARED, NULL) < 0)
            _exit(77);
        if (propagation != MS_SHARED &&
            (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | propagation, NULL) < 0))
            _exit(77);
        (void)execl(live_env("MAYFLY_BIN"), "mayfly", "run", "--attest", "--rootfs",
                    live_env("MAYFLY_ROOTFS"), "--volume", "/etc:/tmp/etc", "true", NULL);
        _exit(99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* As systemd makes them on every host, and a container engine passes them on. */
static void mounts_with_peers_are_no_hindrance_and_get_none_in_the_box(void **state) {
    (void)state;
    if (geteuid() != 0)
        live_skip("root", "mounts of a host are given peers by root");
    assert_int_equal(run_with_mounts(MS_SHARED), 0);
    assert_int_equal(run_with_mounts(MS_SLAVE), 0);
}

static void without_attest_nothing_is_claimed(void **state) {
    (void)state;
    mayfly_result *r = live_sh("exit 0", NULL);

    for (size_t i = 0; i < r->n_controls; i++) {
        assert_int_equal(r->controls[i].on, 1);
        assert_int_not_equal(r->controls[i].in_force, 1);
        /* 0: what this host lacks, and others cover, is said in any case */
        assert_int_equal(r->controls[i].in_force == 0, r->controls[i].evidence[0] != '\0');
    }
    mayfly_result_free(r);
}

/* H7 */
static void a_wall_that_the_kernel_lacks_is_said_to_be_missing(void **state) {
    (void)state;
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    bool said = false;
    mayfly_result *r = live_sh("exit 0", NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    for (size_t i = 0; i < r->n_controls; i++)
        said |= strcmp(r->controls[i].name, "landlock") == 0 && r->controls[i].in_force == 0 &&
                r->controls[i].evidence[0];
    assert_int_equal(said, abi < 2);
    mayfly_result_free(r);
}

static void a_policy_without_some_control_cannot_be_made(void **state) {
    (void)state;
    const char *const attempts[][2] = {
        {"controls", "0"},
        {"seccomp", "false"},
        {"privileged", "true"},
        {"security-opt", "seccomp=unconfined"},
        {"cap-add", "SYS_ADMIN"},
        {"security-opt", "no-new-privileges=false"},
        {"network", "host"},
        {"network", "bridge"},
        {"pid", "host"},
        {"ipc", "host"},
        {"userns", "host"},
        {"cgroupns", "host"},
        {"device", "/dev/kvm"},
        {"landlock", "false"},
        {"no-seccomp", "true"},
        {"memory", "0"},
        {"pids-limit", "0"},
        {"timeout", "0"},
        {"cpus", "0"},
        {"memory-swap", "-1"},
        {"tmpfs", "/tmp:exec"},
        {"tmpfs", "/tmp:suid"},
        {"tmpfs", "/tmp:dev"},
        {"mount", "type=proc,dst=/x"},
        {"memory", "-1"},
        {"max-output", "0"},
    };
    const char *const json[] = {
        "{\"controls\": []}",
        "{\"controls\": {\"seccomp\": false}}",
        "{\"seccomp\": \"unconfined\"}",
        "{\"security-opt\": [\"seccomp=unconfined\"]}",
        "{\"network\": \"host\"}",
        "{\"privileged\": true}",
        "{\"memory\": 0}",
        "{\"timeout\": null}",
    };
    struct mayfly_error e;
    mayfly_policy *policy = live_policy();
    const char *argv[] = {"true", NULL};

    for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
        e = (struct mayfly_error){0};
        if (mayfly_policy_set(policy, attempts[i][0], attempts[i][1], &e) == 0)
            fail_msg("%s=%s was taken", attempts[i][0], attempts[i][1]);
        assert_int_equal(e.kind, MAYFLY_E_USAGE);
        assert_true(e.message[0] != '\0');
    }
    for (size_t i = 0; i < sizeof(json) / sizeof(json[0]); i++) {
        e = (struct mayfly_error){0};
        if (mayfly_policy_json(policy, json[i], strlen(json[i]), &e) == 0)
            fail_msg("%s was taken", json[i]);
        assert_int_equal(e.kind, MAYFLY_E_USAGE);
    }
    /* And the policy that all this was tried on is still the strict one. */
    live_set(policy, "attest", "true");
    assert_int_equal(mayfly_policy_command(policy, argv, &e), 0);
    mayfly_result *r = live_run(policy, NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    expect_all_in_force(r);
    mayfly_result_free(r);
    mayfly_policy_free(policy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_run_works_on_this_host_as_it_is),
        cmocka_unit_test(a_masked_proc_is_diagnosed),
        cmocka_unit_test(switched_off_user_namespaces_are_diagnosed),
        cmocka_unit_test(root_without_cap_sys_admin_maps_host_root_no_more_than_ever),
        cmocka_unit_test(root_that_could_map_only_itself_is_refused),
        cmocka_unit_test(a_namespaces_root_that_is_the_hosts_is_refused),
        cmocka_unit_test(too_few_descriptors_are_diagnosed),
        cmocka_unit_test(a_user_who_may_start_no_process_gets_an_error),
        cmocka_unit_test(a_closed_standard_input_does_no_harm),
        cmocka_unit_test(a_cgroup_parent_that_is_none_is_diagnosed),
        cmocka_unit_test(other_processes_of_our_cgroup_stay_where_they_are),
        cmocka_unit_test(every_control_is_in_force_with_evidence),
        cmocka_unit_test(every_control_is_in_force_whatever_the_policy),
        cmocka_unit_test(mounts_with_peers_are_no_hindrance_and_get_none_in_the_box),
        cmocka_unit_test(without_attest_nothing_is_claimed),
        cmocka_unit_test(a_wall_that_the_kernel_lacks_is_said_to_be_missing),
        cmocka_unit_test(a_policy_without_some_control_cannot_be_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
