/*
 * test_idmap.c: which ids a host offers, what a slot of them maps, that no two
 * living leases are one, and that a map written is the map the kernel has.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/fd.h"
#include "linux/idmap.h"

#include "base/banned.h"

#define WHOLE "         0          0 4294967295\n"

static struct idmap_facts detect(long uid, const char *subuid, const char *subgid,
                                 const char *map) {
    struct idmap_facts f;
    idmap_detect(&(struct idmap_source){.subuid = subuid,
                                        .subgid = subgid,
                                        .uid_map = map,
                                        .user_name = "ada",
                                        .uid = uid,
                                        .gid = uid,
                                        .have_helpers = 1},
                 &f);
    return f;
}

/* ------------------------------------------------------------------ detection */

static void root_gets_blocks_below_2_to_the_31(void **state) {
    (void)state;
    struct idmap_facts f = detect(0, "", "", WHOLE);
    assert_int_equal(f.kind, IDMAP_BLOCK);
    assert_int_equal(f.block, 65536);
    assert_int_equal(f.slots, 4096);
    assert_false(f.groups_kept);
    assert_string_equal(f.lock_dir, "/run/mayfly");
    struct idmap_extent first[IDMAP_EXTENTS], last[IDMAP_EXTENTS];
    assert_int_equal(idmap_extents(&f, 0, 1000, false, first), 1);
    assert_int_equal(idmap_extents(&f, 4095, 1000, true, last), 1);
    assert_int_equal(first[0].inside, 0);
    assert_int_equal(first[0].outside, 0x70000000);
    assert_int_equal(last[0].outside, 0x70000000 + 4095 * 65536);
    assert_int_equal((uint64_t)last[0].outside + last[0].count, UINT64_C(1) << 31);
}

static void a_payload_id_above_the_block_is_mapped_too(void **state) {
    (void)state;
    struct idmap_facts f = detect(0, "", "", WHOLE);
    struct idmap_extent e[IDMAP_EXTENTS];
    assert_int_equal(idmap_extents(&f, 1, 70000, false, e), 2);
    assert_int_equal(e[0].count, 65535);
    assert_int_equal(e[1].inside, 70000);
    assert_int_equal(e[1].outside, e[0].outside + 65535);
    assert_int_equal(e[1].count, 1);
}

static void root_of_a_small_namespace_gets_pairs_of_its_upper_half(void **state) {
    (void)state;
    struct idmap_facts f = detect(0, "", "", "0 1000 1\n1 100000 65536\n");
    struct idmap_extent e[IDMAP_EXTENTS];
    assert_int_equal(f.kind, IDMAP_BLOCK);
    assert_int_equal(f.block, 2);
    assert_int_equal(f.sub_uid.start, 1 + 32768);
    assert_int_equal(f.slots, 16384);
    assert_int_equal(idmap_extents(&f, 3, 1000, false, e), 2);
    assert_int_equal(e[0].inside, 0);
    assert_int_equal(e[0].outside, 32769 + 6);
    assert_int_equal(e[1].inside, 1000);
    assert_int_equal(e[1].outside, 32769 + 7);
    assert_int_equal(idmap_extents(&f, 3, 0, false, e), 1);
    /* one extent that begins at 0 (userns-remap): its upper half does not hold 0 */
    f = detect(0, "", "", "0 231072 65536\n");
    assert_int_equal(f.kind, IDMAP_BLOCK);
    assert_int_equal(f.sub_uid.start, 32768);
}

static void uid_and_gid_maps_of_different_size_give_the_smaller_number_of_slots(void **state) {
    (void)state;
    struct idmap_facts f;
    idmap_detect(&(struct idmap_source){.uid_map = "0 5 1000\n", .gid_map = "0 5 100\n", .uid = 0},
                 &f);
    assert_int_equal(f.kind, IDMAP_BLOCK);
    assert_int_equal(f.slots, 25);
    assert_int_equal(f.sub_uid.start, 500);
    assert_int_equal(f.sub_gid.start, 50);
}

static void who_we_are_above_is_read_from_our_map(void **state) {
    (void)state;
    assert_int_equal(detect(0, "", "", "0 0 1\n").above, 0);
    assert_int_equal(detect(0, "", "", "0 1000 1\n").above, 1000);
    assert_int_equal(detect(7, "", "", "0 1000 5\n5 2000 5\n").above, 2002);
    assert_int_equal(detect(7, "", "", "7 0 1\n").above, 0);
    assert_int_equal(detect(7, "", "", "junk\n").above, 7);
}

