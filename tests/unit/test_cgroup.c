/*
 * test_cgroup.c: the search for a place, on false trees that stand for hosts we
 * do not have; the files to write; what usage files say; names.
 *
 * Started as root, it first becomes nobody: what a directory's mode forbids must
 * be forbidden here too.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/fd.h"
#include "linux/cgroup.h"

#include "base/banned.h"

#define ALL "cpuset cpu io memory pids"
#define LIMITS (BIT(CG_MEMORY) | BIT(CG_CPU) | BIT(CG_PIDS))

/* ------------------------------------------------------------------ false trees */

struct tree {
    char root[64];
    char self[256];  /* text of /proc/self/cgroup */
    char text[1536]; /* mountinfo */
};

static void put(const char *dir, const char *file, const char *text) {
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", dir, file);
    FILE *f = fopen(path, "we");
    if (!f)
        fail_msg("%s: %s", path, errno_words(errno));
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static int set_up(void **state) {
    struct tree *t = calloc(1, sizeof(*t));
    if (!t)
        return -1;
    snprintf(t->root, sizeof(t->root), "/tmp/mayfly-test-cgroup-XXXXXX");
    *state = t;
    return mkdtemp(t->root) ? 0 : -1;
}

static int open_up(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
    (void)ftw;
    (void)st;
    return kind == FTW_D || kind == FTW_DNR ? chmod(path, 0755) : 0;
}

static int delete_one(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static int tear_down(void **state) {
    struct tree *t = *state;
    nftw(t->root, open_up, 16, FTW_PHYS);
    nftw(t->root, delete_one, 16, FTW_PHYS | FTW_DEPTH);
    free(t);
    return 0;
}

/* A cgroup of the false tree; path "" is the top. `procs`: text of cgroup.procs. */
static void cgroup(const struct tree *t, const char *path, const char *has, const char *on,
                   const char *procs) {
    char dir[512];
    snprintf(dir, sizeof(dir), "%s%s", t->root, path);
    if (mkdir(dir, 0755) < 0 && errno != EEXIST)
        fail_msg("%s: %s", dir, errno_words(errno));
    put(dir, "cgroup.controllers", has);
    put(dir, "cgroup.subtree_control", on);
    put(dir, "cgroup.procs", procs);
    if (path[0]) {
        put(dir, "cgroup.type", "domain\n");
        put(dir, "cgroup.events", "populated 1\nfrozen 0\n");
    }
}

/* The top of a container's tree: it looks like any other cgroup. */
static void not_the_real_root(const struct tree *t) {
    put(t->root, "cgroup.type", "domain\n");
    put(t->root, "cgroup.events", "populated 1\nfrozen 0\n");
}

static void mode(const struct tree *t, const char *path, mode_t m) {
    char name[512];
    snprintf(name, sizeof(name), "%s%s", t->root, path);
    if (chmod(name, m) < 0)
        fail_msg("%s: %s", name, errno_words(errno));
}

static void not_ours(const struct tree *t, const char *path) {
    char name[512];
    static const char *const files[] = {"cgroup.procs", "cgroup.subtree_control", ""};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(name, sizeof(name), "%s/%s", path, files[i]);
        mode(t, name, files[i][0] ? 0444 : 0555);
    }
    if (geteuid() == 0)
        skip(); /* could not become nobody: nothing is forbidden to us */
}

static void detect_v2(struct tree *t, const char *own, const char *parent, struct cg_layout *ret) {
    snprintf(t->self, sizeof(t->self), "0::%s\n", own);
    cg_detect(&(struct cg_source){.fs_root = t->root,
                                  .self_cgroup = t->self,
                                  .mountinfo = "",
                                  .assume_v2 = 1,
                                  .parent = parent},
              ret);
}

#define assert_parent(t, h, path)                                                                  \
    do {                                                                                           \
        char want_[512];                                                                           \
        snprintf(want_, sizeof(want_), "%s%s", (t)->root, path);                                   \
        assert_string_equal((h)->parent, want_);                                                   \
    } while (0)

#define assert_says(text, word)                                                                    \
    do {                                                                                           \
        if (!strstr(text, word))                                                                   \
            fail_msg("\"%s\" is not in: %s", word, text);                                          \
    } while (0)

static void assert_one_v2(const struct cg_layout *l, unsigned controllers, unsigned enable,
                          bool evacuate) {
    for (int c = 0; c < CG__N; c++)
        if ((controllers & BIT(c)) && l->where[c] < 0)
            fail_msg("no %s: %s", cg_controller_names[c], l->why[c]);
    assert_int_equal(l->n, 1);
    assert_int_equal(l->hier[0].version, 2);
    assert_int_equal(l->hier[0].controllers, controllers);
    assert_int_equal(l->hier[0].enable, enable);
    assert_int_equal(l->hier[0].evacuate, evacuate);
    for (int c = 0; c < CG__N; c++) {
        assert_int_equal(l->where[c], controllers & BIT(c) ? 0 : -1);
        assert_int_equal(l->why[c][0] != '\0', l->where[c] < 0);
    }
}

/* ------------------------------------------------------------------ v2 */

static void v2_the_root_passes_controllers_on_although_it_holds_processes(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    cgroup(t, "", ALL "\n", "", "1\n2\n");
    detect_v2(t, "/", NULL, &l);
    assert_one_v2(&l, LIMITS | BIT(CG_ACCT), LIMITS, false);
    assert_parent(t, &l.hier[0], "");
}

static void v2_nearest_ancestor_that_has_all_wins(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    cgroup(t, "", ALL "\n", ALL "\n", "");
    cgroup(t, "/a", ALL "\n", "memory pids cpu\n", "");
    cgroup(t, "/a/me.scope", "memory pids cpu\n", "", "1\n2\n");
    detect_v2(t, "/a/me.scope", NULL, &l);
    assert_one_v2(&l, LIMITS | BIT(CG_ACCT), 0, false);
    assert_parent(t, &l.hier[0], "/a");
}

static void v2_only_what_is_missing_is_switched_on(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    cgroup(t, "", ALL "\n", "memory pids\n", "");
    detect_v2(t, "/", NULL, &l);
    assert_one_v2(&l, LIMITS | BIT(CG_ACCT), BIT(CG_CPU), false);
}

static void v2_an_empty_delegated_cgroup_is_used(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    cgroup(t, "", ALL "\n", ALL "\n", "");
    cgroup(t, "/d", ALL "\n", "", "");
    cgroup(t, "/d/leaf", "", "", "77\n");
    not_ours(t, "");
    detect_v2(t, "/d/leaf", NULL, &l);
    assert_one_v2(&l, LIMITS | BIT(CG_ACCT), LIMITS, false);
    assert_parent(t, &l.hier[0], "/d");
}

static void v2_alone_in_our_cgroup_we_can_leave_it(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    char self[32];
    snprintf(self, sizeof(self), "%d\n", getpid());
    cgroup(t, "", ALL "\n", ALL "\n", "");
    cgroup(t, "/run-1.scope", ALL "\n", "", self);
    not_ours(t, "");
    detect_v2(t, "/run-1.scope", NULL, &l);
    assert_one_v2(&l, LIMITS | BIT(CG_ACCT), LIMITS, true);
    assert_parent(t, &l.hier[0], "/run-1.scope");
}

static void v2_with_others_in_our_cgroup_the_reason_says_so(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    char procs[64];
    snprintf(procs, sizeof(procs), "%d\n4711\n", getpid());
    cgroup(t, "", ALL "\n", ALL "\n", "");
    cgroup(t, "/run-1.scope", ALL "\n", "", procs);
    not_ours(t, "");
    detect_v2(t, "/run-1.scope", NULL, &l);
    assert_one_v2(&l, BIT(CG_ACCT), 0, false);
    for (int c = 0; c < CG_ACCT; c++) {
        assert_says(l.why[c], "other processes are in");
        assert_says(l.why[c], "/run-1.scope");
        assert_says(l.why[c], "systemd-run");
        assert_says(l.why[c], cg_controller_names[c]);
    }
}

static void v2_nothing_delegated_names_the_cgroup_and_the_command(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    cgroup(t, "", ALL "\n", ALL "\n", "");
    cgroup(t, "/session-3.scope", ALL "\n", "", "9\n");
    not_ours(t, "/session-3.scope");
    not_ours(t, "");
    detect_v2(t, "/session-3.scope", NULL, &l);
    assert_int_equal(l.n, 0);
    for (int c = 0; c < CG__N; c++) {
        assert_int_equal(l.where[c], -1);
        assert_says(l.why[c], "/session-3.scope is not yours");
        assert_says(l.why[c], "systemd-run --user --scope -p Delegate=yes");
    }
}

static void v2_a_partial_delegation_gives_what_there_is(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    char self[32];
    snprintf(self, sizeof(self), "%d\n", (int)getpid());
    cgroup(t, "", ALL "\n", ALL "\n", "");
    cgroup(t, "/user@1000.service", "memory pids\n", "memory pids\n", "");
    cgroup(t, "/user@1000.service/app.scope", "memory pids\n", "", self);
    not_ours(t, "");
    detect_v2(t, "/user@1000.service/app.scope", NULL, &l);
    assert_one_v2(&l, BIT(CG_MEMORY) | BIT(CG_PIDS) | BIT(CG_ACCT), BIT(CG_MEMORY) | BIT(CG_PIDS),
                  true);
    assert_parent(t, &l.hier[0], "/user@1000.service/app.scope");
    assert_says(l.why[CG_CPU], "cpu is not delegated");
    assert_says(l.why[CG_CPU], "Delegate=cpu");
    assert_says(l.why[CG_CPU], "user@.service");
}

/* systemd takes controllers out of its slices when no unit of its own needs them any more. */
static void v2_a_users_slice_is_systemds_and_not_ours(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    char self[32];
    snprintf(self, sizeof(self), "%d\n", (int)getpid());
    cgroup(t, "", ALL "\n", ALL "\n", "");
    cgroup(t, "/user@7.service", ALL "\n", ALL "\n", "");
    cgroup(t, "/user@7.service/app.slice", ALL "\n", ALL "\n", "");
    cgroup(t, "/user@7.service/app.slice/term.scope", ALL "\n", "", "1\n2\n");
    cgroup(t, "/user@7.service/app.slice/run-1.scope", ALL "\n", "", self);
    not_ours(t, "");
    detect_v2(t, "/user@7.service/app.slice/term.scope", NULL, &l);
    assert_one_v2(&l, BIT(CG_ACCT), 0, false);
    for (int c = 0; c < CG_ACCT; c++)
        assert_says(l.why[c], "systemd-run --user --scope -p Delegate=yes");
    detect_v2(t, "/user@7.service/app.slice/run-1.scope", NULL, &l);
    assert_one_v2(&l, LIMITS | BIT(CG_ACCT), LIMITS, true);
    assert_parent(t, &l.hier[0], "/user@7.service/app.slice/run-1.scope");
}

/* Only threads can go into what is below such a cgroup. */
static void v2_a_threaded_cgroup_is_passed_by_or_refused(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    static const char *const types[] = {"threaded\n", "domain threaded\n", "domain invalid\n"};
    cgroup(t, "", ALL "\n", ALL "\n", "");
    cgroup(t, "/t", "cpu pids\n", "cpu pids\n", "");
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        put(t->root, "t/cgroup.type", types[i]);
        detect_v2(t, "/t", NULL, &l);
        assert_one_v2(&l, LIMITS | BIT(CG_ACCT), 0, false);
        assert_parent(t, &l.hier[0], "");
        detect_v2(t, "/", "/t", &l);
        assert_int_equal(l.n, 0);
        for (int c = 0; c < CG__N; c++) {
            assert_says(l.why[c], "threaded");
            assert_says(l.why[c], "--cgroup-parent");
        }
    }
}

