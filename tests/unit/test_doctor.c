/*
 * test_doctor.c: a report on hosts of every kind, none of which is here: each says what is missing,
 * the command that helps, and what it would cost.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fd.h"
#include "lib/doctor.h"

#include "base/banned.h"

/* A host, and what surrounds the process on it. Everything works until a test says otherwise. */
struct world {
    struct host host;
    struct tried tried;
    struct surroundings around;
    struct policy *policy;
    struct mayfly_report *report;
};

static void all_v2(struct host *h) {
    h->cg.n = 1;
    h->cg.hier[0] = (struct cg_hier){.version = 2, .controllers = (unsigned)BIT(CG__N) - 1};
    (void)str_copy(h->cg.hier[0].parent, sizeof(h->cg.hier[0].parent), "/sys/fs/cgroup/mine");
    for (int c = 0; c < CG__N; c++)
        h->cg.where[c] = 0;
}

static int set_up(void **state) {
    struct world *w = calloc(1, sizeof(*w));

    if (!w)
        return -1;
    w->policy = policy_new();
    (void)str_copy(w->host.release, sizeof(w->host.release), "6.12.1");
    w->host.kernel = KERNEL(6, 12);
    w->host.privileged = true;
    w->host.landlock_abi = 6;
    w->host.seccomp_filter = true;
    w->host.max_user_namespaces = 10000;
    w->host.ids = (struct idmap_facts){
        .kind = IDMAP_BLOCK, .sub_uid = {1000000, 65536}, .block = 65536, .slots = 1};
    all_v2(&w->host);
    w->around = (struct surroundings){
        .max_files = 1024, .max_processes = 4096, .max_space = UINT64_MAX, .max_data = UINT64_MAX};
    *state = w;
    return w->policy ? 0 : -1;
}

static int tear_down(void **state) {
    struct world *w = *state;

    mayfly_report_free(w->report);
    policy_free(w->policy);
    free(w);
    return 0;
}

static void a_user(struct world *w) {
    w->host.privileged = false;
    w->host.ids = (struct idmap_facts){.kind = IDMAP_SUBID,
                                       .uid = 1000,
                                       .above = 1000,
                                       .gid = 1000,
                                       .sub_uid = {100000, 65536},
                                       .slots = 65536};
}

static void no_cgroups(struct world *w, const char *why) {
    w->host.cg.n = 0;
    for (int c = 0; c < CG__N; c++) {
        w->host.cg.where[c] = -1;
        (void)str_copy(w->host.cg.why[c], sizeof(w->host.cg.why[c]), why);
    }
}

static const struct mayfly_check *of(struct world *w, const char *control) {
    if (!w->report) {
        w->report = doctor_report(w->policy, &w->host, &w->tried, &w->around);
        assert_non_null(w->report);
        w->report->trial = 1;
        doctor_conclude(w->report);
    }
    for (size_t i = 0; i < w->report->n_checks; i++)
        if (strcmp(w->report->checks[i].control, control) == 0)
            return &w->report->checks[i];
    fail_msg("no check of %s", control);
    return NULL;
}

static const struct mayfly_look *look(struct world *w, const char *name) {
    (void)of(w, "memory");
    for (size_t i = 0; i < w->report->n_looks; i++)
        if (strcmp(w->report->looks[i].name, name) == 0)
            return &w->report->looks[i];
    fail_msg("no look at %s", name);
    return NULL;
}

static void says(const char *text, const char *part) {
    if (!strstr(text, part))
        fail_msg("\"%s\" does not say \"%s\"", text, part);
}

static bool gets_through(const struct mayfly_check *c, const char *id) {
    for (size_t i = 0; i < c->n_through; i++)
        if (strcmp(c->through[i].id, id) == 0)
            return true;
    return false;
}

static bool is_thinner(const struct mayfly_check *c, const char *id) {
    for (size_t i = 0; i < c->n_thinner; i++)
        if (strcmp(c->thinner[i].id, id) == 0)
            return true;
    return false;
}

/* `control` cannot be had, for `why`, and `remedy` would help; so a default run is refused. */
static void lacks(struct world *w, const char *control, const char *why, const char *remedy) {
    const struct mayfly_check *c = of(w, control);

    if (c->answer != 0)
        fail_msg("%s: answer %d", control, c->answer);
    says(c->why, why);
    says(c->remedy, remedy);
    assert_false(w->report->ready);
}

