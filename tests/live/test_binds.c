/*
 * test_binds.c: what the operator hands in is there, read-only unless said otherwise, and nothing
 * else of the host comes with it; where the box may write is decided by the policy alone, and no
 * write inside reaches the rootfs. The case S2, and its like.
 *
 * Called by root, the tests have a mount namespace of their own to make nested mounts in.
 */
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "live/live.h"
#include "tree.h"

#include "base/banned.h"

/* A directory of the test's own: readable to all, since the box's ids are strangers to it. */
struct place {
    char dir[64];
    char volume[160];
};

static int make_place(void **state) {
    struct place *p = calloc(1, sizeof(*p));

    if (!p)
        return -1;
    (void)snprintf(p->dir, sizeof(p->dir), "/tmp/mayfly-binds-XXXXXX");
    if (!mkdtemp(p->dir) || chmod(p->dir, 0777) < 0)
        return -1;
    *state = p;
    return 0;
}

static int remove_place(void **state) {
    struct place *p = *state;
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/sub", p->dir);
    (void)umount2(path, MNT_DETACH);
    int r = remove_tree(p->dir);
    free(p);
    return r;
}

static const char *in(const struct place *p, const char *name) {
    static char path[2][128];
    static int next;

    next ^= 1;
    (void)snprintf(path[next], sizeof(path[next]), "%s/%s", p->dir, name);
    return path[next];
}

static void put(const struct place *p, const char *name, const char *text) {
    FILE *f = fopen(in(p, name), "we");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(in(p, name), 0666), 0);
}

static void make_dir(const struct place *p, const char *name) {
    assert_int_equal(mkdir(in(p, name), 0777), 0);
    assert_int_equal(chmod(in(p, name), 0777), 0);
}

static const char *volume(struct place *p, const char *name, const char *rest) {
    (void)snprintf(p->volume, sizeof(p->volume), "%s%s%s:%s", p->dir, *name ? "/" : "", name, rest);
    return p->volume;
}

/* Tries to write in every way there is; prints the names of the errors. */
static const char try_to_write[] =
    "import errno, os\n"
    "def no(what, f, *a):\n"
    "    try: f(*a); print(what, 'done')\n"
    "    except OSError as e: print(what, errno.errorcode[e.errno])\n"
    "no('make', lambda: os.close(os.open(D + '/made', os.O_CREAT | os.O_WRONLY)))\n"
    "no('append', lambda: os.close(os.open(D + '/file', os.O_APPEND | os.O_WRONLY)))\n"
    "no('truncate', os.truncate, D + '/file', 0)\n"
    "no('unlink', os.unlink, D + '/file')\n"
    "no('rename', os.rename, D + '/file', D + '/other')\n"
    "no('mkdir', os.mkdir, D + '/dir')\n"
    "no('chmod', os.chmod, D + '/file', 0o777)\n"
    "no('utime', os.utime, D + '/file')\n";

