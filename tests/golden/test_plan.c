/*
 * test_plan.c: the plan of a run on hosts of every kind, as text, against what was reviewed; and what
 * exactly each control's rows are, by switching it off.
 *
 * The hosts are made up, so this runs anywhere. MAYFLY_UPDATE_GOLDEN=1 writes the files anew; read the
 * difference before you commit it. The files lie in $MAYFLY_GOLDEN, by default tests/golden.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "control/control.h"
#include "lib/planning.h"

#include "base/banned.h"

static const struct plan_image image = {.has_home = true};

static void base_host(struct host *h) {
    *h = (struct host){.release = "6.18.0",
                       .kernel = KERNEL(6, 18),
                       .privileged = true,
                       .ncpu = 8,
                       .cap_last = 40,
                       .landlock_abi = 7,
                       .seccomp_filter = true,
                       .memory_bytes = UINT64_C(16) << 30,
                       .max_user_namespaces = 10000};
    h->ids = (struct idmap_facts){.kind = IDMAP_BLOCK,
                                  .sub_uid = {0x70000000, 1u << 28},
                                  .sub_gid = {0x70000000, 1u << 28},
                                  .block = 65536,
                                  .slots = 4096};
}

static void all_v2(struct host *h, const char *parent) {
    h->cg.n = 1;
    h->cg.hier[0].version = 2;
    h->cg.hier[0].controllers = BIT(CG_MEMORY) | BIT(CG_CPU) | BIT(CG_PIDS) | BIT(CG_ACCT);
    (void)str_copy(h->cg.hier[0].parent, CG_PATH, parent);
    for (int c = 0; c < CG__N; c++)
        h->cg.where[c] = 0;
}

static void root_v2(struct host *h) {
    base_host(h);
    all_v2(h, "/sys/fs/cgroup/system.slice");
}

static void root_hybrid(struct host *h) {
    static const enum cg_controller v1[] = {CG_MEMORY, CG_CPU, CG_PIDS};

    base_host(h);
    h->cg.n = 4;
    h->cg.hier[0].version = 2;
    h->cg.hier[0].controllers = BIT(CG_ACCT);
    (void)str_copy(h->cg.hier[0].parent, CG_PATH, "/sys/fs/cgroup/unified");
    h->cg.where[CG_ACCT] = 0;
    for (int i = 0; i < 3; i++) {
        struct cg_hier *hier = &h->cg.hier[i + 1];
        hier->version = 1;
        hier->controllers = (unsigned)BIT(v1[i]);
        (void)snprintf(hier->parent, sizeof(hier->parent), "/sys/fs/cgroup/%s",
                       cg_controller_names[v1[i]]);
        h->cg.where[v1[i]] = i + 1;
    }
}

static void user_subids(struct host *h) {
    base_host(h);
    all_v2(h, "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice");
    h->cg.hier[0].enable = (unsigned)BIT(CG_CPU);
    h->privileged = false;
    h->ids = (struct idmap_facts){.kind = IDMAP_SUBID,
                                  .uid = 1000,
                                  .above = 1000,
                                  .gid = 1000,
                                  .sub_uid = {100000, 65536},
                                  .sub_gid = {100000, 65536},
                                  .block = 1,
                                  .slots = 65536};
}

static void user_single(struct host *h) {
    user_subids(h);
    h->landlock_abi = 0;
    h->ids = (struct idmap_facts){
        .kind = IDMAP_SINGLE, .uid = 1000, .above = 1000, .gid = 1000, .groups_kept = true};
    (void)str_copy(h->ids.why_single, sizeof(h->ids.why_single), "no subordinate ids");
}

static struct policy *python_policy(void) {
    struct policy *p = policy_new();
    struct err err = {0};

    assert_non_null(p);
    if (policy_set_python(p, NULL, &err) < 0)
        fail_msg("%s", err.message);
    p->rootfs = "/srv/python"; /* by hand: policy_set wants one that exists */
    return p;
}

static struct plan *make(const struct policy *policy, const struct host *host) {
    struct plan *plan = NULL;
    struct err err = {0};

    if (plan_make(policy, host, &image, &plan, &err) < 0)
        fail_msg("%s", err.message);
    return plan;
}