/* ------------------------------------------------------------------ whole hosts */

static void a_host_with_everything_is_ready_and_costs_nothing(void **state) {
    struct world *w = *state;

    for (size_t i = 0; of(w, "memory") && i < w->report->n_checks; i++) {
        const struct mayfly_check *c = &w->report->checks[i];
        if (c->answer != 1 || c->why[0] || !c->how[0] || c->n_through || c->n_thinner)
            fail_msg("%s: answer %d, how \"%s\", why \"%s\"", c->control, c->answer, c->how,
                     c->why);
    }
    assert_true(w->report->ready);
    assert_int_equal(w->report->root, 1);
    says(of(w, "memory")->how, "cgroup2, below /sys/fs/cgroup/mine");
    says(of(w, "user")->how, "a block of 65536 host ids");
    says(of(w, "mount")->how, "id-mapped");
    for (size_t i = 0; i < w->report->n_looks; i++)
        if (!w->report->looks[i].good)
            fail_msg("%s: %s", w->report->looks[i].name, w->report->looks[i].found);
}

static void a_failed_trial_has_the_last_word(void **state) {
    struct world *w = *state;

    (void)of(w, "memory");
    w->report->trial = 0;
    doctor_conclude(w->report);
    assert_false(w->report->ready);
}

static void a_v1_hierarchy_is_named(void **state) {
    struct world *w = *state;

    w->host.cg.hier[0].version = 1;
    says(of(w, "pids")->how, "cgroup1");
    says(of(w, "cgroupns")->how, "after the v1 cgroups are joined");
    assert_true(w->report->ready);
}

/* ------------------------------------------------------------------ users */

static void a_user_without_subordinate_ids_is_told_the_command(void **state) {
    struct world *w = *state;

    a_user(w);
    w->host.ids = (struct idmap_facts){
        .kind = IDMAP_SINGLE,
        .uid = 1000,
        .above = 1000,
        .groups_kept = true,
        .why_single = "no subordinate ids in /etc/subuid; as root: usermod --add-subuids "
                      "100000-165535 --add-subgids 100000-165535 ann"};
    says(of(w, "user")->how, "your own uid 1000");
    says(of(w, "user")->why, "your own");
    says(of(w, "identity")->how, "groups cannot be dropped");
    assert_int_equal(of(w, "user")->answer, 1);
    assert_true(w->report->ready);
    assert_string_equal(look(w, "subordinate ids")->found, "no subordinate ids in /etc/subuid");
    says(look(w, "subordinate ids")->remedy, "usermod --add-subuids 100000-165535");
    assert_false(look(w, "subordinate ids")->good);
}

static void a_user_with_them_is_told_how_many(void **state) {
    struct world *w = *state;

    a_user(w);
    says(of(w, "user")->how, "newuidmap");
    says(look(w, "subordinate ids")->found, "65536 uids from 100000");
    says(of(w, "mount")->how, "not id-mapped");
}

static void without_delegation_the_limits_are_missing_and_the_attacks_are_named(void **state) {
    struct world *w = *state;

    a_user(w);
    w->around.has_bus = w->around.has_helper = true;
    no_cgroups(w, "cgroup /x is not yours, so no limit; run: systemd-run --user --scope -p "
                  "Delegate=yes -- mayfly …");
    lacks(w, "pids", "is not yours, so no limit", "systemd-run --user --scope -p Delegate=yes");
    assert_true(gets_through(of(w, "pids"), "PS6"));
    assert_true(gets_through(of(w, "pids"), "PS7"));
    assert_true(gets_through(of(w, "memory"), "RS1"));
    assert_true(gets_through(of(w, "cpu"), "RS3"));
    assert_false(gets_through(of(w, "cpu"), "PS6"));
    assert_true(is_thinner(of(w, "memory"), "FS11")); /* the tmpfs's own size still stops it */
    assert_false(gets_through(of(w, "memory"), "FS11"));
    says(of(w, "pids")->best_effort, "RLIMIT_NPROC of 128");
    says(of(w, "memory")->best_effort, "RLIMIT_DATA of 256 MiB");
    says(of(w, "cpu")->best_effort, "nothing");
    says(look(w, "delegation")->found, "the systemd user manager gives one to a run");
    says(look(w, "delegation")->remedy, "loginctl enable-linger");
    says(look(w, "delegation")->remedy, "/run/user/1000");
    says(look(w, "delegation")->remedy, "Delegate=cpu memory pids");
}

