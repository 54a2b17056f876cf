/*
 * test_policy.c: the table of fields, one value at a time, and what must hold between them.
 *
 * Where a value is refused, the test looks for the word that tells the user why, and that the policy is as it was.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "policy/policy.h"

#include "base/banned.h"

static struct policy *new_policy(void) {
    struct policy *p = policy_new();

    assert_non_null(p);
    return p;
}

static void accept(struct policy *p, const char *name, const char *value) {
    struct err err = {0};

    if (policy_set(p, name, value, &err) != 0)
        fail_msg("%s=%s was refused: %s", name, value, err.message);
}

/* `a` is a copy of an earlier `b`, padding and all. */
static bool same_bytes(const void *a, const void *b, size_t len) { return memcmp(a, b, len) == 0; }

/* `word`: part of the message. */
static void refuse(struct policy *p, const char *name, const char *value, const char *word) {
    struct err err = {0};
    struct policy before = *p;

    if (policy_set(p, name, value, &err) != -EINVAL && err.code >= 0)
        fail_msg("%s=%s was accepted", name, value);
    if (!strstr(err.message, word))
        fail_msg("%s=%s: no \"%s\" in: %s", name, value, word, err.message);
    assert_int_equal(err.kind, ERR_USAGE);
    before.arena = p->arena; /* a failed try may leave text there */
    before.ulimit[before.n_ulimit < POLICY_ULIMITS ? before.n_ulimit : 0] =
        p->ulimit[before.n_ulimit < POLICY_ULIMITS ? before.n_ulimit : 0]; /* not in use yet */
    if (!same_bytes(&before, p, sizeof(before)))
        fail_msg("%s=%s was refused, and yet changed the policy", name, value);
}

/* ------------------------------------------------------------------ the table */

static void the_defaults_are_those_that_are_documented(void **unused) {
    struct policy *p = new_policy();

    (void)unused;
    assert_int_equal(p->memory_bytes, 256 << 20);
    assert_int_equal(policy_swap_bytes(p), 0);
    assert_int_equal(p->cpu_milli, 1000);
    assert_int_equal(p->pids, 128);
    assert_int_equal(p->wall_ms, 10000);
    assert_int_equal(p->cpu_ms, 0);
    assert_int_equal(p->output_bytes, 1 << 20);
    assert_false(p->output_kills);
    assert_int_equal(p->tmp_bytes, 64 << 20);
    assert_int_equal(p->tmp_inodes, 16384);
    assert_true(p->read_only);
    assert_false(p->best_effort);
    assert_false(p->keep_stdin);
    assert_int_equal(p->uid, 1000);
    assert_int_equal(p->gid, 1000);
    assert_string_equal(p->hostname, "mayfly");
    for (int id = 0; id < CTL__N; id++)
        if (!(p->controls & BIT(id)))
            fail_msg("%s is off", control_id_name((enum control_id)id));
    policy_free(p);
}

static void every_field_has_one_name_one_flag_and_help(void **unused) {
    (void)unused;
    for (size_t i = 0; i < policy_n_fields; i++) {
        const struct policy_field *f = &policy_fields[i];
        char letter[] = {'-', f->letter, '\0'};

        assert_ptr_equal(policy_find(f->name), f);
        assert_non_null(f->flag);
        assert_ptr_equal(policy_find_flag(f->flag), f);
        if (f->letter)
            assert_ptr_equal(policy_find_flag(letter), f);
        assert_true(f->help && *f->help);
        if ((f->kind == FIELD_BOOL) != (f->metavar == NULL))
            fail_msg("%s: a switch takes no value, everything else does", f->name);
        if ((f->kind == FIELD_CUSTOM) != (f->set != NULL))
            fail_msg("%s: wants a parser of its own, or has one it does not need", f->name);
    }
    assert_null(policy_find("--memory"));
    assert_null(policy_find_flag("memory"));
    assert_null(policy_find_flag("-"));
}

static bool is_number(const struct policy_field *f) {
    return f->kind == FIELD_BYTES || f->kind == FIELD_DURATION || f->kind == FIELD_MILLI ||
           f->kind == FIELD_COUNT;
}

