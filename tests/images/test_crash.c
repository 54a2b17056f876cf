/*
 * test_crash.c: an import that is killed, runs out of disk, or goes on twenty times at once: the store has the image whole
 * or not at all, and the next import is right.
 */
#include "layers.h"
#include "live/live.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#include "base/banned.h"

enum { FILES = 300, FILE_BYTES = 16 << 10 };

static char archive[128]; /* of an image of some megabytes, "crash:1" */

static int import_quietly(const char *store, int *ret_status, char *said, size_t size) {
    const char *argv[] = {"import", archive, NULL};
    FILE *out = tmpfile();
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    assert_non_null(out);
    (void)setenv("MAYFLY_STORE", store, 1);
    pid_t pid = live_spawn(argv, -1, null, fileno(out));
    if (ret_status) {
        while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
            ;
        (void)live_slurp(fileno(out), said, size);
    }
    (void)fclose(out);
    (void)close(null);
    return pid;
}

static void import_well(const char *store) {
    char said[4096];
    int status = -1;

    (void)import_quietly(store, &status, said, sizeof(said));
    if (status != 0)
        fail_msg("%s", said);
}

static int set_archive(void **state) {
    (void)state;
    void *p = NULL;
    static char name[FILES][40], content[FILE_BYTES + 1];
    static struct tar_entry e[FILES + 1];
    struct test_image i = {0};
    struct err err = {0};
    struct store *s;

    if (set_place(&p) < 0)
        return -1;
    struct place *place = p;
    unsigned seed = 1;
    for (size_t k = 0; k < FILE_BYTES; k++)
        content[k] = (char)('a' + (seed = seed * 1103515245u + 12345u) / 65536 % 26);
    for (int k = 0; k < FILES; k++) {
        (void)snprintf(name[k], sizeof(name[k]), "usr/d%d/f%d", k % 20, k);
        e[k] = (struct tar_entry){.type = '0', .name = name[k], .content = content};
    }
    add_layer(&i, e);
    LAYER(&i, {.type = '0', .name = "usr/d1/.wh..wh..opq"},
          {.type = '0', .name = "usr/last", .content = "last"});
    s = open_place(place);
    put_image(s, &i);
    assert_ok(store_tag(s, "docker.io/library/crash:1",
                        "application/vnd.oci.image.manifest.v1+json", i.manifest, i.manifest_size,
                        &err),
              err);
    store_close(s);
    (void)snprintf(archive, sizeof(archive), "%s.tar", place->dir);
    (void)setenv("MAYFLY_STORE", place->store, 1);
    struct live_output *o =
        live_program((const char *const[]){"export", "-o", archive, "crash:1", NULL}, -1);
    int code = o->exit_code;
    free(o);
    return drop_place(&p) < 0 || code != 0 ? -1 : 0;
}

static int drop_archive(void **state) {
    (void)state;
    return unlink(archive);
}

/* Whole, or not there. Returns whether it is there. */
static bool check_store(const char *path) {
    struct store *s = NULL;
    struct err err = {0};
    json_t *index = NULL;
    struct index_entry e;
    char link[200], target[256], file[400], text[16];
    bool there = false;

    assert_ok(store_open_reading(path, &s, &err), err);
    int r = index_read(s->dir, &index, &err);
    if (r == -ENOENT)
        return store_close(s), false; /* killed while it was making the store */
    assert_ok(r, err);
    for (size_t i = 0; index_at(index, i, &e); i++) {
        there = true;
        assert_string_equal(e.name, "docker.io/library/crash:1");
        (void)snprintf(link, sizeof(link), "images/%s", strchr(e.digest, ':') + 1);
        ssize_t n = readlinkat(s->dir, link, target, sizeof(target) - 1);
        assert_true(n > 3);
        target[n] = '\0';
        (void)snprintf(file, sizeof(file), "%s/fs/usr/last", target + 3);
        assert_int_equal(file_read_at(s->dir, file, text, sizeof(text)), 4);
        (void)snprintf(file, sizeof(file), "%s/fs/usr/d2", target + 3);
        assert_int_equal(count_in(s->dir, file), FILES / 20);
        (void)snprintf(file, sizeof(file), "%s/fs/usr/d1", target + 3);
        assert_int_equal(count_in(s->dir, file), 0);
        (void)snprintf(file, sizeof(file), "%s/summary.json", target + 3);
        assert_int_equal(faccessat(s->dir, file, F_OK, 0), 0);
    }
    json_decref(index);
    store_close(s);
    return there;
}