static void root_with_no_other_id_says_why(void **state) {
    (void)state;
    static const char *const maps[] = {"0 0 1\n", "0 1000 1\n", "", "junk\n", "0 0 99999999999\n"};
    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        struct idmap_facts f = detect(0, "", "", maps[i]);
        assert_int_equal(f.kind, IDMAP_SINGLE);
        assert_non_null(strstr(f.why_single, "too few"));
    }
}

static void a_user_gets_the_largest_of_his_ranges(void **state) {
    (void)state;
    static const char uids[] =
        "bob:1:99\nada:100000:10\n1000:300000:70\nada:200000:50\nadam:5:9999\n"
        "1000x:7:9999\n:8:9999\n";
    static const char gids[] = "ada:500000:65";
    struct idmap_facts f = detect(1000, uids, gids, WHOLE);
    assert_int_equal(f.kind, IDMAP_SUBID);
    assert_int_equal(f.sub_uid.start, 300000);
    assert_int_equal(f.sub_uid.count, 70);
    assert_int_equal(f.sub_gid.start, 500000);
    assert_int_equal(f.slots, 65);
    assert_int_equal(f.block, 1);
    assert_false(f.groups_kept);
}

static void a_range_that_is_wrong_or_holds_root_is_not_taken(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        "ada",
        "ada:",
        "ada:5",
        "ada:5:",
        "ada:x:5",
        "ada:5:x",
        "ada:0:65536",
        "ada:-1:5",
        "ada:1:5:7",
        "ada:5:0",
        "ada:1:4294967295",
        "ada:99999999999:5",
        "bob:5:5",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct idmap_facts f = detect(1000, bad[i], "ada:500000:65\n", WHOLE);
        if (f.kind != IDMAP_SINGLE)
            fail_msg("taken: %s", bad[i]);
        assert_non_null(strstr(f.why_single, "/etc/subuid"));
        assert_non_null(strstr(f.why_single, "usermod"));
    }
    struct idmap_facts f = detect(1000, "ada:500000:65\n", "", WHOLE);
    assert_int_equal(f.kind, IDMAP_SINGLE);
    assert_non_null(strstr(f.why_single, "/etc/subgid"));
    assert_int_equal(f.slots, 0);
    assert_int_equal(f.sub_uid.count, 0);
}

/* It is behind 0 in the box already, and the kernel takes no map with one host id in it twice. */
static void a_range_that_holds_the_users_own_id_is_not_taken(void **state) {
    (void)state;
    struct idmap_facts f = detect(1000, "ada:1000:65536\n", "ada:500000:65\n", WHOLE);
    assert_int_equal(f.kind, IDMAP_SINGLE);
    f = detect(1000, "ada:999:2\nada:200000:5\n", "ada:500000:65\n", WHOLE);
    assert_int_equal(f.kind, IDMAP_SUBID);
    assert_int_equal(f.sub_uid.start, 200000);
    f = detect(1000, "ada:1001:65536\n", "ada:900:100\n", WHOLE); /* beside it, on either side */
    assert_int_equal(f.kind, IDMAP_SUBID);
    assert_int_equal(f.sub_uid.start, 1001);
    assert_int_equal(f.sub_gid.start, 900);
}

static void an_extent_beyond_the_last_id_is_not_taken(void **state) {
    (void)state;
    struct idmap_facts f = detect(0, "", "", "4 0 4294967292\n");
    assert_int_equal(f.kind, IDMAP_SINGLE);
    f = detect(0, "", "", "4 0 4294967291\n");
    assert_int_equal(f.kind, IDMAP_BLOCK);
}

static void a_users_name_is_that_of_the_passwd_file(void **state) {
    (void)state;
    const struct passwd *user = getpwuid(1);
    struct idmap_source source = {.uid = 1, .gid = 1, .have_helpers = 1};
    struct idmap_facts f;
    char text[128];

    if (!user)
        skip();
    snprintf(text, sizeof(text), "nobody-else:7:7\n%s:100000:9\n", user->pw_name);
    source.subuid = source.subgid = text;
    idmap_detect(&source, &f);
    assert_int_equal(f.kind, IDMAP_SUBID);
    assert_int_equal(f.slots, 9);
    source.subuid = source.subgid = "";
    idmap_detect(&source, &f);
    assert_non_null(strstr(f.why_single, user->pw_name));
    source.uid = 3999999999; /* one that has no name, and is in no file */
    idmap_detect(&source, &f);
    assert_int_equal(f.kind, IDMAP_SINGLE);
    assert_non_null(strstr(f.why_single, "USER"));
}