static const char *number_text(const struct policy_field *f, uint64_t n, char *text, size_t size) {
    if (f->kind == FIELD_DURATION)
        (void)snprintf(text, size, "%llums", (unsigned long long)n);
    else if (f->kind == FIELD_MILLI)
        (void)snprintf(text, size, "%llu.%03llu", (unsigned long long)n / 1000,
                       (unsigned long long)n % 1000);
    else
        (void)snprintf(text, size, "%llu", (unsigned long long)n);
    return text;
}

static uint64_t number_in(const struct policy *p, const struct policy_field *f) {
    const char *at = (const char *)p + f->offset;

    return f->kind == FIELD_MILLI || f->small ? *(const uint32_t *)(const void *)at
                                              : *(const uint64_t *)(const void *)at;
}

static void every_number_takes_its_range_and_nothing_beyond_it(void **unused) {
    struct policy *p = new_policy();
    char text[64];

    (void)unused;
    for (size_t i = 0; i < policy_n_fields; i++) {
        const struct policy_field *f = &policy_fields[i];
        if (!is_number(f))
            continue;
        accept(p, f->name, number_text(f, f->min, text, sizeof(text)));
        assert_int_equal(number_in(p, f), f->min);
        accept(p, f->name, number_text(f, f->max, text, sizeof(text)));
        assert_int_equal(number_in(p, f), f->max);
        refuse(p, f->name, number_text(f, f->max + 1, text, sizeof(text)), "between");
        if (f->min > 0)
            refuse(p, f->name, number_text(f, f->min - 1, text, sizeof(text)), "between");
        refuse(p, f->name, "99999999999999999999999", "between");
    }
    policy_free(p);
}

static void what_is_no_number_is_refused_with_an_example(void **unused) {
    static const char *const junk[] = {"",   " ",    "12q", "-1", "+1",
                                       "1 ", "0x10", "1e3", "m",  "1..5"};
    struct policy *p = new_policy();

    (void)unused;
    for (size_t i = 0; i < policy_n_fields; i++)
        for (size_t j = 0; j < ARRAY_LEN(junk); j++)
            if (is_number(&policy_fields[i]))
                refuse(p, policy_fields[i].name, junk[j], " is not a ");
    refuse(p, "memory", "12q", "--memory: \"12q\" is not a size; write it like 256m");
    policy_free(p);
}

/* A box always has its limits: 0, which means none elsewhere, is not a way around that. */
static void no_limit_can_be_lifted_with_a_zero(void **unused) {
    static const char *const limits[] = {"memory",   "cpus",       "pids-limit", "timeout",
                                         "tmp-size", "tmp-inodes", "max-output"};
    struct policy *p = new_policy();

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(limits); i++)
        refuse(p, limits[i], "0", "between");
    accept(p, "cpu-time", "0"); /* the wall clock still ends it */
    policy_free(p);
}

static void an_unknown_field_is_refused_by_name(void **unused) {
    struct policy *p = new_policy();

    (void)unused;
    refuse(p, "memroy", "1g", "\"memroy\" is not a field");
    refuse(p, "", "1g", "is not a field");
    refuse(p, "controls", "0", "is not a field"); /* nothing turns a control off */
    policy_free(p);
}

static void text_is_copied(void **unused) {
    struct policy *p = new_policy();
    char value[] = "A=1", name[] = "host", dir[] = "/work";

    (void)unused;
    accept(p, "env", value);
    accept(p, "hostname", name);
    accept(p, "workdir", dir);
    value[2] = name[0] = dir[1] = '#';
    assert_string_equal(p->env[0], "A=1");
    assert_string_equal(p->hostname, "host");
    assert_string_equal(p->workdir, "/work");
    policy_free(p);
}

/* ------------------------------------------------------------------ single fields */

struct value {
    const char *field, *text, *refusal; /* refusal NULL: accepted */
};

