/*
 * test_procfs.c: the parsers against texts made to mislead them, and against
 * what this kernel says of processes and mounts that the test knows.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/fd.h"
#include "linux/cgroup.h"
#include "linux/procfs.h"
#include "linux/sys.h"

#include "base/banned.h"

#define assert_ok(r)                                                                               \
    do {                                                                                           \
        int r_ = (r);                                                                              \
        if (r_ < 0)                                                                                \
            fail_msg("%s: %s", #r, errno_words(r_));                                               \
    } while (0)

/* A stat line with that name whose field n reads 1000 + n, except pid, state and ppid. */
static void make_stat(char *text, size_t size, const char *name, unsigned fields) {
    int n = snprintf(text, size, "42 (%s) S 7", name);
    for (unsigned field = 5; field <= fields; field++)
        n += snprintf(text + n, size - (size_t)n, field == 8 ? " -%u" : " %u", 1000 + field);
    snprintf(text + n, size - (size_t)n, "\n");
}

static void stat_fields_are_found_whatever_the_name(void **state) {
    (void)state;
    static const char *const names[] = {
        "sh", "", "a b", ")", "(", ") R 1 2 3 (", "x) Z 1", "a\nb", "((()))", "99 (99) R 99",
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char text[1024];
        struct proc_stat st;
        make_stat(text, sizeof(text), names[i], 52);
        assert_ok(proc_parse_stat(text, &st));
        assert_int_equal(st.pid, 42);
        assert_int_equal(st.ppid, 7);
        assert_int_equal(st.state, 'S');
        assert_int_equal(st.start_time, 1022);
        assert_int_equal(st.start_brk, 1047);
        assert_int_equal(st.arg_start, 1048);
        assert_int_equal(st.arg_end, 1049);
        assert_int_equal(st.env_start, 1050);
        assert_int_equal(st.env_end, 1051);
    }
}

static void a_broken_stat_is_refused_and_touches_nothing(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",
        "x",
        "42",
        "42 sh S 7",
        "42 (sh",
        "42 (sh)",
        "42 (sh) ",
        "42 (sh) S",
        "-1 (sh) S 7",
        "42 (sh) SS 7",
        "99999999999 (sh) S 7",
        "42 (sh) 5 7",
    };
    struct proc_stat st = {.pid = 5};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_int_equal(proc_parse_stat(texts[i], &st), -EINVAL);
    char text[1024];
    for (unsigned fields = 4; fields < 51; fields++) {
        make_stat(text, sizeof(text), "sh", fields);
        assert_int_equal(proc_parse_stat(text, &st), -EINVAL);
    }
    assert_int_equal(st.pid, 5);
    make_stat(text, sizeof(text), "sh", 51);
    assert_ok(proc_parse_stat(text, &st));
    char *start_time = strstr(text, " 1022 ");
    assert_non_null(start_time);
    start_time[2] = 'x';
    assert_int_equal(proc_parse_stat(text, &st), -EINVAL);
    start_time[2] = '0';
    start_time[1] = '-';
    assert_int_equal(proc_parse_stat(text, &st), -EINVAL);
}

static void the_caller_is_read_by_pid_and_by_0(void **state) {
    (void)state;
    struct proc_stat by_pid, self;
    char name[16] = "";
    assert_int_equal(prctl(PR_GET_NAME, name), 0);
    assert_int_equal(prctl(PR_SET_NAME, ") Z 1 (a b"), 0);
    int r = proc_read_stat(getpid(), &by_pid);
    assert_int_equal(prctl(PR_SET_NAME, name), 0);
    assert_ok(r);
    assert_ok(proc_read_stat(0, &self));
    assert_int_equal(by_pid.pid, getpid());
    assert_int_equal(by_pid.ppid, getppid());
    assert_int_equal(by_pid.state, 'R');
    assert_int_equal(self.pid, getpid());
    assert_int_equal(self.start_time, by_pid.start_time);
    assert_true(self.start_brk != 0);
    assert_true(self.arg_start != 0 && self.arg_start < self.arg_end);
    assert_true(self.arg_end <= self.env_start && self.env_start <= self.env_end);
    assert_true(proc_alive(getpid(), self.start_time));
    assert_false(proc_alive(getpid(), self.start_time + 1)); /* the pid, but another process */
}