static void v2_of_equals_the_nearest_wins(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    cgroup(t, "", "memory pids\n", "memory pids\n", "");
    cgroup(t, "/a", "memory pids\n", "memory pids\n", "");
    cgroup(t, "/a/b", "memory pids\n", "", "9\n");
    detect_v2(t, "/a/b", NULL, &l);
    assert_one_v2(&l, BIT(CG_MEMORY) | BIT(CG_PIDS) | BIT(CG_ACCT), 0, false);
    assert_parent(t, &l.hier[0], "/a");
}

static void v2_write_access_to_the_directory_alone_is_not_enough(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    cgroup(t, "", ALL "\n", ALL "\n", "");
    not_ours(t, "");
    mode(t, "", 0755);
    detect_v2(t, "/", NULL, &l);
    assert_int_equal(l.n, 0);
}

static void v2_a_kernel_without_a_controller_is_named(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    cgroup(t, "", "cpu pids\n", "", "1\n");
    detect_v2(t, "/", NULL, &l);
    assert_one_v2(&l, BIT(CG_CPU) | BIT(CG_PIDS) | BIT(CG_ACCT), BIT(CG_CPU) | BIT(CG_PIDS), false);
    assert_says(l.why[CG_MEMORY], "cgroup_enable=memory");
}

static void v2_a_container_without_a_controller_is_told_apart(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    cgroup(t, "", "cpu pids\n", "cpu pids\n", "");
    not_the_real_root(t);
    detect_v2(t, "/", NULL, &l);
    assert_int_equal(l.where[CG_MEMORY], -1);
    assert_says(l.why[CG_MEMORY], "--cgroupns=private");
}