static void values_are_taken_or_refused_in_words(void **unused) {
    static const struct value values[] = {
        {"max-output", "4k", NULL},
        {"max-output", "4k:kill", NULL},
        {"max-output", "4k:die", "SIZE:kill"},
        {"max-output", ":kill", "is not a size"},
        {"max-output", "2g", "between"},
        {"memory-swap", "-1", "never has unlimited swap"},
        {"memory-swap", "9999g", "is not a size"},
        {"limits", "strict", NULL},
        {"limits", "best-effort", NULL},
        {"limits", "none", "neither"},
        {"read-only", "false", NULL},
        {"read-only", "no", "true or false"},
        {"user", "0", NULL},
        {"user", "1000:100", NULL},
        {"user", "root", NULL},
        {"user", "1000:users", NULL},
        {"user", ":5", "write UID"},
        {"user", "5:", "write UID"},
        {"user", "1:2:3", "write UID"},
        {"user", "a b", "write UID"},
        {"user", "", "write UID"},
        {"user", "4294967295", "a number"}, /* -1: "leave it as it is" to setresuid */
        {"user", "1:4294967295", "a number"},
        {"user", "-1", "write UID"},
        {"image", "python:3.12-slim", NULL},
        {"image", "", "names no image"},
        {"store", "", "empty"},
        {"entrypoint", "", NULL},
        {"hostname", "a-b.c", NULL},
        {"hostname", "", "1 to 63"},
        {"hostname", "a b", "1 to 63"},
        {"hostname", "a\nb", "1 to 63"},
        {"env", "A=", NULL},
        {"env", "A=b=c", NULL},
        {"env", "=x", "NAME=VALUE"},
        {"env", "A", "NAME=VALUE"},
        {"env", "", "NAME=VALUE"},
        {"network", "none", NULL},
        {"network", "host", "no network"},
        {"network", "bridge", "no network"},
        {"cap-drop", "ALL", NULL},
        {"security-opt", "no-new-privileges", NULL},
        {"security-opt", "no-new-privileges:true", NULL},
        {"security-opt", "no-new-privileges=false", "always on"},
        {"security-opt", "no-new-privileges:fasle", "always on"},
        {"security-opt", "seccomp=/etc/profile.json", NULL},
        {"security-opt", "seccomp=builtin", NULL},
        {"security-opt", "seccomp=", "FILE"},
        {"security-opt", "seccomp=unconfined", "never runs without a filter"},
        {"security-opt", "apparmor=unconfined", "takes seccomp"},
        {"security-opt", "label=disable", "takes seccomp"},
        {"ulimit", "nofile=256", NULL},
        {"ulimit", "nofile=256:512", NULL},
        {"ulimit", "nofile=512:256", "soft at most hard"},
        {"ulimit", "nofile=3", "a box takes 16 open files"},
        {"ulimit", "nofile=15:64", "a box takes 16 open files"},
        {"ulimit", "nofile=16", NULL},
        {"ulimit", "nofile", "NAME=SOFT"},
        {"ulimit", "nofile=", "whole numbers"},
        {"ulimit", "nofile=-1", "whole numbers"},
        {"ulimit", "nice=0", "NAME one of"},
        {"ulimit", "no=1", "NAME one of"}, /* not the beginning of a name */
        {"ulimit", "core=100", "handler"},
        {"cgroup-parent", "", "empty"},
        {"rootfs", "", "--rootfs"},
        {"rootfs", "/no/such/directory", "No such file"},
    };
    struct policy *p = new_policy();

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        if (values[i].refusal)
            refuse(p, values[i].field, values[i].text, values[i].refusal);
        else
            accept(p, values[i].field, values[i].text);
    }
    policy_free(p);
}

static void what_is_taken_is_what_was_said(void **unused) {
    struct policy *p = new_policy();

    (void)unused;
    accept(p, "cpus", "0.5");
    assert_int_equal(p->cpu_milli, 500);
    accept(p, "timeout", "1m30s");
    assert_int_equal(p->wall_ms, 90000);
    accept(p, "max-output", "3:kill");
    assert_int_equal(p->output_bytes, 3);
    assert_true(p->output_kills);
    accept(p, "max-output", "4");
    assert_false(p->output_kills);
    accept(p, "user", "7:8");
    assert_int_equal(p->uid, 7);
    assert_int_equal(p->gid, 8);
    accept(p, "user", "9");
    assert_int_equal(p->gid, 9);
    accept(p, "read-only", "false");
    assert_false(p->read_only);
    accept(p, "ulimit", "cpu=1:2");
    assert_int_equal(p->n_ulimit, 1);
    assert_int_equal(p->ulimit[0].resource, RLIMIT_CPU);
    assert_int_equal(p->ulimit[0].soft, 1);
    assert_int_equal(p->ulimit[0].hard, 2);
    accept(p, "security-opt", "seccomp=f");
    assert_string_equal(p->seccomp_profile, "f");
    accept(p, "rootfs", "/usr/../usr");
    assert_string_equal(p->rootfs, "/usr");
    policy_free(p);
}

