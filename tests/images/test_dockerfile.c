/*
 * test_dockerfile.c: Dockerfiles, their words, and .dockerignore are read as Docker's reference has them; what is wrong
 * or not supported is refused with its line.
 */
#include "base/path.h"
#include "build/dockerfile.h"
#include "build/expand.h"
#include "build/pattern.h"
#include "images.h"

#include "base/banned.h"

static struct dockerfile parsed;

static const struct docker_line *line_of(const char *text, size_t i) {
    struct err err = {0};

    dockerfile_done(&parsed);
    assert_ok(dockerfile_parse(text, strlen(text), "Dockerfile", &parsed, &err), err);
    assert_true(i < parsed.n_lines);
    return &parsed.lines[i];
}

static void assert_text(const char *text, size_t i, enum docker_keyword keyword, int line,
                        const char *want) {
    const struct docker_line *l = line_of(text, i);

    assert_int_equal(l->keyword, keyword);
    assert_int_equal(l->line, line);
    assert_string_equal(l->text, want);
}

static void refused(const char *text, const char *why) {
    struct err err = {0};
    struct dockerfile d;

    int r = dockerfile_parse(text, strlen(text), "Dockerfile", &d, &err);
    dockerfile_done(&d);
    if (r != -EINVAL || !strstr(err.message, why))
        fail_msg("\"%s\": %d \"%s\", wanted \"%s\"", text, r, err.message, why);
    assert_null(strchr(err.message, '\n'));
}

static void lines_are_put_together_and_comments_left_out(void **state) {
    (void)state;
    assert_text("FROM a\nRUN x \\\n  y\n", 1, DOCKER_RUN, 2, "x   y");
    assert_text("FROM a\nRUN x \\\n# comment\n\n  y\nUSER z", 1, DOCKER_RUN, 2, "x   y");
    assert_text("FROM a\nRUN x \\\n# comment\n\n  y\nUSER z", 2, DOCKER_USER, 6, "z");
    assert_text("FROM a\r\nRUN x \\\r\n  y\r\n", 1, DOCKER_RUN, 2, "x   y");
    assert_text("\xef\xbb\xbf# c\n\n  from a\n", 0, DOCKER_FROM, 3, "a");
    assert_text("FROM a\nRUN echo # no comment\n", 1, DOCKER_RUN, 2, "echo # no comment");
    assert_text("FROM a\nrUn\tx\n", 1, DOCKER_RUN, 2, "x");
    assert_text("FROM a\nRUN x \\", 1, DOCKER_RUN, 2, "x");
    assert_text("# escape=`\nFROM a\nRUN x `\n y\\\nUSER b", 1, DOCKER_RUN, 3, "x  y\\");
    assert_text("# syntax=docker/dockerfile:1\n# escape = `\nFROM a `\n AS b\n", 0, DOCKER_FROM, 3,
                "a  AS b");
    assert_text("# just words\n# escape=`\nFROM a\nRUN x \\\n y", 1, DOCKER_RUN, 4, "x  y");
}

static void the_json_form_and_what_only_looks_like_it(void **state) {
    const struct docker_line *l =
        line_of("FROM a\nCMD [\"x\", \"y z\"]\nCMD [x]\nENV [\"a\"] b", 1);

    (void)state;
    assert_non_null(l->json);
    assert_string_equal(l->json[1], "y z");
    assert_null(l->json[2]);
    assert_null(l[1].json);
    assert_string_equal(l[1].text, "[x]");
    assert_null(l[2].json);
    assert_null(line_of("FROM a\nRUN [1, 2]", 1)->json);
    assert_null(line_of("FROM a\nRUN [ -e x ] && y", 1)->json);
}

