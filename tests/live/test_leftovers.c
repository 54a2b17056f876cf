/*
 * test_leftovers.c: a box leaves nothing, however many there were and however they ended; what a
 * killed mayfly could not clear away is collected by the next; and nobody else's is touched.
 */
#include "live_box.h"

#include <sys/resource.h>

#include "linux/host.h"
#include "linux/procfs.h"

#include "base/banned.h"

/* ------------------------------------------------------------------ many runs */

static long resident_pages(void) {
    FILE *f = fopen("/proc/self/statm", "re");
    long pages = -1;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*d %ld", &pages), 1);
    (void)fclose(f);
    return pages;
}

static void a_thousand_runs_leave_nothing_and_no_memory(void **state) {
    struct live_host before = live_look();
    int n = live_times(1000);
    long pages = 0;

    (void)state;
    for (int i = 0; i < n; i++) {
        mayfly_result *r = live_sh("exit 3", NULL);
        live_expect(r, MAYFLY_EXITED, 3);
        mayfly_result_free(r);
        if (i == n / 4)
            pages = resident_pages();
    }
    long more = resident_pages() - pages;
    if (more > 64)
        fail_msg("%ld pages more after %d runs", more, n - n / 4);
    live_same(before);
}

static void every_kind_of_ending_leaves_nothing(void **state) {
    const struct {
        const char *script, *field, *value;
    } cases[] = {
        {"exit 1", "timeout", "10s"},
        {"kill -9 $$", "timeout", "10s"},
        {"sleep 60", "timeout", "100ms"},
        {"sleep 60 & (setsid sleep 60 &)", "timeout", "10s"},
        {"exec python3 -c \"x = b'x' * (200 << 20)\"", "memory", "32m"},
        {"yes", "max-output", "1k:kill"},
        {"mkdir -p /tmp/a/b/c; echo x > /tmp/a/b/c/d; cd /tmp/a/b; sleep 60 & exit 0", "timeout",
         "10s"},
    };
    struct live_host before = live_look();

    (void)state;
    for (int round = 0; round < live_times(3); round++)
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
            mayfly_result_free(live_sh(cases[i].script, cases[i].field, cases[i].value, NULL));
            live_same(before);
        }
}