/* ------------------------------------------------------------------ places in the box */

/* Also S3 of the cases: a directory that is reached through an inherited descriptor. */
static void places_that_are_the_boxs_own_or_not_plain_are_refused(void **unused) {
    static const struct {
        const char *path, *word;
    } places[] = {
        {"/proc/self/fd/7", "below /proc"},
        {"/proc", "below /proc"},
        {"/sys/fs/cgroup", "below /proc"},
        {"/dev", "below /proc"},
        {"/dev/null", "below /proc"},
        {"/a/../proc", ". or .. parts"},
        {"/a/..", ". or .. parts"},
        {"/./a", ". or .. parts"},
        {"/..", ". or .. parts"},
        {"//proc", "without //"},
        {"/a/", "without //"},
        {"a", "absolute"},
        {"", "absolute"},
        {"/a\nb", "control characters"},
    };
    struct policy *p = new_policy();
    char value[128];

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        refuse(p, "tmpfs", places[i].path, places[i].word);
        (void)snprintf(value, sizeof(value), "/etc:%s", places[i].path);
        refuse(p, "volume", value, places[i].word);
        (void)snprintf(value, sizeof(value), "type=bind,src=/etc,dst=%s", places[i].path);
        refuse(p, "mount", value, places[i].word);
    }
    refuse(p, "tmpfs", "/", "the root");
    refuse(p, "volume", "/etc:/", "the root");
    /* Where the code starts is read as Docker reads it, and only then judged. */
    refuse(p, "workdir", "/proc/self/fd/7", "below /proc");
    refuse(p, "workdir", "//dev/", "below /proc");
    refuse(p, "workdir", "/a/../proc", "below /proc");
    refuse(p, "workdir", "/a\nb", "control characters");
    refuse(p, "workdir", "a", "absolute");
    refuse(p, "workdir", "", "absolute");
    accept(p, "workdir", "/..//a/./b/../c/");
    assert_string_equal(p->workdir, "/a/c");
    accept(p, "workdir", "/a/..");
    assert_string_equal(p->workdir, "/");
    accept(p, "workdir", "/");
    accept(p, "workdir", "/procedure"); /* begins like /proc, and is not */
    accept(p, "workdir", "/a/..b/.c");
    policy_free(p);
}

static void a_volume_is_read_only_unless_it_says_otherwise(void **unused) {
    struct policy *p = new_policy();

    (void)unused;
    accept(p, "volume", "/etc:/a");
    accept(p, "volume", "/etc:/b:ro");
    accept(p, "volume", "/etc:/c:rw");
    accept(p, "mount", "type=bind,source=/etc,target=/d,readonly");
    accept(p, "mount", "dst=/e,src=/etc"); /* docker's: writable */
    accept(p, "mount", "src=/etc,dst=/f,ro=false");
    assert_int_equal(p->n_bind, 6);
    for (int i = 0; i < 6; i++) {
        assert_string_equal(p->bind[i].source, "/etc");
        assert_int_equal(p->bind[i].target[1], 'a' + i);
        if (p->bind[i].writable != (i == 2 || i >= 4))
            fail_msg("%s is %swritable", p->bind[i].target, p->bind[i].writable ? "" : "not ");
    }
    policy_free(p);
}

static void volumes_that_mean_something_else_in_docker_are_refused(void **unused) {
    struct policy *p = new_policy();

    (void)unused;
    refuse(p, "volume", "data:/data", "no named volumes");
    refuse(p, "volume", "/data", "SOURCE:TARGET");
    refuse(p, "volume", ":/data", "names no source");
    refuse(p, "volume", "/etc:/a:z", "ro and rw only");
    refuse(p, "volume", "/etc:/a:rw,Z", "ro and rw only");
    refuse(p, "volume", "/etc:/a:", "ro and rw only");
    refuse(p, "volume", "/no/such/file:/a", "No such file");
    refuse(p, "mount", "type=volume,src=x,dst=/a", "neither bind nor tmpfs");
    refuse(p, "mount", "type=bind,src=/etc,dst=/a,bind-propagation=shared", "takes type=");
    refuse(p, "mount", "type=bind,dst=/a", "names no source");
    refuse(p, "mount", "type=bind,src=/etc", "absolute");
    refuse(p, "mount", "type=tmpfs,dst=/a,readonly", "nothing to be read");
    refuse(p, "mount", "type=tmpfs,dst=/a,src=/etc", "nothing to be read");
    policy_free(p);
}