static void a_child_is_alive_until_it_is_a_zombie(void **state) {
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        for (;;)
            pause();
    }
    struct proc_stat st;
    assert_ok(proc_read_stat(pid, &st));
    assert_int_equal(st.ppid, getpid());
    assert_true(proc_alive(pid, st.start_time));

    siginfo_t info;
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    struct proc_stat zombie;
    assert_ok(proc_read_stat(pid, &zombie));
    assert_int_equal(zombie.state, 'Z');
    assert_int_equal(zombie.start_time, st.start_time);
    assert_false(proc_alive(pid, st.start_time));

    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(proc_read_stat(pid, &zombie), -ESRCH);
    assert_false(proc_alive(pid, st.start_time));
}

static void impossible_pids_are_nobody(void **state) {
    (void)state;
    struct proc_stat st;
    assert_int_equal(proc_read_stat(-1, &st), -ESRCH);
    assert_int_equal(proc_read_stat(INT32_MAX, &st), -ESRCH);
    assert_int_equal(proc_read_stat(INT32_MIN, &st), -ESRCH);
    assert_false(proc_alive(0, 0));
    assert_false(proc_alive(-1, 0)); /* kill(-1, 0) would ask about everybody */
    assert_false(proc_alive(INT32_MAX, 0));
}

static void a_status_field_is_matched_whole_and_at_a_line_start(void **state) {
    (void)state;
    static const char text[] = "Name:\tseal CapEff: 1\n"
                               "XCapEff:\t2\n"
                               "CapEffX:\t3\n"
                               "CapEff:\t 00000000a80425fb \t\n"
                               "Empty:\n"
                               "Groups:\t1 2 \n"
                               "Last:\t9";
    char value[32] = "old";
    assert_true(proc_field(text, "CapEff", value, sizeof(value)));
    assert_string_equal(value, "00000000a80425fb");
    assert_true(proc_field(text, "Name", value, sizeof(value)));
    assert_string_equal(value, "seal CapEff: 1");
    assert_true(proc_field(text, "Groups", value, sizeof(value)));
    assert_string_equal(value, "1 2");
    assert_true(proc_field(text, "Empty", value, sizeof(value)));
    assert_string_equal(value, "");
    assert_true(proc_field(text, "Last", value, sizeof(value)));
    assert_string_equal(value, "9");
    assert_false(proc_field(text, "Cap", value, sizeof(value)));
    assert_false(proc_field(text, "seal CapEff", value, sizeof(value)));
    assert_false(proc_field("", "CapEff", value, sizeof(value)));
    assert_false(proc_field(text, "CapEff", value, 16)); /* 16 digits and a NUL */
    assert_string_equal(value, "9");
    assert_true(proc_field(text, "CapEff", value, 17));
}

static void mount_lines_are_cut_at_the_lone_dash(void **state) {
    (void)state;
    static const char *const optional[] = {"", "shared:1 ", "shared:1 master:2 unbindable "};
    for (size_t i = 0; i < ARRAY_LEN(optional); i++) {
        char line[256];
        struct mount_info m;
        snprintf(line, sizeof(line), "36 35 98:12 /a /mnt/b ro,noatime %s- ext3 /dev/root rw,e=c\n",
                 optional[i]);
        assert_ok(proc_parse_mount(line, &m));
        assert_int_equal(m.id, 36);
        assert_int_equal(m.parent, 35);
        assert_int_equal(m.major, 98);
        assert_int_equal(m.minor, 12);
        assert_string_equal(m.root, "/a");
        assert_string_equal(m.target, "/mnt/b");
        assert_string_equal(m.options, "ro,noatime");
        assert_string_equal(m.fstype, "ext3");
        assert_string_equal(m.source, "/dev/root");
        assert_string_equal(m.super_options, "rw,e=c");
    }
}