static void no_manager_no_helper_and_a_refusal_are_told_apart(void **state) {
    struct world *w = *state;

    a_user(w);
    no_cgroups(w, "no; do");
    says(look(w, "delegation")->found, "no systemd user manager is in sight");
    mayfly_report_free(w->report);
    w->report = NULL;
    w->around.has_bus = true;
    says(look(w, "delegation")->found, "no mayfly-delegate");
    mayfly_report_free(w->report);
    w->report = NULL;
    (void)str_copy(w->around.asked, sizeof(w->around.asked), "it said no");
    assert_string_equal(look(w, "delegation")->found, "it said no");
}

static void one_missing_controller_does_not_take_the_others_along(void **state) {
    struct world *w = *state;

    w->host.cg.where[CG_CPU] = -1;
    (void)str_copy(w->host.cg.why[CG_CPU], sizeof(w->host.cg.why[CG_CPU]),
                   "this kernel offers no cpu controller in /x; boot with cgroup_enable=cpu");
    lacks(w, "cpu", "offers no cpu controller", "cgroup_enable=cpu");
    assert_int_equal(of(w, "memory")->answer, 1);
    assert_int_equal(of(w, "pids")->answer, 1);
}

static void a_read_only_cgroup_mount_is_said(void **state) {
    struct world *w = *state;

    no_cgroups(w,
               "/sys/fs/cgroup is read-only, so no limit; in a container: --cgroupns=private and a "
               "writable /sys/fs/cgroup");
    lacks(w, "memory", "read-only", "--cgroupns=private");
}

static void before_5_14_a_user_without_ids_has_no_stand_in_for_pids(void **state) {
    struct world *w = *state;

    a_user(w);
    no_cgroups(w, "no; do");
    w->host.kernel = KERNEL(5, 13);
    says(of(w, "pids")->best_effort, "for the box's own host id");
    mayfly_report_free(w->report);
    w->report = NULL;
    w->host.ids.kind = IDMAP_SINGLE;
    says(of(w, "pids")->best_effort, "nothing");
}

/* ------------------------------------------------------------------ user namespaces */

static void user_namespaces_switched_off(void **state) {
    struct world *w = *state;

    w->host.max_user_namespaces = 0;
    lacks(w, "user", "switched off", "sysctl user.max_user_namespaces=10000");
    assert_false(of(w, "user")->best_effort[0]); /* nothing stands in */
    assert_true(is_thinner(of(w, "user"), "PR1"));
}

static void debians_switch(void **state) {
    struct world *w = *state;

    a_user(w);
    w->host.userns_clone_off = true;
    lacks(w, "user", "to root only", "sysctl kernel.unprivileged_userns_clone=1");
}

static void ubuntus_apparmor(void **state) {
    struct world *w = *state;

    a_user(w);
    w->host.userns_apparmor = true;
    lacks(w, "user", "AppArmor", "kernel.apparmor_restrict_unprivileged_userns=0");
    says(of(w, "user")->remedy, "userns,");
}

static void no_more_namespaces(void **state) {
    struct world *w = *state;

    static const struct {
        enum try t;
        const char *control, *sysctl;
    } kinds[] = {{TRY_NS_USER, "user", "user.max_user_namespaces"},
                 {TRY_NS_PID, "pid", "user.max_pid_namespaces"},
                 {TRY_NS_MNT, "mount", "user.max_mnt_namespaces"},
                 {TRY_NS_NET, "net", "user.max_net_namespaces"},
                 {TRY_NS_IPC, "ipc", "user.max_ipc_namespaces"},
                 {TRY_NS_UTS, "uts", "user.max_uts_namespaces"},
                 {TRY_NS_CGROUP, "cgroupns", "user.max_cgroup_namespaces"}};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        w->tried = (struct tried){0};
        w->tried.answer[kinds[i].t] = -ENOSPC;
        lacks(w, kinds[i].control, "no more", kinds[i].sysctl);
        for (size_t j = 0; j < ARRAY_LEN(kinds); j++)
            assert_int_equal(of(w, kinds[j].control)->answer, i == j ? 0 : 1);
        mayfly_report_free(TAKE_PTR(w->report));
    }
}