static void a_relative_source_becomes_absolute(void **unused) {
    struct policy *p = new_policy();
    char was[4096];

    (void)unused;
    assert_non_null(getcwd(was, sizeof(was)));
    assert_int_equal(chdir("/usr"), 0);
    accept(p, "volume", "./bin/..:/a");
    assert_int_equal(chdir(was), 0);
    assert_string_equal(p->bind[0].source, "/usr");
    policy_free(p);
}

static void a_tmpfs_takes_dockers_options_but_those_that_would_weaken_it(void **unused) {
    struct policy *p = new_policy();

    (void)unused;
    accept(p, "tmpfs", "/a");
    accept(p, "tmpfs", "/b:size=8k,inodes=20,mode=700,noexec,nosuid,nodev,rw");
    accept(p, "mount", "type=tmpfs,destination=/c,tmpfs-size=1m,tmpfs-mode=1777");
    accept(p, "mount", "tmpfs-size=1m,dst=/d,type=tmpfs"); /* in any order */
    assert_int_equal(p->tmpfs[0].size_bytes, 0);
    assert_int_equal(p->tmpfs[1].size_bytes, 8192);
    assert_int_equal(p->tmpfs[1].inodes, 20);
    assert_int_equal(p->tmpfs[1].mode, 0700);
    assert_int_equal(p->tmpfs[2].size_bytes, 1 << 20);
    assert_int_equal(p->tmpfs[2].mode, 01777);
    assert_int_equal(p->tmpfs[3].size_bytes, 1 << 20);
    refuse(p, "tmpfs", "/e:exec", "always noexec");
    refuse(p, "tmpfs", "/e:rw,suid", "always noexec");
    refuse(p, "tmpfs", "/e:dev", "always noexec");
    refuse(p, "tmpfs", "/e:size=1", "at least 4k");
    refuse(p, "tmpfs", "/e:mode=9", "octal");
    refuse(p, "tmpfs", "/e:mode=", "octal");
    refuse(p, "tmpfs", "/e:mode=+7", "octal");
    refuse(p, "tmpfs", "/e:mode= 7", "octal");
    refuse(p, "tmpfs", "/e:mode=-18446744073709551615", "octal"); /* 1, to strtoull */
    refuse(p, "tmpfs", "/e:mode=4755", "octal");                  /* no set-user-ID */
    refuse(p, "tmpfs", "/e:huge=always", "takes size=");
    refuse(p, "tmpfs", "/e:,", "takes size=");
    policy_free(p);
}

static void lists_end_at_their_ceiling(void **unused) {
    struct policy *p = new_policy();
    char value[64];

    (void)unused;
    for (int i = 0; i < POLICY_ENV; i++) {
        (void)snprintf(value, sizeof(value), "V%d=x", i);
        accept(p, "env", value);
    }
    refuse(p, "env", "KEY=secret", "KEY: more than");
    for (int i = 0; i < POLICY_BINDS; i++) {
        (void)snprintf(value, sizeof(value), "/etc:/b%d", i);
        accept(p, "volume", value);
    }
    refuse(p, "volume", "/etc:/one-more", "too many of them, a box takes 32");
    for (int i = 0; i < POLICY_TMPFS; i++) {
        (void)snprintf(value, sizeof(value), "/t%d", i);
        accept(p, "tmpfs", value);
    }
    refuse(p, "tmpfs", "/one-more", "too many");
    for (int i = 0; i < POLICY_ULIMITS; i++)
        accept(p, "ulimit", "nofile=16");
    refuse(p, "ulimit", "nofile=16", "too many");
    policy_free(p);
}