static void mount_paths_are_unescaped_once(void **state) {
    (void)state;
    char line[] = "1 2 0:3 /a\\040b /c\\011\\012\\134040\\043 rw - - x\\040y rw,dir=/p\\040q r";
    struct mount_info m;
    assert_ok(proc_parse_mount(line, &m));
    assert_string_equal(m.root, "/a b");
    assert_string_equal(m.target, "/c\t\n\\040#");
    assert_string_equal(m.fstype, "-");
    assert_string_equal(m.source, "x y");
    assert_string_equal(m.super_options, "rw,dir=/p q r");
}

static void a_mount_without_source_is_read(void **state) {
    (void)state;
    char line[] = "1 2 0:3 / /t rw - tmpfs  rw,size=4k";
    struct mount_info m;
    assert_ok(proc_parse_mount(line, &m));
    assert_string_equal(m.source, "");
    assert_string_equal(m.super_options, "rw,size=4k");
}

static void what_is_not_mountinfo_is_refused(void **state) {
    (void)state;
    static const char *const lines[] = {
        "",
        "\n",
        "proc /proc proc rw 0 0",
        "1",
        "1 2",
        "1 2 0:3",
        "1 2 0:3 / /t rw",
        "1 2 0:3 / /t rw shared:1 tmpfs tmpfs rw",
        "1 2 0:3 / /t rw -",
        "1 2 0:3 / /t rw - tmpfs",
        "1 2 0:3 / /t rw - tmpfs tmpfs",
        "x 2 0:3 / /t rw - tmpfs tmpfs rw",
        "1 -2 0:3 / /t rw - tmpfs tmpfs rw",
        "1 2 03 / /t rw - tmpfs tmpfs rw",
        "1 2 0:3x / /t rw - tmpfs tmpfs rw",
        "1 2 0:3  /t rw - tmpfs tmpfs rw",
        "1 2 0:3 /  rw - tmpfs tmpfs rw",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        _cleanup_free_ char *line = strdup(lines[i]);
        struct mount_info m = {.id = 77};
        assert_non_null(line);
        if (proc_parse_mount(line, &m) != -EINVAL)
            fail_msg("accepted: \"%s\"", lines[i]);
        assert_int_equal(m.id, 77);
    }
}

static void this_kernels_mountinfo_is_read_whole(void **state) {
    (void)state;
    FILE *f = fopen("/proc/self/mountinfo", "re");
    assert_non_null(f);
    char *line = NULL;
    size_t size = 0;
    bool found = false;
    struct stat st;
    assert_int_equal(stat("/proc/self/mountinfo", &st), 0);
    while (getline(&line, &size, f) >= 0) {
        struct mount_info m;
        assert_ok(proc_parse_mount(line, &m));
        assert_true(mount_has_option(m.options, "rw") != mount_has_option(m.options, "ro"));
        if (makedev(m.major, m.minor) == st.st_dev && strcmp(m.root, "/") == 0) {
            found = true;
            assert_string_equal(m.fstype, "proc");
        }
    }
    free(line);
    fclose(f);
    assert_true(found);
}

static void a_mount_option_is_matched_whole(void **state) {
    (void)state;
    assert_true(mount_has_option("ro", "ro"));
    assert_true(mount_has_option("ro,nosuid,nodev", "ro"));
    assert_true(mount_has_option("ro,nosuid,nodev", "nosuid"));
    assert_true(mount_has_option("ro,nosuid,nodev", "nodev"));
    assert_true(mount_has_option("rox,ro", "ro"));
    assert_false(mount_has_option("ro,nosuid,nodev", "suid"));
    assert_false(mount_has_option("ro,nosuid,nodev", "nosui"));
    assert_false(mount_has_option("errors=remount-ro,rw", "ro"));
    assert_false(mount_has_option("ro,nosuid", "ro,nosuid"));
    assert_false(mount_has_option("", "ro"));
    assert_false(mount_has_option("ro,,rw", ""));
}