static void v2_a_path_outside_of_our_namespace_means_the_top(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    static const char *const outside[] = {"/..", "/../other", "/../../x", "/gone/deep",
                                          "/x (deleted)"};
    cgroup(t, "", ALL "\n", ALL "\n", "");
    not_the_real_root(t);
    for (size_t i = 0; i < ARRAY_LEN(outside); i++) {
        detect_v2(t, outside[i], NULL, &l);
        assert_one_v2(&l, LIMITS | BIT(CG_ACCT), 0, false);
        assert_parent(t, &l.hier[0], "");
    }
}

static void v2_controller_names_are_matched_whole(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    cgroup(t, "", "cpuset memory_v2 pids2 xcpu\n", "", "");
    detect_v2(t, "/", NULL, &l);
    assert_one_v2(&l, BIT(CG_ACCT), 0, false);
}

static void v2_a_given_parent_is_used_by_either_of_its_names(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    char dir[128];
    cgroup(t, "", ALL "\n", ALL "\n", "1\n");
    cgroup(t, "/my.slice", ALL "\n", ALL "\n", "");
    cgroup(t, "/me", ALL "\n", "", "2\n");
    snprintf(dir, sizeof(dir), "%s/my.slice/", t->root);
    const char *const names[] = {"/my.slice", dir};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        detect_v2(t, "/me", names[i], &l);
        assert_one_v2(&l, LIMITS | BIT(CG_ACCT), 0, false);
        assert_parent(t, &l.hier[0], "/my.slice");
    }
}