/* A message must not carry a secret to a log. */
static void a_refused_variable_does_not_show_its_value(void **unused) {
    struct policy *p = new_policy();
    struct err err = {0};

    (void)unused;
    while (p->n_env < POLICY_ENV)
        accept(p, "env", "A=1");
    assert_int_equal(policy_set(p, "env", "KEY=hunter2", &err), -EINVAL);
    assert_null(strstr(err.message, "hunter2"));
    policy_free(p);
}

/* ------------------------------------------------------------------ the command */

static void python_gets_its_code_as_a_file_and_its_arguments_after_it(void **unused) {
    static const char *const args[] = {"{code}", "b", NULL};
    struct policy *p = new_policy();
    struct err err = {0};

    (void)unused;
    if (policy_set_python(p, args, &err) < 0)
        fail_msg("%s", err.message);
    assert_true(p->takes_code);
    assert_string_equal(p->argv[0], "python3");
    assert_string_equal(p->argv[1], "-I");
    assert_string_equal(p->argv[2], "-u");
    assert_ptr_equal(p->argv[3], POLICY_CODE);
    assert_ptr_not_equal(p->argv[4], POLICY_CODE); /* an argument that spells it is just that */
    assert_string_equal(p->argv[4], "{code}");
    assert_string_equal(p->argv[5], "b");
    assert_null(p->argv[6]);
    policy_free(p);
}

static void a_command_is_copied_and_replaces_an_earlier_one(void **unused) {
    char word[] = "true";
    const char *argv[] = {word, "", NULL}, *none[] = {NULL}, *empty[] = {"", NULL};
    const char *marked[] = {"python3", POLICY_CODE, NULL};
    struct policy *p = new_policy();
    struct err err = {0};

    (void)unused;
    assert_int_equal(policy_set_python(p, NULL, &err), 0);
    assert_int_equal(policy_set_argv(p, argv, NULL, &err), 0);
    word[0] = '#';
    assert_string_equal(p->argv[0], "true");
    assert_string_equal(p->argv[1], "");
    assert_null(p->argv[2]);
    assert_false(p->takes_code);
    assert_int_equal(policy_set_argv(p, none, NULL, &err), -EINVAL);
    assert_non_null(strstr(err.message, "no command"));
    assert_int_equal(policy_set_argv(p, empty, NULL, NULL), -EINVAL);
    assert_int_equal(policy_set_argv(p, argv, "main.py", NULL), -EINVAL);
    assert_int_equal(policy_set_argv(p, marked, NULL, NULL), -EINVAL);
    assert_string_equal(p->argv[0], "true");
    policy_free(p);
}

/* ------------------------------------------------------------------ between fields */

static struct policy *complete_policy(void) {
    struct policy *p = new_policy();
    struct err err = {0};

    accept(p, "rootfs", "/usr");
    if (policy_set_python(p, NULL, &err) < 0)
        fail_msg("%s", err.message);
    return p;
}