static void flags_are_those_of_the_instruction(void **state) {
    const struct docker_line *l = line_of("FROM a\nCOPY --from=b --chown=c:d x y", 1);

    (void)state;
    assert_string_equal(docker_flag(l, "from"), "b");
    assert_string_equal(docker_flag(l, "chown"), "c:d");
    assert_null(docker_flag(l, "chmod"));
    assert_string_equal(l->text, "x y");
    refused("FROM a\nCMD --help", "Dockerfile:2: CMD: --help is not supported");
}

static void here_documents_are_read_to_their_end(void **state) {
    const struct docker_line *l = line_of(
        "FROM a\nRUN <<EOF\necho 1\n# kept\n\nEOF\nCOPY <<-A <<'B' /x/\n\t\ta$b\n\tA\nb$b\nB\n"
        "RUN cat <<E > /x && echo \"<<no\"\nE\nRUN echo $((1<<2)) <<<x\nUSER u",
        1);

    (void)state;
    assert_int_equal(l->n_heredocs, 1);
    assert_string_equal(l->heredocs[0].body, "echo 1\n# kept\n\n");
    assert_int_equal(l[1].n_heredocs, 2);
    assert_string_equal(l[1].heredocs[0].body, "a$b\n");
    assert_true(l[1].heredocs[0].expand);
    assert_string_equal(l[1].heredocs[1].name, "B");
    assert_string_equal(l[1].heredocs[1].body, "b$b\n");
    assert_false(l[1].heredocs[1].expand);
    assert_int_equal(l[2].n_heredocs, 1);
    assert_string_equal(l[2].heredocs[0].body, "");
    assert_int_equal(l[3].n_heredocs, 0);
    assert_int_equal(l[4].line, 15);
}

static void what_is_wrong_is_refused_with_its_line(void **state) {
    (void)state;
    refused("", "Dockerfile: has no FROM");
    refused("# c\n", "has no FROM");
    refused("RUN x\nFROM a\n", "Dockerfile:1: RUN: stands before the first FROM");
    refused("FROM a\n\nRUM x\n", "Dockerfile:3: RUM: no such instruction");
    refused("FROM a\nRUN\n", "Dockerfile:2: RUN: says nothing");
    refused("FROM a\nRUN --mount=type=cache,target=/x y\n", "Dockerfile:2: RUN: --mount is not");
    refused("FROM a\nCOPY --parents x y\n", "Dockerfile:2: COPY: --parents is not");
    refused("FROM a\nCOPY --from=a --from=b x y\n", "--from is given twice");
    refused("FROM a\nRUN \\\n <<EOF\nx\n", "Dockerfile:2: <<EOF: its end is missing");
    refused("# escape=x\nFROM a", "Dockerfile:1: escape");
    refused("# syntax=other/language\nFROM a", "Dockerfile:1: syntax");
    refused("FROM a\nRUN \xff\n", "no text in UTF-8");
    struct err err = {0};
    struct dockerfile d;
    assert_int_equal(dockerfile_parse("FROM a\0", 7, "D", &d, &err), -EINVAL);
    dockerfile_done(&d);
}

/* ------------------------------------------------------------------ words */

static const char *lookup(const void *context, const char *name) {
    (void)context;
    return strcmp(name, "a") == 0       ? "A"
           : strcmp(name, "b_1") == 0   ? "B"
           : strcmp(name, "empty") == 0 ? ""
                                        : NULL;
}

