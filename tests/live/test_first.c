/*
 * test_first.c: the first three runs anyone tries: code that works, code that destroys, code that
 * never ends.
 */
#include "live_box.h"

#include <ftw.h>

#include "base/banned.h"

/* ------------------------------------------------------------------ what a tree looked like */

static uint64_t digest; /* nftw takes no context */
static unsigned entries;

static void mix(const void *data, size_t len) {
    const unsigned char *p = data;

    for (size_t i = 0; i < len; i++)
        digest = (digest ^ p[i]) * UINT64_C(1099511628211);
}

/* The change time cannot be set, so a file that was written and put back shows too. */
static int add(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    const uint64_t facts[] = {st->st_ino,
                              st->st_mode,
                              st->st_nlink,
                              st->st_uid,
                              st->st_gid,
                              (uint64_t)st->st_size,
                              (uint64_t)st->st_ctim.tv_sec,
                              (uint64_t)st->st_ctim.tv_nsec};

    (void)ftw;
    if (type == FTW_NS)
        return 0;
    mix(path, strlen(path));
    mix(facts, sizeof(facts));
    entries++;
    return 0;
}

static uint64_t look_at(const char *tree) {
    digest = UINT64_C(14695981039346656037);
    entries = 0;
    assert_int_equal(nftw(tree, add, 16, FTW_PHYS), 0);
    return digest;
}

struct canary {
    char dir[64], file[96];
    uint64_t rootfs, own;
};

static int set_canary(void **state) {
    struct canary *c = calloc(1, sizeof(*c));

    if (!c)
        return -1;
    (void)snprintf(c->dir, sizeof(c->dir), "/tmp/mayfly-canary-XXXXXX");
    if (!mkdtemp(c->dir) || chmod(c->dir, 0777) < 0)
        return -1;
    (void)snprintf(c->file, sizeof(c->file), "%s/canary", c->dir);
    int fd = open(c->file, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0 || fchmod(fd, 0666) < 0 || write(fd, "sings", 5) != 5)
        return -1;
    (void)close(fd);
    c->rootfs = look_at(live_env("MAYFLY_ROOTFS"));
    assert_true(entries > 100); /* there is something to lose */
    c->own = look_at(c->dir);
    *state = c;
    return 0;
}

static int free_canary(void **state) {
    struct canary *c = *state;

    (void)unlink(c->file);
    (void)rmdir(c->dir);
    free(c);
    return 0;
}

static void assert_untouched(const struct canary *c) {
    if (look_at(c->dir) != c->own)
        fail_msg("the code reached %s on the host", c->dir);
    if (look_at(live_env("MAYFLY_ROOTFS")) != c->rootfs)
        fail_msg("the code changed the rootfs");
}

/* ------------------------------------------------------------------ the runs */

static void a_sum_is_printed_and_exits_0(void **state) {
    (void)state;
    mayfly_result *r = live_python("print(sum(range(1000000)))", NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "499999500000\n");
    assert_int_equal(r->err.len, 0);
    assert_int_equal(r->signal, 0);
    assert_false(r->timed_out);
    assert_int_equal(r->error.code, 0);
    mayfly_result_free(r);
}

static void the_program_prints_the_sum_and_exits_0(void **state) {
    const char *rootfs = live_env("MAYFLY_ROOTFS");
    const char *argv[] = {"python", "--rootfs", rootfs, "-c", "print(sum(range(1000000)))", NULL};
    struct live_output *o = live_program(argv, -1);

    (void)state;
    if (o->exit_code != 0)
        fail_msg("exit %d: %s", o->exit_code, o->err);
    assert_string_equal(o->out, "499999500000\n");
    if (live_has_cgroups()) /* elsewhere it warns that there are none */
        assert_string_equal(o->err, "");
    free(o);
}

/* The directory of the canary is handed in as well, read-only: what the box may read it may not harm. */
static mayfly_result *run_with(const struct canary *c, const char *script) {
    char volume[160];

    (void)snprintf(volume, sizeof(volume), "%s:/tmp/data:ro", c->dir);
    return live_sh(script, "volume", volume, NULL);
}

static void rm_rf_of_everything_leaves_host_and_rootfs_untouched(void **state) {
    const struct canary *c = *state;
    struct live_host before = live_look();
    /* rm gives up when it is refused a look at /proc, so each of the root's directories gets its own. */
    mayfly_result *r = run_with(
        c, "cat /tmp/data/canary; echo mine > /tmp/mine; rm -rf --no-preserve-root / 2>/dev/null; "
           "for d in /*; do [ $d = /usr ] || rm -rf $d/* 2>/dev/null; done; "
           "rm -rf /usr 2>/dev/null; echo done; [ ! -e /tmp/mine ]");

    live_expect(r, MAYFLY_EXITED, 0); /* its own files it could remove, so rm did run */
    assert_string_equal(r->out.data, "singsdone\n");
    mayfly_result_free(r);
    assert_untouched(c);
    live_same(before);
}