static void compare(const char *name, const char *text) {
    const char *dir = getenv("MAYFLY_GOLDEN");
    char path[512];
    char *want = NULL;

    (void)snprintf(path, sizeof(path), "%s/%s.txt", dir ? dir : "tests/golden", name);
    if (getenv("MAYFLY_UPDATE_GOLDEN")) {
        FILE *f = fopen(path, "we");
        assert_non_null(f);
        (void)fputs(text, f);
        assert_int_equal(fclose(f), 0);
        return;
    }
    if (file_read_all_at(AT_FDCWD, path, 1 << 20, &want, NULL) < 0)
        fail_msg("%s is missing; MAYFLY_UPDATE_GOLDEN=1 makes it", path);
    if (strcmp(want, text) != 0)
        fail_msg("%s differs from the plan; see `MAYFLY_UPDATE_GOLDEN=1 %s` and git diff", path,
                 "make golden");
    free(want);
}

static void golden(const char *name, void (*fill)(struct host *)) {
    struct host *host = calloc(1, sizeof(*host));
    struct policy *policy = python_policy();
    struct buf text = {0};

    assert_non_null(host);
    fill(host);
    struct plan *plan = make(policy, host);
    plan_print(plan, &text);
    if (plan->warnings.len)
        buf_printf(&text, "\nwarnings:\n%s", plan->warnings.data);
    compare(name, text.data);
    buf_done(&text);
    plan_free(plan);
    policy_free(policy);
    free(host);
}

static void root_on_pure_cgroup_v2(void **unused) {
    (void)unused;
    golden("plan_root_v2", root_v2);
}

static void root_on_a_hybrid_host(void **unused) {
    (void)unused;
    golden("plan_root_hybrid", root_hybrid);
}

static void a_user_with_subordinate_ids(void **unused) {
    (void)unused;
    golden("plan_user_subids", user_subids);
}

static void a_user_with_nothing_and_no_landlock(void **unused) {
    (void)unused;
    golden("plan_user_single", user_single);
}

/* Rows of `a` that `b` does not have, as text. */
static void rows_missing(const struct plan *a, const struct plan *b, const char *sign,
                         struct buf *out) {
    for (size_t i = 0; i < a->n_ops; i++) {
        struct buf row = {0};
        bool found = false;

        plan_print_op(&a->ops[i], &row);
        for (size_t j = 0; j < b->n_ops && !found; j++) {
            struct buf other = {0};
            plan_print_op(&b->ops[j], &other);
            found = a->ops[i].stage == b->ops[j].stage && strcmp(row.data, other.data) == 0;
            buf_done(&other);
        }
        if (!found)
            buf_printf(out, "  %s %s %s: %s\n", sign, stage_name(a->ops[i].stage),
                       control_id_name(a->ops[i].control), row.data);
        buf_done(&row);
    }
}

/* What files in and out add to a run, over a rootfs without and with the places for them; nothing of it is in a run without
 * files. */
static void files_add_their_rows(void **unused) {
    struct host *host = calloc(1, sizeof(*host));
    struct policy *policy = python_policy(), *plain = python_policy();
    struct buf text = {0};
    struct err err = {0};

    (void)unused;
    assert_non_null(host);
    root_v2(host);
    if (policy_add_file(policy, "a/b.csv", "1,2\n", 4, &err) < 0 ||
        policy_add_file(policy, "a/c.csv", "x", 1, &err) < 0 ||
        policy_set(policy, "out", "-", &err) < 0)
        fail_msg("%s", err.message);
    struct plan *without = make(plain, host), *with = make(policy, host), *placed = NULL;
    const struct plan_image has_places = {.has_home = true, .has_in = true, .has_out = true};
    if (plan_make(policy, host, &has_places, &placed, &err) < 0)
        fail_msg("%s", err.message);
    buf_puts(&text, "files:\n");
    rows_missing(with, without, "+", &text);
    rows_missing(without, with, "-", &text);
    buf_puts(&text, "\nover a rootfs with /in and /out:\n");
    rows_missing(placed, with, "+", &text);
    rows_missing(with, placed, "-", &text);
    compare("plan_files", text.data);
    buf_done(&text);
    plan_free(placed);
    plan_free(with);
    plan_free(without);
    policy_free(plain);
    policy_free(policy);
    free(host);
}