static void variables_and_quotes_stand_for_what_they_should(void **state) {
    static const char *const cases[][2] = {
        {"$a", "A"},
        {"x${a}y", "xAy"},
        {"$b_1-", "B-"},
        {"$none|", "|"},
        {"${a:-x}", "A"},
        {"${none:-x}", "x"},
        {"${empty:-x}", "x"},
        {"${empty-x}", ""},
        {"${none-x}", "x"},
        {"${a:+x}", "x"},
        {"${none:+x}", ""},
        {"${empty:+x}", ""},
        {"${empty+x}", "x"},
        {"${none:-${none:-$a}}", "A"},
        {"${a:?no}", "A"},
        {"'$a'", "$a"},
        {"\"$a b\"c", "A bc"},
        {"\\$a", "$a"},
        {"\"\\$a \\\" \\n\"", "$a \" \\n"},
        {"a\\ b", "a b"},
        {"$", "$"},
        {"$1", "$1"},
        {"$$a", "$A"},
        {"", ""},
    };
    struct arena arena = {0};
    const struct expand x = {.escape = '\\', .lookup = lookup, .arena = &arena};
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *got = NULL;
        assert_ok(expand_word(&x, cases[i][0], &got, &err), err);
        if (strcmp(got, cases[i][1]) != 0)
            fail_msg("%s: %s, wanted %s", cases[i][0], got, cases[i][1]);
    }
    static const char *const wrong[] = {
        "${a",    "${",       "${}", "${a:=x}", "${a#x}",
        "${a%x}", "${a/b/c}", "\"x", "'x",      "${none:?is wanted}",
        "${a:-x", "${1a}"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        const char *got = NULL;
        struct err why = {0};
        if (expand_word(&x, wrong[i], &got, &why) != -EINVAL || !why.message[0])
            fail_msg("%s is taken for \"%s\"", wrong[i], got ? got : "");
    }
    const char *got = NULL, *const *words = NULL;
    size_t n = 0;
    assert_ok(expand_text(&x, "it's \"$a\" \\$a\n", &got, &err), err);
    assert_string_equal(got, "it's \"A\" $a\n");
    assert_ok(expand_split(&x, " a=\"b c\"  d\\ e 'f g'h ", &words, &n, &err), err);
    assert_int_equal(n, 3);
    assert_string_equal(words[0], "a=\"b c\"");
    assert_string_equal(words[1], "d\\ e");
    assert_string_equal(words[2], "'f g'h");
    arena_done(&arena);
}

/* Each level doubles it: what is bounded is the result, whatever the text. */
static void an_expansion_is_bounded(void **state) {
    struct arena arena = {0};
    const struct expand x = {.escape = '\\', .lookup = lookup, .arena = &arena};
    _cleanup_buf_ struct buf deep = {0};
    const char *got = NULL;
    struct err err = {0};

    (void)state;
    for (int i = 0; i < 50000; i++)
        buf_puts(&deep, "${x:-");
    assert_int_equal(expand_word(&x, deep.data, &got, &err), -EINVAL);
    assert_non_null(strstr(err.message, "too deep"));
    arena_done(&arena);
}

/* ------------------------------------------------------------------ patterns */