/* Two ways to the same facts: what statmount says of a place is what mountinfo says of the last mount there. */
static void one_mount_is_told_of_as_mountinfo_tells_of_it(void **state) {
    (void)state;
    _Alignas(uint64_t) char buf[8192];
    char line[4096], *text _cleanup_free_ = NULL;
    struct mount_info m;
    struct sys_mount seen;
    unsigned compared = 0;

    if (sys_mount_of("/", buf, sizeof(buf), &seen) < 0) {
        print_message("skipped: statmount(2): %s\n", strerror(errno));
        skip();
    }
    assert_int_equal(file_read_all_at(AT_FDCWD, "/proc/self/mountinfo", 1 << 20, &text, NULL), 0);
    for (const char *p = text; proc_next_mount(&p, line, sizeof(line), &m);) {
        if (strcmp(m.target, "/") != 0 && strncmp(m.fstype, "cgroup", 6) != 0)
            continue;
        assert_int_equal(sys_mount_of(m.target, buf, sizeof(buf), &seen), 0);
        assert_string_equal(seen.type, m.fstype);
        assert_string_equal(seen.root, m.root);
        for (size_t c = 0; c < CG__N; c++)
            if (strcmp(m.fstype, "cgroup") == 0 &&
                mount_has_option(m.super_options, cg_controller_names[c]))
                assert_true(mount_has_option(seen.options, cg_controller_names[c]));
        compared++;
    }
    assert_true(compared > 0);
    assert_int_equal(sys_mount_of("/nonexistent", buf, sizeof(buf), &seen), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(sys_mount_of("/", buf, 8, &seen), -1); /* no room */
}

static void a_mountinfo_is_walked_line_by_line_and_what_is_none_is_passed_over(void **state) {
    const char *text = "25 1 0:20 / / ro,nosuid - tmpfs none rw\n"
                       "not a mount\n"
                       "26 25 0:21 / /proc ro - proc none rw"; /* no newline at the end */
    struct mount_info m;
    char line[128];

    (void)state;
    assert_true(proc_next_mount(&text, line, sizeof(line), &m));
    assert_string_equal(m.target, "/");
    assert_true(proc_next_mount(&text, line, sizeof(line), &m));
    assert_string_equal(m.target, "/proc");
    assert_string_equal(m.fstype, "proc");
    assert_false(proc_next_mount(&text, line, sizeof(line), &m));
    assert_false(proc_next_mount(&text, line, sizeof(line), &m));
}

/* A wrong 0 would have the sweep take what a living run has. 1 is no namespace's number. */
static void a_pid_namespace_that_somebody_is_in_is_never_taken_for_dead(void **state) {
    (void)state;
    struct stat st;

    assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
    int own = proc_pidns_alive(st.st_ino), none = proc_pidns_alive(1);
    assert_true(own != 0 && none != 1);
    assert_true(none < 0 || own == 1);
    /* From a namespace below the first, and without privileges, nothing can be told. */
    if (st.st_ino != 0xEFFFFFFC)
        assert_int_equal(none, -EPERM);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stat_fields_are_found_whatever_the_name),
        cmocka_unit_test(a_broken_stat_is_refused_and_touches_nothing),
        cmocka_unit_test(the_caller_is_read_by_pid_and_by_0),
        cmocka_unit_test(a_child_is_alive_until_it_is_a_zombie),
        cmocka_unit_test(impossible_pids_are_nobody),
        cmocka_unit_test(a_pid_namespace_that_somebody_is_in_is_never_taken_for_dead),
        cmocka_unit_test(a_status_field_is_matched_whole_and_at_a_line_start),
        cmocka_unit_test(mount_lines_are_cut_at_the_lone_dash),
        cmocka_unit_test(mount_paths_are_unescaped_once),
        cmocka_unit_test(a_mount_without_source_is_read),
        cmocka_unit_test(what_is_not_mountinfo_is_refused),
        cmocka_unit_test(this_kernels_mountinfo_is_read_whole),
        cmocka_unit_test(a_mount_option_is_matched_whole),
        cmocka_unit_test(one_mount_is_told_of_as_mountinfo_tells_of_it),
        cmocka_unit_test(a_mountinfo_is_walked_line_by_line_and_what_is_none_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
