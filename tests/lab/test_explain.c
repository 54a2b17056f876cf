/*
 * test_explain.c: `mayfly lab explain`: every control has a page that says what a page has to say, what it says of the
 * source is so, and what it shows was tried.
 */
#include "live/live.h"

#include <regex.h>
#include <sched.h>

#include "base/utf8.h"
#include "lab/families.h"
#include "lab/page.h"
#include "lab/probe.h"
#include "lab/texts.h"
#include "policy/policy.h"

#include "base/banned.h"

enum { LINES_MIN = 15, LINES_MAX = 35, LINE_COLUMNS = 118, ECHO_MAX = 90 };

#define LAB(...)                                                                                   \
    live_program((const char *const[]){"lab", "explain" __VA_OPT__(, ) __VA_ARGS__, NULL}, -1)

static void has(const char *text, const char *word) {
    if (!strstr(text, word))
        fail_msg("\"%s\" is not in:\n%.4000s", word, text);
}

static void has_not(const char *text, const char *word) {
    if (strstr(text, word))
        fail_msg("\"%s\" is in:\n%.4000s", word, text);
}

/* Column of the longest line. */
static size_t widest(const char *text) {
    size_t most = 0;

    for (const char *end; *text; text = end + (*end == '\n')) {
        end = strchrnul(text, '\n');
        most = MAX(most, page_columns(text, (size_t)(end - text)));
    }
    return most;
}

/* ------------------------------------------------------------------ the pages as they are kept */

static void each_control_has_a_whole_page(void **state) {
    (void)state;
    for (int i = 0; i < CTL__N; i++) {
        const char *name = control_id_name((enum control_id)i);
        char file[64];
        struct control_page page;
        int lines = 0;

        if (!control_page(name, &page))
            fail_msg("%s: no page, or a part is missing", name);
        (void)snprintf(file, sizeof(file), "%s.txt", name);
        const char *text = lab_text(file);
        if (!utf8_valid(text, strlen(text)) || strchr(text, '\t') || widest(text) > LINE_COLUMNS)
            fail_msg("%s: a line is too long, has a tab or is not UTF-8", file);
        for (int k = 0; k < PART__N; k++) {
            int here = 1;
            for (size_t c = 0; c < page.part[k].len; c++)
                here += page.part[k].at[c] == '\n';
            if (here < 3)
                fail_msg("%s: \"%s\" says too little", file, page_part_titles[k]);
            lines += here;
        }
        if (lines < LINES_MIN || lines > LINES_MAX)
            fail_msg("%s: %d lines, not %d to %d", file, lines, (int)LINES_MIN, (int)LINES_MAX);
        if (!page.see[0])
            fail_msg("%s: no See: line", file);
    }
}

/* A page without a control would be a page that nobody reads. */
static void each_page_is_of_a_control(void **state) {
    int n = 0;
    DIR *d = opendir("src/lab/pages");

    (void)state;
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        if (strstr(e->d_name, ".txt")) {
            bool known = false;
            for (int i = 0; i < CTL__N; i++) {
                const char *name = control_id_name((enum control_id)i);
                known |= strncmp(e->d_name, name, strlen(name)) == 0 &&
                         strcmp(e->d_name + strlen(name), ".txt") == 0;
            }
            if (!known)
                fail_msg("%s is of no control", e->d_name);
            n++;
        }
    (void)closedir(d);
    assert_int_equal(n, CTL__N);
}

static void each_probe_of_a_page_is_stopped_by_it(void **state) {
    (void)state;
    for (int i = 0; i < CTL__N; i++) {
        const char *name = control_id_name((enum control_id)i);
        struct control_page page;

        assert_true(control_page(name, &page));
        for (const char *at = page.probes; *at;) {
            char id[16];
            size_t n = strcspn(at, " ");

            (void)snprintf(id, sizeof(id), "%.*s", (int)n, at);
            const struct probe *probe = probe_find(id);
            if (!probe || !lab_word(probe->stopped_by, name))
                fail_msg("the page of %s shows %s, which %s", name, id,
                         probe ? "it does not stop" : "is no probe");
            at += n + (at[n] == ' ');
        }
    }
}

/* The line of a file, which is to hold a word. */
static void line_holds(const char *file, int number, const char *word) {
    char line[512] = "";
    FILE *f = fopen(file, "re");

    if (!f)
        fail_msg("%s is not there", file);
    for (int i = 0; i < number && fgets(line, sizeof(line), f); i++)
        ;
    (void)fclose(f);
    if (!strstr(line, word))
        fail_msg("%s:%d is not %s: %s", file, number, word, line);
}

