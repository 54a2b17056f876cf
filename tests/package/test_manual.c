/*
 * test_manual.c: the pages and the completion say what the program says: every flag, command,
 * function, field of a policy and field of a result, and none that is not there. Those of the policy
 * are read from the page and tried on the table: its ranges and defaults are not repeated here.
 */
#include "package/package.h"

#include <jansson.h>

#include "base/units.h"
#include "json/result_json.h"
#include "policy/policy.h"

#include "base/banned.h"

#define SCRIPT "tests/package/manual.sh"

PACKAGE_TEST(every_flag_is_in_mayfly_1_and_none_besides)
PACKAGE_TEST(every_command_is_in_mayfly_1_and_none_besides)
PACKAGE_TEST(every_flag_and_command_is_completed_by_bash)
PACKAGE_TEST(every_flag_and_command_is_completed_by_zsh)
PACKAGE_TEST(every_flag_and_command_is_completed_by_fish)
PACKAGE_TEST(the_flags_of_doctor_and_gc_are_in_mayfly_1_and_completed)
PACKAGE_TEST(the_flags_of_the_commands_about_images_are_in_mayfly_1_and_completed)
PACKAGE_TEST(the_flags_of_lab_are_in_mayfly_1_and_completed)
PACKAGE_TEST(every_field_of_the_labs_json_is_in_mayfly_lab_5)
PACKAGE_TEST(the_flags_of_mcp_and_agent_are_in_mayfly_1_and_completed)
PACKAGE_TEST(every_function_is_in_libmayfly_3_and_none_besides)
PACKAGE_TEST(the_version_is_the_same_everywhere)
PACKAGE_TEST(the_pages_are_clean)

/* ------------------------------------------------------------------ mayfly-policy(5) */

static char *slurp_page(const char *path) {
    FILE *f = fopen(path, "re");
    char *text = calloc(1, 1 << 17);

    assert_non_null(text);
    if (!f)
        fail_msg("%s: %s", path, strerror(errno));
    text[fread(text, 1, (1 << 17) - 1, f)] = '\0';
    (void)fclose(f);
    return text;
}

/* The text of "Type: …." and the like between the item and the next, without its full stop; "" if there is none. */
static void entry_line(const char *entry, const char *label, char *out, size_t size) {
    const char *end = strstr(entry + 1, "\n.It "), *at = strstr(entry, label);

    out[0] = '\0';
    if (!at || (end && at > end))
        return;
    at += strlen(label);
    size_t len = strcspn(at, "\n");
    assert_true(len > 1 && len < size && at[len - 1] == '.');
    memcpy(out, at, len - 1);
    out[len - 1] = '\0';
}

static const char *find_entry(const char *page, const char *name) {
    char item[128];

    (void)snprintf(item, sizeof(item), "\n.It Cm %s\n", name);
    return strstr(page, item);
}

static const char *type_of(const struct policy_field *f) {
    static const char *const types[] = {
        [FIELD_BYTES] = "size",         [FIELD_DURATION] = "time", [FIELD_MILLI] = "number",
        [FIELD_COUNT] = "whole number", [FIELD_BOOL] = "boolean",  [FIELD_TEXT] = "text"};

    if (f->list)
        return "list of texts";
    if (f->kind != FIELD_CUSTOM)
        return types[f->kind];
    return f->metavar && strncmp(f->metavar, "SIZE", 4) == 0 ? "size" : "text";
}

/* Whether `value` is accepted for the field, in a policy of its own. */
static bool accepted(const struct policy_field *f, const char *value) {
    struct policy *p = policy_new();
    struct err err = {0};

    assert_non_null(p);
    int r = policy_set(p, f->name, value, &err);
    policy_free(p);
    return r == 0;
}

static uint64_t number_of(const struct policy_field *f, const char *text) {
    uint64_t n = 0;
    uint32_t milli = 0;
    int r = f->kind == FIELD_BYTES      ? parse_bytes(text, &n)
            : f->kind == FIELD_DURATION ? parse_duration_ms(text, &n)
            : f->kind == FIELD_MILLI    ? parse_milli(text, &milli)
                                        : parse_u64(text, &n);

    if (r < 0)
        fail_msg("%s: \"%s\" is no number of its kind", f->name, text);
    return f->kind == FIELD_MILLI ? milli : n;
}

static void check_range(const struct policy_field *f, char *range) {
    char *to = strstr(range, " to ");
    bool number = f->kind == FIELD_BYTES || f->kind == FIELD_DURATION || f->kind == FIELD_MILLI ||
                  f->kind == FIELD_COUNT;

    if (!to) {
        if (number || *range)
            fail_msg("%s: \"Range: LOW to HIGH.\" is missing in the page", f->name);
        return;
    }
    *to = '\0';
    if (number && (number_of(f, range) != f->min || number_of(f, to + 4) != f->max))
        fail_msg("%s: the page has the range %s to %s, the table %llu to %llu", f->name, range,
                 to + 4, (unsigned long long)f->min, (unsigned long long)f->max);
    if (!accepted(f, range) || !accepted(f, to + 4))
        fail_msg("%s: an end of the range %s to %s is refused", f->name, range, to + 4);
}

