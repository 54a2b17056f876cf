/*
 * test_reach.c: on the way to a path each name is looked at, so that nothing which the code may write to is taken for the
 * caller's own: by whatever links, dots or mounts the way goes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/defs.h"
#include "linux/reach.h"
#include "tree.h"

#include "base/banned.h"

static char dir[] = "/tmp/mayfly-reach-XXXXXX";

static int make_place(void **state) {
    (void)state;
    if (!mkdtemp(dir) || chdir(dir) < 0)
        return -1;
    return mkdir("tree", 0700) || mkdir("tree/sub", 0700) || mkdir("other", 0700) ||
           symlink("../other", "tree/out") || symlink("tree/out", "by_link") ||
           symlink("sub", "tree/inner") || symlink("tree", "alias") || symlink("loop", "loop") ||
           symlink("other", "fine") || mkdir("tree2", 0700);
}

static int remove_place(void **state) {
    (void)state;
    return chdir("/") || remove_tree(dir);
}

static void names_in_the_tree_are_found_on_every_way(void **state) {
    static const struct {
        const char *path;
        int reach;
    } cases[] = {
        {"tree", REACH_TREE},
        {"tree/", REACH_TREE},
        {"./tree/.", REACH_TREE},
        {"alias", REACH_TREE},
        {"other/../tree", REACH_TREE},
        {"tree/sub", REACH_WITHIN},
        {"tree/none/yet", REACH_WITHIN},
        {"alias/sub", REACH_WITHIN},
        {"tree//sub/../../other", REACH_WITHIN}, /* sub may be a link the next time */
        {"tree/out", REACH_WITHIN},
        {"tree/out/x", REACH_WITHIN},
        {"by_link", REACH_WITHIN}, /* what it leads to lies outside, by a link that does not */
        {"by_link/x", REACH_WITHIN},
        {"tree/inner/x", REACH_WITHIN},
        {"tree/../other", REACH_NONE}, /* `..` of the tree's own is no name in it */
        {"other", REACH_NONE},
        {"fine/x", REACH_NONE},
        {"tree2", REACH_NONE},
        {"tree2/none", REACH_NONE},
        {"none/yet", REACH_NONE},
        {"../..", REACH_NONE},
        {"/", REACH_NONE},
        {"loop", -ELOOP},
    };
    char path[PATH_MAX];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (int absolute = 0; absolute < 2; absolute++) {
            (void)snprintf(path, sizeof(path), "%s%s%s", absolute ? dir : "", absolute ? "/" : "",
                           cases[i].path);
            if (cases[i].path[0] == '/')
                (void)snprintf(path, sizeof(path), "/");
            int r = reach_look(path, "tree");
            if (r != cases[i].reach)
                fail_msg("%s: %d instead of %d", path, r, cases[i].reach);
        }
    assert_int_equal(reach_look("other", "alias"), REACH_NONE);
    assert_int_equal(reach_look("tree/sub", "alias"), REACH_WITHIN);
    assert_int_equal(reach_look("other", "/"), REACH_WITHIN);
    assert_int_equal(reach_look("/", "/"), REACH_TREE);
    assert_int_equal(reach_look("/..", "/"), REACH_TREE);
    assert_int_equal(reach_look("other", "none"), -ENOENT);
}

static void who_stands_in_the_tree_goes_by_its_names(void **state) {
    (void)state;
    assert_int_equal(chdir("tree/sub"), 0);
    assert_int_equal(reach_look("x", ".."), REACH_WITHIN);
    assert_int_equal(reach_look("../../other", ".."), REACH_WITHIN);
    assert_int_equal(reach_look(dir, ".."), REACH_NONE);
    assert_int_equal(chdir(dir), 0);
}

static void what_is_too_long_is_no_way(void **state) {
    char path[2 * PATH_MAX];

    (void)state;
    memset(path, 'a', sizeof(path));
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(reach_look(path, "tree"), -ENAMETOOLONG);
    path[PATH_MAX - 2] = '\0';
    assert_int_equal(reach_look(path, "tree"), -ENAMETOOLONG); /* with what is before it */
    (void)memcpy(path, "fine/", 5);
    for (size_t i = 5; i < PATH_MAX - 2; i++)
        path[i] = '/';
    assert_int_equal(reach_look(path, "tree"), -ENAMETOOLONG); /* with what the link says */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_in_the_tree_are_found_on_every_way),
        cmocka_unit_test(who_stands_in_the_tree_goes_by_its_names),
        cmocka_unit_test(what_is_too_long_is_no_way),
    };

    return cmocka_run_group_tests(tests, make_place, remove_place);
}