static void writes_are_refused_in(const char *dir, struct place *p) {
    char code[2048];

    (void)snprintf(code, sizeof(code), "D = '%s'\nprint(open(D + '/file').read())\n%s", dir,
                   try_to_write);
    mayfly_result *r = live_python(code, "volume", p->volume, NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    /* Landlock, where there is one, refuses some of them before the mount does. */
    if (strncmp(r->out.data, "handed in\n", 10) != 0 || strstr(r->out.data, "done"))
        fail_msg("%s", r->out.data);
    size_t refused = 0;
    for (const char *at = r->out.data; (at = strchr(at, ' ')); at++)
        refused += strncmp(at, " EROFS\n", 7) == 0 || strncmp(at, " EACCES\n", 8) == 0;
    assert_int_equal(refused, 8);
    mayfly_result_free(r);
}

/* ------------------------------------------------------------------ reading */

static void a_volume_is_read_only_unless_said_otherwise(void **state) {
    struct place *p = *state;

    put(p, "file", "handed in");
    (void)volume(p, "", "/tmp/in");
    writes_are_refused_in("/tmp/in", p);
    (void)volume(p, "", "/tmp/in:ro");
    writes_are_refused_in("/tmp/in", p);
    assert_int_equal(access(in(p, "made"), F_OK), -1);
}

/* S2 */
static void a_mount_inside_a_read_only_volume_is_read_only_too(void **state) {
    struct place *p = *state;

    if (geteuid() != 0)
        live_skip("root", "only root can make the mount inside");
    make_dir(p, "sub");
    assert_int_equal(mount("tmpfs", in(p, "sub"), "tmpfs", 0, "mode=777"), 0);
    put(p, "sub/file", "handed in");
    (void)volume(p, "", "/tmp/in");
    writes_are_refused_in("/tmp/in/sub", p);
    assert_int_equal(access(in(p, "sub/made"), F_OK), -1);
}

static void a_single_file_can_be_handed_in(void **state) {
    struct place *p = *state;

    put(p, "file", "handed in");
    mayfly_result *r = live_python("import os\n"
                                   "print(open('/tmp/only').read(), os.listdir('/tmp'))\n"
                                   "try: open('/tmp/only', 'w')\n"
                                   "except OSError as e: print('refused')\n",
                                   "volume", volume(p, "file", "/tmp/only"), NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "handed in ['only']\nrefused\n");
    mayfly_result_free(r);
}

static void a_volume_is_nosuid_and_nodev(void **state) {
    struct place *p = *state;
    const char *code =
        "for line in open('/proc/self/mountinfo'):\n"
        "    f = line.split()\n"
        "    if f[4] == '/tmp/in': print(*sorted(set(f[5].split(',')) &\n"
        "                                        {'ro', 'rw', 'nosuid', 'nodev'}))\n";
    mayfly_result *r = live_python(code, "volume", volume(p, "", "/tmp/in"), NULL);

    assert_string_equal(r->out.data, "nodev nosuid ro\n");
    mayfly_result_free(r);
    r = live_python(code, "volume", volume(p, "", "/tmp/in:rw"), NULL);
    assert_string_equal(r->out.data, "nodev nosuid rw\n");
    mayfly_result_free(r);
}

static void a_link_in_a_volume_does_not_lead_out_of_the_box(void **state) {
    struct place *p = *state;
    char outside[64] = "/tmp/mayfly-outside-XXXXXX", code[256];
    int fd = mkostemp(outside, O_CLOEXEC);

    assert_true(fd >= 0);
    (void)fchmod(fd, 0644);
    assert_int_equal(symlink(outside, in(p, "file")), 0);
    (void)snprintf(code, sizeof(code),
                   "import os\n"
                   "print(os.readlink('/tmp/in/file').startswith('/tmp/'))\n"
                   "try: open('/tmp/in/file')\n"
                   "except FileNotFoundError: print('nowhere')\n");
    mayfly_result *r = live_python(code, "volume", volume(p, "", "/tmp/in"), NULL);
    (void)close(fd);
    (void)unlink(outside);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "True\nnowhere\n");
    mayfly_result_free(r);
}

static void several_volumes_stand_side_by_side(void **state) {
    struct place *p = *state;
    char second[160];

    make_dir(p, "sub");
    put(p, "file", "one");
    put(p, "sub/file", "two");
    (void)snprintf(second, sizeof(second), "%s/sub:/home/b/c", p->dir);
    mayfly_result *r =
        live_python("print(open('/tmp/a/file').read(), open('/home/b/c/file').read())\n", "volume",
                    volume(p, "", "/tmp/a"), "volume", second, NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "one two\n");
    mayfly_result_free(r);
}

/* ------------------------------------------------------------------ writing */

static void a_writable_volume_takes_the_codes_files_and_gives_them_no_privilege(void **state) {
    struct place *p = *state;
    char text[32] = "";
    struct stat st;

    put(p, "file", "old");
    mayfly_result *r = live_python("import os\n"
                                   "open('/tmp/in/file', 'w').write('new')\n"
                                   "open('/tmp/in/made', 'w').write('made')\n"
                                   "for bits in 0o4755, 0o2755:\n"
                                   "    try: os.chmod('/tmp/in/made', bits)\n"
                                   "    except PermissionError: print('no')\n"
                                   "try: os.open('/tmp/in/other', os.O_CREAT, 0o4755)\n"
                                   "except PermissionError: print('no')\n"
                                   "print(os.stat('/tmp/in/made').st_uid)\n",
                                   "volume", volume(p, "", "/tmp/in:rw"), NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "no\nno\nno\n1000\n");
    mayfly_result_free(r);

    FILE *f = fopen(in(p, "file"), "re");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof(text), f));
    (void)fclose(f);
    assert_string_equal(text, "new");
    assert_int_equal(stat(in(p, "made"), &st), 0);
    assert_int_not_equal(st.st_uid, 0);
    assert_int_equal(st.st_mode & 06000, 0); /* on the host such a bit would mean something */
}

