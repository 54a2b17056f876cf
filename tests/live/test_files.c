/*
 * test_files.c: files in and out. What is handed in is there, whole and read-only; what the code leaves in /out is
 * brought back however the run ended; and whatever else it leaves there (links, fifos, names, sizes, numbers) harms
 * nothing and is told.
 *
 * Called by root, the tests have a mount namespace of their own, to fill a disk in.
 */
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "live/live.h"
#include "tree.h"

#include "base/banned.h"

/* ------------------------------------------------------------------ a directory of the test's own */

static int make_place(void **state) {
    char *dir = strdup("/tmp/mayfly-files-XXXXXX");

    *state = dir;
    return dir && mkdtemp(dir) && chmod(dir, 0755) == 0 ? 0 : -1;
}

static int remove_place(void **state) {
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/full", (char *)*state);
    (void)umount2(path, MNT_DETACH);
    int r = remove_tree(*state);
    free(*state);
    return r;
}

static const char *in(const char *place, const char *name) {
    static char path[4][512];
    static int next;

    next = (next + 1) % 4;
    (void)snprintf(path[next], sizeof(path[next]), "%s/%s", place, name);
    return path[next];
}

static void put(const char *path, const char *text) {
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void assert_holds(const char *path, const char *text) {
    char got[256] = "";
    FILE *f = fopen(path, "re");

    if (!f)
        fail_msg("%s: %s", path, strerror(errno));
    got[fread(got, 1, sizeof(got) - 1, f)] = '\0';
    (void)fclose(f);
    assert_string_equal(got, text);
}

static const struct mayfly_file *find(const mayfly_result *r, const char *name) {
    for (size_t i = 0; i < r->n_files; i++)
        if (strcmp(r->files[i].name, name) == 0)
            return &r->files[i];
    return NULL;
}

static void assert_brought(const mayfly_result *r, const char *name, const char *text) {
    const struct mayfly_file *f = find(r, name);

    if (!f)
        fail_msg("%s was not brought back\n%s", name, r->err.data);
    assert_int_equal(f->bytes, strlen(text));
    if (f->data)
        assert_memory_equal(f->data, text, f->bytes);
}

static void assert_skipped(const mayfly_result *r, const char *name, const char *why) {
    for (size_t i = 0; i < r->n_skipped; i++)
        if (strcmp(r->skipped[i].name, name) == 0) {
            if (!strstr(r->skipped[i].reason, why))
                fail_msg("%s: %s; expected: %s", name, r->skipped[i].reason, why);
            return;
        }
    fail_msg("%s is not among what was skipped", name);
}

/* ------------------------------------------------------------------ in */

static mayfly_result *python_with(mayfly_policy *policy, const char *code) {
    struct mayfly_input input = {.code = code, .code_len = strlen(code)};
    struct mayfly_error e = {0};

    if (mayfly_policy_python(policy, NULL, &e) < 0)
        fail_msg("%s", e.message);
    return live_run(policy, &input);
}

static void files_are_there_whole_and_cannot_be_changed(void **state) {
    mayfly_policy *policy = live_policy();
    struct mayfly_error e = {0};
    char file[200];

    put(in(*state, "host.txt"), "from the host");
    assert_int_equal(chmod(in(*state, "host.txt"), 0600), 0); /* for us, not for the box's ids */
    (void)snprintf(file, sizeof(file), "a/b/c.txt=%s/host.txt", (char *)*state);
    live_set(policy, "file", file);
    if (mayfly_policy_file(policy, "a/data", "\0\xff\n", 3, &e) < 0 ||
        mayfly_policy_file(policy, "empty", NULL, 0, &e) < 0 ||
        mayfly_policy_json(policy,
                           "{\"file\":[{\"name\":\"t\",\"text\":\"\\u00fc\"},"
                           "{\"name\":\"b\",\"base64\":\"AP8=\"}]}",
                           68, &e) < 0)
        fail_msg("%s", e.message);
    mayfly_result *r = python_with(
        policy,
        "import os\n"
        "for d, _, names in sorted(os.walk('/in')):\n"
        "    for n in sorted(names): print(d, n, open(d + '/' + n, 'rb').read())\n"
        "def no(f, *a):\n"
        "    try: f(*a); print('done')\n"
        "    except OSError as e: pass\n"
        "no(open, '/in/t', 'w'); no(open, '/in/new', 'w'); no(os.unlink, '/in/t')\n"
        "no(os.chmod, '/in/t', 0o777); no(os.mkdir, '/in/d'); no(os.rename, '/in/t', '/in/u')\n"
        "no(os.link, '/in/t', '/tmp/t'); no(os.truncate, '/in/t', 0)\n");
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "/in b b'\\x00\\xff'\n/in empty b''\n/in t b'\\xc3\\xbc'\n"
                                     "/in/a data b'\\x00\\xff\\n'\n"
                                     "/in/a/b c.txt b'from the host'\n");
    mayfly_result_free(r);
    /* The same policy again, and a box that waits for its code. */
    mayfly_box *box = NULL;
    const struct mayfly_input input = {.code = "print(open('/in/t').read())", .code_len = 27};
    if (mayfly_open(policy, &box, &e) < 0 || mayfly_start(box, &input, &e) < 0 ||
        mayfly_wait(box, &r, &e) < 0)
        fail_msg("%s", e.message);
    assert_string_equal(r->out.data, "\xc3\xbc\n");
    assert_int_equal(r->has_files, 0);
    mayfly_result_free(r);
    mayfly_close(box);
    mayfly_policy_free(policy);
}