static void killed_anywhere_it_is_whole_or_not_there(void **state) {
    const struct place *p = *state;
    int there = 0, killed = 0, times = live_times(16);
    double whole_ms;

    double begin = live_now_ms();
    import_well(p->store);
    whole_ms = live_now_ms() - begin;
    assert_true(check_store(p->store));
    for (int k = 0; k < times; k++) {
        int status = -1;
        if (k % 4 == 0) /* from nothing; else from what the killed ones left */
            assert_int_equal(tree_remove(AT_FDCWD, p->store, NULL), 0);
        pid_t pid = import_quietly(p->store, NULL, NULL, 0);
        live_sleep_ms(whole_ms * 1.6 * (double)k / (double)times);
        (void)kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        killed += WIFSIGNALED(status);
        if (access(p->store, F_OK) == 0)
            there += check_store(p->store);
    }
    print_message("%d of %d were killed; the image was there after %d\n", killed, times, there);
    assert_true(killed >
                times / 8); /* the machine may be busier or idler than when it was measured */
    import_well(p->store);
    assert_true(check_store(p->store));
    /* The unpacking processes of the killed die with them; what they left, the next writer removes. */
    struct store *s = NULL;
    for (int i = 0; i < 100; i++) {
        s = open_place(p);
        bool clean = count_in(s->dir, "tmp") == 0;
        store_close(s);
        if (clean)
            return;
        live_sleep_ms(20);
    }
    fail_msg("tmp/ is not empty");
}

/* ------------------------------------------------------------------ no space */

static void in_a_small_file_system(const struct place *p, unsigned kib) {
    char options[64], said[4096], store[160];
    int status = -1;
    struct statfs before, after;

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        _exit(50);
    (void)snprintf(options, sizeof(options), "size=%uk", kib);
    if (mkdir(p->store, 0755) < 0 && errno != EEXIST)
        _exit(51);
    if (mount("none", p->store, "tmpfs", 0, options) < 0)
        _exit(52);
    (void)snprintf(store, sizeof(store), "%s/s", p->store);
    struct store *s = NULL;
    struct err err = {0};
    if (store_open_writable(store, &s, &err) < 0)
        _exit(0); /* too small for even that, and it said so */
    store_close(s);
    (void)statfs(p->store, &before);
    (void)import_quietly(store, &status, said, sizeof(said));
    bool there = check_store(store);
    if (WEXITSTATUS(status) == 0 ? !there : there)
        fail_msg("%u KiB: exit %d, and the image is %s", kib, WEXITSTATUS(status),
                 there ? "there" : "not there");
    if (there)
        _exit(1);
    if (!strstr(said, "No space left") || !strstr(said, "--store") ||
        strchr(said, '\n') != said + strlen(said) - 1)
        fail_msg("%u KiB: %s", kib, said);
    /* What came in whole is kept, the rest is gone: so a prune gives all of it back. */
    struct live_output *o = live_program((const char *const[]){"prune", NULL}, -1);
    (void)statfs(p->store, &after);
    if (o->exit_code != 0 || after.f_bfree + 64 < before.f_bfree)
        fail_msg("%u KiB: %llu blocks are lost: %s", kib,
                 (unsigned long long)(before.f_bfree - after.f_bfree), o->err);
    _exit(0);
}

static void without_space_it_says_so_and_leaves_nothing(void **state) {
    const struct place *p = *state;
    bool fitted = false;

    if (geteuid() != 0)
        live_skip("root", "a file system of its own takes a mount");
    static const unsigned sizes[] = {64, 300, 1000, 3000, 5000, 5400, 7000, 9000, 10000, 30000};
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        pid_t pid = fork();
        int status = -1;
        assert_true(pid >= 0);
        if (pid == 0) {
            in_a_small_file_system(p, sizes[k]);
            _exit(99);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
        assert_true(WEXITSTATUS(status) == 1 || !fitted); /* what fits fits in more */
        fitted |= WEXITSTATUS(status) == 1;
    }
    assert_true(fitted);
}

static void twenty_at_once_are_all_right(void **state) {
    enum { AT_ONCE = 20 };
    const struct place *p = *state;
    pid_t pids[AT_ONCE];

    for (int k = 0; k < AT_ONCE; k++)
        pids[k] = import_quietly(p->store, NULL, NULL, 0);
    for (int k = 0; k < AT_ONCE; k++) {
        int status = -1;
        assert_int_equal(waitpid(pids[k], &status, 0), pids[k]);
        assert_int_equal(status, 0);
    }
    assert_true(check_store(p->store));
    struct store *s = open_place(p);
    assert_int_equal(count_in(s->dir, "tmp"), 0);
    assert_int_equal(count_in(s->dir, "unpacked"), 1);
    assert_int_equal(count_in(s->dir, "blobs/sha256"), 4);
    store_close(s);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_place, drop_place)
    const struct CMUnitTest tests[] = {
        TEST(killed_anywhere_it_is_whole_or_not_there),
        TEST(without_space_it_says_so_and_leaves_nothing),
        TEST(twenty_at_once_are_all_right),
    };
    return cmocka_run_group_tests(tests, set_archive, drop_archive);
}