static void each_control_off_takes_its_rows_away_and_what_needs_them(void **unused) {
    const char *argv[] = {"true", NULL};
    struct host *host = calloc(1, sizeof(*host));
    struct policy *policy = python_policy(), *command = python_policy();
    struct buf text = {0};
    struct err err = {0};

    (void)unused;
    assert_non_null(host);
    root_v2(host);
    if (policy_set_argv(command, argv, NULL, &err) < 0)
        fail_msg("%s", err.message);
    struct plan *full = make(policy, host);
    for (int c = 0; c < CTL__N; c++) {
        /* Without these two there is no place for code. */
        struct policy *p = c == CTL_TMP || c == CTL_MOUNT ? command : policy;
        uint64_t all = p->controls;

        p->controls &= ~BIT(c);
        struct plan *less = make(p, host);
        p->controls = all;
        for (size_t i = 0; i < less->n_ops; i++)
            assert_int_not_equal(less->ops[i].control, c);
        buf_printf(&text, "without %s:\n", control_id_name((enum control_id)c));
        rows_missing(full, less, "-", &text);
        rows_missing(less, full, "+", &text);
        plan_free(less);
    }
    compare("plan_without_each_control", text.data);
    buf_done(&text);
    plan_free(full);
    policy_free(command);
    policy_free(policy);
    free(host);
}

static void every_row_names_its_reason(void **unused) {
    struct host *host = calloc(1, sizeof(*host));
    struct policy *policy = python_policy();

    (void)unused;
    assert_non_null(host);
    root_hybrid(host);
    struct plan *plan = make(policy, host);
    for (size_t i = 0; i < plan->n_ops; i++)
        if (!plan->ops[i].why || !plan->ops[i].why[0])
            fail_msg("row %zu (%s) has no reason", i, op_name(plan->ops[i].kind));
    plan_free(plan);
    policy_free(policy);
    free(host);
}

static void seccomp_is_the_last_thing_the_payload_does(void **unused) {
    struct host *host = calloc(1, sizeof(*host));
    struct policy *policy = python_policy();
    enum op_kind last = OP__N;

    (void)unused;
    assert_non_null(host);
    root_v2(host);
    struct plan *plan = make(policy, host);
    for (size_t i = 0; i < plan->n_ops; i++)
        if (plan->ops[i].stage == STAGE_SEAL)
            last = plan->ops[i].kind;
    assert_int_equal(last, OP_SECCOMP);
    plan_free(plan);
    policy_free(policy);
    free(host);
}

static void every_control_is_in_the_registry_and_explains_itself(void **unused) {
    (void)unused;
    for (int i = 0; i < CTL__N; i++) {
        assert_non_null(controls[i]);
        assert_int_equal(controls[i]->id, i);
        assert_ptr_equal(control_find(control_id_name((enum control_id)i)), controls[i]);
        assert_true(strlen(controls[i]->summary) > 10);
        assert_true(strlen(controls[i]->source) > 5);
        assert_true(strlen(controls[i]->without) > 20);
    }
    assert_null(control_find("nosuch"));
}

static void a_second_mount_at_the_root_is_not_in_force(void **unused) {
    static const struct {
        const char *mounts;
        bool in_force;
    } cases[] = {
        {"9 1 8:1 /r / ro,nosuid,nodev - ext4 d rw\n", true},
        {"9 1 8:1 /r / rw,nosuid,nodev - ext4 d rw\n", false},
        {"9 1 8:1 /r / ro,nosuid - ext4 d rw\n", false},
        {"9 1 8:1 /r / ro,nosuid,nodev shared:7 - ext4 d rw\n", false},
        {"9 1 8:1 /r / ro,nosuid,nodev master:7 - ext4 d rw\n", false},
        {"2 1 8:1 / / rw - ext4 d rw\n9 2 8:1 /r / ro,nosuid,nodev - ext4 d rw\n", false},
        {"9 1 8:1 /r / ro,nosuid,nodev - ext4 d rw\n10 9 8:1 / / rw - ext4 d rw\n", false},
        {"9 1 8:1 /r / ro,nosuid,nodev - ext4 d rw\n10 9 0:9 / /x ro - tmpfs t rw\n", false},
        {"", false},
    };
    struct host *host = calloc(1, sizeof(*host));
    struct evidence *inside = calloc(1, sizeof(*inside));
    struct policy *policy = python_policy();
    struct err err = {0};

    (void)unused;
    assert_true(host && inside);
    user_subids(host);
    policy->controls = BIT(CTL_MOUNT); /* nothing else is mounted then, and code has no place */
    if (policy_set_argv(policy, (const char *const[]){"true", NULL}, NULL, &err) < 0)
        fail_msg("%s", err.message);
    struct plan *plan = make(policy, host);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct view view = {.inside = inside, .plan = plan};
        struct finding finding = {0};

        (void)str_copy(inside->mountinfo, sizeof(inside->mountinfo), cases[i].mounts);
        inside->n_mounts = 0;
        for (const char *c = cases[i].mounts; *c; c++)
            inside->n_mounts += *c == '\n';
        inside->ns[NS_MNT] = 1;
        view.host_ns[NS_MNT] = 2;
        controls[CTL_MOUNT]->verify(&view, &finding);
        if (finding.in_force != cases[i].in_force)
            fail_msg("%s: %s", cases[i].mounts, finding.evidence);
    }
    plan_free(plan);
    policy_free(policy);
    free(inside);
    free(host);
}