static void each_control_is_where_it_is_said_to_be(void **state) {
    (void)state;
    for (int i = 0; i < CTL__N; i++) {
        const char *name = control_id_name((enum control_id)i);
        const struct control_source *s = control_source(name);

        if (!s)
            fail_msg("%s is not found in the source", name);
        line_holds(s->file, s->plan_line, "static int plan_");
        line_holds(s->file, s->verify_line, "static void verify");
    }
}

/* What a page names of our source has to be there. */
static void no_reference_to_the_source_is_dead(void **state) {
    (void)state;
    for (int i = 0; i < CTL__N; i++) {
        char file[64], path[256];

        (void)snprintf(file, sizeof(file), "%s.txt", control_id_name((enum control_id)i));
        for (const char *at = lab_text(file); (at = strstr(at, "src/")); at++) {
            size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyz_/.");
            (void)snprintf(path, sizeof(path), "%.*s", (int)n, at);
            if (access(path, F_OK) < 0)
                fail_msg("%s names %s, which is not there", file, path);
        }
    }
}

static void every_static_payload_can_be_shown(void **state) {
    (void)state;
    for (const struct probe *const *family = probe_families; *family; family++)
        for (const struct probe *p = *family; p->id; p++) {
            const char *at = NULL;
            if (p->kind == PAYLOAD_STATIC && helper_source(p->payload, &at) < 20)
                fail_msg("%s: the source of %s is not found", p->id, p->payload);
        }
}

static void each_family_says_why_such_things_work(void **state) {
    (void)state;
    for (const struct probe *const *family = probe_families; *family; family++)
        for (const struct probe *p = *family; p->id; p++) {
            const struct lab_family *f = lab_families;

            while (f->name && strcmp(f->name, p->family) != 0)
                f++;
            if (!f->name || !f->how || strlen(f->how) < 100 || !utf8_valid(f->how, strlen(f->how)))
                fail_msg("%s: its family %s says too little", p->id, p->family);
        }
}

/* A bare number tells a reader nothing, and one in the midst of a sentence is not found by who looks for it: "NAME: what
 * happened", and where there is a CVE it is the name. */
static void an_echo_says_which_and_what(void **state) {
    static const char cve[] = "^CVE-(19|20)[0-9]{2}-[0-9]{4,7}: [^ ]";
    static const char named[] = "^[A-Za-z][^:]*[^: ]: [^ ]+ [^ ].*[^ .]$";
    regex_t is_cve, is_named;

    (void)state;
    assert_int_equal(regcomp(&is_cve, cve, REG_EXTENDED | REG_NOSUB), 0);
    assert_int_equal(regcomp(&is_named, named, REG_EXTENDED | REG_NOSUB), 0);
    for (const struct probe *const *family = probe_families; *family; family++)
        for (const struct probe *p = *family; p->id; p++) {
            if (!p->echo)
                continue;
            if (strlen(p->echo) > ECHO_MAX)
                fail_msg("%s: an echo of %zu characters: %s", p->id, strlen(p->echo), p->echo);
            if (regexec(&is_named, p->echo, 0, NULL, 0) != 0)
                fail_msg("%s: an echo is \"NAME: words\": %s", p->id, p->echo);
            if (strcasestr(p->echo, "CVE") && (regexec(&is_cve, p->echo, 0, NULL, 0) != 0 ||
                                               strcasestr(p->echo + strlen("CVE"), "CVE")))
                fail_msg("%s: of a CVE it is \"CVE-YYYY-NNNN: words\": %s", p->id, p->echo);
        }
    regfree(&is_cve);
    regfree(&is_named);
}

/* ------------------------------------------------------------------ laying out */

static char *laid_out(unsigned width, void (*print)(const struct page *p)) {
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    struct page p = {.out = f, .width = width};

    assert_non_null(f);
    print(&p);
    assert_int_equal(fclose(f), 0);
    return text;
}

static void some_text(const struct page *p) {
    static const char text[] = "one two three four five six seven eight nine ten\n"
                               "eleven\n\n- a point that goes on\n  and on and on and on\n"
                               "- another\n    kept   as it is\nafter";
    page_text(p, "  ", text, strlen(text));
}

static void odd_text(const struct page *p) {
    page_wrap(p, "  lead: ",
              "\u00b5s \u2026 \xff\xfe \u00d73 averyverylongwordthatfitsonnolineatallever end");
    page_wrap(p, "  ", "");
    page_pair(p, "  ", "left left left left left left", "r");
    page_pair(p, "  ", "", "");
    page_text(p, "  ", "", 0);
}