static void the_helpers_are_looked_for_where_they_are_installed(void **state) {
    (void)state;
    bool there = access("/usr/bin/newuidmap", X_OK) == 0 && access("/usr/bin/newgidmap", X_OK) == 0;
    struct idmap_facts f;

    idmap_detect(&(struct idmap_source){.subuid = "ada:100000:9",
                                        .subgid = "ada:100000:9",
                                        .user_name = "ada",
                                        .uid = 1000,
                                        .gid = 1000,
                                        .have_helpers = -1},
                 &f);
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
        skip();
    assert_int_equal(f.kind, there ? IDMAP_SUBID : IDMAP_SINGLE);
}

/* Below a limit of descriptors nothing can be read, and that is no fact about the user. */
static void files_that_cannot_be_read_just_now_are_not_taken_for_empty(void **state) {
    (void)state;
    struct rlimit was, none;
    struct idmap_facts f;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = was;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    idmap_detect(&(struct idmap_source){.uid = 1000, .gid = 1000, .have_helpers = 1}, &f);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_int_equal(f.unread, -EMFILE);
}

static void without_the_helpers_a_range_is_of_no_use(void **state) {
    (void)state;
    struct idmap_facts f;
    idmap_detect(&(struct idmap_source){.subuid = "ada:100000:65536",
                                        .subgid = "ada:100000:65536",
                                        .user_name = "ada",
                                        .uid = 1000,
                                        .gid = 100,
                                        .have_helpers = 0},
                 &f);
    assert_int_equal(f.kind, IDMAP_SINGLE);
    assert_true(f.groups_kept);
    assert_non_null(strstr(f.why_single, "uidmap"));
    struct idmap_extent e[IDMAP_EXTENTS];
    assert_int_equal(idmap_extents(&f, 0, 65534, true, e), 1);
    assert_int_equal(e[0].inside, 65534);
    assert_int_equal(e[0].outside, 100);
    assert_int_equal(e[0].count, 1);
}

/* ------------------------------------------------------------------ extents */

static void no_extent_reaches_host_root_and_no_two_slots_overlap(void **state) {
    (void)state;
    struct idmap_facts kinds[] = {
        detect(0, "", "", WHOLE),
        detect(0, "", "", "0 1000 1\n1 100000 65536\n"),
        detect(0, "", "", "0 5 7\n"),
        detect(1000, "ada:100000:65536\n", "ada:100000:65536\n", WHOLE),
    };
    static const uint32_t payloads[] = {0, 1, 1000, 65535, 65536, 100000};
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
        for (size_t p = 0; p < ARRAY_LEN(payloads); p++)
            for (int groups = 0; groups < 2; groups++) {
                uint64_t end_before = 0;
                for (uint32_t slot = 0; slot < MIN(kinds[k].slots, 300u); slot++) {
                    struct idmap_extent e[IDMAP_EXTENTS];
                    int n = idmap_extents(&kinds[k], slot, payloads[p], groups, e);
                    bool payload_mapped = false;
                    assert_in_range(n, 1, IDMAP_EXTENTS);
                    for (int i = 0; i < n; i++) {
                        payload_mapped |=
                            payloads[p] >= e[i].inside && payloads[p] - e[i].inside < e[i].count;
                        assert_true(e[i].outside > 0);
                        if (kinds[k].kind == IDMAP_SUBID && i == 0)
                            continue; /* the user's own id: every box of his has it, as its root */
                        assert_true(e[i].outside >= end_before);
                        end_before = (uint64_t)e[i].outside + e[i].count;
                    }
                    assert_true(payload_mapped);
                }
            }
}

static void a_user_is_the_boxs_root_and_the_payload_a_subordinate_id(void **state) {
    (void)state;
    struct idmap_facts f = detect(1000, "ada:100000:10\n", "ada:300000:10\n", WHOLE);
    struct idmap_extent e[IDMAP_EXTENTS];
    assert_int_equal(idmap_extents(&f, 4, 777, false, e), 2);
    assert_int_equal(e[0].inside, 0);
    assert_int_equal(e[0].outside, 1000);
    assert_int_equal(e[1].inside, 777);
    assert_int_equal(e[1].outside, 100004);
    assert_int_equal(idmap_extents(&f, 4, 0, false, e), 1);
    /* newgidmap would deny setgroups without a subordinate gid in the map */
    assert_int_equal(idmap_extents(&f, 4, 0, true, e), 2);
    assert_int_equal(e[1].outside, 300004);
}

