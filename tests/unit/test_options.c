/*
 * test_options.c: command lines as requests.
 *
 * The public calls that options.c makes are stood in for here, over the real table of fields, so that the policy that
 * comes of a line can be looked into.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "policy/policy_json.h"

#include "base/banned.h"

/* ------------------------------------------------------------------ the library, to be looked into */

struct mayfly_policy {
    struct policy *inner;
};

static int told(int r, const struct err *err, struct mayfly_error *error) {
    if (r < 0 && error) {
        *error =
            (struct mayfly_error){.code = err->code, .kind = (enum mayfly_error_kind)err->kind};
        (void)str_copy(error->message, sizeof(error->message), err->message);
    }
    return r;
}

mayfly_policy *mayfly_policy_new(void) {
    mayfly_policy *policy = calloc(1, sizeof(*policy));

    assert_non_null(policy);
    policy->inner = policy_new();
    assert_non_null(policy->inner);
    return policy;
}

void mayfly_policy_free(mayfly_policy *policy) {
    if (policy)
        policy_free(policy->inner);
    free(policy);
}

int mayfly_policy_set(mayfly_policy *policy, const char *name, const char *value,
                      struct mayfly_error *error) {
    struct err err = {0};

    return told(policy_set(policy->inner, name, value, &err), &err, error);
}

int mayfly_policy_json(mayfly_policy *policy, const char *text, size_t len,
                       struct mayfly_error *error) {
    struct err err = {0};

    return told(policy_from_json(policy->inner, text, len, &err), &err, error);
}

int mayfly_policy_command(mayfly_policy *policy, const char *const *argv,
                          struct mayfly_error *error) {
    struct err err = {0};

    return told(policy_set_argv(policy->inner, argv, NULL, &err), &err, error);
}

int mayfly_policy_python(mayfly_policy *policy, const char *const *args,
                         struct mayfly_error *error) {
    struct err err = {0};

    return told(policy_set_python(policy->inner, args, &err), &err, error);
}

const char *mayfly_policy_text(const mayfly_policy *policy, const char *name) {
    return strcmp(name, "image") == 0    ? policy->inner->image
           : strcmp(name, "rootfs") == 0 ? policy->inner->rootfs
                                         : policy->inner->store;
}

int mayfly_policy_field(size_t index, struct mayfly_field *ret_field) {
    if (index >= policy_n_fields)
        return -ENOENT;
    const struct policy_field *f = &policy_fields[index];
    *ret_field = (struct mayfly_field){.name = f->name,
                                       .flag = f->flag,
                                       .letter = f->letter,
                                       .is_switch = f->metavar == NULL,
                                       .is_list = f->list,
                                       .metavar = f->metavar,
                                       .help = f->help};
    return 0;
}

/* ------------------------------------------------------------------ lines */

enum { MAX_WORDS = 32 };
#define LINE(...) ((const char *const[]){__VA_ARGS__, NULL})

static int parse(struct request *rq, const char *const *words, struct mayfly_error *error) {
    char *argv[MAX_WORDS + 1];
    int argc = 0;

    for (; words[argc]; argc++) {
        assert_true(argc < MAX_WORDS);
        argv[argc] = (char *)(uintptr_t)words[argc];
    }
    argv[argc] = NULL;
    *error = (struct mayfly_error){0};
    return request_parse(rq, argc, argv, error);
}

static const struct policy *request_of(struct request *rq, const char *const *words) {
    struct mayfly_error error;

    if (parse(rq, words, &error) != 0)
        fail_msg("refused: %s", error.message);
    return rq->policy->inner;
}

static void refuse(const char *word, const char *const *words) {
    struct request rq;
    struct mayfly_error error;

    if (parse(&rq, words, &error) >= 0)
        fail_msg("accepted, but should say \"%s\"", word);
    if (!strstr(error.message, word))
        fail_msg("no \"%s\" in: %s", word, error.message);
    assert_int_equal(error.kind, MAYFLY_E_USAGE);
    request_done(&rq);
}