static void text_is_wrapped_as_it_was_meant(void **state) {
    (void)state;
    char *text = laid_out(24, some_text);

    assert_string_equal(text, "  one two three four\n  five six seven eight\n  nine ten eleven\n\n"
                              "  - a point that goes on\n    and on and on and on\n  - another\n"
                              "      kept   as it is\n  after\n");
    free(text);
}

static void no_line_is_wider_than_asked_whatever_is_in_it(void **state) {
    (void)state;
    for (unsigned width = 20; width < 60; width++) {
        char *text = laid_out(width, odd_text);

        if (widest(text) > width)
            fail_msg("%u: %zu columns:\n%s", width, widest(text), text);
        has(text, "left");
        free(text);
    }
}

/* ------------------------------------------------------------------ the command */

static void each_control_is_explained(void **state) {
    (void)state;
    (void)setenv("COLUMNS", "90", 1);
    for (int i = 0; i < CTL__N; i++) {
        const char *name = control_id_name((enum control_id)i);
        struct live_output *o = LAB("--no-run", name);

        if (o->exit_code != 0 || o->err[0])
            fail_msg("%s: exit %d: %s", name, o->exit_code, o->err);
        has(o->out, "\nWhat the kernel does\n");
        has(o->out, "\nWhat mayfly does, in a default run on this host\n");
        has(o->out, "\nWhat stops working for honest code\n");
        has(o->out, "\nWhat it does not stop\n");
        has(o->out, "\nSee also\n");
        has(o->out, "planned at src/control/");
        has_not(o->out, "\nTried just now");
        has_not(o->out, "\033");
        if (strncmp(o->out, name, strlen(name)) != 0 || widest(o->out) > 90)
            fail_msg("%s: %zu columns:\n%s", name, widest(o->out), o->out);
        free(o);
    }
    (void)unsetenv("COLUMNS");
}

static void a_control_is_shown_with_and_without(void **state) {
    struct live_host before = live_look();
    struct live_output *o = LAB("net");

    (void)state;
    assert_int_equal(o->exit_code, 0);
    has(o->out, "unshare(CLONE_NEWNET)\n");
    has(o->out, "in force: net:[");
    has(o->out, " µs for the rows of all controls\n");
    has(o->out, "WITH net                               WITHOUT net\n"
                "    stopped                                got through\n"
                "    connect: ECONNREFUSED                  connect: no error\n");
    has(o->out, "they stop it too: landlock"); /* SK11 */
    has_not(o->out, "cannot be told");
    free(o);
    live_same(before);
}

/* How often a word begins a line's text. */
static int count(const char *text, const char *word) {
    int n = 0;

    for (const char *p = text; (p = strstr(p, word)); p++)
        n++;
    return n;
}

/* A page that shows the same on both sides would show nothing. Those that take seconds: MAYFLY_TEST_FULL=1. */
static void what_a_page_shows_differs_with_and_without(void **state) {
    (void)state;
    if (geteuid() != 0)
        live_skip("root", "a user's box cannot be made without all of its controls");
    for (int i = 0; i < CTL__N; i++) {
        if ((i == CTL_PID || i == CTL_DEADLINE || i == CTL_CPU) && !getenv("MAYFLY_TEST_FULL"))
            continue;
        const char *name = control_id_name((enum control_id)i);
        char with[64];
        struct live_output *o = LAB(name);

        (void)snprintf(with, sizeof(with), "    WITH %s ", name);
        int shown = count(o->out, with);
        if (o->exit_code != 0 || strstr(o->out, "not in force: ") ||
            count(o->out, "\n    stopped                                got through\n") != shown)
            fail_msg("%s: exit %d: %s%s", name, o->exit_code, o->err,
                     strstr(o->out, "\nRead back"));
        free(o);
    }
}

static void a_probe_is_shown_with_each_wall_off(void **state) {
    struct live_output *o = LAB("ex7");

    (void)state;
    assert_int_equal(o->exit_code, 0);
    has(o->out, "Why such things work\n");
    has(o->out, "no_new_privs closes it"); /* of the family */
    has(o->out, "HELPER(other_uid) {\n");
    has(o->out, "  - nonewprivs: executing a file never gives more rights than one has.");
    has(o->out, "\n  everything on\n      stopped; execve: unchanged\n");
    has(o->out, "\n  user off\n      stopped; ");
    has(o->out, "\n  mount, nonewprivs and user off\n      got through; ");
    free(o);
}