static void patterns_are_gos(void **state) {
    static const struct {
        const char *pattern, *path;
        bool matches;
    } cases[] = {
        {"abc", "abc", true},
        {"*", "abc", true},
        {"*c", "abc", true},
        {"a*", "a", true},
        {"a*", "ab/c", false},
        {"a*/b", "abc/b", true},
        {"a*/b", "a/c/b", false},
        {"a?c", "abc", true},
        {"a?c", "a/c", false},
        {"ab[c]", "abc", true},
        {"ab[b-d]", "abc", true},
        {"ab[e-g]", "abc", false},
        {"ab[^c]", "abc", false},
        {"ab[^e-g]", "abc", true},
        {"a\\*b", "a*b", true},
        {"a\\*b", "ab", false},
        {"[a-ζ]*", "α", true},
        {"*x", "xxx", true},
        {"**/x", "x", true},
        {"**/x", "a/b/x", true},
        {"**/x", "ax", false},
        {"a/**", "a/b/c", true},
        {"a/**", "a", false},
        {"a/**/b", "a/b", true},
        {"a/**/b", "a/x/y/b", true},
        {"a/**/b", "ab", false},
        {"**", "a/b", true},
        {"**/*.o", "x/y.o", true},
        {"[]a]", "]", true},
        {"[\\]a]", "]", true},
        {"[a/]b", "/b", false},
        {"a**b", "ax/yb", true},
        {"", "", true},
        {"", "a", false},
        {"a?b", "aζb", true},
        {"a??b", "aζb", false},
        {"[α-γ]x", "βx", true},
        {"[^a]", "ζ", true},
        {"?", "\xff", true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (pattern_matches(cases[i].pattern, cases[i].path) != cases[i].matches)
            fail_msg("%s and %s: %d", cases[i].pattern, cases[i].path, !cases[i].matches);
    assert_false(pattern_is_valid("[a"));
    assert_false(pattern_is_valid("a\\"));
    assert_false(pattern_is_valid("["));
    assert_false(pattern_matches("[a", "a"));
}

/* What would take a backtracking matcher longer than the world lasts. */
static void no_pattern_takes_long(void **state) {
    char pattern[600] = "", path[2100];

    (void)state;
    for (int i = 0; i < 150; i++)
        (void)str_copy(pattern + strlen(pattern), sizeof(pattern) - strlen(pattern),
                       i % 2 ? "**/" : "*a*");
    memset(path, 'a', sizeof(path));
    path[sizeof(path) - 1] = '\0';
    assert_false(pattern_matches(pattern, path));
}

static void the_last_rule_that_fits_decides(void **state) {
    static const char text[] = "# comment\n\n*.log\n!keep.log\n/dir/\nsub/*\n!sub/a\n  spaced  \n"
                               "**/deep\n./dot\n!dir/in\r\n.\n";
    static const struct {
        const char *path;
        bool ignored;
    } cases[] = {{"x.log", true},      {"a/x.log", false}, {"keep.log", false}, {"dir", true},
                 {"dir/x", true},      {"dir/in", false},  {"sub", false},      {"sub/b", true},
                 {"sub/b/c", true},    {"sub/a", false},   {"sub/a/c", false},  {"spaced", true},
                 {"a/b/deep/c", true}, {"dot", true},      {"# comment", false}};
    struct ignore i;
    struct err err = {0};

    (void)state;
    assert_ok(ignore_parse(text, sizeof(text) - 1, ".dockerignore", &i, &err), err);
    assert_true(i.any_keeps);
    for (size_t k = 0; k < ARRAY_LEN(cases); k++)
        if (ignore_has(&i, cases[k].path) != cases[k].ignored)
            fail_msg("%s: %d", cases[k].path, !cases[k].ignored);
    ignore_done(&i);
    assert_int_equal(ignore_parse("a\n[b\n", 5, ".dockerignore", &i, &err), -EINVAL);
    assert_non_null(strstr(err.message, ".dockerignore:2: "));
    ignore_done(&i);
}

static void paths_are_written_plainly(void **state) {
    char out[64];

    (void)state;
    assert_true(path_plain("/a//b/./c/../d/", false, out, sizeof(out)));
    assert_string_equal(out, "a/b/d");
    assert_false(path_plain("a/../../b", false, out, sizeof(out)));
    assert_true(path_plain("a/../../b", true, out, sizeof(out)));
    assert_string_equal(out, "b");
    assert_true(path_plain("./", false, out, sizeof(out)));
    assert_string_equal(out, "");
}

static int drop_parsed(void **state) {
    (void)state;
    dockerfile_done(&parsed);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_put_together_and_comments_left_out),
        cmocka_unit_test(the_json_form_and_what_only_looks_like_it),
        cmocka_unit_test(flags_are_those_of_the_instruction),
        cmocka_unit_test(here_documents_are_read_to_their_end),
        cmocka_unit_test(what_is_wrong_is_refused_with_its_line),
        cmocka_unit_test(variables_and_quotes_stand_for_what_they_should),
        cmocka_unit_test(an_expansion_is_bounded),
        cmocka_unit_test(patterns_are_gos),
        cmocka_unit_test(no_pattern_takes_long),
        cmocka_unit_test(the_last_rule_that_fits_decides),
        cmocka_unit_test(paths_are_written_plainly),
    };
    return cmocka_run_group_tests(tests, NULL, drop_parsed);
}