static void a_file_size_limit_holds_on_a_volume(void **state) {
    struct place *p = *state;
    struct stat st;
    mayfly_result *r =
        live_python("import errno\n"
                    "try:\n"
                    "    with open('/tmp/in/made', 'wb', 0) as f:\n"
                    "        while True: f.write(b'x' * 4096)\n"
                    "except OSError as e: print(errno.errorcode[e.errno])\n",
                    "volume", volume(p, "", "/tmp/in:rw"), "ulimit", "fsize=65536", NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "EFBIG\n");
    assert_int_equal(stat(in(p, "made"), &st), 0);
    assert_int_equal(st.st_size, 65536);
    mayfly_result_free(r);
}

/* What is handed in again from within a writable volume could be a link by then, to anything of the host's; but for what
 * is mounted over its own place, which nobody in the box can rename. */
static void what_lies_in_a_writable_volume_is_handed_in_over_itself_or_not_at_all(void **state) {
    struct place *p = *state;
    char own[160], other[160], root[160];

    make_dir(p, "sub");
    put(p, "sub/file", "kept");
    (void)volume(p, "", "/tmp/in:rw");
    (void)snprintf(own, sizeof(own), "%s/sub:/tmp/in/sub", p->dir);
    (void)snprintf(other, sizeof(other), "%s/sub:/tmp/sub", p->dir);
    (void)snprintf(root, sizeof(root), "%s/sub", p->dir);
    mayfly_result *r = live_python("import os\n"
                                   "print(open('/tmp/in/sub/file').read())\n"
                                   "for do in (lambda: os.rename('/tmp/in/sub', '/tmp/in/x'),\n"
                                   "           lambda: open('/tmp/in/sub/file', 'w')):\n"
                                   "    try: do()\n"
                                   "    except OSError as e: print(e.strerror)\n",
                                   "volume", p->volume, "volume", own, NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "kept\nDevice or resource busy\nRead-only file system\n");
    mayfly_result_free(r);
    const char *const refused[][4] = {{"-v", p->volume, "-v", other},
                                      {"-v", own, "-v", p->volume}, /* hidden by the other */
                                      {"-v", p->volume, "--rootfs", root}};
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        const char *argv[] = {"run",         "--rootfs",    live_env("MAYFLY_ROOTFS"),
                              refused[i][0], refused[i][1], refused[i][2],
                              refused[i][3], "true",        NULL};
        struct live_output *o = live_program(argv, -1);
        if (o->exit_code != 125 || !strstr(o->err, "which the code may write to"))
            fail_msg("%d %s", o->exit_code, o->err);
        free(o);
    }
}

/* A listing of the rootfs, as far as a write would change it. */
static uint64_t rootfs_print(void) {
    const char *const dirs[] = {"",         "/etc", "/usr",  "/usr/bin",
                                "/usr/lib", "/var", "/home", "/tmp"};
    uint64_t h = 0;

    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        char path[4200];
        struct stat st;

        (void)snprintf(path, sizeof(path), "%s%s", live_env("MAYFLY_ROOTFS"), dirs[i]);
        if (stat(path, &st) == 0)
            h = h * 31 + (uint64_t)st.st_mtim.tv_sec * 1000000007u + (uint64_t)st.st_mtim.tv_nsec +
                (uint64_t)live_count_dir(path);
    }
    return h;
}

static void the_root_cannot_be_written(void **state) {
    (void)state;
    live_prints(
        "import errno, os\n"
        "for d in '/', '/etc', '/usr/bin', '/var', '/dev', '/proc':\n"
        "    try: os.close(os.open(d + '/x', os.O_CREAT | os.O_WRONLY)); print(d, 'written')\n"
        "    except OSError as e:\n"
        "        if e.errno not in (errno.EROFS, errno.EACCES, errno.ENOENT): print(d, e)\n"
        "print(os.statvfs('/').f_flag & os.ST_RDONLY)\n",
        "1\n");
}