static void a_probe_that_no_control_stops_is_explained_too(void **state) {
    struct live_output *o = LAB("--no-run", "EX6");

    (void)state;
    assert_int_equal(o->exit_code, 0);
    has(o->out, "nothing: it is no attack");
    has(o->out, "that it works");
    free(o);
    o = LAB("--no-run", "PS9"); /* made by the lab itself, of a box in which there is code */
    has(o->out, "os.setsid()");
    has_not(o->out, "no code in a box");
    free(o);
    o = LAB("--no-run", "PO1");
    assert_int_equal(o->exit_code, 0);
    has(o->out, "no code in a box");
    free(o);
}

static bool put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    (void)close(fd);
    return done;
}

/* In a user namespace that may have none below it. */
static _Noreturn void explain_without_namespaces(int out) {
    char map[32];

    (void)snprintf(map, sizeof(map), "0 %d 1", (int)geteuid());
    (void)dup2(out, 1);
    (void)dup2(out, 2);
    if (unshare(CLONE_NEWUSER) == 0 && put("/proc/self/uid_map", map) &&
        put("/proc/sys/user/max_user_namespaces", "0"))
        (void)execl(live_env("MAYFLY_BIN"), "mayfly", "lab", "explain", "--where", "host", "net",
                    NULL);
    _exit(99);
}

/* The page says why there is nothing to show, and is there all the same. */
static void a_host_that_refuses_a_run_has_pages_too(void **state) {
    char text[32768];
    FILE *out = tmpfile();
    int status = 0;

    (void)state;
    assert_non_null(out);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        explain_without_namespaces(fileno(out));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    (void)live_slurp(fileno(out), text, sizeof(text));
    (void)fclose(out);
    if (status != 0)
        fail_msg("status 0x%x: %s", status, text);
    has(text, "nothing: a run is refused here: user: user namespaces are switched off");
    has(text, "\nWhat it does not stop\n");
    has(text, "    WITH net "); /* tried, and found that it cannot be told */
    has_not(text, "got through");
    has_not(text, "\n    stopped");
}

static void without_a_name_all_are_listed(void **state) {
    struct live_output *o = LAB();

    (void)state;
    assert_int_equal(o->exit_code, 0);
    for (int i = 0; i < CTL__N; i++)
        has(o->out, control_id_name((enum control_id)i));
    for (const struct probe *const *family = probe_families; *family; family++)
        for (const struct probe *p = *family; p->id; p++)
            has(o->out, p->id);
    free(o);
}

static void a_wrong_word_is_said_in_one_line(void **state) {
    static const char *const lines[][3] = {
        {"nosuch", NULL, "nosuch: is neither a control nor a probe"},
        {"net", "user", "user: one name at a time"},
        {"--nosuch", NULL, "--nosuch: there is no such flag"},
        {"", NULL, "is neither a control nor a probe"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct live_output *o = lines[i][1] ? LAB(lines[i][0], lines[i][1]) : LAB(lines[i][0]);

        if (o->exit_code != 125 || o->out[0] || !strstr(o->err, lines[i][2]) ||
            strchr(o->err, '\n') != o->err + o->err_len - 1)
            fail_msg("exit %d: %s%s", o->exit_code, o->out, o->err);
        free(o);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_control_has_a_whole_page),
        cmocka_unit_test(each_page_is_of_a_control),
        cmocka_unit_test(each_probe_of_a_page_is_stopped_by_it),
        cmocka_unit_test(each_control_is_where_it_is_said_to_be),
        cmocka_unit_test(no_reference_to_the_source_is_dead),
        cmocka_unit_test(every_static_payload_can_be_shown),
        cmocka_unit_test(each_family_says_why_such_things_work),
        cmocka_unit_test(an_echo_says_which_and_what),
        cmocka_unit_test(text_is_wrapped_as_it_was_meant),
        cmocka_unit_test(no_line_is_wider_than_asked_whatever_is_in_it),
        cmocka_unit_test(each_control_is_explained),
        cmocka_unit_test(a_control_is_shown_with_and_without),
        cmocka_unit_test(what_a_page_shows_differs_with_and_without),
        cmocka_unit_test(a_probe_is_shown_with_each_wall_off),
        cmocka_unit_test(a_probe_that_no_control_stops_is_explained_too),
        cmocka_unit_test(a_host_that_refuses_a_run_has_pages_too),
        cmocka_unit_test(without_a_name_all_are_listed),
        cmocka_unit_test(a_wrong_word_is_said_in_one_line),
    };

    return cmocka_run_group_tests_name("explain", tests, NULL, NULL);
}
