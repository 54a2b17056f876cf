/*
 * test_cgroup_live.c: what the kernel of this machine makes of what we write:
 * limits hold, usage is counted, a cgroup goes away with everything in it and
 * nothing else. All below our own cgroup, under names of our own.
 *
 * A test that cannot run here says why and is skipped; MAYFLY_MUST_RUN=root,
 * cgroup1,cgroup2 makes that a failure.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/fd.h"
#include "linux/host.h"
#include "linux/procfs.h"
#include "linux/sys.h"

#include "base/banned.h"

#define assert_ok(r)                                                                               \
    do {                                                                                           \
        int r_ = (int)(r);                                                                         \
        if (r_ < 0)                                                                                \
            fail_msg("%s: %s", #r, errno_words(r_));                                               \
    } while (0)

static void cannot(const char *tag, const char *why) {
    const char *must = getenv("MAYFLY_MUST_RUN");
    if (must && mount_has_option(must, tag))
        fail_msg("must run here (%s), but %s", tag, why);
    print_message("skipped: %s\n", why);
    skip();
}

/* A cgroup in every hierarchy of the layout, all of one name. */
struct boxes {
    const struct host *host;
    char name[CG_NAME];
    int parent[CG_HIERS], dir[CG_HIERS];
};

static int set_up(void **state) {
    struct boxes *b = calloc(1, sizeof(*b));
    static uint32_t serial;
    if (!b)
        return -1;
    b->host = host_facts();
    for (int i = 0; i < CG_HIERS; i++)
        b->parent[i] = b->dir[i] = -1;
    cg_name(&b->host->self, ++serial, b->name);
    *state = b;
    return 0;
}

static int tear_down(void **state) {
    struct boxes *b = *state;
    int r = 0;
    for (int i = 0; i < b->host->cg.n; i++) {
        if (b->parent[i] >= 0)
            r |= cg_remove(b->parent[i], b->name, b->host->cg.hier[i].version, 5000);
        if (r < 0)
            print_error("left over: %s/%s: %s\n", b->host->cg.hier[i].parent, b->name,
                        errno_words(r));
        fd_close(&b->dir[i]);
        fd_close(&b->parent[i]);
    }
    free(b);
    return r;
}