/* ------------------------------------------------------------------ leases */

struct lock {
    struct idmap_facts f;
    char dir[64];
};

static int make_lock_dir(void **state) {
    struct lock *l = calloc(1, sizeof(*l));
    if (!l)
        return -1;
    l->f = (struct idmap_facts){.kind = IDMAP_BLOCK, .slots = 8, .block = 2};
    snprintf(l->dir, sizeof(l->dir), "/tmp/mayfly-test-idmap-XXXXXX");
    *state = l;
    if (!mkdtemp(l->dir))
        return -1;
    snprintf(l->f.lock_dir, sizeof(l->f.lock_dir), "%s/m", l->dir);
    return 0;
}

static int remove_lock_dir(void **state) {
    struct lock *l = *state;
    char path[160];
    snprintf(path, sizeof(path), "%s/ids.lock", l->f.lock_dir);
    unlink(path);
    if (rmdir(l->f.lock_dir) < 0)
        unlink(l->f.lock_dir);
    rmdir(l->dir);
    free(l);
    return 0;
}

static void take(const struct lock *l, uint32_t *slot, int *fd) {
    struct err err = {0};
    if (idmap_lease(&l->f, slot, fd, &err) < 0)
        fail_msg("%s", err.message);
}

static void living_leases_differ_and_the_last_is_refused(void **state) {
    struct lock *l = *state;
    struct err err = {0};
    uint32_t slot, seen = 0;
    int fd[8], extra = -7;
    for (int i = 0; i < 8; i++) {
        take(l, &slot, &fd[i]);
        assert_true(slot < 8);
        assert_false(seen & (1u << slot));
        seen |= 1u << slot;
        assert_true(fcntl(fd[i], F_GETFD) & FD_CLOEXEC);
    }
    slot = 99;
    assert_int_equal(idmap_lease(&l->f, &slot, &extra, &err), -EAGAIN);
    assert_int_equal(slot, 99);
    assert_int_equal(extra, -7);
    assert_non_null(strstr(err.message, "all 8 slots"));
    for (int i = 0; i < 8; i++)
        fd_close(&fd[i]);
}