static void v2_a_given_parent_that_cannot_be_is_refused_not_replaced(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    static const char *const bad[] = {"/absent", "relative", "/../up", "/my.slice/../me", ""};
    cgroup(t, "", ALL "\n", ALL "\n", "1\n");
    cgroup(t, "/my.slice", ALL "\n", ALL "\n", "");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        detect_v2(t, "/", bad[i], &l);
        assert_int_equal(l.n, 0);
        for (int c = 0; c < CG__N; c++)
            assert_says(l.why[c], "--cgroup-parent");
    }
}

static void v2_a_given_parent_needs_the_common_ancestor(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    cgroup(t, "", ALL "\n", ALL "\n", "");
    cgroup(t, "/mine", ALL "\n", ALL "\n", "");
    cgroup(t, "/mine/a", ALL "\n", ALL "\n", "");
    cgroup(t, "/mine/ab", ALL "\n", "", "3\n");
    not_ours(t, "");
    detect_v2(t, "/mine/ab", "/mine/a", &l);
    assert_one_v2(&l, LIMITS | BIT(CG_ACCT), 0, false);
    detect_v2(t, "/elsewhere", "/mine/a", &l);
    assert_int_equal(l.n, 0);
    assert_says(l.why[CG_MEMORY], "cgroup.procs");
}

/* ------------------------------------------------------------------ hybrid and v1 */

static void directory(const struct tree *t, const char *path) {
    char name[512];
    snprintf(name, sizeof(name), "%s%s", t->root, path);
    if (mkdir(name, 0755) < 0)
        fail_msg("%s: %s", name, errno_words(errno));
}

static void add_mount(struct tree *t, const char *root, const char *target, const char *fstype,
                      const char *options) {
    size_t len = strlen(t->text);
    snprintf(t->text + len, sizeof(t->text) - len,
             "%zu 25 0:%zu %s %s%s rw,nosuid shared:9 - %s cgroup rw,%s\n", 30 + len, 20 + len,
             root, t->root, target, fstype, options);
}

static void detect_hybrid(struct tree *t, const char *self, const char *parent,
                          struct cg_layout *ret) {
    cg_detect(&(struct cg_source){.fs_root = t->root,
                                  .self_cgroup = self,
                                  .mountinfo = t->text,
                                  .assume_v2 = 0,
                                  .parent = parent},
              ret);
}

static void assert_v1(const struct tree *t, const struct cg_layout *l, enum cg_controller c,
                      const char *path) {
    if (l->where[c] < 0)
        fail_msg("no %s: %s", cg_controller_names[c], l->why[c]);
    assert_int_equal(l->hier[l->where[c]].version, 1);
    assert_true(l->hier[l->where[c]].controllers & BIT(c));
    assert_parent(t, &l->hier[l->where[c]], path);
}