/* A default that is a value, set on a fresh policy, changes nothing; "none" and other words stand for a field that has
 * nothing, which no number and no switch can. */
static void check_default(const struct policy_field *f, const char *value) {
    struct policy *fresh = policy_new(), *set = policy_new();
    bool has_none = f->list || f->kind == FIELD_TEXT || f->kind == FIELD_CUSTOM;
    struct err err = {0};

    assert_non_null(fresh);
    assert_non_null(set);
    if (!*value)
        fail_msg("%s: \"Default: …\" is missing in the page", f->name);
    bool in_words = strchr(value, ' ') || (strcmp(value, "none") == 0 && !accepted(f, "none")) ||
                    (strcmp(value, "none") == 0 && has_none);
    if (in_words && !has_none)
        fail_msg("%s: the page gives no value as the default", f->name);
    if (!in_words) {
        if (policy_set(set, f->name, value, &err) < 0)
            fail_msg("%s: the page's default: %s", f->name, err.message);
        assert_string_equal(set->hostname, fresh->hostname);
        set->hostname = fresh->hostname; /* a copy is as good */
        struct arena arena = set->arena;
        set->arena = fresh->arena;
        if (memcmp(set, fresh, sizeof(*set)) != 0)
            fail_msg("%s: the page's default %s is not the policy's", f->name, value);
        set->arena = arena;
    }
    policy_free(fresh);
    policy_free(set);
}

static void every_field_of_a_policy_is_in_its_page_as_it_is(void **state) {
    char *page = slurp_page("man/mayfly-policy.5"), text[256];

    (void)state;
    for (size_t i = 0; i < policy_n_fields; i++) {
        const struct policy_field *f = &policy_fields[i];
        const char *entry = find_entry(page, f->name);
        if (!entry)
            fail_msg("man/mayfly-policy.5 has no entry for %s", f->name);
        entry_line(entry, "\nType: ", text, sizeof(text));
        if (strcmp(text, type_of(f)) != 0)
            fail_msg("%s: the page has the type \"%s\", it is \"%s\"", f->name, text, type_of(f));
        entry_line(entry, "\nRange: ", text, sizeof(text));
        check_range(f, text);
        entry_line(entry, "\nDefault: ", text, sizeof(text));
        check_default(f, text);
    }
    free(page);
}

static void no_field_is_in_the_page_that_a_policy_has_not(void **state) {
    char *page = slurp_page("man/mayfly-policy.5"), name[64];

    (void)state;
    for (const char *at = strstr(page, "\n.It Cm "); at; at = strstr(at + 1, "\n.It Cm ")) {
        assert_int_equal(sscanf(at, "\n.It Cm %63s", name), 1);
        if (!policy_find(name) && strcmp(name, "command") != 0)
            fail_msg("man/mayfly-policy.5 has %s, which is no field", name);
    }
    free(page);
}

/* ------------------------------------------------------------------ mayfly-result(5) */

enum { PATHS = 128 };
struct paths {
    char name[PATHS][64];
    size_t n;
};

static bool knows(const struct paths *p, const char *name) {
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->name[i], name) == 0)
            return true;
    return false;
}

static void add_path(struct paths *p, const char *name) {
    if (knows(p, name))
        return;
    assert_true(p->n < PATHS);
    (void)snprintf(p->name[p->n++], sizeof(p->name[0]), "%s", name);
}

/* Every way into the value, as the page writes it. What has parts counts by them, but for an error, which may be null. */
static void walk(struct paths *p, const char *path, const json_t *value) {
    char next[160];
    const char *key;
    json_t *part;
    size_t i;

    if (json_is_object(value) && json_object_size(value)) {
        if (strcmp(path, "error") == 0)
            add_path(p, path);
        json_object_foreach((json_t *)(uintptr_t)value, key, part) {
            (void)snprintf(next, sizeof(next), "%s%s%s", path, *path ? "." : "",
                           strcmp(path, "limits") == 0 ? "*" : key);
            walk(p, next, part);
        }
    } else if (json_is_array(value)) {
        (void)snprintf(next, sizeof(next), "%s[]", path);
        json_array_foreach(value, i, part) walk(p, next, part);
        if (json_array_size(value) == 0)
            add_path(p, next);
    } else if (!json_is_object(value)) {
        add_path(p, path);
    }
}