static void a_slot_is_free_when_the_last_copy_of_its_descriptor_is_closed(void **state) {
    struct lock *l = *state;
    struct err err = {0};
    uint32_t first, second;
    int fd, other = -1, hold[2];
    char byte;
    l->f.slots = 1;
    take(l, &first, &fd);
    assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) { /* as init does: it holds the lease by inheritance alone */
        close(hold[1]);
        _exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(hold[0]);
    fd_close(&fd);
    assert_int_equal(idmap_lease(&l->f, &second, &other, &err), -EAGAIN);
    close(hold[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    take(l, &second, &other);
    assert_int_equal(first, second);
    fd_close(&other);
}

static void many_processes_never_hold_the_same_slot(void **state) {
    struct lock *l = *state;
    l->f.slots = 32;
    int result[2], hold[2];
    uint32_t seen = 0, slot;
    assert_int_equal(pipe2(result, O_CLOEXEC), 0);
    assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
    for (int i = 0; i < 32; i++)
        if (fork() == 0) {
            int fd;
            char byte;
            close(hold[1]);
            if (idmap_lease(&l->f, &slot, &fd, NULL) < 0)
                slot = UINT32_MAX;
            if (write(result[1], &slot, sizeof(slot)) != sizeof(slot))
                _exit(1);
            _exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);
        }
    for (int i = 0; i < 32; i++) {
        assert_int_equal(read(result[0], &slot, sizeof(slot)), sizeof(slot));
        assert_true(slot < 32);
        assert_false(seen & (1u << slot));
        seen |= 1u << slot;
    }
    close(hold[1]);
    for (int i = 0; i < 32; i++)
        assert_true(wait(NULL) > 0);
    close(hold[0]);
    close(result[0]);
    close(result[1]);
}

static void a_lock_directory_that_is_not_ours_alone_is_refused(void **state) {
    struct lock *l = *state;
    uint32_t slot;
    int fd = -1;
    struct stat st;

    take(l, &slot, &fd);
    fd_close(&fd);
    assert_int_equal(stat(l->f.lock_dir, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);

    static const mode_t modes[] = {0720, 0702, 0777};
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        struct err err = {0};
        assert_int_equal(chmod(l->f.lock_dir, modes[i]), 0);
        assert_int_equal(idmap_lease(&l->f, &slot, &fd, &err), -EPERM);
        assert_non_null(strstr(err.message, "written by others"));
        assert_non_null(strstr(err.message, "chmod 700"));
    }
    assert_int_equal(chmod(l->f.lock_dir, 0700), 0);
    assert_int_equal(fd, -1);
}

static void a_lock_directory_of_another_users_is_refused(void **state) {
    struct lock *l = *state;
    struct err err = {0};
    uint32_t slot;
    int fd = -1;

    if (geteuid() != 0)
        skip();
    assert_int_equal(mkdir(l->f.lock_dir, 0700), 0);
    assert_int_equal(chown(l->f.lock_dir, 12345, 12345), 0);
    assert_int_equal(idmap_lease(&l->f, &slot, &fd, &err), -EPERM);
    assert_non_null(strstr(err.message, "belongs to uid 12345"));
    assert_int_equal(fd, -1);
}

static void a_symbolic_link_for_a_lock_directory_is_refused(void **state) {
    struct lock *l = *state;
    struct err err = {0};
    uint32_t slot;
    int fd = -1;
    assert_int_equal(symlink(l->dir, l->f.lock_dir), 0);
    assert_int_equal(idmap_lease(&l->f, &slot, &fd, &err), -ENOTDIR);
    assert_non_null(strstr(err.message, "symbolic link"));

    err_clear(&err);
    snprintf(l->f.lock_dir, sizeof(l->f.lock_dir), "%s/m/absent/m", l->dir);
    assert_int_equal(idmap_lease(&l->f, &slot, &fd, &err), -ENOENT);
    assert_non_null(strstr(err.message, "mkdir"));
    snprintf(l->f.lock_dir, sizeof(l->f.lock_dir), "%s/m", l->dir);
}

static void a_symbolic_link_for_the_lock_file_is_refused(void **state) {
    struct lock *l = *state;
    struct err err = {0};
    char path[160];
    uint32_t slot;
    int fd = -1;
    assert_int_equal(mkdir(l->f.lock_dir, 0700), 0);
    snprintf(path, sizeof(path), "%s/ids.lock", l->f.lock_dir);
    assert_int_equal(symlink("/tmp/mayfly-test-must-not-be-made", path), 0);
    assert_int_equal(idmap_lease(&l->f, &slot, &fd, &err), -ELOOP);
    assert_int_equal(access("/tmp/mayfly-test-must-not-be-made", F_OK), -1);
}

static void single_needs_no_lease(void **state) {
    (void)state;
    struct idmap_facts f = {.kind = IDMAP_SINGLE};
    uint32_t slot = 5;
    int fd = 3;
    assert_int_equal(idmap_lease(&f, &slot, &fd, NULL), 0);
    assert_int_equal(slot, 0);
    assert_int_equal(fd, -1);
}

/* ------------------------------------------------------------------ writing */

/* A child in its own user namespace, waiting to be killed; 0 where this host refuses that. */
static pid_t userns_child(void) {
    int ready[2];
    char byte;
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        close(ready[1]);
        _exit(read(ready[0], &byte, 1) == 0 ? 0 : 1); /* ends with the test, however that ends */
    }
    close(ready[0]);
    return pid < 0 ? 0 : pid;
}