static void a_complete_policy_passes_without_a_warning(void **unused) {
    struct policy *p = complete_policy();
    _cleanup_buf_ struct buf warn = {0};
    struct err err = {0};

    (void)unused;
    if (policy_check(p, &warn, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(warn.len, 0);
    policy_free(p);
}

static void all_faults_are_told_at_once(void **unused) {
    static const char *const words[] = {"--rootfs", "no command", "--memory-swap",
                                        "/a",       "/b",         "/c"};
    struct policy *p = new_policy();
    struct err err = {0};

    (void)unused;
    accept(p, "memory-swap", "1m");
    accept(p, "volume", "/etc:/a");
    accept(p, "volume", "/usr:/a");
    accept(p, "volume", "/etc:/b");
    accept(p, "tmpfs", "/b");
    accept(p, "tmpfs", "/c");
    accept(p, "tmpfs", "/c");
    assert_int_equal(policy_check(p, NULL, &err), -EINVAL);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (!strstr(err.message, words[i]))
            fail_msg("no \"%s\" in: %s", words[i], err.message);
    policy_free(p);
}

/* Of execve's E2BIG nobody would know which it was. */
static void a_text_longer_than_the_kernel_takes_is_named_without_its_value(void **unused) {
    const size_t most = 32 * (size_t)sysconf(_SC_PAGESIZE);
    char *long_text = malloc(most + 1);
    const char *argv[] = {"true", "x", long_text, NULL};
    struct policy *p = new_policy();
    struct err err = {0};

    (void)unused;
    assert_non_null(long_text);
    memset(long_text, 's', most);
    long_text[most] = '\0';
    memcpy(long_text, "KEY=", 4);
    accept(p, "rootfs", "/");
    long_text[most - 1] = '\0'; /* with its NUL the longest there may be */
    accept(p, "env", long_text);
    assert_int_equal(policy_set_argv(p, argv, NULL, &err), 0);
    assert_int_equal(policy_check(p, NULL, &err), 0);
    long_text[most - 1] = 's';
    accept(p, "env", long_text);
    assert_int_equal(policy_set_argv(p, argv, NULL, &err), 0);
    assert_int_equal(policy_check(p, NULL, &err), -EINVAL);
    if (!strstr(err.message, "--env: KEY: is longer") ||
        !strstr(err.message, "argument 2 of the command") || strstr(err.message, "sss"))
        fail_msg("%s", err.message);
    policy_free(p);
    free(long_text);
}

/* docker's meaning: memory and swap together, whichever of the two is given first. */
static void swap_is_what_memory_swap_has_over_memory(void **unused) {
    static const struct {
        const char *memory, *total;
        uint64_t swap_mib;
        int r;
    } cases[] = {{"64m", "96m", 32, 0},
                 {"64m", "64m", 0, 0},
                 {"64m", "0", 0, 0},
                 {"64m", "32m", 0, -EINVAL}};

    (void)unused;
    for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
        struct policy *p = complete_policy();
        struct err err = {0};

        if (i % 2)
            accept(p, "memory-swap", cases[i / 2].total);
        accept(p, "memory", cases[i / 2].memory);
        if (!(i % 2))
            accept(p, "memory-swap", cases[i / 2].total);
        accept(p, "tmp-size", "1m");
        if (policy_check(p, NULL, &err) != cases[i / 2].r)
            fail_msg("%s of %s: %s", cases[i / 2].total, cases[i / 2].memory, err.message);
        assert_int_equal(policy_swap_bytes(p), cases[i / 2].swap_mib << 20);
        policy_free(p);
    }
}

/* L2 of the cases. */
static void a_tmpfs_larger_than_the_memory_limit_warns(void **unused) {
    static const char *const larger[][2] = {{"tmp-size", "65m"}, {"tmpfs", "/x:size=65m"}};

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(larger); i++) {
        struct policy *p = complete_policy();
        _cleanup_buf_ struct buf warn = {0};
        struct err err = {0};

        accept(p, "memory", "64m");
        accept(p, larger[i][0], larger[i][1]);
        if (policy_check(p, &warn, &err) < 0)
            fail_msg("%s", err.message);
        assert_non_null(warn.data);
        assert_non_null(strstr(warn.data, "65 MiB"));
        assert_ptr_equal(strchr(warn.data, '\n'), warn.data + warn.len - 1); /* one line */
        policy_free(p);
    }
}

static void add_file(struct policy *p, const char *name, const char *word) {
    struct err err = {0};
    int n = p->n_file, r = policy_add_file(p, name, "x", 1, &err);

    if (!word && r < 0)
        fail_msg("%s was refused: %s", name, err.message);
    if (word && (r != -EINVAL || p->n_file != n || !strstr(err.message, word)))
        fail_msg("%s: %s", name, r < 0 ? err.message : "was taken");
}

static void a_file_has_a_relative_plain_name_and_no_other(void **unused) {
    static const char *const good[] = {"a", "a b",   "...",      ".hidden",
                                       "-", "d/e/f", "\xc3\xbc", "x=y"};
    static const char *const bad[][2] = {
        {"", "empty"},          {"/a", "relative"},   {".", ". or .."},  {"..", ". or .."},
        {"a/../b", ". or .."},  {"b/./c", ". or .."}, {"b//c", "no"},    {"b/", "name"},
        {"a\nb", "control"},    {"\x7f", "control"},  {"\xff", "UTF-8"}, {"d/e", "already"},
        {"d/e/f/g", "already"}, {"d/e/f", "already"},
    };
    char part[300], path[1100];
    struct policy *p = new_policy();

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        add_file(p, good[i], NULL);
    assert_int_equal(p->n_file, ARRAY_LEN(good));
    assert_int_equal(p->file_bytes, ARRAY_LEN(good));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        add_file(p, bad[i][0], strcmp(bad[i][1], "no") == 0 ? "without a name" : bad[i][1]);
    memset(part, 'n', sizeof(part));
    part[256] = '\0';
    add_file(p, part, "a part that is too long");
    part[255] = '\0';
    add_file(p, part, NULL);
    memset(path, '/', sizeof(path));
    for (size_t i = 0; i < 1002; i += 2)
        path[i] = 'p';
    path[1001] = '\0';
    add_file(p, path, "is too long");
    path[999] = '\0';
    add_file(p, path, NULL);
    policy_free(p);
}

