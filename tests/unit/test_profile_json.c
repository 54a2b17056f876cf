/*
 * test_profile_json.c: what of a profile in Docker's format is taken for a box, and that whatever
 * would be misread is refused at its place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "linux/host.h"
#include "policy/profile_json.h"

#include "base/banned.h"

static int read_as(const char *text, const char *arch, unsigned kernel, struct profile *ret,
                   struct err *err) {
    return profile_from_json(text, strlen(text), arch, kernel, ret, err);
}

static struct profile read_ok(const char *text) {
    struct profile profile = {0};
    struct err err = {0};

    if (read_as(text, "amd64", KERNEL(6, 1), &profile, &err) < 0)
        fail_msg("%s", err.message);
    return profile;
}

/* The error must name `where` and `why`; and what was there before stays. */
static void refused(const char *text, const char *where, const char *why) {
    struct profile profile = {.n_rules = 77};
    struct err err = {0};

    if (read_as(text, "amd64", KERNEL(6, 1), &profile, &err) == 0)
        fail_msg("taken, although %s: %s", why, text);
    assert_int_equal(err.kind, ERR_USAGE);
    assert_string_equal(err.control, "seccomp");
    assert_int_equal(profile.n_rules, 77);
    if (!strstr(err.message, where) || !strstr(err.message, why))
        fail_msg("\"%s\" names not both \"%s\" and \"%s\"", err.message, where, why);
}