static void refuses(void (*spoil)(struct host *), const char *control, const char *words) {
    struct host *host = calloc(1, sizeof(*host));
    struct policy *policy = python_policy();
    struct plan *plan = NULL;
    struct err err = {0};

    assert_non_null(host);
    user_subids(host);
    spoil(host);
    assert_true(plan_make(policy, host, &image, &plan, &err) < 0);
    assert_int_equal(err.kind, ERR_UNSUPPORTED);
    assert_string_equal(err.control, control);
    if (!strstr(err.message, words))
        fail_msg("'%s' is not in: %s", words, err.message);
    policy_free(policy);
    free(host);
}

static void no_userns(struct host *h) { h->max_user_namespaces = 0; }
static void no_userns_for_users(struct host *h) { h->userns_clone_off = true; }
static void masked_proc(struct host *h) { h->proc_masked = true; }
static void no_memory_controller(struct host *h) {
    h->cg.where[CG_MEMORY] = -1;
    (void)str_copy(h->cg.why[CG_MEMORY], sizeof(h->cg.why[0]), "memory is not delegated to you");
}
static void apparmor(struct host *h) { h->userns_apparmor = true; }
static void no_seccomp(struct host *h) { h->seccomp_filter = false; }

static void a_host_that_lacks_something_is_refused_with_the_remedy(void **unused) {
    (void)unused;
    refuses(no_userns, "user", "user.max_user_namespaces");
    refuses(no_userns_for_users, "user", "unprivileged_userns_clone");
    refuses(apparmor, "user", "apparmor_restrict_unprivileged_userns");
    refuses(masked_proc, "proc", "systempaths=unconfined");
    refuses(no_memory_controller, "memory", "not delegated");
    refuses(no_seccomp, "seccomp", "seccomp");
}

static void best_effort_goes_on_without_a_controller_and_says_so(void **unused) {
    struct host *host = calloc(1, sizeof(*host));
    struct policy *policy = python_policy();

    (void)unused;
    assert_non_null(host);
    user_subids(host);
    no_memory_controller(host);
    policy->best_effort = true;
    struct plan *plan = make(policy, host);
    assert_non_null(strstr(plan->warnings.data, "memory is not delegated to you"));
    for (int i = 0; i < plan->n_limits; i++)
        if (strcmp(plan->limits[i].name, "memory") == 0)
            assert_string_equal(plan->limits[i].enforced_by, "supervisor");
        else if (strcmp(plan->limits[i].name, "memoryPerProcess") == 0)
            assert_string_equal(plan->limits[i].enforced_by, "rlimit");
    plan_free(plan);
    policy_free(policy);
    free(host);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(root_on_pure_cgroup_v2),
        cmocka_unit_test(root_on_a_hybrid_host),
        cmocka_unit_test(a_user_with_subordinate_ids),
        cmocka_unit_test(a_user_with_nothing_and_no_landlock),
        cmocka_unit_test(files_add_their_rows),
        cmocka_unit_test(each_control_off_takes_its_rows_away_and_what_needs_them),
        cmocka_unit_test(every_row_names_its_reason),
        cmocka_unit_test(seccomp_is_the_last_thing_the_payload_does),
        cmocka_unit_test(every_control_is_in_the_registry_and_explains_itself),
        cmocka_unit_test(a_second_mount_at_the_root_is_not_in_force),
        cmocka_unit_test(a_host_that_lacks_something_is_refused_with_the_remedy),
        cmocka_unit_test(best_effort_goes_on_without_a_controller_and_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