/* user_namespaces(7): EPERM in a chroot; no filter is to blame. */
static void a_chroot_is_named(void **state) {
    struct world *w = *state;

    w->tried.answer[TRY_NS_USER] = -EPERM;
    w->tried.in_chroot = true;
    lacks(w, "user", "chroot", "pivot_root");
    assert_null(strstr(of(w, "user")->why, "seccomp"));
}

static void a_host_without_proc_or_devices(void **state) {
    struct world *w = *state;

    w->host.proc_masked = w->host.proc_missing = w->host.sys_hidden = true;
    w->host.max_user_namespaces = UINT64_MAX;
    (void)str_copy(w->around.no_device, sizeof(w->around.no_device), "/dev/full");
    lacks(w, "proc", "no proc is mounted", "mount -t proc");
    lacks(w, "dev", "/dev/full", "devtmpfs");
    assert_int_equal(of(w, "user")->answer, 1);
}

static void a_covered_proc_sys_is_no_setting(void **state) {
    struct world *w = *state;

    w->host.sys_hidden = true;
    w->host.max_user_namespaces = UINT64_MAX;
    says(look(w, "/proc/sys")->found, "covered");
    assert_int_equal(of(w, "user")->answer, 1);
}

static void inherited_limits_of_memory_are_noted_and_little_is_no_host(void **state) {
    struct world *w = *state;

    w->around.max_data = UINT64_C(100) << 20;
    says(look(w, "inherited limits of memory")->found, "data 100 MiB");
    assert_true(w->report->ready);
    mayfly_report_free(TAKE_PTR(w->report));
    w->around.max_space = 8 << 20;
    says(look(w, "inherited limits of memory")->remedy, "ulimit -v unlimited");
    assert_false(w->report->ready);
}

/* ------------------------------------------------------------------ containers */

static void a_masked_proc(void **state) {
    struct world *w = *state;

    w->host.proc_masked = true;
    lacks(w, "proc", "covered", "systempaths=unconfined");
    says(of(w, "proc")->remedy, "unmask=ALL");
    says(of(w, "proc")->remedy, "procMount");
    assert_true(gets_through(of(w, "proc"), "PR3"));
}

static void a_new_proc_that_is_refused_for_no_visible_reason(void **state) {
    struct world *w = *state;

    w->tried.answer[TRY_PROC] = -EPERM;
    lacks(w, "proc", "EPERM", "systempaths=unconfined");
}

static void each_call_that_a_filter_refuses_is_named_with_its_control(void **state) {
    static const struct {
        enum try t;
        const char *control, *name;
    } calls[] = {{TRY_CLONE3, "pid", "clone3"},           {TRY_NS_USER, "user", "user namespace"},
                 {TRY_PRIVATE, "mount", "mount(2)"},      {TRY_OPEN_TREE, "mount", "open_tree"},
                 {TRY_SETATTR, "mount", "mount_setattr"}, {TRY_TMPFS, "tmp", "fsopen"},
                 {TRY_MOVE_MOUNT, "mount", "move_mount"}, {TRY_PIVOT, "mount", "pivot_root"},
                 {TRY_SECCOMP, "seccomp", "seccomp(2)"}};
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        w->tried = (struct tried){0};
        w->tried.answer[calls[i].t] = i % 2 ? -EPERM : -ENOSYS;
        lacks(w, calls[i].control, calls[i].name, "seccomp=unconfined");
        assert_false(look(w, try_name(calls[i].t))->good);
        mayfly_report_free(w->report);
        w->report = NULL;
    }
}

static void a_listener_that_is_taken_is_a_note_and_no_refusal(void **state) {
    struct world *w = *state;

    w->tried.answer[TRY_LISTENER] = -EBUSY;
    assert_int_equal(of(w, "seccomp")->answer, 1);
    says(look(w, try_name(TRY_LISTENER))->found, "one such");
    assert_true(w->report->ready);
}

/* ------------------------------------------------------------------ kernels */