static void files_count_in_the_boxs_memory(void **state) {
    mayfly_policy *policy = live_policy();
    struct mayfly_error e = {0};
    char *data = calloc(1, 24 << 20);

    (void)state;
    live_need_cgroups();
    assert_non_null(data);
    memset(data, 'x', 24 << 20);
    assert_int_equal(mayfly_policy_file(policy, "big", data, 24 << 20, &e), 0);
    mayfly_result *r = python_with(policy, "print(len(open('/in/big').read()))");
    assert_string_equal(r->out.data, "25165824\n");
    if (r->memory_peak_bytes != UINT64_MAX)
        assert_true(r->memory_peak_bytes > 24 << 20);
    mayfly_result_free(r);
    live_set(policy, "memory", "24m");
    assert_true(mayfly_run(policy, NULL, &r, &e) < 0);
    assert_non_null(strstr(e.message, "do not fit into --memory"));
    mayfly_policy_free(policy);
    free(data);
}

/* ------------------------------------------------------------------ out */

static void files_come_back_into_a_directory_that_is_made(void **state) {
    char dir[200];
    struct stat st;

    (void)snprintf(dir, sizeof(dir), "%s/made", (char *)*state);
    mayfly_result *r = live_python("import os\n"
                                   "open('/out/a.txt', 'w').write('one')\n"
                                   "os.makedirs('/out/d/e'); os.mkdir('/out/empty')\n"
                                   "open('/out/d/e/b.bin', 'w').write('two')\n"
                                   "os.chmod('/out/a.txt', 0o777)\n"
                                   "open('/out/' + 'n' * 255, 'w').write('three')\n",
                                   "out", dir, NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_int_equal(r->n_files, 3);
    assert_int_equal(r->skipped_total, 0);
    assert_string_equal(r->files[0].name, "a.txt"); /* by name */
    assert_null(r->files[0].data);
    assert_holds(in(dir, "a.txt"), "one");
    assert_holds(in(dir, "d/e/b.bin"), "two");
    assert_holds(in(dir, r->files[2].name), "three");
    assert_int_equal(stat(in(dir, "empty"), &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(stat(in(dir, "a.txt"), &st), 0);
    assert_int_equal(st.st_mode & 07111, 0); /* nobody executes it */
    assert_int_equal(st.st_uid, geteuid());
    mayfly_result_free(r);
}

static void nothing_that_is_there_is_replaced_or_entered(void **state) {
    char dir[200], elsewhere[200];

    (void)snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", (char *)*state);
    (void)snprintf(dir, sizeof(dir), "%s/link", (char *)*state); /* the operator's own link */
    assert_int_equal(mkdir(elsewhere, 0755), 0);
    assert_int_equal(mkdir(in(*state, "real"), 0755), 0);
    assert_int_equal(symlink("real", dir), 0);
    assert_int_equal(mkdir(in(dir, "own"), 0755), 0);
    assert_int_equal(symlink(elsewhere, in(dir, "away")), 0);
    assert_int_equal(symlink(in(elsewhere, "target"), in(dir, "dangling")), 0);
    put(in(dir, "kept"), "ours");
    mayfly_result *r = live_python("import os\n"
                                   "for d in ('own', 'away'):\n"
                                   "    os.mkdir('/out/' + d)\n"
                                   "    open('/out/' + d + '/x', 'w').write('theirs')\n"
                                   "for n in ('kept', 'dangling', 'new'):\n"
                                   "    open('/out/' + n, 'w').write('theirs')\n",
                                   "out", dir, NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_int_equal(r->n_files, 1);
    assert_holds(in(dir, "new"), "theirs");
    assert_holds(in(*state, "real/new"), "theirs");
    assert_holds(in(dir, "kept"), "ours");
    assert_skipped(r, "kept", "already");
    assert_skipped(r, "dangling", "already");
    assert_skipped(r, "own", "nothing that is in it");
    assert_skipped(r, "away", "nothing that is in it");
    assert_int_equal(r->skipped_total, 4);
    assert_int_equal(access(in(dir, "own/x"), F_OK), -1);
    assert_int_equal(rmdir(elsewhere), 0); /* empty */
    mayfly_result_free(r);
}

static void a_directory_that_cannot_be_had_is_told_before_the_run(void **state) {
    static const char *const places[] = {"no/such", "file", "file/below"};

    put(in(*state, "file"), "");
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const char *argv[] = {"python", "--out", in(*state, places[i]), "-c", "print('ran')", NULL};
        struct live_output *o = live_program(argv, -1);

        assert_int_equal(o->exit_code, 125);
        assert_string_equal(o->out, "");
        if (!strstr(o->err, "--out: ") || !strstr(o->err, "name a directory that you may write to"))
            fail_msg("%s", o->err);
        free(o);
    }
    if (geteuid() != 0) {
        const char *argv[] = {"python", "--out", "/usr", "-c", "print('ran')", NULL};
        struct live_output *o = live_program(argv, -1);
        assert_int_equal(o->exit_code, 125);
        assert_non_null(strstr(o->err, "Permission denied"));
        free(o);
    }
}

static void files_come_back_whatever_ended_the_run(void **unused) {
    char timeout[32];
    static const char write[] = "import os, time\nopen('/out/x', 'w').write('kept')\n";
    char code[400];

    (void)unused;
    (void)snprintf(timeout, sizeof(timeout), "%dms", (int)(200 + 500 * live_slow()));
    (void)snprintf(code, sizeof(code), "%stime.sleep(100)", write);
    mayfly_result *r = live_python(code, "out", "-", "timeout", timeout, NULL);
    live_expect(r, MAYFLY_TIMED_OUT, 124);
    assert_brought(r, "x", "kept");
    mayfly_result_free(r);
    (void)snprintf(code, sizeof(code), "%sos.kill(os.getpid(), 9)", write);
    r = live_python(code, "out", "-", NULL);
    live_expect(r, MAYFLY_SIGNALED, 137);
    assert_brought(r, "x", "kept");
    mayfly_result_free(r);
    (void)snprintf(code, sizeof(code), "%sos._exit(3)", write);
    r = live_python(code, "out", "-", NULL);
    live_expect(r, MAYFLY_EXITED, 3);
    assert_brought(r, "x", "kept");
    mayfly_result_free(r);
    r = live_sh("exec /no/such", "out", "-", NULL);
    assert_int_equal(r->n_files, 0);
    mayfly_result_free(r);
    if (!live_has_cgroups())
        return;
    (void)snprintf(code, sizeof(code), "%sb = bytearray(200 << 20)", write);
    r = live_python(code, "out", "-", "memory", "32m", NULL);
    live_expect(r, MAYFLY_OOM_KILLED, 137);
    assert_brought(r, "x", "kept");
    mayfly_result_free(r);
}

static void what_is_no_plain_file_is_left_and_told(void **state) {
    char volume[200];
    static const char code[] =
        "import os, socket\n"
        "os.chdir('/out')\n"
        "open('good', 'w').write('good')\n"
        "os.symlink('/etc/passwd', 'link'); os.symlink('/', 'root'); os.symlink('good', 'own')\n"
        "os.mkfifo('fifo'); s = socket.socket(socket.AF_UNIX); s.bind('socket')\n"
        "for mode in (0o020666, 0o060666):\n"
        "    try: os.mknod('device', mode, os.makedev(1, 3)); print('a device')\n"
        "    except OSError: pass\n"
        "try: os.link('/tmp/in/secret', 'hard'); print('a hard link')\n"
        "except OSError: pass\n"
        "open(b'new\\nline', 'w'); open(b'esc\\x1b[2J', 'w'); open(b'latin\\xff', 'w')\n"
        "open('...', 'w').write('three dots'); open(' ', 'w').write('blank')\n"
        "os.mkdir('bad\\n'); open('bad\\n/in', 'w')\n"
        "open('none', 'w').write('mode 0'); os.chmod('none', 0)\n"
        "os.mkdir('closed'); open('closed/x', 'w').write('closed'); os.chmod('closed', 0)\n"
        "os.link('good', 'twice')\n"
        "d = 'deep'\n"
        "for i in range(40):\n"
        "    os.mkdir(d); os.chdir(d)\n"
        "    open('f', 'w').write('f')\n";

    put(in(*state, "secret"), "secret");
    (void)snprintf(volume, sizeof(volume), "%s:/tmp/in", (char *)*state);
    mayfly_result *r = live_python(code, "out", "-", "volume", volume, NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "");
    assert_brought(r, "good", "good");
    assert_brought(r, "twice", "good"); /* a copy */
    assert_brought(r, "...", "three dots");
    assert_brought(r, " ", "blank");
    assert_brought(r, "none", "mode 0");
    assert_brought(r, "closed/x", "closed");
    assert_skipped(r, "link", "symbolic link");
    assert_skipped(r, "root", "symbolic link");
    assert_skipped(r, "own", "symbolic link");
    assert_skipped(r, "fifo", "neither a file nor a directory");
    assert_skipped(r, "socket", "neither a file nor a directory");
    assert_skipped(r, "new\nline", "control character");
    assert_skipped(r, "esc\x1b[2J", "control character");
    assert_skipped(r, "latin\xff", "UTF-8");
    assert_skipped(r, "bad\n", "nothing that is in it");
    assert_null(find(r, "hard"));
    size_t deep = 0;
    for (size_t i = 0; i < r->n_files; i++)
        deep += strncmp(r->files[i].name, "deep/", 5) == 0;
    assert_int_equal(deep, 32);
    assert_int_equal(r->n_files, 6 + deep);
    assert_int_equal(r->skipped_total, 10); /* the above, and the directory that is too deep */
    mayfly_result_free(r);
}

static void sizes_are_bounded_by_what_a_file_says_it_is(void **unused) {
    (void)unused;
    mayfly_result *r = live_python(
        "import os\n"
        "open('/out/small', 'w').write('small')\n"
        "with open('/out/sparse', 'wb') as f: f.truncate(1 << 40)\n"
        "with open('/out/hole', 'wb') as f: f.truncate(6 << 20)\n"
        "for i in range(3): os.link('/out/hole', '/out/hole%d' % i)\n" /* 24 MiB of one file */
        "try:\n"
        "    with open('/out/full', 'wb') as f:\n"
        "        while f.write(bytes(1 << 20)): pass\n"
        "except OSError as e: print(e.strerror)\n"
        "os.unlink('/out/full')\n",
        "out", "-", "out-size", "8m", "ulimit", "fsize=4398046511104", NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "No space left on device\n");
    assert_brought(r, "small", "small");
    assert_skipped(r, "sparse", "is of 1 TiB");
    assert_int_equal(r->n_files, 2);
    assert_int_equal(r->skipped_total, 4);
    uint64_t bytes = 0;
    for (size_t i = 0; i < r->n_files; i++)
        bytes += r->files[i].bytes;
    assert_true(bytes <= 8 << 20);
    mayfly_result_free(r);
}

static void a_hundred_thousand_files_are_bounded_and_counted(void **unused) {
    const int n = live_times(100000);
    char code[300], most[32];

    (void)unused;
    (void)snprintf(code, sizeof(code),
                   "import os\n"
                   "n = 0\n"
                   "try:\n"
                   "    for n in range(%d): os.close(os.open('/out/%%d' %% n, os.O_CREAT))\n"
                   "except OSError as e: print(n, e.strerror)\n",
                   n);
    (void)snprintf(most, sizeof(most), "%d", n / 4 + 1);
    mayfly_result *r =
        live_python(code, "out", "-", "out-files", most, "timeout", "100", "memory", "512m", NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "");
    assert_int_equal(r->n_files, n / 4 + 1);
    assert_int_equal(r->skipped_total, n - (n / 4 + 1));
    assert_true(r->n_skipped <= 100);
    mayfly_result_free(r);
    /* Past what was asked for there is an end inside, too. */
    r = live_python("for n in range(1000): open('/out/%d' % n, 'w')", "out", "-", "out-files", "10",
                    NULL);
    live_expect(r, MAYFLY_EXITED, 1);
    assert_non_null(strstr(r->err.data, "No space left on device"));
    assert_true(r->n_hints > 0 && strstr(r->hints[0], "--out-files"));
    assert_int_equal(r->n_files, 10);
    mayfly_result_free(r);
}

/* A directory that is made is a name and an inode of the caller's, as a file is; in the result it is nothing. */
static void directories_are_bounded_as_files_are(void **state) {
    static const char code[] = "import os\n"
                               "for i in range(15): os.makedirs('/out/%d/in' % i)\n"
                               "open('/out/z', 'w').write('z')\n";
    mayfly_result *r = live_python(code, "out", *state, "out-files", "10", NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    char tree[200];
    long made = live_count_dir(*state) - 2;
    for (int i = 0; i < 15; i++) {
        (void)snprintf(tree, sizeof(tree), "%d/in", i);
        made += access(in(*state, tree), F_OK) == 0;
    }
    assert_int_equal(made, 10);
    assert_true(r->n_skipped >= 5);
    for (size_t i = 0; i < r->n_skipped; i++)
        assert_non_null(strstr(r->skipped[i].reason, "more than 10 files and directories"));
    mayfly_result_free(r);
    r = live_python(code, "out", "-", "out-files", "10", NULL);
    assert_brought(r, "z", "z");
    assert_int_equal(r->skipped_total, 0);
    mayfly_result_free(r);
}

/* What the code may write to is no place for what the next run goes to by name. */
static void a_directory_that_the_code_could_replace_is_refused(void **state) {
    char volume[200];

    (void)snprintf(volume, sizeof(volume), "%s:/data:rw", in(*state, "v"));
    assert_int_equal(mkdir(in(*state, "v"), 0700), 0);
    assert_int_equal(chmod(in(*state, "v"), 0777), 0);
    assert_int_equal(symlink("v/out", in(*state, "link")), 0);
    static const char *const names[] = {"v/out", "link", "v", "v/x/y"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *place = in(*state, names[i]);
        const char *argv[] = {"python", "-v", volume, "--out", place, "-c", "print('ran')", NULL};
        struct live_output *o = live_program(argv, -1);
        if (o->exit_code != 125 || o->out_len || !strstr(o->err, "mayfly: --out: ") ||
            !strstr(o->err, "/v, which the code may write to") ||
            !strstr(o->err, "name one elsewhere, or hand that volume in read-only"))
            fail_msg("%s: %d %s%s", place, o->exit_code, o->out, o->err);
        free(o);
    }
    assert_int_equal(live_count_dir(in(*state, "v")), 2); /* nothing was made */
    volume[strlen(volume) - 3] = '\0';                    /* read-only, and all is well */
    mayfly_result *r = live_python("open('/out/a', 'w').write('a')", "volume", volume, "out",
                                   in(*state, "v/out"), NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_holds(in(*state, "v/out/a"), "a");
    mayfly_result_free(r);
}

/* Were a process of the box alive while its file is copied, the count at the end of the file would be far from that at
 * its beginning: it writes some ten thousand a second, and copying takes milliseconds. */
static void nobody_changes_a_file_while_it_is_copied(void **unused) {
    static const char code[] = "import os, mmap, time\n"
                               "f = os.open('/out/f', os.O_RDWR | os.O_CREAT)\n"
                               "os.write(f, bytes(32 << 20))\n"
                               "if os.fork() == 0:\n"
                               "    os.setsid()\n"
                               "    if os.fork() == 0:\n"
                               "        n = 0\n"
                               "        while True:\n"
                               "            n += 1; b = n.to_bytes(8, 'little')\n"
                               "            os.pwrite(f, b, 0); os.pwrite(f, b, (32 << 20) - 8)\n"
                               "    os._exit(0)\n"
                               "time.sleep(0.1)\n";

    (void)unused;
    mayfly_result *r = live_python(code, "out", "-", NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    const struct mayfly_file *f = find(r, "f");
    uint64_t first, last;
    assert_non_null(f);
    assert_int_equal(f->bytes, 32 << 20);
    memcpy(&first, f->data, 8);
    memcpy(&last, (const char *)f->data + f->bytes - 8, 8);
    if (first < 10 || first - last > 1)
        fail_msg("%llu at the beginning, %llu at the end", (unsigned long long)first,
                 (unsigned long long)last);
    mayfly_result_free(r);
}

static void a_full_disk_loses_the_file_and_says_so(void **state) {
    char dir[200];

    if (geteuid() != 0)
        live_skip("root", "only root can make a small file system");
    (void)snprintf(dir, sizeof(dir), "%s/full", (char *)*state);
    assert_int_equal(mkdir(dir, 0755), 0);
    assert_int_equal(mount("tmpfs", dir, "tmpfs", 0, "size=1m"), 0);
    mayfly_result *r = live_python("open('/out/a', 'wb').write(bytes(3 << 20))\n"
                                   "open('/out/b', 'w').write('b')\n",
                                   "out", dir, NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_int_equal(r->n_files, 1);
    assert_skipped(r, "a", "No space left on device");
    assert_holds(in(dir, "b"), "b");
    assert_int_equal(live_count_dir(dir), 3); /* ., .., b: no half of a */
    mayfly_result_free(r);
}

/* `ulimit -f` of the caller's: a file that is too large for it is no reason to die. */
static void a_limit_of_the_callers_loses_the_file_and_says_so(void **state) {
    const char *argv[] = {"python",
                          "--out",
                          *state,
                          "-c",
                          "open('/out/a', 'wb').write(bytes(1 << 20))\n"
                          "open('/out/b', 'w').write('b')\n",
                          NULL};
    struct rlimit old, low;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    low = (struct rlimit){65536, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    struct live_output *o = live_program(argv, -1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    if (o->exit_code != 0 || !strstr(o->err, "not brought back: /out/a: File too large\n"))
        fail_msg("%d: %s", o->exit_code, o->err);
    free(o);
    assert_holds(in(*state, "b"), "b");
    assert_int_equal(live_count_dir(*state), 3);
}

/* ------------------------------------------------------------------ how it is said */

static void the_program_says_what_it_left_and_json_has_it_all(void **state) {
    static const char code[] = "import os\n"
                               "open('/out/a', 'wb').write(b'\\xff\\x00')\n"
                               "os.symlink('/etc/passwd', '/out/l')\n";
    const char *text[] = {"python", "--out", *state, "-c", code, NULL};
    const char *json[] = {"python", "--out", "-", "--json", "-c", code, NULL};
    const char *both[] = {"python", "--out", "-", "-c", code, NULL};
    struct live_output *o = live_program(text, -1);

    assert_int_equal(o->exit_code, 0);
    assert_string_equal(o->out, "");
    assert_non_null(strstr(o->err, "mayfly: not brought back: /out/l: is a symbolic link\n"));
    free(o);
    assert_int_equal(access(in(*state, "a"), F_OK), 0);
    o = live_program(json, -1);
    assert_int_equal(o->exit_code, 0);
    if (!strstr(o->out, "\"files\":[{\"name\":\"a\",\"bytes\":2,\"base64\":\"/wA=\"}]") ||
        !strstr(o->out, "\"filesSkipped\":[{\"name\":\"l\",\"reason\":\"is a symbolic link\"}]") ||
        !strstr(o->out, "\"filesSkippedTotal\":1"))
        fail_msg("%s", o->out);
    free(o);
    o = live_program(both, -1);
    assert_int_equal(o->exit_code, 125);
    assert_non_null(strstr(o->err, "add --json"));
    free(o);
}

static void copy_into(const char *root, const char *path) {
    char from[4200], to[300], data[4096];
    size_t n;

    (void)snprintf(from, sizeof(from), "%s/%s", live_env("MAYFLY_ROOTFS"), path);
    (void)snprintf(to, sizeof(to), "%s/%s", root, path);
    for (char *p = to + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        (void)mkdir(to, 0755);
        *p = '/';
    }
    FILE *in_file = fopen(from, "re"), *out_file = fopen(to, "we");
    if (!in_file || !out_file)
        live_skip("the rootfs of this project", "another has its programs elsewhere");
    while ((n = fread(data, 1, sizeof(data), in_file)) > 0)
        (void)fwrite(data, 1, n, out_file);
    (void)fclose(in_file);
    assert_int_equal(fclose(out_file), 0);
    assert_int_equal(chmod(to, 0755), 0);
}

static void a_rootfs_without_the_places_gets_them_over_it(void **state) {
    static const char *const files[] = {"usr/bin/dash", "usr/lib/x86_64-linux-gnu/libc.so.6",
                                        "usr/lib64/ld-linux-x86-64.so.2"};
    static const char *const dirs[] = {"proc", "dev", "tmp"};
    const char *argv[] = {
        "/usr/bin/dash", "-c",
        "echo \"$(cat /in/x 2>/dev/null || read -r l </in/x && echo \"$l\")\" >/out/y; "
        "(: >/made) 2>/dev/null || echo kept",
        NULL};
    struct mayfly_error e = {0};
    mayfly_policy *policy = live_policy();
    char root[200];

    (void)snprintf(root, sizeof(root), "%s/root", (char *)*state);
    assert_int_equal(mkdir(root, 0755), 0);
    for (size_t i = 0; i < 3; i++)
        copy_into(root, files[i]);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(mkdir(in(root, dirs[i]), 0755), 0);
    assert_int_equal(symlink("usr/lib64", in(root, "lib64")), 0);
    assert_int_equal(symlink("usr/lib", in(root, "lib")), 0);
    assert_int_equal(symlink("/etc", in(root, "in")), 0); /* no place to mount on */
    live_set(policy, "rootfs", root);
    live_set(policy, "out", "-");
    live_set(policy, "attest", "true");
    if (mayfly_policy_file(policy, "x", "handed on\n", 10, &e) < 0 ||
        mayfly_policy_command(policy, argv, &e) < 0)
        fail_msg("%s", e.message);
    mayfly_result *r = NULL;
    if (mayfly_run(policy, NULL, &r, &e) < 0) {
        /* In words, where the kernel has no such overlay for users. */
        if (strstr(e.message, "make empty directories /in and /out in the rootfs")) {
            print_message("no overlay here: %s\n", e.message);
            mayfly_policy_free(policy);
            return;
        }
        fail_msg("%s", e.message);
    }
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "kept\n");
    assert_brought(r, "y", "handed on\n");
    mayfly_result_free(r);
    mayfly_policy_free(policy);
    assert_int_equal(access(in(root, "out"), F_OK), -1);
}

static void nothing_is_left_of_a_run_with_files(void **state) {
    struct live_host before = live_look();
    mayfly_result *r =
        live_python("open('/out/a', 'w').write('a')", "out", "-", "attest", "true", NULL);

    (void)state;
    live_expect(r, MAYFLY_EXITED, 0);
    assert_brought(r, "a", "a");
    assert_int_equal(r->certificate->mounts, 0);
    assert_int_equal(r->certificate->processes, 0);
    if (r->n_warnings && strstr(r->warnings[r->n_warnings - 1], "certificate"))
        fail_msg("%s", r->warnings[r->n_warnings - 1]);
    mayfly_result_free(r);
    live_same(before);
}

/* The caller's mask is not the box's: the code is read under its own id. */
static void a_callers_umask_changes_nothing_inside(void **state) {
    mode_t old = umask(077);
    mayfly_policy *policy = live_policy();
    struct mayfly_error e = {0};

    (void)state;
    assert_int_equal(mayfly_policy_file(policy, "d/x", "x", 1, &e), 0);
    live_set(policy, "out", "-");
    mayfly_result *r = python_with(policy, "open('/out/y', 'w').write(open('/in/d/x').read())");
    (void)umask(old);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_brought(r, "y", "x");
    mayfly_result_free(r);
    mayfly_policy_free(policy);
}

static int own_mounts(void **state) {
    (void)state;
    if (geteuid() == 0 &&
        (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0))
        return -1;
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define IN_PLACE(f) cmocka_unit_test_setup_teardown(f, make_place, remove_place)
        IN_PLACE(files_are_there_whole_and_cannot_be_changed),
        cmocka_unit_test(files_count_in_the_boxs_memory),
        IN_PLACE(files_come_back_into_a_directory_that_is_made),
        IN_PLACE(nothing_that_is_there_is_replaced_or_entered),
        IN_PLACE(a_directory_that_cannot_be_had_is_told_before_the_run),
        cmocka_unit_test(files_come_back_whatever_ended_the_run),
        IN_PLACE(what_is_no_plain_file_is_left_and_told),
        cmocka_unit_test(sizes_are_bounded_by_what_a_file_says_it_is),
        IN_PLACE(directories_are_bounded_as_files_are),
        IN_PLACE(a_directory_that_the_code_could_replace_is_refused),
        cmocka_unit_test(a_hundred_thousand_files_are_bounded_and_counted),
        cmocka_unit_test(nobody_changes_a_file_while_it_is_copied),
        IN_PLACE(a_full_disk_loses_the_file_and_says_so),
        IN_PLACE(a_limit_of_the_callers_loses_the_file_and_says_so),
        IN_PLACE(the_program_says_what_it_left_and_json_has_it_all),
        IN_PLACE(a_rootfs_without_the_places_gets_them_over_it),
        cmocka_unit_test(nothing_is_left_of_a_run_with_files),
        cmocka_unit_test(a_callers_umask_changes_nothing_inside),
    };

    return cmocka_run_group_tests(tests, own_mounts, NULL);
}