static void walk_text(struct paths *p, const char *text) {
    json_error_t where;
    json_t *root = json_loads(text, 0, &where);

    if (!root)
        fail_msg("%s in %s", where.text, text);
    walk(p, "", root);
    json_decref(root);
}

/* Results of real runs, of which each has something that the others lack. */
static void walk_runs(struct paths *p) {
    const char *const runs[][8] = {
        {"python", "--json", "--attest", "-c", "print(1)", NULL},
        {"python", "--json", "--cpu-time=5s", "-c",
         "import os; os.write(1, b'\\xff'); os.write(2, b'\\xff')", NULL},
        {"python", "--json", "--out=-", "-c",
         "import os; open('/out/a', 'w'); os.symlink('a', '/out/b')", NULL},
        {"run", "--json", "no-such-command", NULL},
        {"run", "--json", "--memory=nonsense", "true", NULL},
    };

    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        struct live_output *o = live_program(runs[i], -1);
        if (o->out[0] != '{')
            fail_msg("run %zu printed no object: %s %s", i, o->out, o->err);
        walk_text(p, o->out);
        free(o);
    }
}

/* Compares with the items of one section of the page. */
static void same_as_section(const struct paths *real, const char *section) {
    char *page = slurp_page("man/mayfly-result.5"), *save = NULL, heading[64];
    struct paths *listed = calloc(1, sizeof(*listed));

    assert_non_null(listed);
    (void)snprintf(heading, sizeof(heading), "\n.Sh %s\n", section);
    char *begin = strstr(page, heading);
    assert_non_null(begin);
    char *end = strstr(begin + strlen(heading), "\n.Sh ");
    assert_non_null(end);
    *end = '\0';
    for (char *line = strtok_r(begin, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *words = NULL;
        if (strncmp(line, ".It Va ", 7) != 0)
            continue;
        for (char *word = strtok_r(line + 7, " ,", &words); word;
             word = strtok_r(NULL, " ,", &words))
            add_path(listed, word);
    }
    for (size_t i = 0; i < real->n; i++)
        if (!knows(listed, real->name[i]))
            fail_msg("there is %s, but not in man/mayfly-result.5, %s", real->name[i], section);
    for (size_t i = 0; i < listed->n; i++)
        if (!knows(real, listed->name[i]))
            fail_msg("man/mayfly-result.5, %s, has %s, which there was not", section,
                     listed->name[i]);
    free(listed);
    free(page);
}

static void the_fields_of_real_results_are_those_in_their_page(void **state) {
    static struct paths real;

    (void)state;
    walk_runs(&real);
    assert_true(real.n > 20);
    same_as_section(&real, "FIELDS");
}

static void the_fields_of_doctors_report_are_those_in_their_page(void **state) {
    const struct mayfly_attack attack = {.id = "X1", .title = "an attack"};
    struct mayfly_check lacking = {.control = "memory", .summary = "", .source = "", .without = ""};
    struct mayfly_feature feature = {.name = "a", .since = "b", .without = "c"};
    struct mayfly_look look = {.name = "a"};
    const struct mayfly_report report = {.checks = &lacking,
                                         .n_checks = 1,
                                         .features = &feature,
                                         .n_features = 1,
                                         .looks = &look,
                                         .n_looks = 1};
    static struct paths real;

    (void)state;
    lacking.through = lacking.thinner = &attack;
    lacking.n_through = lacking.n_thinner = 1;
    char *text = report_to_json(&report);
    assert_non_null(text);
    walk_text(&real, text);
    free(text);
    assert_true(real.n > 15);
    same_as_section(&real, "THE REPORT OF DOCTOR");
}

static void the_fields_of_gcs_report_are_those_in_their_page(void **state) {
    struct live_output *o = live_program((const char *[]){"gc", "--json", NULL}, -1);
    static struct paths real;

    (void)state;
    walk_text(&real, o->out);
    free(o);
    same_as_section(&real, "THE REPORT OF GC");
}

/* Of objects in a list each is walked as one of its own. */
static void walk_output(struct paths *p, const char *path, const char *const *argv) {
    struct live_output *o = live_program(argv, -1);
    json_t *root = json_loads(o->out, 0, NULL), *part;
    size_t i;

    if (!root || (o->exit_code != 0) != json_is_object(json_object_get(root, "error")))
        fail_msg("%s: %s%s", argv[0], o->out, o->err);
    json_array_foreach(root, i, part) walk(p, path, part);
    if (json_is_object(root))
        walk(p, path, root);
    json_decref(root);
    free(o);
}
#define WALK_OUTPUT(p, path, ...) walk_output(p, path, (const char *const[]){__VA_ARGS__, NULL})

static void the_fields_of_what_is_said_of_images_are_those_in_their_page(void **state) {
    char dir[] = "/tmp/mayfly-manual-XXXXXX", path[64];
    static struct paths real, whole;

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/Dockerfile", dir);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(
        fputs("FROM scratch\nCOPY Dockerfile /usr/\nENV A=b\nCMD [\"x\"]\nENTRYPOINT [\"y\"]\n",
              f) >= 0);
    assert_int_equal(fclose(f), 0);
    (void)snprintf(path, sizeof(path), "%s/usr", dir);
    assert_int_equal(mkdir(path, 0755), 0);
    (void)snprintf(path, sizeof(path), "%s/store", dir);
    assert_int_equal(setenv("MAYFLY_STORE", path, 1), 0);
    WALK_OUTPUT(&whole, "", "import", "--json", "-t", "rootfs", dir);
    WALK_OUTPUT(&real, "", "import", "--json", "/nonexistent");
    WALK_OUTPUT(&real, "", "build", "--json", "-t", "built", dir);
    WALK_OUTPUT(&real, "", "inspect", "built");
    WALK_OUTPUT(&real, "", "images", "--json");
    WALK_OUTPUT(&real, "", "rmi", "--json", "built");
    WALK_OUTPUT(&real, "freed", "prune", "--json");
    assert_int_equal(unsetenv("MAYFLY_STORE"), 0);
    for (size_t i = 0; i < whole.n; i++)
        add_path(&real, strncmp(whole.name[i], "images[].unpacked.", 18) == 0
                            ? "images[].unpacked.*"
                            : whole.name[i]);
    assert_true(real.n > 40);
    same_as_section(&real, "WHAT IS SAID OF IMAGES");
    const char *const remove[] = {"rm", "-rf", "--one-file-system", dir, NULL};
    pid_t pid = fork();
    if (pid == 0) {
        (void)execvp(remove[0], (char *const *)(uintptr_t)remove);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void every_outcome_and_error_kind_is_in_the_page(void **state) {
    char *page = slurp_page("man/mayfly-result.5"), item[64];

    (void)state;
    for (int i = MAYFLY_EXITED; i <= MAYFLY_SETUP_FAILED; i++) {
        (void)snprintf(item, sizeof(item), "\n.It Cm %s\n",
                       mayfly_outcome_name((enum mayfly_outcome)i));
        if (!strstr(page, item))
            fail_msg("man/mayfly-result.5 has no outcome %s", item);
    }
    const char *kinds = strstr(page, "\n.Cm usage ");
    assert_non_null(kinds);
    for (int i = MAYFLY_E_USAGE; i <= MAYFLY_E_INTERNAL; i++) {
        const struct mayfly_error error = {.code = -EINVAL, .kind = (enum mayfly_error_kind)i};
        char *text = error_to_json(&error);
        assert_non_null(text);
        const char *kind = strstr(text, "\"kind\":\"");
        assert_non_null(kind);
        (void)snprintf(item, sizeof(item), " %.*s ", (int)strcspn(kind + 8, "\""), kind + 8);
        if (!strstr(kinds, item))
            fail_msg("man/mayfly-result.5 has no kind of error%s", item);
        free(text);
    }
    free(page);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_flag_is_in_mayfly_1_and_none_besides),
        cmocka_unit_test(every_command_is_in_mayfly_1_and_none_besides),
        cmocka_unit_test(every_flag_and_command_is_completed_by_bash),
        cmocka_unit_test(every_flag_and_command_is_completed_by_zsh),
        cmocka_unit_test(every_flag_and_command_is_completed_by_fish),
        cmocka_unit_test(the_flags_of_doctor_and_gc_are_in_mayfly_1_and_completed),
        cmocka_unit_test(the_flags_of_the_commands_about_images_are_in_mayfly_1_and_completed),
        cmocka_unit_test(the_flags_of_lab_are_in_mayfly_1_and_completed),
        cmocka_unit_test(every_field_of_the_labs_json_is_in_mayfly_lab_5),
        cmocka_unit_test(the_flags_of_mcp_and_agent_are_in_mayfly_1_and_completed),
        cmocka_unit_test(every_function_is_in_libmayfly_3_and_none_besides),
        cmocka_unit_test(the_version_is_the_same_everywhere),
        cmocka_unit_test(the_pages_are_clean),
        cmocka_unit_test(every_field_of_a_policy_is_in_its_page_as_it_is),
        cmocka_unit_test(no_field_is_in_the_page_that_a_policy_has_not),
        cmocka_unit_test(the_fields_of_real_results_are_those_in_their_page),
        cmocka_unit_test(the_fields_of_doctors_report_are_those_in_their_page),
        cmocka_unit_test(the_fields_of_gcs_report_are_those_in_their_page),
        cmocka_unit_test(the_fields_of_what_is_said_of_images_are_those_in_their_page),
        cmocka_unit_test(every_outcome_and_error_kind_is_in_the_page),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