static void a_writable_root_takes_writes_and_keeps_none(void **state) {
    (void)state;
    const char *code = "import os\n"
                       "print(os.path.exists('/var/tmp/kept'))\n"
                       "os.mkdir('/var/tmp/kept')\n"
                       "open('/var/tmp/kept/file', 'w').write('x')\n"
                       "print(open('/var/tmp/kept/file').read())\n";
    struct stat st;

    if (stat(live_env("MAYFLY_ROOTFS"), &st) == 0 && geteuid() != 0 && st.st_uid != geteuid())
        live_skip("a rootfs of one's own",
                  "overlayfs copies no directory whose owner has no id in the box");
    uint64_t before = rootfs_print();
    struct live_host host = live_look();

    for (int i = 0; i < 2; i++) {
        struct mayfly_error e = {0};
        struct mayfly_input input = {.code = code, .code_len = strlen(code)};
        mayfly_policy *policy = live_policy();
        mayfly_result *r = NULL;

        live_set(policy, "read-only", "false");
        if (mayfly_policy_python(policy, NULL, &e) < 0)
            fail_msg("%s", e.message);
        if (mayfly_run(policy, &input, &r, &e) < 0) {
            mayfly_policy_free(policy);
            if (!strstr(e.message, "overlay"))
                fail_msg("%s", e.message);
            assert_string_equal(e.control, "mount");
            live_skip("overlayfs in a user namespace", e.message);
        }
        live_expect(r, MAYFLY_EXITED, 0);
        assert_string_equal(r->out.data, "False\nx\n");
        mayfly_result_free(r);
        mayfly_policy_free(policy);
    }
    assert_int_equal(rootfs_print(), before);
    live_same(host);
}

/* ------------------------------------------------------------------ what is refused */

/* The run, or the policy, must be refused with these words. */
static void refused(const char *value, enum mayfly_error_kind kind, const char *word) {
    const char *argv[] = {"true", NULL};
    struct mayfly_error e = {0};
    struct live_host before = live_look();
    mayfly_policy *policy = live_policy();
    mayfly_result *r = NULL;

    assert_int_equal(mayfly_policy_command(policy, argv, &e), 0);
    if (mayfly_policy_set(policy, "volume", value, &e) == 0 &&
        mayfly_run(policy, NULL, &r, &e) == 0) {
        mayfly_result_free(r);
        fail_msg("%s was not refused", value);
    }
    mayfly_policy_free(policy);
    if (e.kind != kind || !strstr(e.message, word))
        fail_msg("%s: kind %d, not %d with the word %s: %s", value, e.kind, kind, word, e.message);
    live_same(before);
}

static void a_source_that_is_not_there_is_refused(void **state) {
    struct place *p = *state;

    refused(volume(p, "missing", "/tmp/in"), MAYFLY_E_USAGE, "missing");
}

static void a_socket_a_fifo_and_a_device_are_refused(void **state) {
    struct place *p = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", in(p, "socket"));
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    refused(volume(p, "socket", "/tmp/in"), MAYFLY_E_USAGE, "socket");
    (void)close(fd);
    assert_int_equal(mkfifo(in(p, "fifo"), 0666), 0);
    refused(volume(p, "fifo", "/tmp/in"), MAYFLY_E_USAGE, "fifo");
    refused("/dev/null:/tmp/in", MAYFLY_E_USAGE, "/dev/null");
}

static void a_target_that_is_not_in_the_rootfs_is_refused(void **state) {
    struct place *p = *state;

    refused(volume(p, "", "/no/such/place"), MAYFLY_E_SETUP, "/tmp or /home");
}

static void targets_that_would_cover_what_the_box_needs_are_refused(void **state) {
    struct place *p = *state;
    const char *targets[] = {"/",         "/proc", "/proc/self", "/dev",
                             "/dev/null", "/sys",  "/tmp/../etc"};

    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
        refused(volume(p, "", targets[i]), MAYFLY_E_USAGE, targets[i]);
}

static void a_target_is_made_where_the_box_writes(void **state) {
    struct place *p = *state;
    const char *targets[] = {"/tmp/a", "/tmp/a/b/c", "/home/box/data", "/home/elsewhere/data"};

    put(p, "file", "handed in");
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        char code[128];
        (void)snprintf(code, sizeof(code), "print(open('%s/file').read())\n", targets[i]);
        mayfly_result *r = live_python(code, "volume", volume(p, "", targets[i]), NULL);

        live_expect(r, MAYFLY_EXITED, 0);
        assert_string_equal(r->out.data, "handed in\n");
        mayfly_result_free(r);
    }
}