static void hybrid_each_controller_goes_where_it_is_bound(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    directory(t, "/memory");
    directory(t, "/memory/jobs");
    directory(t, "/cpu,cpuacct");
    cgroup(t, "/unified", "pids\n", "", "");
    put(t->root, "unified/cgroup.procs", "");
    add_mount(t, "/", "/unified", "cgroup2", "nsdelegate");
    add_mount(t, "/", "/cpu,cpuacct", "cgroup", "cpu,cpuacct");
    add_mount(t, "/", "/memory", "cgroup", "memory");
    detect_hybrid(t, "5:memory:/jobs\n3:cpu,cpuacct:/\n1:name=systemd:/x\n0::/\n", NULL, &l);
    assert_int_equal(l.n, 3);
    assert_int_equal(l.hier[0].version, 2);
    assert_int_equal(l.hier[0].controllers, BIT(CG_PIDS) | BIT(CG_ACCT));
    assert_int_equal(l.where[CG_PIDS], 0);
    assert_int_equal(l.where[CG_ACCT], 0);
    assert_v1(t, &l, CG_MEMORY, "/memory/jobs");
    assert_v1(t, &l, CG_CPU, "/cpu,cpuacct");
}

static void v1_alone_shares_one_cgroup_between_comounted_controllers(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    directory(t, "/memory");
    directory(t, "/cpu");
    directory(t, "/pids");
    add_mount(t, "/", "/cpu", "cgroup", "cpu,cpuacct");
    add_mount(t, "/", "/memory", "cgroup", "memory");
    add_mount(t, "/", "/pids", "cgroup", "pids");
    detect_hybrid(t, "5:memory:/\n3:cpu,cpuacct:/\n4:pids:/\n", NULL, &l);
    assert_int_equal(l.n, 3);
    assert_int_equal(l.where[CG_CPU], l.where[CG_ACCT]);
    assert_int_equal(l.hier[l.where[CG_CPU]].controllers, BIT(CG_CPU) | BIT(CG_ACCT));
}

static void v1_a_bind_mounted_root_is_cut_off_our_path(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    directory(t, "/memory");
    directory(t, "/memory/in");
    directory(t, "/pids");
    directory(
        t,
        "/pidsdef"); /* where /docker/abcdef would lead if it were taken to be below /docker/abc */
    add_mount(t, "/docker/abc", "/memory", "cgroup", "memory");
    add_mount(t, "/docker/abc", "/pids", "cgroup", "pids");
    detect_hybrid(t, "5:memory:/docker/abc/in\n4:pids:/docker/abcdef\n", NULL, &l);
    assert_v1(t, &l, CG_MEMORY, "/memory/in");
    assert_v1(t, &l, CG_PIDS, "/pids");
}

static void v1_a_path_that_is_not_there_means_the_mounts_top(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    directory(t, "/memory");
    add_mount(t, "/", "/memory", "cgroup", "memory");
    detect_hybrid(t, "5:memory:/docker/abc\n", NULL, &l);
    assert_v1(t, &l, CG_MEMORY, "/memory");
    assert_int_equal(l.where[CG_PIDS], -1);
    assert_says(l.why[CG_PIDS], "no cgroup file system with the pids controller");
    assert_says(l.why[CG_PIDS], "mount -t cgroup2");
}

static void v1_a_cgroup_of_another_users_is_named(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    directory(t, "/memory");
    mode(t, "/memory", 0555);
    if (geteuid() == 0)
        skip();
    add_mount(t, "/", "/memory", "cgroup", "memory");
    detect_hybrid(t, "5:memory:/\n", NULL, &l);
    assert_int_equal(l.n, 0);
    assert_says(l.why[CG_MEMORY], "is not yours");
    assert_says(l.why[CG_MEMORY], "/memory");
}

static void hybrid_a_given_directory_counts_for_its_hierarchy_only(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    char dir[128];
    directory(t, "/memory");
    directory(t, "/memory/here");
    directory(t, "/pids");
    add_mount(t, "/", "/memory", "cgroup", "memory");
    add_mount(t, "/", "/pids", "cgroup", "pids");
    snprintf(dir, sizeof(dir), "%s/memory/here", t->root);
    detect_hybrid(t, "5:memory:/\n4:pids:/\n", dir, &l);
    assert_v1(t, &l, CG_MEMORY, "/memory/here");
    assert_v1(t, &l, CG_PIDS, "/pids");
    /* a cgroup path is for all, so where it is absent nothing else is taken instead */
    detect_hybrid(t, "5:memory:/\n4:pids:/\n", "/here", &l);
    assert_v1(t, &l, CG_MEMORY, "/memory/here");
    assert_int_equal(l.where[CG_PIDS], -1);
    assert_says(l.why[CG_PIDS], "--cgroup-parent");
}