static void end(pid_t pid) {
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void assert_map(pid_t pid, const char *name, const struct idmap_extent *e) {
    char path[64], text[256];
    unsigned inside, outside, count;
    snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    assert_true(file_read_at(AT_FDCWD, path, text, sizeof(text)) > 0);
    assert_int_equal(sscanf(text, "%u %u %u", &inside, &outside, &count), 3);
    assert_int_equal(inside, e->inside);
    assert_int_equal(outside, e->outside);
    assert_int_equal(count, e->count);
}

static void single_maps_our_id_alone_and_denies_setgroups(void **state) {
    (void)state;
    struct idmap_facts f = {.kind = IDMAP_SINGLE, .uid = geteuid(), .gid = getegid()};
    struct idmap_extent u[IDMAP_EXTENTS], g[IDMAP_EXTENTS];
    struct err err = {0};
    char path[64], text[64];
    pid_t pid = userns_child();
    if (!pid) {
        print_message("this host gives us no user namespace\n");
        skip();
    }
    int nu = idmap_extents(&f, 0, 1000, false, u), ng = idmap_extents(&f, 0, 1001, true, g);
    if (idmap_write(&f, pid, u, nu, g, ng, &err) < 0)
        fail_msg("%s", err.message);
    assert_map(pid, "uid_map", u);
    assert_map(pid, "gid_map", g);
    snprintf(path, sizeof(path), "/proc/%d/setgroups", pid);
    assert_true(file_read_at(AT_FDCWD, path, text, sizeof(text)) > 0);
    assert_string_equal(text, "deny");
    /* a map is for good */
    assert_int_equal(idmap_write(&f, pid, u, nu, g, ng, &err), -EPERM);
    assert_non_null(strstr(err.message, "uid_map"));
    end(pid);
}

static void a_helper_that_refuses_is_quoted(void **state) {
    (void)state;
    struct idmap_facts f = {.kind = IDMAP_SUBID, .uid = geteuid(), .gid = getegid()};
    const struct idmap_extent e = {0, 4294000000u, 1}; /* nobody's subordinate id */
    struct err err = {0};
    if (access("/usr/bin/newuidmap", X_OK) < 0) {
        print_message("newuidmap is not installed\n");
        skip();
    }
    pid_t pid = userns_child();
    if (!pid)
        skip();
    assert_int_equal(idmap_write(&f, pid, &e, 1, &e, 1, &err), -EPERM);
    assert_non_null(strstr(err.message, "newuidmap: "));
    assert_non_null(strstr(err.message, "4294000000"));
    end(pid);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* neither helper is left over */
    assert_int_equal(errno, ECHILD);
}

static void a_process_that_is_gone_is_an_error(void **state) {
    (void)state;
    struct idmap_facts f = {.kind = IDMAP_SINGLE};
    const struct idmap_extent e = {0, 1, 1};
    struct err err = {0};
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(idmap_write(&f, pid, &e, 1, &e, 1, &err), -ENOENT);
    assert_string_equal(err.control, "user");
    assert_int_equal(idmap_write(&f, pid, &e, 0, &e, 1, NULL), -EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define WITH_LOCK(f) cmocka_unit_test_setup_teardown(f, make_lock_dir, remove_lock_dir)
        cmocka_unit_test(root_gets_blocks_below_2_to_the_31),
        cmocka_unit_test(a_payload_id_above_the_block_is_mapped_too),
        cmocka_unit_test(root_of_a_small_namespace_gets_pairs_of_its_upper_half),
        cmocka_unit_test(uid_and_gid_maps_of_different_size_give_the_smaller_number_of_slots),
        cmocka_unit_test(who_we_are_above_is_read_from_our_map),
        cmocka_unit_test(root_with_no_other_id_says_why),
        cmocka_unit_test(a_user_gets_the_largest_of_his_ranges),
        cmocka_unit_test(a_range_that_is_wrong_or_holds_root_is_not_taken),
        cmocka_unit_test(a_range_that_holds_the_users_own_id_is_not_taken),
        cmocka_unit_test(an_extent_beyond_the_last_id_is_not_taken),
        cmocka_unit_test(a_users_name_is_that_of_the_passwd_file),
        cmocka_unit_test(the_helpers_are_looked_for_where_they_are_installed),
        cmocka_unit_test(files_that_cannot_be_read_just_now_are_not_taken_for_empty),
        cmocka_unit_test(without_the_helpers_a_range_is_of_no_use),
        cmocka_unit_test(no_extent_reaches_host_root_and_no_two_slots_overlap),
        cmocka_unit_test(a_user_is_the_boxs_root_and_the_payload_a_subordinate_id),
        WITH_LOCK(living_leases_differ_and_the_last_is_refused),
        WITH_LOCK(a_slot_is_free_when_the_last_copy_of_its_descriptor_is_closed),
        WITH_LOCK(many_processes_never_hold_the_same_slot),
        WITH_LOCK(a_lock_directory_that_is_not_ours_alone_is_refused),
        WITH_LOCK(a_lock_directory_of_another_users_is_refused),
        WITH_LOCK(a_symbolic_link_for_a_lock_directory_is_refused),
        WITH_LOCK(a_symbolic_link_for_the_lock_file_is_refused),
        cmocka_unit_test(single_needs_no_lease),
        cmocka_unit_test(single_maps_our_id_alone_and_denies_setgroups),
        cmocka_unit_test(a_helper_that_refuses_is_quoted),
        cmocka_unit_test(a_process_that_is_gone_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