static void a_target_in_the_rootfs_is_covered(void **state) {
    struct place *p = *state;

    put(p, "file", "handed in");
    mayfly_result *r =
        live_python("import os\nprint(os.listdir('/srv'), open('/srv/file').read())\n", "volume",
                    volume(p, "", "/srv"), NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "['file'] handed in\n");
    mayfly_result_free(r);
}

/* A rootfs is an untrusted image: what it has as links must not steer a mount. */
static void a_target_that_is_a_link_in_the_rootfs_is_refused(void **state) {
    struct place *p = *state;
    const char *links[] = {"/var/lock", "/var/run", "/bin"}; /* links in Debian's */
    bool tried = false;

    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        char path[4200];
        struct stat st;

        (void)snprintf(path, sizeof(path), "%s%s", live_env("MAYFLY_ROOTFS"), links[i]);
        if (lstat(path, &st) < 0 || !S_ISLNK(st.st_mode))
            continue;
        tried = true;
        refused(volume(p, "", links[i]), MAYFLY_E_SETUP, "openat2");
    }
    assert_true(tried);
}

static void a_rootfs_whose_mount_points_are_links_is_refused(void **state) {
    struct place *p = *state;
    const char *argv[] = {"true", NULL};
    const char *names[] = {"proc", "dev", "tmp"};
    struct live_host before = live_look();

    /* One of /proc, /dev and /tmp of each is a link to the host's, if links were followed. */
    for (size_t i = 0; i < 3; i++) {
        char path[160], target[160], root[16];

        (void)snprintf(root, sizeof(root), "rootfs%zu", i);
        make_dir(p, root);
        for (size_t k = 0; k < 3; k++) {
            (void)snprintf(path, sizeof(path), "%s/%s/%s", p->dir, root, names[k]);
            (void)snprintf(target, sizeof(target), "/%s", names[k]);
            assert_int_equal(k == i ? symlink(target, path) : mkdir(path, 0755), 0);
        }
        struct mayfly_error e = {0};
        mayfly_policy *policy = live_policy();
        mayfly_result *r = NULL;

        live_set(policy, "rootfs", in(p, root));
        assert_int_equal(mayfly_policy_command(policy, argv, &e), 0);
        int answer = mayfly_run(policy, NULL, &r, &e);
        mayfly_policy_free(policy);
        if (answer == 0)
            fail_msg("/%s is a link, and it ran: %s", names[i], r->out.data);
        if (e.kind != MAYFLY_E_SETUP || !strstr(e.message, "real directory"))
            fail_msg("/%s: %s", names[i], e.message);
    }
    live_same(before);
}

/* So that nested mounts are seen by nobody else and gone with this process. */
static int own_mounts(void **state) {
    (void)state;
    if (geteuid() != 0)
        return 0;
    return unshare(CLONE_NEWNS) < 0 ? -1 : mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define IN_PLACE(f) cmocka_unit_test_setup_teardown(f, make_place, remove_place)
        IN_PLACE(a_volume_is_read_only_unless_said_otherwise),
        IN_PLACE(a_mount_inside_a_read_only_volume_is_read_only_too),
        IN_PLACE(a_single_file_can_be_handed_in),
        IN_PLACE(a_volume_is_nosuid_and_nodev),
        IN_PLACE(a_link_in_a_volume_does_not_lead_out_of_the_box),
        IN_PLACE(several_volumes_stand_side_by_side),
        IN_PLACE(a_writable_volume_takes_the_codes_files_and_gives_them_no_privilege),
        IN_PLACE(what_lies_in_a_writable_volume_is_handed_in_over_itself_or_not_at_all),
        IN_PLACE(a_file_size_limit_holds_on_a_volume),
        cmocka_unit_test(the_root_cannot_be_written),
        cmocka_unit_test(a_writable_root_takes_writes_and_keeps_none),
        IN_PLACE(a_source_that_is_not_there_is_refused),
        IN_PLACE(a_socket_a_fifo_and_a_device_are_refused),
        IN_PLACE(a_target_that_is_not_in_the_rootfs_is_refused),
        IN_PLACE(targets_that_would_cover_what_the_box_needs_are_refused),
        IN_PLACE(a_target_is_made_where_the_box_writes),
        IN_PLACE(a_target_in_the_rootfs_is_covered),
        IN_PLACE(a_target_that_is_a_link_in_the_rootfs_is_refused),
        IN_PLACE(a_rootfs_whose_mount_points_are_links_is_refused),
    };

    return cmocka_run_group_tests(tests, own_mounts, NULL);
}