static void no_cgroups_at_all_is_a_reason_not_a_crash(void **state) {
    struct tree *t = *state;
    struct cg_layout l;
    static const char *const selves[] = {"", "\n", "0::", "x", "::", "1:2", "0::relative\n"};
    for (size_t i = 0; i < ARRAY_LEN(selves); i++) {
        detect_hybrid(t, selves[i], NULL, &l);
        assert_int_equal(l.n, 0);
        for (int c = 0; c < CG__N; c++)
            assert_true(l.where[c] == -1 && l.why[c][0]);
    }
}

/* ------------------------------------------------------------------ settings */

static void assert_settings(int version, enum cg_controller c, const struct cg_limits *l,
                            const char *want) {
    struct cg_setting s[CG_SETTINGS];
    char text[512] = "";
    int n = cg_settings(version, c, l, s);
    assert_in_range(n, 0, CG_SETTINGS);
    for (int i = 0; i < n; i++) {
        size_t len = strlen(text);
        snprintf(text + len, sizeof(text) - len, "%s=%s%s;", s[i].file, s[i].value,
                 s[i].optional ? "?" : "");
    }
    assert_string_equal(text, want);
}

static void limits_become_each_versions_files(void **state) {
    (void)state;
    struct cg_limits l = {.memory_bytes = 1 << 28, .cpu_milli = 1500, .pids = 64};
    assert_settings(2, CG_MEMORY, &l,
                    "memory.max=268435456;memory.swap.max=0?;memory.oom.group=1;");
    assert_settings(2, CG_CPU, &l, "cpu.max=150000 100000;");
    assert_settings(2, CG_PIDS, &l, "pids.max=64;");
    assert_settings(1, CG_MEMORY, &l,
                    "memory.limit_in_bytes=268435456;memory.memsw.limit_in_bytes=268435456?;"
                    "memory.swappiness=0?;");
    assert_settings(1, CG_CPU, &l, "cpu.cfs_period_us=100000;cpu.cfs_quota_us=150000;");
    assert_settings(1, CG_PIDS, &l, "pids.max=64;");
    assert_settings(1, CG_ACCT, &l, "");
    assert_settings(2, CG_ACCT, &l, "");
}

static void with_swap_on_the_host_its_limit_must_be_there(void **state) {
    (void)state;
    struct cg_limits l = {.memory_bytes = 4096, .swap_bytes = 8192, .host_has_swap = true};
    assert_settings(2, CG_MEMORY, &l, "memory.max=4096;memory.swap.max=8192;memory.oom.group=1;");
    /* no swappiness of 0 here: it would take away the swap that was granted */
    assert_settings(1, CG_MEMORY, &l,
                    "memory.limit_in_bytes=4096;memory.memsw.limit_in_bytes=12288;");
    l.memory_bytes = l.swap_bytes = UINT64_MAX - 1;
    assert_settings(1, CG_MEMORY, &l,
                    "memory.limit_in_bytes=18446744073709551614;"
                    "memory.memsw.limit_in_bytes=9223372036854775807;");
}

static void no_limit_writes_no_file(void **state) {
    (void)state;
    for (int version = 1; version <= 2; version++)
        for (int c = 0; c < CG__N; c++)
            assert_settings(version, (enum cg_controller)c, &(struct cg_limits){0}, "");
}

/* ------------------------------------------------------------------ usage */