/* A box costs some thirty descriptors at once: short of any one of them there is no box, and no leak. */
static void a_shortage_of_descriptors_at_any_point_leaves_nothing(void **state) {
    const char *argv[] = {"true", NULL};
    mayfly_policy *policy = live_policy();
    struct live_host before = live_look();
    struct rlimit old, few;
    int made = 0, refused = 0;

    (void)state;
    assert_int_equal(mayfly_policy_command(policy, argv, NULL), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    for (rlim_t n = 3; n<60; n += live_slow()> 1 ? 4 : 1) {
        struct mayfly_error e = {0};
        mayfly_result *r = NULL;

        few = (struct rlimit){n, old.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        int status = mayfly_run(policy, NULL, &r, &e);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
        if (status < 0) {
            refused++;
            assert_null(r);
            assert_true(e.message[0] != '\0');
            assert_int_equal(status, e.code);
        } else {
            made++;
            live_expect(r, MAYFLY_EXITED, 0);
            mayfly_result_free(r);
        }
        live_same(before);
    }
    if (!made || !refused)
        fail_msg("%d made, %d refused", made, refused);
    mayfly_policy_free(policy);
}

/* ------------------------------------------------------------------ the owner's end */

/* In a child that is killed, exits, or becomes another program: all are the end of its boxes. */
static void end_of_owner(const char *how) {
    char mark[32], *script = live_marked("(setsid sleep MA''RK &) ; sleep MA''RK", mark);

    live_adopt(true);
    pid_t owner = fork();
    assert_true(owner >= 0);
    if (owner == 0) {
        struct live_box parked = live_open_sh("true", NULL);
        struct live_box running = live_open_sh(script, NULL);
        (void)parked;
        live_start(&running, NULL);
        live_must_appear(mark);
        if (strcmp(how, "exec") == 0)
            (void)execlp("sleep", "sleep", "0.2", NULL);
        else if (strcmp(how, "kill") == 0)
            (void)kill(getpid(), SIGKILL);
        _exit(0);
    }
    assert_int_equal(waitpid(owner, NULL, 0), owner);
    live_adopted_must_end(1000 * live_slow());
    live_adopt(false);
    live_must_be_gone(mark);
    free(script);
}

static void a_dead_owners_boxes_parked_and_running_end_and_are_collected(void **state) {
    const char *const how[] = {"exit", "kill", "exec"};
    struct live_host before = live_look();

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        end_of_owner(how[i]);
        mayfly_result_free(live_sh("true", NULL)); /* collects */
        live_same(before);
    }
}

static void many_owners_killed_while_building_leave_nothing(void **state) {
    struct live_host before = live_look();
    struct mayfly_gc_report report = {0};
    int n = live_times(100);
    double start = live_now_ms();

    (void)state;
    mayfly_result_free(live_sh("exit 0", NULL));
    double run_ms = live_slow() > 1 ? live_now_ms() - start : 5;
    live_adopt(true);
    for (int i = 0; i < n; i++) {
        pid_t owner = fork();
        assert_true(owner >= 0);
        if (owner == 0)
            for (;;)
                mayfly_result_free(live_sh("exit 0", NULL));
        live_sleep_ms(run_ms * (0.2 + 3.0 * i / n));
        assert_int_equal(kill(owner, SIGKILL), 0);
        assert_int_equal(waitpid(owner, NULL, 0), owner);
    }
    live_adopted_must_end(1000 * live_slow());
    live_adopt(false);
    assert_int_equal(mayfly_gc(0, &report, NULL), 0);
    assert_int_equal(report.removed, report.found);
    live_same(before);
}

/* ------------------------------------------------------------------ the sweep */

/* A child that only waits, as an owner or as a thing in a cgroup. */
static pid_t idle_child(struct cg_owner *owner) {
    struct proc_stat st;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        for (;;)
            (void)pause();
    assert_int_equal(proc_read_stat(pid, &st), 0);
    *owner = (struct cg_owner){
        .pidns = host_facts()->self.pidns, .pid = pid, .start_time = st.start_time};
    return pid;
}

static int end_child(pid_t pid) {
    int status = 0;

    (void)kill(pid, SIGTERM);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* The directory of `name` in hierarchy i, below an own subdirectory if `deep`. */
static void place(char path[1024], int i, bool deep, const char *name) {
    (void)snprintf(path, 1024, "%s/%s%s%s", host_facts()->cg.hier[i].parent,
                   deep ? "mftest-deep" : "", deep && *name ? "/" : "", name);
}

static void plant(const char *name, bool deep) {
    for (int i = 0; i < host_facts()->cg.n; i++) {
        char path[1024];

        place(path, i, true, "");
        if (deep && mkdir(path, 0755) < 0 && errno != EEXIST)
            fail_msg("mkdir %s: %s", path, strerror(errno));
        place(path, i, deep, name);
        if (mkdir(path, 0755) < 0)
            fail_msg("mkdir %s: %s", path, strerror(errno));
    }
}

/* In how many hierarchies it is there. */
static int there(const char *name, bool deep) {
    int n = 0;

    for (int i = 0; i < host_facts()->cg.n; i++) {
        char path[1024];
        place(path, i, deep, name);
        n += access(path, F_OK) == 0;
    }
    return n;
}

static void uproot(const char *name, bool deep) {
    for (int i = 0; i < host_facts()->cg.n; i++) {
        char path[1024];
        place(path, i, deep, name);
        (void)rmdir(path);
    }
}

static void put_in(const char *name, pid_t pid) {
    char path[1024], file[1100], text[32];

    place(path, 0, false, name);
    (void)snprintf(file, sizeof(file), "%s/cgroup.procs", path);
    int fd = open(file, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    int len = snprintf(text, sizeof(text), "%d", (int)pid);
    if (write(fd, text, (size_t)len) != len)
        fail_msg("%s: %s", file, strerror(errno));
    (void)close(fd);
}

static void the_next_run_collects_what_the_dead_left_and_nothing_of_the_living(void **state) {
    struct cg_owner owner, idle;
    char living[CG_NAME], dead[CG_NAME], reused[CG_NAME], foreign[CG_NAME];
    struct live_host before = live_look();

    (void)state;
    live_need_cgroups();
    pid_t child = idle_child(&owner), inside = idle_child(&idle);
    int all = host_facts()->cg.n;
    cg_name(&owner, 1, living);
    struct cg_owner o = owner;
    o.start_time++; /* the same pid, another process */
    cg_name(&o, 2, reused);
    o = owner;
    o.pidns++; /* its pid says nothing here */
    o.pid = 1 << 30;
    cg_name(&o, 3, foreign);
    o = owner;
    o.pid = 1 << 30;
    cg_name(&o, 4, dead);
    const char *const names[] = {living, reused, foreign, dead, "mayfly-mine", "mayfly-1-2-3-x"};
    for (size_t i = 0; i < 6; i++)
        plant(names[i], false);
    put_in(dead, inside);

    mayfly_result_free(live_sh("true", NULL));

    int left[6];
    for (size_t i = 0; i < 6; i++) {
        left[i] = there(names[i], false);
        uproot(names[i], false);
    }
    int killed_by = end_child(inside);
    (void)end_child(child);
    assert_int_equal(left[0], all);
    assert_int_equal(left[1], 0);
    assert_int_equal(left[2], all);
    assert_int_equal(left[3], 0);
    assert_int_equal(left[4], all);
    assert_int_equal(left[5], all);
    assert_int_equal(killed_by, SIGKILL); /* what was in it is gone too */
    live_same(before);
}

/* A container that died with a run in it. Whether anything lives in its pid namespace is seen from the first one alone. */
static void gc_with_all_takes_what_a_dead_pid_namespace_left(void **state) {
    struct mayfly_gc_report near = {0}, far = {0};
    struct cg_owner owner, o;
    char foreign[CG_NAME], peer[CG_NAME];
    struct live_host before = live_look();
    bool judges = geteuid() == 0 && proc_pidns_alive(1) == 0;

    (void)state;
    live_need_cgroups();
    pid_t child = idle_child(&owner);
    o = owner;
    o.pidns = 1; /* no namespace has this number */
    cg_name(&o, 1, foreign);
    cg_name(&owner, 2, peer);
    plant(foreign, false);
    plant(peer, false);
    int near_status = mayfly_gc(0, &near, NULL), left = there(foreign, false);
    int far_status = mayfly_gc(1, &far, NULL), after = there(foreign, false),
        kept = there(peer, false);
    (void)end_child(child);
    uproot(foreign, false);
    uproot(peer, false);

    assert_int_equal(near_status | far_status, 0);
    assert_int_equal(left, host_facts()->cg.n);
    assert_true(near.foreign >= (unsigned)host_facts()->cg.n);
    assert_int_equal(after, judges ? 0 : host_facts()->cg.n);
    assert_int_equal(kept, host_facts()->cg.n);
    live_same(before);
}

static void gc_counts_and_with_all_looks_everywhere(void **state) {
    struct cg_owner owner;
    char near[CG_NAME], deep[CG_NAME], living[CG_NAME];
    struct mayfly_gc_report first = {0}, second = {0}, third = {0};
    struct live_host before = live_look();

    (void)state;
    live_need_cgroups();
    pid_t child = idle_child(&owner);
    cg_name(&owner, 1, living);
    struct cg_owner o = owner;
    o.pid = 1 << 30;
    cg_name(&o, 2, near);
    cg_name(&o, 3, deep);
    plant(living, false);
    plant(near, false);
    plant(deep, true);

    int near_status = mayfly_gc(0, &first, NULL), deep_left = there(deep, true);
    int all_status = mayfly_gc(1, &second, NULL), deep_after = there(deep, true);
    int living_left = there(living, false);
    (void)end_child(child);
    int last_status = mayfly_gc(0, &third, NULL), living_after = there(living, false);
    uproot(deep, true);
    uproot("", true);
    uproot(near, false);

    unsigned all = (unsigned)host_facts()->cg.n;
    assert_int_equal(near_status | all_status | last_status, 0);
    assert_true(first.removed >= all && first.removed == first.found && first.living >= all);
    assert_int_equal(deep_left, all);
    assert_true(second.removed >= all);
    assert_int_equal(deep_after, 0);
    assert_int_equal(living_left, all);
    assert_true(third.removed >= all); /* its owner is dead now */
    assert_int_equal(living_after, 0);
    live_same(before);
}

/* The facts of a process are read once; a forked child is another process, and owns its boxes itself. */
static void a_forked_childs_boxes_are_its_own_not_its_parents(void **state) {
    int up[2], down[2];
    char c;

    (void)state;
    live_need_cgroups();
    assert_int_equal(pipe2(up, O_CLOEXEC), 0);
    assert_int_equal(pipe2(down, O_CLOEXEC), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct live_box b = live_open_sh("true", NULL);
        (void)!write(up[1], "x", 1);
        (void)!read(down[0], &c, 1);
        live_close(&b);
        _exit(0);
    }
    assert_int_equal(read(up[0], &c, 1), 1);
    DIR *dir = opendir(host_facts()->cg.hier[0].parent);
    assert_non_null(dir);
    int own = 0;
    for (const struct dirent *e; (e = readdir(dir));) {
        struct cg_owner owner;
        own += cg_parse_name(e->d_name, &owner) && owner.pid == child;
    }
    (void)closedir(dir);
    assert_int_equal(write(down[1], "x", 1), 1);
    assert_int_equal(waitpid(child, NULL, 0), child);
    for (int i = 0; i < 2; i++) {
        (void)close(up[i]);
        (void)close(down[i]);
    }
    if (!own)
        fail_msg("no cgroup says that it is process %d's", (int)child);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_runs_leave_nothing_and_no_memory),
        cmocka_unit_test(every_kind_of_ending_leaves_nothing),
        cmocka_unit_test(a_shortage_of_descriptors_at_any_point_leaves_nothing),
        cmocka_unit_test(a_dead_owners_boxes_parked_and_running_end_and_are_collected),
        cmocka_unit_test(many_owners_killed_while_building_leave_nothing),
        cmocka_unit_test(the_next_run_collects_what_the_dead_left_and_nothing_of_the_living),
        cmocka_unit_test(gc_with_all_takes_what_a_dead_pid_namespace_left),
        cmocka_unit_test(gc_counts_and_with_all_looks_everywhere),
        cmocka_unit_test(a_forked_childs_boxes_are_its_own_not_its_parents),
    };

    return cmocka_run_group_tests(tests, live_first_run, NULL);
}