/* Makes the cgroup of the hierarchy that drives c; the test is skipped where there is none. */
static int make(struct boxes *b, enum cg_controller c) {
    int i = b->host->cg.where[c];
    if (i < 0)
        cannot(geteuid() ? "user" : "root", b->host->cg.why[c]);
    const struct cg_hier *h = &b->host->cg.hier[i];
    if (b->dir[i] >= 0)
        return i;
    if (h->evacuate)
        cannot("leaf", "we would have to leave our own cgroup first");
    b->parent[i] = open(h->parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int k = 0; k < CG__N; k++)
        if (h->enable & BIT(k)) {
            char word[32];
            int n = snprintf(word, sizeof(word), "+%s", cg_controller_names[k]);
            assert_ok(file_write_at(b->parent[i], "cgroup.subtree_control", word, (size_t)n));
        }
    if (mkdirat(b->parent[i], b->name, 0755) < 0)
        fail_msg("mkdir %s/%s: %s", h->parent, b->name, errno_words(errno));
    b->dir[i] = openat(b->parent[i], b->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(b->dir[i] >= 0);
    return i;
}

static void limit(struct boxes *b, enum cg_controller c, const struct cg_limits *l) {
    struct cg_setting s[CG_SETTINGS];
    int i = make(b, c);
    int n = cg_settings(b->host->cg.hier[i].version, c, l, s);
    assert_true(n > 0);
    for (int k = 0; k < n; k++) {
        int r = file_write_at(b->dir[i], s[k].file, s[k].value, strlen(s[k].value));
        if (r < 0 && !(s[k].optional && r == -ENOENT))
            fail_msg("%s = %s: %s", s[k].file, s[k].value, errno_words(r));
    }
}

static void assert_file(const struct boxes *b, enum cg_controller c, const char *v2,
                        const char *v2_want, const char *v1, const char *v1_want) {
    char text[64];
    int i = b->host->cg.where[c];
    bool two = b->host->cg.hier[i].version == 2;
    assert_ok(file_read_at(b->dir[i], two ? v2 : v1, text, sizeof(text)));
    assert_string_equal(text, two ? v2_want : v1_want);
}

/* As a box does it: into a v2 cgroup by clone3, into a v1 one by the child itself. */
static pid_t start(struct boxes *b, enum cg_controller c, int (*run)(void *), void *arg) {
    int i = make(b, c);
    bool two = b->host->cg.hier[i].version == 2;
    struct clone_args args = {.exit_signal = SIGCHLD,
                              .flags = two ? CLONE_INTO_CGROUP : 0,
                              .cgroup = two ? (unsigned)b->dir[i] : 0};
    pid_t pid = sys_clone3(&args, sizeof(args));
    if (pid < 0)
        fail_msg("clone3: %s", errno_words(errno));
    if (pid == 0) {
        if (!two && file_write_at(b->dir[i], "tasks", "0", 1) < 0)
            _exit(99);
        _exit(run(arg));
    }
    return pid;
}

static int finish(pid_t pid) {
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* ------------------------------------------------------------------ limits */

static void limits_are_what_the_kernel_gives_back(void **state) {
    struct boxes *b = *state;
    struct cg_limits l = {.memory_bytes = 64 << 20,
                          .cpu_milli = 1500,
                          .pids = 33,
                          .host_has_swap = b->host->swap_bytes > 0};
    limit(b, CG_MEMORY, &l);
    limit(b, CG_CPU, &l);
    limit(b, CG_PIDS, &l);
    assert_file(b, CG_MEMORY, "memory.max", "67108864", "memory.limit_in_bytes", "67108864");
    assert_file(b, CG_CPU, "cpu.max", "150000 100000", "cpu.cfs_quota_us", "150000");
    assert_file(b, CG_PIDS, "pids.max", "33", "pids.max", "33");
}

static int eat(void *arg) {
    size_t size = *(size_t *)arg;
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return 98;
    for (size_t i = 0; i < size; i += 4096)
        ((volatile char *)p)[i] = 1;
    return 0;
}

static void memory_above_the_limit_is_an_oom_kill_and_counted(void **state) {
    struct boxes *b = *state;
    struct cg_limits l = {.memory_bytes = 16 << 20, .host_has_swap = b->host->swap_bytes > 0};
    struct cg_usage u = {0};
    size_t fits = 4 << 20, too_much = 64 << 20;
    limit(b, CG_MEMORY, &l);
    int i = b->host->cg.where[CG_MEMORY], version = b->host->cg.hier[i].version;
    int event _cleanup_fd_ = version == 1 ? cg_v1_oom_eventfd(b->dir[i]) : -1;
    struct pollfd p = {.fd = event, .events = POLLIN};
    if (version == 1)
        assert_ok(event);

    int status = finish(start(b, CG_MEMORY, eat, &fits));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_ok(cg_read_oom_kills(version, b->dir[i], &u.oom_kills));
    assert_int_equal(u.oom_kills, 0);
    assert_int_equal(poll(&p, 1, 0), 0);

    status = finish(start(b, CG_MEMORY, eat, &too_much));
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    cg_read_usage(version, BIT(CG_MEMORY), b->dir[i], &u);
    /* v2 counts the victim of a whole group's kill twice */
    assert_in_range(u.oom_kills, 1, version == 1 ? 1 : 2);
    if (u.memory_peak_bytes != UINT64_MAX)
        assert_in_range(u.memory_peak_bytes, 4 << 20, 16 << 20);
    if (version == 1)
        assert_int_equal(poll(&p, 1, 1000), 1);
}

static int fork_many(void *arg) {
    int refused = 0;
    (void)arg;
    for (int i = 0; i < 12; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            pause();
            _exit(0);
        }
        refused += pid < 0 && errno == EAGAIN;
    }
    return refused;
}

static void forks_above_the_limit_are_refused_and_counted(void **state) {
    struct boxes *b = *state;
    struct cg_limits l = {.pids = 8};
    struct cg_usage u = {0};
    limit(b, CG_PIDS, &l);
    int i = b->host->cg.where[CG_PIDS], version = b->host->cg.hier[i].version;
    int status = finish(start(b, CG_PIDS, fork_many, NULL));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 12 - 7);
    cg_read_usage(version, BIT(CG_PIDS), b->dir[i], &u);
    assert_true(u.pids_refused >= 1 && u.pids_refused <= 5);
    if (u.pids_peak != UINT64_MAX)
        assert_int_equal(u.pids_peak, 8);
    /* the seven that still sleep there end with the cgroup, in tear_down */
}

static int spin(void *arg) {
    struct timespec t;
    (void)arg;
    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    while (t.tv_sec == 0 && t.tv_nsec < 100000000);
    return 0;
}

static void cpu_time_is_counted(void **state) {
    struct boxes *b = *state;
    uint64_t before, after;
    int i = make(b, CG_ACCT), version = b->host->cg.hier[i].version;
    assert_ok(cg_read_cpu_usec(version, b->dir[i], &before));
    assert_int_equal(before, 0);
    assert_int_equal(finish(start(b, CG_ACCT, spin, NULL)), 0);
    assert_ok(cg_read_cpu_usec(version, b->dir[i], &after));
    assert_in_range(after, 90000, 400000);
}

/* ------------------------------------------------------------------ removal */