/* A file with this text; its path is in `path`, and is unlinked by the caller. */
static void make_file(char path[32], const char *text) {
    (void)str_copy(path, 32, "/tmp/mayfly-options-XXXXXX");
    _cleanup_fd_ int fd = mkostemp(path, O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
}

static void flags_reach_the_policy_in_every_spelling(void **unused) {
    struct request rq;
    const struct policy *p =
        request_of(&rq, LINE("run", "-m", "64m", "--cpus=2", "--pids-limit", "9",
                             "--read-only=false", "-e", "A=1", "--env=B=2", "-eC=3", "-u7:8", "-i",
                             "--rm", "--init", "--attest", "--rootfs", "/usr", "true"));

    (void)unused;
    assert_int_equal(p->memory_bytes, 64 << 20);
    assert_int_equal(p->cpu_milli, 2000);
    assert_int_equal(p->pids, 9);
    assert_false(p->read_only);
    assert_int_equal(p->n_env, 3);
    assert_string_equal(p->env[1], "B=2");
    assert_string_equal(p->env[2], "C=3");
    assert_int_equal(p->gid, 8);
    assert_true(rq.keep_stdin);
    assert_true(p->attest);
    assert_string_equal(p->rootfs, "/usr");
    request_done(&rq);
}

static void every_field_is_a_flag(void **unused) {
    struct mayfly_error error;
    struct request rq;

    (void)unused;
    for (size_t i = 0; i < policy_n_fields; i++) {
        const char *flag = policy_fields[i].flag;
        /* A bad value is the field's own business, "no such flag" would be ours. */
        (void)parse(&rq, LINE("run", flag, "?", "--rootfs", "/usr", "true"), &error);
        if (strstr(error.message, "no such flag"))
            fail_msg("%s", error.message);
        request_done(&rq);
    }
}

static void the_programs_own_words_are_not_flags(void **unused) {
    struct request rq;
    const struct policy *p =
        request_of(&rq, LINE("run", "--rootfs", "/usr", "ls", "--json", "-m", "1", "--", "-i"));

    (void)unused;
    assert_string_equal(p->argv[1], "--json");
    assert_string_equal(p->argv[4], "--");
    assert_string_equal(p->argv[5], "-i");
    assert_null(p->argv[6]);
    assert_false(rq.json);
    assert_false(rq.keep_stdin);
    assert_int_equal(p->memory_bytes, 256 << 20);
    request_done(&rq);
    p = request_of(&rq, LINE("run", "--rootfs", "/usr", "--", "--json"));
    assert_string_equal(p->argv[0], "--json");
    assert_false(rq.json);
    request_done(&rq);
    p = request_of(&rq, LINE("python", "--rootfs", "/usr", "-c", "print(1)", "--json", "-c", "x"));
    assert_string_equal(rq.code, "print(1)");
    assert_string_equal(p->argv[4], "--json");
    assert_string_equal(p->argv[5], "-c");
    assert_string_equal(p->argv[6], "x");
    assert_false(rq.json);
    request_done(&rq);
}

static void code_is_given_by_word_by_file_or_on_standard_input(void **unused) {
    char path[32];
    int pair[2], old = dup(STDIN_FILENO); // NOLINT(android-cloexec-dup)
    struct request rq;

    (void)unused;
    (void)request_of(&rq, LINE("python", "--rootfs", "/usr", "-c", ""));
    assert_int_equal(rq.code_len, 0);
    assert_non_null(rq.code);
    request_done(&rq);

    make_file(path, "print(2)\n");
    const struct policy *p = request_of(&rq, LINE("python", "--rootfs", "/usr", path, "arg"));
    assert_string_equal(rq.code, "print(2)\n");
    assert_ptr_equal(p->argv[3], POLICY_CODE);
    assert_string_equal(p->argv[4], "arg");
    request_done(&rq);
    (void)unlink(path);

    /* A socket, which is what some programs give their children; it cannot be opened as /dev/stdin. */
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(fd_write_full(pair[1], "print(3)", 8), 0);
    fd_close(&pair[1]);
    assert_true(dup2(pair[0], STDIN_FILENO) == STDIN_FILENO);
    (void)request_of(&rq, LINE("python", "--rootfs", "/usr", "-"));
    assert_int_equal(rq.code_len, 8);
    assert_memory_equal(rq.code, "print(3)", 8);
    request_done(&rq);
    fd_close(&pair[0]);
    if (old >= 0) {
        (void)dup2(old, STDIN_FILENO);
        fd_close(&old);
    }
}

/* O9 of the cases: more than the kernel takes as one argument. */
static void code_may_be_large(void **unused) {
    enum { LEN = 5 << 20 };
    char path[32], *text = malloc(LEN + 1);
    struct request rq;

    (void)unused;
    assert_non_null(text);
    memset(text, '#', LEN);
    text[LEN] = '\0';
    make_file(path, text);
    (void)request_of(&rq, LINE("python", "--rootfs", "/usr", path));
    assert_int_equal(rq.code_len, LEN);
    request_done(&rq);
    (void)unlink(path);
    free(text);
}

static void a_file_that_is_too_large_is_refused_with_the_limit(void **unused) {
    char path[32];

    (void)unused;
    make_file(path, "");
    assert_int_equal(truncate(path, (1 << 20) + 1), 0);
    refuse("is over 1 MiB", LINE("run", "--env-file", path));
    assert_int_equal(truncate(path, (16 << 20) + 1), 0);
    refuse("is over 16 MiB", LINE("run", "--policy", path));
    assert_int_equal(truncate(path, (64 << 20) + 1), 0);
    refuse("--volume", LINE("python", "--rootfs", "/usr", path));
    (void)unlink(path);
}

/* As long as execve takes it: that is said where all is checked. */
static void a_callers_value_may_be_long(void **unused) {
    enum { LEN = 100000 };
    char *value = malloc(LEN + 1);
    struct request rq;

    (void)unused;
    assert_non_null(value);
    memset(value, 'v', LEN);
    value[LEN] = '\0';
    assert_int_equal(setenv("MAYFLY_TEST_LONG", value, 1), 0);
    const struct policy *p =
        request_of(&rq, LINE("run", "-e", "MAYFLY_TEST_LONG", "--rootfs", "/usr", "true"));
    assert_int_equal(strlen(p->env[0]), LEN + strlen("MAYFLY_TEST_LONG="));
    request_done(&rq);
    (void)unsetenv("MAYFLY_TEST_LONG");
    free(value);
}

static void what_cannot_be_had_is_refused_with_what_to_do_instead(void **unused) {
    static const char *const flags[][2] = {
        {"--privileged", "no privileges"},
        {"--cap-add=ALL", "never has capabilities"},
        {"--device=/dev/fuse", "no devices"},
        {"--gpus=all", "no devices"},
        {"-p", "no network"},
        {"--publish=80:80", "no network"},
        {"-t", "no terminal"},
        {"-it", "-i alone"},
        {"-ti", "-i alone"},
        {"--tty", "no terminal"},
        {"-d", "background"},
        {"--detach", "background"},
        {"--pid=host", "always the box's"},
        {"--ipc=host", "always the box's"},
        {"--userns=host", "always the box's"},
        {"--network=host", "no network"},
        {"--net=host", "--network none"},
        {"--nosuch", "no such flag"},
        {"-Z", "no such flag"},
        {"--memory", "wants SIZE"},
        {"--json=1", "no such flag"},
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        refuse(flags[i][1], LINE("run", "--rootfs", "/usr", flags[i][0]));
}

static void what_is_missing_is_named(void **unused) {
    (void)unused;
    (void)unsetenv("MAYFLY_ROOTFS");
    refuse("IMAGE", LINE("run"));
    refuse("missing, always or never", LINE("run", "--pull"));
    refuse("none of missing", LINE("run", "--pull=now", "x"));
    refuse("no command", LINE("run", "--rootfs", "/usr"));
    refuse("-c CODE", LINE("python", "--rootfs", "/usr"));
    refuse("wants the code", LINE("python", "-c"));
    refuse("/no/such.py: No such file", LINE("python", "--rootfs", "/usr", "/no/such.py"));
    refuse("/usr: Is a directory", LINE("python", "--rootfs", "/usr", "/usr"));
    refuse("--policy: wants", LINE("run", "--policy"));
    refuse("--policy: /no/such", LINE("run", "--policy", "/no/such"));
    refuse("--env-file: /no/such", LINE("run", "--env-file", "/no/such"));
    refuse("--policy: /dev/null: line 1", LINE("run", "--policy", "/dev/null"));
    refuse("no such flag", LINE("run", "-c", "x")); /* Python's only */
}

static void help_wins_over_what_is_missing(void **unused) {
    struct request rq;

    (void)unused;
    (void)request_of(&rq, LINE("run", "--memory", "64m", "--help"));
    assert_true(rq.help);
    request_done(&rq);
}

/* A caller that asked for JSON reads nothing else, whatever else is wrong with its line. */
static void json_is_known_to_be_wanted_even_after_a_fault(void **unused) {
    static const char *const before[] = {"run", "--json", "--privileged", NULL};
    static const char *const after[] = {"run", "--privileged", "--json", NULL};
    static const char *const not_ours[] = {"run", "--privileged", "--", "--json", NULL};
    struct mayfly_error error;
    struct request rq;

    (void)unused;
    assert_true(parse(&rq, before, &error) < 0);
    assert_true(rq.json);
    request_done(&rq);
    assert_true(parse(&rq, after, &error) < 0);
    assert_true(rq.json);
    request_done(&rq);
    assert_true(parse(&rq, not_ours, &error) < 0);
    assert_false(rq.json);
    request_done(&rq);
}

/* ------------------------------------------------------------------ environment */

static void a_bare_name_takes_the_callers_value_and_nothing_else_is_taken(void **unused) {
    struct request rq;

    (void)unused;
    (void)setenv("MAYFLY_TEST_TOKEN", "t=1", 1);
    (void)setenv("MAYFLY_TEST_SECRET", "s", 1);
    (void)unsetenv("MAYFLY_TEST_UNSET");
    const struct policy *p = request_of(&rq, LINE("run", "-e", "MAYFLY_TEST_TOKEN", "-e",
                                                  "MAYFLY_TEST_UNSET", "--rootfs", "/usr", "true"));
    assert_int_equal(p->n_env, 1);
    assert_string_equal(p->env[0], "MAYFLY_TEST_TOKEN=t=1");
    request_done(&rq);
    refuse("NAME=VALUE", LINE("run", "-e", "", "--rootfs", "/usr", "true"));
}

static void an_env_file_is_read_as_docker_reads_it(void **unused) {
    char path[32];
    struct request rq;

    (void)unused;
    (void)setenv("MAYFLY_TEST_TOKEN", "t", 1);
    make_file(path, "# comment\n\nA=1 # kept\r\n  B=\"q\"\nMAYFLY_TEST_TOKEN\nLAST=x");
    const struct policy *p =
        request_of(&rq, LINE("run", "--env-file", path, "--rootfs", "/usr", "true"));
    assert_int_equal(p->n_env, 4);
    assert_string_equal(p->env[0], "A=1 # kept");
    assert_string_equal(p->env[1], "B=\"q\"");
    assert_string_equal(p->env[2], "MAYFLY_TEST_TOKEN=t");
    assert_string_equal(p->env[3], "LAST=x");
    request_done(&rq);
    (void)unlink(path);
    make_file(path, "=x\n");
    refuse("NAME=VALUE", LINE("run", "--env-file", path, "--rootfs", "/usr", "true"));
    (void)unlink(path);
}

/* ------------------------------------------------------------------ layers */

static void a_policy_file_lies_under_the_flags_wherever_it_is_named(void **unused) {
    char path[32];
    struct request rq;

    (void)unused;
    make_file(
        path,
        "{\"memory\":\"64m\",\"pids-limit\":5,\"env\":{\"A\":\"file\"},\"interactive\":true}");
    for (int last = 0; last < 2; last++) {
        const struct policy *p =
            last ? request_of(&rq, LINE("run", "-m", "32m", "-e", "A=flag", "--rootfs", "/usr",
                                        "--policy", path, "true"))
                 : request_of(&rq, LINE("run", "--policy", path, "-m", "32m", "-e", "A=flag",
                                        "--rootfs", "/usr", "true"));
        assert_int_equal(p->memory_bytes, 32 << 20);
        assert_int_equal(p->pids, 5);
        assert_int_equal(p->n_env, 2);
        assert_string_equal(p->env[1], "A=flag");
        request_done(&rq);
    }
    (void)unlink(path);
    make_file(path, "{\"memory\":\"12q\"}");
    refuse(path, LINE("run", "--policy", path, "--rootfs", "/usr", "true")); /* of several, which */
    refuse(": memory: \"12q\"", LINE("run", "--policy", path, "--rootfs", "/usr", "true"));
    (void)unlink(path);
}

static void the_root_is_the_flags_the_files_or_the_environments_in_that_order(void **unused) {
    char path[32], silent[32];
    struct request rq;

    (void)unused;
    make_file(path, "{\"rootfs\":\"/usr/lib\"}");
    (void)setenv("MAYFLY_ROOTFS", "/usr/bin", 1);
    const struct policy *p = request_of(&rq, LINE("run", "true"));
    assert_string_equal(p->rootfs, "/usr/bin");
    request_done(&rq);
    p = request_of(&rq, LINE("run", "--policy", path, "true"));
    assert_string_equal(p->rootfs, "/usr/lib");
    request_done(&rq);
    p = request_of(&rq, LINE("python", "--policy", path, "--rootfs", "/usr", "-c", "1"));
    assert_string_equal(p->rootfs, "/usr");
    request_done(&rq);
    make_file(silent, "{}"); /* names no root: the usual places are looked at all the same */
    p = request_of(&rq, LINE("run", "--policy", silent, "true"));
    assert_string_equal(p->rootfs, "/usr/bin");
    request_done(&rq);
    (void)unlink(silent);
    (void)setenv("MAYFLY_ROOTFS", "/no/such", 1);
    refuse("/no/such", LINE("python", "-c", "1"));
    (void)unsetenv("MAYFLY_ROOTFS");
    p = request_of(&rq, LINE("run", "--policy", path, "true"));
    assert_string_equal(p->rootfs, "/usr/lib");
    request_done(&rq);
    (void)unlink(path);
}

static void an_image_is_named_by_flag_by_environment_or_by_the_first_word(void **unused) {
    struct request rq;
    char path[32];

    (void)unused;
    (void)unsetenv("MAYFLY_ROOTFS");
    (void)setenv("XDG_CONFIG_HOME", "/no/such", 1);
    const struct policy *p = request_of(&rq, LINE("run", "--pull=never", "alpine:3", "ls", "-l"));
    assert_string_equal(p->image, "alpine:3");
    assert_string_equal(p->argv[0], "ls");
    assert_null(p->argv[2]);
    assert_int_equal(rq.pull, PULL_NEVER);
    request_done(&rq);
    p = request_of(&rq, LINE("run", "alpine:3")); /* the image's own command */
    assert_null(p->argv);
    assert_int_equal(rq.pull, PULL_MISSING);
    request_done(&rq);
    p = request_of(&rq, LINE("run", "--image", "alpine:3", "--pull", "always", "ls"));
    assert_string_equal(p->image, "alpine:3");
    assert_string_equal(p->argv[0], "ls");
    assert_int_equal(rq.pull, PULL_ALWAYS);
    request_done(&rq);
    p = request_of(
        &rq, LINE("run", "--image", "a", "--rootfs", "/usr", "ls")); /* the last word counts */
    assert_null(p->image);
    assert_string_equal(p->rootfs, "/usr");
    request_done(&rq);
    make_file(path, "{\"image\":\"of-the-file\",\"memory\":\"1g\"}");
    p = request_of(&rq, LINE("run", "--policy", path, "ls"));
    assert_string_equal(p->image, "of-the-file");
    assert_string_equal(p->argv[0], "ls");
    request_done(&rq);
    (void)setenv("MAYFLY_IMAGE", "of-the-environment", 1);
    p = request_of(&rq, LINE("python", "-c", "1"));
    assert_string_equal(p->image, "of-the-environment");
    assert_false(rq.default_image);
    request_done(&rq);
    p = request_of(&rq, LINE("run", "alpine:3", "ls"));
    assert_string_equal(p->image, "alpine:3");
    request_done(&rq);
    (void)unsetenv("MAYFLY_IMAGE");
    p = request_of(&rq, LINE("python", "-c", "1"));
    assert_string_equal(p->image, "python:3.12-slim");
    assert_true(rq.default_image);
    request_done(&rq);
    (void)unlink(path);
}

static void python_finds_an_installed_root(void **unused) {
    char dir[] = "/tmp/mayfly-options-XXXXXX", root[64], usr[80];
    struct request rq;

    (void)unused;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(root, sizeof(root), "%s/mayfly", dir);
    assert_int_equal(mkdir(root, 0755), 0);
    (void)snprintf(root, sizeof(root), "%s/mayfly/rootfs", dir);
    assert_int_equal(mkdir(root, 0755), 0);
    (void)snprintf(usr, sizeof(usr), "%s/usr", root);
    assert_int_equal(mkdir(usr, 0755), 0);
    (void)unsetenv("MAYFLY_ROOTFS");
    (void)setenv("XDG_DATA_HOME", dir, 1);
    struct mayfly_error error;
    const struct policy *p = request_of(&rq, LINE("python", "-c", "1"));
    assert_int_equal(request_usual_rootfs(&rq, &error), 0); /* as where the image is missing */
    assert_string_equal(p->rootfs, root);
    assert_null(p->image);
    request_done(&rq);
    (void)rmdir(usr);
    (void)rmdir(root);
    root[strlen(root) - strlen("/rootfs")] = '\0';
    (void)rmdir(root);
    (void)rmdir(dir);
}

/* What a terminal would take for a command, or a reader for a second line, is in no message. */
static void a_word_of_the_line_cannot_break_the_message(void **unused) {
    struct mayfly_error error = {0};
    struct request rq;
    char *argv[] = {"run", "--no\x1b[31m\nmayfly: all is well\xff", NULL};

    (void)unused;
    assert_int_equal(request_parse(&rq, 2, argv, &error), -EINVAL);
    assert_string_equal(error.message, "--no [31m mayfly: all is well?: no such flag; see --help");
    request_done(&rq);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_reach_the_policy_in_every_spelling),
        cmocka_unit_test(every_field_is_a_flag),
        cmocka_unit_test(the_programs_own_words_are_not_flags),
        cmocka_unit_test(code_is_given_by_word_by_file_or_on_standard_input),
        cmocka_unit_test(code_may_be_large),
        cmocka_unit_test(a_file_that_is_too_large_is_refused_with_the_limit),
        cmocka_unit_test(a_callers_value_may_be_long),
        cmocka_unit_test(what_cannot_be_had_is_refused_with_what_to_do_instead),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(a_word_of_the_line_cannot_break_the_message),
        cmocka_unit_test(help_wins_over_what_is_missing),
        cmocka_unit_test(json_is_known_to_be_wanted_even_after_a_fault),
        cmocka_unit_test(a_bare_name_takes_the_callers_value_and_nothing_else_is_taken),
        cmocka_unit_test(an_env_file_is_read_as_docker_reads_it),
        cmocka_unit_test(a_policy_file_lies_under_the_flags_wherever_it_is_named),
        cmocka_unit_test(the_root_is_the_flags_the_files_or_the_environments_in_that_order),
        cmocka_unit_test(an_image_is_named_by_flag_by_environment_or_by_the_first_word),
        cmocka_unit_test(python_finds_an_installed_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