/* A profile with this one rule. */
#define RULE(members)                                                                              \
    "{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": ["                                      \
    "{\"names\": [\"read\"], \"action\": \"SCMP_ACT_ALLOW\"" members "}]}"

static int rules_of(const char *text, const char *arch, unsigned kernel) {
    struct profile profile = {0};
    struct err err = {0};

    if (read_as(text, arch, kernel, &profile, &err) < 0)
        fail_msg("%s", err.message);
    int n = profile.n_rules;
    arena_done(&profile.arena);
    return n;
}

static void a_rule_is_read_with_all_that_it_says(void **unused) {
    struct profile p = read_ok(
        "{\"comment\": \"x\", \"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrnoRet\": 38,"
        " \"syscalls\": [{\"names\": [\"clone\", \"no_such_call\"], \"action\": \"SCMP_ACT_ERRNO\","
        " \"errnoRet\": 12, \"comment\": \"why\","
        " \"args\": [{\"index\": 5, \"value\": 2114060288, \"valueTwo\": 3,"
        " \"op\": \"SCMP_CMP_MASKED_EQ\"}, {\"index\": 0, \"value\": 0, \"op\": "
        "\"SCMP_CMP_NE\"}]}]}");

    (void)unused;
    assert_int_equal(p.default_action, PROFILE_ERRNO);
    assert_int_equal(p.default_error, 38);
    assert_int_equal(p.n_rules, 1);
    assert_string_equal(p.rules[0].names[0], "clone");
    assert_string_equal(p.rules[0].names[1], "no_such_call");
    assert_null(p.rules[0].names[2]);
    assert_int_equal(p.rules[0].action, PROFILE_ERRNO);
    assert_int_equal(p.rules[0].error, 12);
    assert_int_equal(p.rules[0].n_args, 2);
    assert_int_equal(p.rules[0].args[0].index, 5);
    assert_int_equal(p.rules[0].args[0].op, PROFILE_MASKED_EQ);
    assert_int_equal(p.rules[0].args[0].value, 2114060288);
    assert_int_equal(p.rules[0].args[0].value_two, 3);
    assert_int_equal(p.rules[0].args[1].op, PROFILE_NE);
    assert_int_equal(p.rules[0].args[1].value_two, 0);
    arena_done(&p.arena);
}

static void what_is_not_said_has_dockers_default(void **unused) {
    struct profile p =
        read_ok("{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": ["
                "{\"name\": \"read\", \"action\": \"SCMP_ACT_ERRNO\", \"args\": null,"
                " \"includes\": {}, \"excludes\": null}]}");

    (void)unused;
    assert_int_equal(p.default_error, EPERM);
    assert_int_equal(p.n_rules, 1);
    assert_string_equal(p.rules[0].names[0], "read");
    assert_null(p.rules[0].names[1]);
    assert_int_equal(p.rules[0].error, EPERM);
    assert_int_equal(p.rules[0].n_args, 0);
    arena_done(&p.arena);
}

static void an_errno_may_be_named(void **unused) {
    struct profile p =
        read_ok("{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrno\": \"ENOSYS\","
                " \"syscalls\": [{\"name\": \"socket\", \"action\":"
                " \"SCMP_ACT_ERRNO\", \"errno\": \"EINVAL\", \"errnoRet\": 22}]}");

    (void)unused;
    assert_int_equal(p.default_error, ENOSYS);
    assert_int_equal(p.rules[0].error, EINVAL);
    arena_done(&p.arena);
    refused(RULE(", \"errno\": \"EXYZ\""), "syscalls[0].errno:", "name");
    refused(RULE(", \"errno\": \"E?\""), "syscalls[0].errno:", "name");
    refused(RULE(", \"errno\": 1"), "syscalls[0].errno:", "name");
    refused(RULE(", \"errno\": \"EINVAL\", \"errnoRet\": 1"), "syscalls[0].errno:", "another");
}

static void every_action_and_comparison_is_known(void **unused) {
    static const struct {
        const char *name;
        enum profile_action action;
    } actions[] = {{"ALLOW", PROFILE_ALLOW},      {"LOG", PROFILE_LOG},
                   {"ERRNO", PROFILE_ERRNO},      {"TRAP", PROFILE_TRAP},
                   {"KILL", PROFILE_KILL_THREAD}, {"KILL_THREAD", PROFILE_KILL_THREAD},
                   {"KILL_PROCESS", PROFILE_KILL}};
    static const char *const ops[] = {"NE", "LT", "LE", "EQ", "GE", "GT", "MASKED_EQ"};
    char text[256];

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
        (void)snprintf(text, sizeof(text), "{\"defaultAction\": \"SCMP_ACT_%s\"}", actions[i].name);
        struct profile p = read_ok(text);
        assert_int_equal(p.default_action, actions[i].action);
        arena_done(&p.arena);
    }
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        (void)snprintf(text, sizeof(text),
                       RULE(", \"args\": [{\"index\": 1, \"value\": 2, \"op\": \"SCMP_CMP_%s\"}]"),
                       ops[i]);
        struct profile p = read_ok(text);
        assert_int_equal(p.rules[0].args[0].op, PROFILE_NE + (int)i);
        arena_done(&p.arena);
    }
}

static void a_box_has_no_capabilities(void **unused) {
    (void)unused;
    assert_int_equal(rules_of(RULE(", \"includes\": {\"caps\": [\"CAP_BPF\"]}"), "amd64", 0), 0);
    assert_int_equal(rules_of(RULE(", \"excludes\": {\"caps\": [\"CAP_BPF\"]}"), "amd64", 0), 1);
    assert_int_equal(rules_of(RULE(", \"includes\": {\"caps\": []}"), "amd64", 0), 1);
}

static void a_rule_for_other_machines_is_left_out(void **unused) {
    (void)unused;
    const char *in = RULE(", \"includes\": {\"arches\": [\"amd64\", \"x32\"]}");
    const char *out = RULE(", \"excludes\": {\"arches\": [\"amd64\", \"x32\"]}");

    assert_int_equal(rules_of(in, "amd64", 0), 1);
    assert_int_equal(rules_of(in, "arm64", 0), 0);
    assert_int_equal(rules_of(out, "amd64", 0), 0);
    assert_int_equal(rules_of(out, "arm64", 0), 1);
}

static void a_rule_for_newer_kernels_is_left_out(void **unused) {
    (void)unused;
    const char *in = RULE(", \"includes\": {\"minKernel\": \"4.8\"}");
    const char *out = RULE(", \"excludes\": {\"minKernel\": \"4.8\"}");

    assert_int_equal(rules_of(in, "amd64", KERNEL(4, 7)), 0);
    assert_int_equal(rules_of(in, "amd64", KERNEL(4, 8)), 1);
    assert_int_equal(rules_of(in, "amd64", KERNEL(4, 10)), 1); /* not a decimal fraction */
    assert_int_equal(rules_of(in, "amd64", KERNEL(3, 19)), 0);
    assert_int_equal(rules_of(in, "amd64", KERNEL(6, 0)), 1);
    assert_int_equal(rules_of(out, "amd64", KERNEL(4, 7)), 1);
    assert_int_equal(rules_of(out, "amd64", KERNEL(4, 8)), 0);
}

static void all_conditions_of_a_rule_must_hold(void **unused) {
    (void)unused;
    const char *text = RULE(", \"includes\": {\"arches\": [\"amd64\"], \"minKernel\": \"4.8\"}"
                            ", \"excludes\": {\"caps\": [\"CAP_BPF\"]}");

    assert_int_equal(rules_of(text, "amd64", KERNEL(5, 0)), 1);
    assert_int_equal(rules_of(text, "amd64", KERNEL(4, 0)), 0);
    assert_int_equal(rules_of(text, "arm64", KERNEL(5, 0)), 0);
}

static void what_is_of_no_use_to_a_box_is_read_all_the_same(void **unused) {
    struct profile p =
        read_ok("{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": [],"
                " \"archMap\": [{\"architecture\": \"SCMP_ARCH_X86_64\","
                " \"subArchitectures\": [\"SCMP_ARCH_X86\", \"SCMP_ARCH_X32\"]}, {\"architecture\":"
                " \"SCMP_ARCH_RISCV64\", \"subArchitectures\": null}],"
                " \"flags\": [\"SECCOMP_FILTER_FLAG_LOG\"], \"listenerPath\": \"/x\","
                " \"listenerMetadata\": \"y\"}");

    (void)unused;
    assert_int_equal(p.n_rules, 0);
    arena_done(&p.arena);
    p = read_ok(
        "{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"architectures\": [\"SCMP_ARCH_X86_64\"]}");
    arena_done(&p.arena);
}

static void a_text_that_is_not_json_is_refused_with_its_line(void **unused) {
    (void)unused;
    refused("{\n \"defaultAction\": ,\n}", "line 2", "");
    refused("", "line 1", "");
    refused("{\"defaultAction\": \"SCMP_ACT_ERRNO\"} x", "line 1", "end of file");
    refused("{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultAction\": \"SCMP_ACT_ALLOW\"}",
            "line 1", "duplicate");
}

static void an_unknown_member_is_refused_by_name(void **unused) {
    (void)unused;
    refused("[]", "profile", "is not an object");
    refused("{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscals\": []}", "syscals", "member");
    refused(RULE(", \"arg\": []"), "syscalls[0].arg:", "member");
    refused(RULE(", \"includes\": {\"cap\": []}"), "syscalls[0].includes.cap:", "member");
    refused(
        RULE(", \"args\": [{\"index\": 0, \"value\": 1, \"op\": \"SCMP_CMP_EQ\", \"value2\": 2}]"),
        "syscalls[0].args[0].value2:", "member");
    refused("{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"archMap\": [{\"arch\": \"x\"}]}",
            "archMap[0].arch:", "member");
}

/* A condition that is silently dropped is a call let through. */
static void a_condition_of_the_wrong_kind_is_refused(void **unused) {
    (void)unused;
    refused(RULE(", \"args\": {\"index\": 0}"), "syscalls[0].args:", "list");
    refused(RULE(", \"args\": [7]"), "syscalls[0].args[0]:", "object");
    refused(RULE(", \"args\": [{\"value\": 1, \"op\": \"SCMP_CMP_EQ\"}]"),
            "args[0].index:", "missing");
    refused(RULE(", \"args\": [{\"index\": 1, \"op\": \"SCMP_CMP_EQ\"}]"),
            "args[0].value:", "missing");
    refused(RULE(", \"args\": [{\"index\": 1, \"value\": 1}]"), "args[0].op:", "missing");
    refused(RULE(", \"args\": [{\"index\": 6, \"value\": 1, \"op\": \"SCMP_CMP_EQ\"}]"),
            "args[0].index:", "range");
    refused(RULE(", \"args\": [{\"index\": 1, \"value\": \"1\", \"op\": \"SCMP_CMP_EQ\"}]"),
            "args[0].value:", "number");
    refused(RULE(", \"args\": [{\"index\": 1, \"value\": -1, \"op\": \"SCMP_CMP_EQ\"}]"),
            "args[0].value:", "range");
    refused(RULE(", \"args\": [{\"index\": 1, \"value\": 1, \"valueTwo\": 1.5,"
                 " \"op\": \"SCMP_CMP_EQ\"}]"),
            "args[0].valueTwo:", "number");
    refused(RULE(", \"args\": [{\"index\": 1, \"value\": 1, \"op\": \"EQ\"}]"),
            "args[0].op:", "known");
    refused(RULE(", \"includes\": [\"amd64\"]"), "syscalls[0].includes:", "object");
    refused(RULE(", \"includes\": {\"arches\": \"arm64\"}"), "includes.arches:", "list");
    refused(RULE(", \"includes\": {\"caps\": \"CAP_BPF\"}"), "includes.caps:", "list");
    refused(RULE(", \"excludes\": {\"arches\": [1]}"), "excludes.arches:", "texts");
    refused(RULE(", \"includes\": {\"minKernel\": 4.8}"), "includes.minKernel:", "version");
    refused(RULE(", \"includes\": {\"minKernel\": \"4.x\"}"), "includes.minKernel:", "version");
    refused(RULE(", \"includes\": {\"minKernel\": \"4.-8\"}"), "includes.minKernel:", "version");
    refused(RULE(", \"includes\": {\"minKernel\": \"4. 8\"}"), "includes.minKernel:", "version");
    refused(RULE(", \"includes\": {\"minKernel\": \"4\"}"), "includes.minKernel:", "version");
    refused(RULE(", \"includes\": {\"minKernel\": \"65536.0\"}"), "includes.minKernel:", "version");
    refused("{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": {\"names\": [\"mount\"]}}",
            "syscalls:", "list");
    refused("{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"flags\": \"x\"}", "flags:", "list");
}

static void more_than_six_arguments_are_refused(void **unused) {
    (void)unused;
#define ONE "{\"index\": 0, \"value\": 1, \"op\": \"SCMP_CMP_EQ\"}"
    struct profile p =
        read_ok(RULE(", \"args\": [" ONE "," ONE "," ONE "," ONE "," ONE "," ONE "]"));
    assert_int_equal(p.rules[0].n_args, 6);
    arena_done(&p.arena);
    refused(RULE(", \"args\": [" ONE "," ONE "," ONE "," ONE "," ONE "," ONE "," ONE "]"),
            "syscalls[0].args:", "six");
#undef ONE
}

static void actions_that_need_a_helper_or_are_unknown_are_refused(void **unused) {
    (void)unused;
    refused("{}", "defaultAction:", "missing");
    refused("{\"defaultAction\": \"ALLOW\"}", "defaultAction:", "known");
    refused("{\"defaultAction\": \"SCMP_ACT_NOTIFY\"}", "defaultAction:", "helper");
    refused("{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": ["
            "{\"names\": [\"read\"], \"action\": \"SCMP_ACT_ALLOW\"},"
            "{\"names\": [\"mount\"], \"action\": \"SCMP_ACT_NOTIFY\"}]}",
            "syscalls[1].action:", "NOTIFY");
    refused("{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": ["
            "{\"names\": [\"mount\"], \"action\": \"SCMP_ACT_TRACE\"}]}",
            "syscalls[0].action:", "TRACE");
    refused("{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": [{\"names\": [\"mount\"]}]}",
            "syscalls[0].action:", "missing");
    refused("{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrnoRet\": 4096}",
            "defaultErrnoRet:", "range");
    refused(RULE(", \"errnoRet\": \"EPERM\""), "syscalls[0].errnoRet:", "number");
}

static void a_rule_names_its_calls_in_one_way(void **unused) {
    (void)unused;
    refused(RULE(", \"name\": \"write\""), "syscalls[0].names:", "not both");
    refused(
        "{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": [{\"action\": \"SCMP_ACT_ALLOW\"}]}",
        "syscalls[0].names:", "either");
    refused("{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": ["
            "{\"names\": \"read\", \"action\": \"SCMP_ACT_ALLOW\"}]}",
            "syscalls[0].names:", "list");
    refused("{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": ["
            "{\"names\": [\"read\", 1], \"action\": \"SCMP_ACT_ALLOW\"}]}",
            "syscalls[0].names:", "texts");
    refused("{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"architectures\": [\"SCMP_ARCH_X86\"],"
            " \"archMap\": [{\"architecture\": \"SCMP_ARCH_X86\"}]}",
            "architectures:", "archMap");
}

/* An error in a rule that this machine leaves out would show only on another one. */
static void a_rule_that_is_left_out_is_checked_too(void **unused) {
    (void)unused;
    refused("{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": [{\"names\": [\"bpf\"],"
            " \"includes\": {\"caps\": [\"CAP_BPF\"]}, \"action\": \"ALLOW\"}]}",
            "syscalls[0].action:", "known");
}

static void what_is_too_large_is_refused(void **unused) {
    struct buf text = {0};
    struct profile p = {0};
    struct err err = {0};

    (void)unused;
    buf_puts(&text, "{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": [");
    for (int i = 0; i < 4097; i++)
        buf_printf(&text, "%s{\"name\": \"read\", \"action\": \"SCMP_ACT_ALLOW\"}", i ? "," : "");
    buf_puts(&text, "]}");
    refused(text.data, "syscalls:", "4096");
    buf_done(&text);

    for (int i = 0; i < 100000; i++) /* deeper than a parser's stack should go */
        buf_puts(&text, "[");
    refused(text.data, "line 1", "depth");
    buf_done(&text);

    size_t size = ((size_t)4 << 20) + 1;
    char *spaces = malloc(size);
    assert_non_null(spaces);
    memset(spaces, ' ', size);
    assert_int_equal(profile_from_json(spaces, size, "amd64", 0, &p, &err), -EINVAL);
    assert_non_null(strstr(err.message, "4 MiB"));
    free(spaces);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rule_is_read_with_all_that_it_says),
        cmocka_unit_test(what_is_not_said_has_dockers_default),
        cmocka_unit_test(an_errno_may_be_named),
        cmocka_unit_test(every_action_and_comparison_is_known),
        cmocka_unit_test(a_box_has_no_capabilities),
        cmocka_unit_test(a_rule_for_other_machines_is_left_out),
        cmocka_unit_test(a_rule_for_newer_kernels_is_left_out),
        cmocka_unit_test(all_conditions_of_a_rule_must_hold),
        cmocka_unit_test(what_is_of_no_use_to_a_box_is_read_all_the_same),
        cmocka_unit_test(a_text_that_is_not_json_is_refused_with_its_line),
        cmocka_unit_test(an_unknown_member_is_refused_by_name),
        cmocka_unit_test(a_condition_of_the_wrong_kind_is_refused),
        cmocka_unit_test(more_than_six_arguments_are_refused),
        cmocka_unit_test(actions_that_need_a_helper_or_are_unknown_are_refused),
        cmocka_unit_test(a_rule_names_its_calls_in_one_way),
        cmocka_unit_test(a_rule_that_is_left_out_is_checked_too),
        cmocka_unit_test(what_is_too_large_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