static void writing_renaming_and_chmod_everywhere_leave_host_and_rootfs_untouched(void **state) {
    const struct canary *c = *state;
    mayfly_result *r = run_with(
        c, "echo x > /tmp/data/canary; echo x >> /tmp/data/new; chmod -R 777 /tmp/data /usr /etc; "
           "mv /usr /gone; mv /tmp/data/canary /tmp/data/x; ln -f /etc/passwd /etc/p; truncate -s "
           "0 /etc/passwd; "
           "mkdir /new; touch /etc /tmp/data /tmp/data/canary; cat /tmp/data/canary 2>&1");

    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "sings");
    assert_true(r->err.len > 0); /* it was told so */
    mayfly_result_free(r);
    assert_untouched(c);
}

/* The root is alone in its mount namespace: nothing is stacked on it, and ".." does not leave it. */
static void assert_no_way_out(mayfly_policy *policy) {
    static const char code[] =
        "import os\n"
        "ids = {(s.st_dev, s.st_ino) for s in map(os.stat, ('/', '/..', '/../..', '/tmp/../..'))}\n"
        "roots = [l for l in open('/proc/self/mountinfo') if l.split()[4] == '/']\n"
        "print(len(ids), len(roots))\n";
    struct mayfly_input input = {.code = code, .code_len = sizeof(code) - 1};
    struct mayfly_error e = {0};
    mayfly_result *r = NULL;

    assert_int_equal(mayfly_policy_python(policy, NULL, NULL), 0);
    int status = mayfly_run(policy, &input, &r, &e);
    mayfly_policy_free(policy);
    if (status < 0 && strstr(e.message, "overlay"))
        live_skip("overlayfs in a user namespace", e.message);
    if (status < 0)
        fail_msg("%s", e.message);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "1 1\n");
    mayfly_result_free(r);
}

static void no_way_leads_from_the_box_to_the_hosts_root(void **state) {
    (void)state;
    assert_no_way_out(live_policy());
}

static void no_way_leads_from_a_writable_root_to_the_hosts_root(void **state) {
    mayfly_policy *policy = live_policy();

    (void)state;
    live_set(policy, "read-only", "false");
    assert_no_way_out(policy);
}

static void pythons_rmtree_leaves_the_next_run_unharmed(void **state) {
    const struct canary *c = *state;
    mayfly_result *r = live_python("import shutil, os\n"
                                   "shutil.rmtree('/', ignore_errors=True)\n"
                                   "for top in '/tmp', '/home', '/usr', '/etc':\n"
                                   "    for where, dirs, files in os.walk(top):\n"
                                   "        for name in files:\n"
                                   "            try:\n"
                                   "                os.unlink(os.path.join(where, name))\n"
                                   "            except OSError: pass\n"
                                   "print('tried')\n",
                                   "timeout", "60s", NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "tried\n");
    mayfly_result_free(r);
    assert_untouched(c);
    live_prints("import json; print(json.dumps([1]))", "[1]\n");
}

static void an_endless_loop_ends_at_the_timeout(void **state) {
    struct live_host before = live_look();
    mayfly_result *r = live_python("while True: pass", "timeout", "2s", NULL);

    (void)state;
    live_expect(r, MAYFLY_TIMED_OUT, 124);
    assert_true(r->timed_out);
    if (r->wall_ms < 2000 || r->wall_ms > 2000 + 500 * live_slow())
        fail_msg("killed after %.1f ms", r->wall_ms);
    assert_true(r->n_hints > 0);
    mayfly_result_free(r);
    live_same(before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sum_is_printed_and_exits_0),
        cmocka_unit_test(the_program_prints_the_sum_and_exits_0),
        cmocka_unit_test_setup_teardown(rm_rf_of_everything_leaves_host_and_rootfs_untouched,
                                        set_canary, free_canary),
        cmocka_unit_test_setup_teardown(
            writing_renaming_and_chmod_everywhere_leave_host_and_rootfs_untouched, set_canary,
            free_canary),
        cmocka_unit_test(no_way_leads_from_the_box_to_the_hosts_root),
        cmocka_unit_test(no_way_leads_from_a_writable_root_to_the_hosts_root),
        cmocka_unit_test_setup_teardown(pythons_rmtree_leaves_the_next_run_unharmed, set_canary,
                                        free_canary),
        cmocka_unit_test(an_endless_loop_ends_at_the_timeout),
    };

    return cmocka_run_group_tests(tests, live_first_run, NULL);
}