static void usage_is_read_from_either_versions_files(void **state) {
    struct tree *t = *state;
    struct cg_usage u = {.cpu_usec = 42};
    int dir _cleanup_fd_ = open(t->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put(t->root, "memory.peak", "9000000\n");
    put(t->root, "memory.events", "low 0\nhigh 7\nmax 5\noom 4\noom_kill 3\noom_group_kill 1\n");
    put(t->root, "pids.peak", "12\n");
    put(t->root, "pids.events", "max 6\n");
    put(t->root, "cpu.stat", "usage_usec 1234567\nuser_usec 1\nsystem_usec 2\n");
    cg_read_usage(2, BIT(CG_MEMORY) | BIT(CG_PIDS), dir, &u);
    assert_int_equal(u.memory_peak_bytes, 9000000);
    assert_int_equal(u.oom_kills, 3);
    assert_int_equal(u.pids_peak, 12);
    assert_int_equal(u.pids_refused, 6);
    assert_int_equal(u.cpu_usec, 42); /* not asked for: left alone */
    cg_read_usage(2, BIT(CG_ACCT), dir, &u);
    assert_int_equal(u.cpu_usec, 1234567);
    put(t->root, "memory.events", "oom_kill 0\noom_group_kill 2\n");
    assert_int_equal(cg_read_oom_kills(2, dir, &u.oom_kills), 0);
    assert_int_equal(u.oom_kills, 2);

    put(t->root, "memory.max_usage_in_bytes", "777\n");
    put(t->root, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 8\n");
    put(t->root, "cpuacct.usage", "5000999\n");
    cg_read_usage(1, LIMITS | BIT(CG_ACCT), dir, &u);
    assert_int_equal(u.memory_peak_bytes, 777);
    assert_int_equal(u.oom_kills, 8);
    assert_int_equal(u.cpu_usec, 5000);
}

static void what_the_kernel_does_not_say_is_no_number(void **state) {
    struct tree *t = *state;
    int dir _cleanup_fd_ = open(t->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int version = 1; version <= 2; version++) {
        struct cg_usage u = {0};
        uint64_t n = 5;
        cg_read_usage(version, LIMITS | BIT(CG_ACCT), dir, &u);
        assert_true(u.memory_peak_bytes == UINT64_MAX && u.pids_peak == UINT64_MAX &&
                    u.cpu_usec == UINT64_MAX && u.oom_kills == UINT64_MAX &&
                    u.pids_refused == UINT64_MAX);
        assert_int_equal(cg_read_cpu_usec(version, dir, &n), -ENOENT);
        assert_int_equal(n, 5);
    }
    put(t->root, "cpu.stat", "xusage_usec 1\nusage_usecx 2\n");
    uint64_t n = 5;
    assert_int_equal(cg_read_cpu_usec(2, dir, &n), -ENODATA);
    assert_int_equal(n, 5);
    assert_int_equal(cg_kill(dir), -ENOENT);
}

/* ------------------------------------------------------------------ names and removal */

static void a_name_gives_its_owner_back(void **state) {
    (void)state;
    static const struct cg_owner owners[] = {
        {4026531836, 4711, 257252}, {0, 1, 0}, {UINT64_MAX, INT32_MAX, UINT64_MAX}};
    static const uint32_t randoms[] = {0, 1, 0xdeadbeef, UINT32_MAX};
    for (size_t i = 0; i < ARRAY_LEN(owners); i++)
        for (size_t j = 0; j < ARRAY_LEN(randoms); j++) {
            char name[CG_NAME];
            struct cg_owner got = {0};
            cg_name(&owners[i], randoms[j], name);
            assert_true(cg_parse_name(name, &got));
            assert_int_equal(got.pidns, owners[i].pidns);
            assert_int_equal(got.pid, owners[i].pid);
            assert_int_equal(got.start_time, owners[i].start_time);
        }
    char name[CG_NAME];
    cg_name(&owners[0], 0xab, name);
    assert_string_equal(name, "mayfly-effffffc-4711-257252-ab");
}

static void other_names_are_not_ours(void **state) {
    (void)state;
    static const char *const names[] = {
        "",
        "mayfly-",
        "mayfly",
        "user.slice",
        "mayfly-1-2-3",
        "mayfly-1-2-3-",
        "mayfly-1-2-3-4-5",
        "mayfly-1-2-3-4 ",
        "mayfly-1-2-3-4/..",
        "xmayfly-1-2-3-4",
        "Mayfly-1-2-3-4",
        "mayfly--2-3-4",
        "mayfly-1-0-3-4",
        "mayfly-1--2-3-4",
        "mayfly-1-+2-3-4",
        "mayfly-1-2-a-4",
        "mayfly-1-2-3-G",
        "mayfly-A-2-3-4",
        "mayfly-01-2-3-4",
        "mayfly-1-02-3-4",
        "mayfly-1-2147483648-3-4",
        "mayfly-1-2-18446744073709551616-4",
        "mayfly-1-2-3-100000000",
        "mayfly-10000000000000000-2-3-4",
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct cg_owner o = {.pid = 7};
        if (cg_parse_name(names[i], &o))
            fail_msg("taken for ours: %s", names[i]);
        assert_int_equal(o.pid, 7);
    }
}

static void only_our_cgroups_are_removed(void **state) {
    struct tree *t = *state;
    directory(t, "/other");
    directory(t, "/mayfly-1-2-3-4");
    directory(t, "/mayfly-1-2-3-4/sub");
    directory(t, "/mayfly-1-2-3-4/sub/sub");
    int dir _cleanup_fd_ = open(t->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(cg_remove(dir, "other", 2, 0), -EINVAL);
    assert_int_equal(faccessat(dir, "other", F_OK, 0), 0);
    assert_int_equal(cg_remove(dir, "mayfly-1-2-3-5", 2, 0), 0);
    int r = cg_remove(dir, "mayfly-1-2-3-4", 1, 0);
    if (r < 0)
        fail_msg("cg_remove: %s", errno_words(r));
    assert_int_equal(faccessat(dir, "mayfly-1-2-3-4", F_OK, 0), -1);
}

static void a_link_under_our_name_is_not_followed(void **state) {
    struct tree *t = *state;
    directory(t, "/other");
    directory(t, "/other/sub");
    int dir _cleanup_fd_ = open(t->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(symlinkat("other", dir, "mayfly-1-2-3-4"), 0);
    assert_int_equal(cg_remove(dir, "mayfly-1-2-3-4", 1, 0), -ENOTDIR);
    assert_int_equal(faccessat(dir, "other/sub", F_OK, 0), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define ON_TREE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        ON_TREE(v2_the_root_passes_controllers_on_although_it_holds_processes),
        ON_TREE(v2_nearest_ancestor_that_has_all_wins),
        ON_TREE(v2_only_what_is_missing_is_switched_on),
        ON_TREE(v2_an_empty_delegated_cgroup_is_used),
        ON_TREE(v2_alone_in_our_cgroup_we_can_leave_it),
        ON_TREE(v2_with_others_in_our_cgroup_the_reason_says_so),
        ON_TREE(v2_nothing_delegated_names_the_cgroup_and_the_command),
        ON_TREE(v2_a_partial_delegation_gives_what_there_is),
        ON_TREE(v2_a_users_slice_is_systemds_and_not_ours),
        ON_TREE(v2_a_threaded_cgroup_is_passed_by_or_refused),
        ON_TREE(v2_of_equals_the_nearest_wins),
        ON_TREE(v2_write_access_to_the_directory_alone_is_not_enough),
        ON_TREE(v2_a_kernel_without_a_controller_is_named),
        ON_TREE(v2_a_container_without_a_controller_is_told_apart),
        ON_TREE(v2_a_path_outside_of_our_namespace_means_the_top),
        ON_TREE(v2_controller_names_are_matched_whole),
        ON_TREE(v2_a_given_parent_is_used_by_either_of_its_names),
        ON_TREE(v2_a_given_parent_that_cannot_be_is_refused_not_replaced),
        ON_TREE(v2_a_given_parent_needs_the_common_ancestor),
        ON_TREE(hybrid_each_controller_goes_where_it_is_bound),
        ON_TREE(v1_alone_shares_one_cgroup_between_comounted_controllers),
        ON_TREE(v1_a_bind_mounted_root_is_cut_off_our_path),
        ON_TREE(v1_a_path_that_is_not_there_means_the_mounts_top),
        ON_TREE(v1_a_cgroup_of_another_users_is_named),
        ON_TREE(hybrid_a_given_directory_counts_for_its_hierarchy_only),
        ON_TREE(no_cgroups_at_all_is_a_reason_not_a_crash),
        cmocka_unit_test(limits_become_each_versions_files),
        cmocka_unit_test(with_swap_on_the_host_its_limit_must_be_there),
        cmocka_unit_test(no_limit_writes_no_file),
        ON_TREE(usage_is_read_from_either_versions_files),
        ON_TREE(what_the_kernel_does_not_say_is_no_number),
        cmocka_unit_test(a_name_gives_its_owner_back),
        cmocka_unit_test(other_names_are_not_ours),
        ON_TREE(only_our_cgroups_are_removed),
        ON_TREE(a_link_under_our_name_is_not_followed),
    };

    if (geteuid() == 0 && setgroups(0, NULL) == 0 && setresgid(65534, 65534, 65534) == 0 &&
        setresuid(65534, 65534, 65534) < 0)
        fprintf(stderr, "still root: what a mode forbids is not tested\n");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