static void a_kernel_that_is_too_old_is_told_by_its_version(void **state) {
    struct world *w = *state;

    w->host.kernel = KERNEL(5, 10);
    (void)str_copy(w->host.release, sizeof(w->host.release), "5.10.0-28-amd64");
    w->host.landlock_abi = 0;
    w->tried.answer[TRY_SETATTR] = -ENOSYS;
    lacks(w, "mount", "needs Linux 5.12; this is 5.10.0-28-amd64", "5.12 or later");
    for (size_t i = 0; i < w->report->n_features; i++) {
        const struct mayfly_feature *f = &w->report->features[i];
        assert_true(f->without[0] && f->since[0]);
        if (strstr(f->name, "mount_setattr") || strstr(f->name, "cgroup.kill"))
            assert_false(f->here);
        if (strstr(f->name, "close_range"))
            assert_true(f->here);
    }
}

static void a_backport_counts_by_being_tried(void **state) {
    struct world *w = *state;

    w->host.kernel = KERNEL(5, 4);
    assert_int_equal(of(w, "mount")->answer, 1);
    for (size_t i = 0; i < w->report->n_features; i++)
        if (strstr(w->report->features[i].name, "mount_setattr"))
            assert_true(w->report->features[i].here);
}

static void what_an_older_landlock_lacks_is_listed(void **state) {
    struct world *w = *state;

    w->host.landlock_abi = 2;
    says(of(w, "landlock")->how, "ABI 2; not in it: truncate, ioctl on devices, abstract sockets");
    assert_int_equal(of(w, "landlock")->answer, 1);
    mayfly_report_free(w->report);
    w->report = NULL;
    w->host.landlock_abi = 0;
    assert_int_equal(of(w, "landlock")->answer, 2);
    says(of(w, "landlock")->remedy, "lsm=");
    assert_true(is_thinner(of(w, "landlock"), "SK2"));
    assert_int_equal(of(w, "landlock")->n_through, 0);
    assert_true(w->report->ready);
}

static void a_kernel_without_seccomp(void **state) {
    struct world *w = *state;

    w->host.seccomp_filter = false;
    lacks(w, "seccomp", "no seccomp filters", "CONFIG_SECCOMP_FILTER");
    assert_true(gets_through(of(w, "seccomp"), "SY1"));
    assert_true(gets_through(of(w, "seccomp"), "SK4"));
}

static void few_files_and_processes_are_noted(void **state) {
    struct world *w = *state;

    a_user(w);
    w->around.max_files = 20;
    w->around.max_processes = 5;
    says(look(w, "limits of this process")->remedy, "ulimit -n");
    says(look(w, "limits of this process")->remedy, "ulimit -u");
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_host_with_everything_is_ready_and_costs_nothing),
        IN_WORLD(a_failed_trial_has_the_last_word),
        IN_WORLD(a_v1_hierarchy_is_named),
        IN_WORLD(a_user_without_subordinate_ids_is_told_the_command),
        IN_WORLD(a_user_with_them_is_told_how_many),
        IN_WORLD(without_delegation_the_limits_are_missing_and_the_attacks_are_named),
        IN_WORLD(no_manager_no_helper_and_a_refusal_are_told_apart),
        IN_WORLD(one_missing_controller_does_not_take_the_others_along),
        IN_WORLD(a_read_only_cgroup_mount_is_said),
        IN_WORLD(before_5_14_a_user_without_ids_has_no_stand_in_for_pids),
        IN_WORLD(user_namespaces_switched_off),
        IN_WORLD(debians_switch),
        IN_WORLD(ubuntus_apparmor),
        IN_WORLD(no_more_namespaces),
        IN_WORLD(a_chroot_is_named),
        IN_WORLD(a_host_without_proc_or_devices),
        IN_WORLD(a_covered_proc_sys_is_no_setting),
        IN_WORLD(inherited_limits_of_memory_are_noted_and_little_is_no_host),
        IN_WORLD(a_masked_proc),
        IN_WORLD(a_new_proc_that_is_refused_for_no_visible_reason),
        IN_WORLD(each_call_that_a_filter_refuses_is_named_with_its_control),
        IN_WORLD(a_listener_that_is_taken_is_a_note_and_no_refusal),
        IN_WORLD(a_kernel_that_is_too_old_is_told_by_its_version),
        IN_WORLD(a_backport_counts_by_being_tried),
        IN_WORLD(what_an_older_landlock_lacks_is_listed),
        IN_WORLD(a_kernel_without_seccomp),
        IN_WORLD(few_files_and_processes_are_noted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