static int sleep_on(void *arg) {
    (void)arg;
    signal(SIGTERM, SIG_IGN);
    while (pause() < 0)
        ;
    return 0;
}

static void removal(struct boxes *b, enum cg_controller c) {
    int i = make(b, c), version = b->host->cg.hier[i].version;
    pid_t in[40], deep, outside = fork();
    if (outside == 0)
        _exit(sleep_on(NULL));
    for (size_t k = 0; k < ARRAY_LEN(in); k++)
        in[k] = start(b, c, sleep_on, NULL);

    assert_int_equal(mkdirat(b->dir[i], "sub", 0755), 0);
    assert_int_equal(mkdirat(b->dir[i], "sub/sub", 0755), 0);
    deep = start(b, c, sleep_on, NULL);
    char text[24];
    int n = snprintf(text, sizeof(text), "%d\n", deep);
    assert_ok(file_write_at(b->dir[i], "sub/sub/cgroup.procs", text, (size_t)n));

    signal(SIGCHLD, SIG_IGN); /* so that the dead do not stay as zombies of ours */
    assert_ok(cg_remove(b->parent[i], b->name, version, 5000));
    signal(SIGCHLD, SIG_DFL);
    assert_int_equal(faccessat(b->parent[i], b->name, F_OK, 0), -1);
    for (size_t k = 0; k < ARRAY_LEN(in); k++)
        assert_int_equal(kill(in[k], 0), -1);
    assert_int_equal(kill(deep, 0), -1);
    assert_int_equal(kill(outside, 0), 0);
    assert_int_equal(kill(outside, SIGKILL), 0);
    assert_true(WIFSIGNALED(finish(outside)));
}

static void removing_takes_all_that_is_in_it_and_nothing_else(void **state) {
    removal(*state, CG_PIDS);
}

static void removing_takes_all_that_is_in_it_by_cgroup_kill_too(void **state) {
    struct boxes *b = *state;
    int i = b->host->cg.where[CG_ACCT];
    if (i < 0 || b->host->cg.hier[i].version != 2)
        cannot("cgroup2", "there is no v2 cgroup for us here");
    removal(b, CG_ACCT);
}

static void what_is_not_named_like_ours_is_not_touched(void **state) {
    struct boxes *b = *state;
    int i = make(b, CG_ACCT), version = b->host->cg.hier[i].version;
    pid_t pid = start(b, CG_ACCT, sleep_on, NULL);
    assert_int_equal(mkdirat(b->dir[i], "other", 0755), 0);
    assert_int_equal(cg_remove(b->dir[i], "other", version, 100), -EINVAL);
    assert_int_equal(cg_remove(b->dir[i], ".", version, 100), -EINVAL);
    assert_int_equal(kill(pid, 0), 0);
    assert_int_equal(faccessat(b->dir[i], "other", F_OK, 0), 0);
    kill(pid, SIGKILL);
    finish(pid);
}

static void an_empty_cgroup_is_removed_at_once(void **state) {
    struct boxes *b = *state;
    struct timespec from, to;
    int i = make(b, CG_ACCT), version = b->host->cg.hier[i].version;
    assert_int_equal(finish(start(b, CG_ACCT, spin, NULL)), 0);
    clock_gettime(CLOCK_MONOTONIC, &from);
    assert_ok(cg_remove(b->parent[i], b->name, version, 1000));
    clock_gettime(CLOCK_MONOTONIC, &to);
    assert_true((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000 < 500);
    assert_ok(cg_remove(b->parent[i], b->name, version, 0)); /* gone is as good as removed */
}

static void this_host_has_what_must_be_tested(void **state) {
    (void)state;
    const struct host *h = host_facts();
    unsigned versions = 0;
    for (int i = 0; i < h->cg.n; i++)
        versions |= 1u << h->cg.hier[i].version;
    if (geteuid() != 0)
        cannot("root", "we are not root");
    if (!(versions & 2))
        cannot("cgroup1", "no controller is on a v1 hierarchy");
    if (!(versions & 4))
        cannot("cgroup2", "there is no v2 cgroup for us here");
    assert_int_equal(versions, 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define IN_BOX(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        cmocka_unit_test(this_host_has_what_must_be_tested),
        IN_BOX(limits_are_what_the_kernel_gives_back),
        IN_BOX(memory_above_the_limit_is_an_oom_kill_and_counted),
        IN_BOX(forks_above_the_limit_are_refused_and_counted),
        IN_BOX(cpu_time_is_counted),
        IN_BOX(removing_takes_all_that_is_in_it_and_nothing_else),
        IN_BOX(removing_takes_all_that_is_in_it_by_cgroup_kill_too),
        IN_BOX(what_is_not_named_like_ours_is_not_touched),
        IN_BOX(an_empty_cgroup_is_removed_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