static void files_end_at_their_ceilings(void **unused) {
    enum { MIB = 1 << 20 };
    struct policy *p = complete_policy();
    char *data = calloc(33, MIB), name[16];
    struct err err = {0};

    (void)unused;
    assert_non_null(data);
    assert_int_equal(policy_add_file(p, "a", data, 32 * MIB, &err), 0);
    assert_int_equal(policy_add_file(p, "b", data, 32 * MIB + 1, &err), -EINVAL);
    assert_non_null(strstr(err.message, "more than 64 MiB in all; hand it in with --volume"));
    err_clear(&err);
    assert_int_equal(policy_add_file(p, "b", data, 32 * MIB, &err), 0);
    for (int i = 2; i < POLICY_FILES; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        assert_int_equal(policy_add_file(p, name, NULL, 0, &err), 0);
    }
    assert_int_equal(policy_add_file(p, "one", NULL, 0, &err), -EINVAL);
    assert_non_null(strstr(err.message, "takes 256 of them"));
    err_clear(&err);
    assert_int_equal(policy_check(p, NULL, &err), 0);
    accept(p, "memory", "64m");
    assert_int_equal(policy_check(p, NULL, &err), -EINVAL);
    assert_non_null(strstr(err.message, "64 MiB of files do not fit into --memory 64 MiB"));
    err_clear(&err);
    accept(p, "memory", "1g");
    accept(p, "out", "-");
    accept(p, "volume", "/usr:/in/x");
    accept(p, "tmpfs", "/out");
    assert_int_equal(policy_check(p, NULL, &err), -EINVAL);
    assert_non_null(strstr(err.message, "/in/x: is where --file has its place"));
    assert_non_null(strstr(err.message, "/out: is where --out has its place"));
    policy_free(p);
    free(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_are_those_that_are_documented),
        cmocka_unit_test(every_field_has_one_name_one_flag_and_help),
        cmocka_unit_test(every_number_takes_its_range_and_nothing_beyond_it),
        cmocka_unit_test(what_is_no_number_is_refused_with_an_example),
        cmocka_unit_test(no_limit_can_be_lifted_with_a_zero),
        cmocka_unit_test(an_unknown_field_is_refused_by_name),
        cmocka_unit_test(text_is_copied),
        cmocka_unit_test(values_are_taken_or_refused_in_words),
        cmocka_unit_test(what_is_taken_is_what_was_said),
        cmocka_unit_test(places_that_are_the_boxs_own_or_not_plain_are_refused),
        cmocka_unit_test(a_volume_is_read_only_unless_it_says_otherwise),
        cmocka_unit_test(volumes_that_mean_something_else_in_docker_are_refused),
        cmocka_unit_test(a_relative_source_becomes_absolute),
        cmocka_unit_test(a_tmpfs_takes_dockers_options_but_those_that_would_weaken_it),
        cmocka_unit_test(lists_end_at_their_ceiling),
        cmocka_unit_test(a_refused_variable_does_not_show_its_value),
        cmocka_unit_test(python_gets_its_code_as_a_file_and_its_arguments_after_it),
        cmocka_unit_test(a_command_is_copied_and_replaces_an_earlier_one),
        cmocka_unit_test(a_complete_policy_passes_without_a_warning),
        cmocka_unit_test(all_faults_are_told_at_once),
        cmocka_unit_test(a_text_longer_than_the_kernel_takes_is_named_without_its_value),
        cmocka_unit_test(swap_is_what_memory_swap_has_over_memory),
        cmocka_unit_test(a_file_has_a_relative_plain_name_and_no_other),
        cmocka_unit_test(files_end_at_their_ceilings),
        cmocka_unit_test(a_tmpfs_larger_than_the_memory_limit_warns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
