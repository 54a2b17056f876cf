/*
 * test_store.c: a blob has its name only when it is whole; names of images are never lost, whoever writes at once;
 * what the dead left goes.
 */
#include "images.h"

#include <sys/file.h>

#include "base/banned.h"

static const char hello_digest[] =
    "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"; /* of "hello" */
static const char hello512[] = "sha512:"
                               "9b71d224bd62f3785d96d46ad3ea3d73319bfbc2890caadae2dff72519673ca7232"
                               "3c3d99ba5c11d7c7acc6e14b8c5da0c"
                               "4663475c2e5c3adef46f73bcdec043";
static const char manifest_type[] = "application/vnd.oci.image.manifest.v1+json";

static struct blob_writer *begin(struct store *s, const char *digest, int64_t size,
                                 uint64_t *have) {
    struct blob_writer *w = NULL;
    struct err err = {0};

    assert_ok(blob_begin(s, digest, size, &w, have, &err), err);
    return w;
}

static void a_blob_that_is_right_gets_its_name(void **state) {
    struct store *s = open_place(*state);
    const char *digests[] = {hello_digest, hello512};
    struct err err = {0};

    for (size_t i = 0; i < 2; i++) {
        _cleanup_buf_ struct buf text = {0};
        uint64_t have = 99;
        struct blob_writer *w = begin(s, digests[i], i ? -1 : 5, &have);
        assert_int_equal(have, 0);
        assert_ok(blob_write(w, "hel", 3, &err), err);
        assert_int_equal(blob_exists(s, digests[i], 5), 0);
        assert_ok(blob_write(w, "lo", 2, &err), err);
        assert_ok(blob_commit(w, &err), err);
        assert_int_equal(blob_exists(s, digests[i], 5), 1);
        assert_int_equal(blob_exists(s, digests[i], -1), 1);
        assert_int_equal(blob_exists(s, digests[i], 4), 0);
        assert_ok(blob_read_all(s, digests[i], 5, &text, &err), err);
        assert_string_equal(text.data, "hello");
        assert_int_equal(blob_read_all(s, digests[i], 4, &text, &err), -EFBIG);
        err_clear(&err);
    }
    assert_int_equal(count_in(s->dir, "tmp"), 0);
    store_close(s);
}

static void a_blob_that_is_wrong_gets_none(void **state) {
    struct store *s = open_place(*state);
    struct err err = {0};
    uint64_t have = 0;

    struct blob_writer *w = begin(s, hello_digest, 5, NULL);
    assert_ok(blob_write(w, "jello", 5, &err), err);
    assert_int_equal(blob_commit(w, &err), -EBADMSG);
    assert_non_null(strstr(err.message, "digest"));
    assert_int_equal(count_in(s->dir, "tmp"), 0); /* a wrong one is nothing to go on from */
    err_clear(&err);

    w = begin(s, hello_digest, 5, &have);
    assert_int_equal(blob_write(w, "hello!", 6, &err),
                     -EFBIG); /* not a byte more comes to the disk */
    blob_abandon(w, false);
    err_clear(&err);
    assert_int_equal(blob_begin(s, "sha256:../../x", 1, &w, NULL, &err), -EINVAL);
    assert_int_equal(count_in(s->dir, "blobs/sha256"), 0);
    assert_int_equal(count_in(s->dir, "tmp"), 0);
    store_close(s);
}

static void a_blob_goes_on_where_it_was_cut(void **state) {
    struct store *s = open_place(*state);
    struct err err = {0};
    uint64_t have = 0;

    struct blob_writer *w = begin(s, hello_digest, 5, NULL);
    assert_ok(blob_write(w, "hel", 3, &err), err);
    assert_int_equal(blob_commit(w, &err), -EBADMSG);
    err_clear(&err);
    store_close(s);
    s = open_place(*state);
    w = begin(s, hello_digest, 5, &have);
    assert_int_equal(have, 3);
    struct blob_writer *other =
        begin(s, hello_digest, 5, &have); /* while one has it, another begins anew */
    assert_int_equal(have, 0);
    assert_ok(blob_write(w, "lo", 2, &err), err);
    assert_ok(blob_commit(w, &err), err);
    assert_ok(blob_write(other, "hello", 5, &err), err);
    assert_ok(blob_commit(other, &err), err);

    w = begin(s, hello512, 5, NULL);
    assert_ok(blob_write(w, "junk", 4, &err), err);
    blob_abandon(w, true);
    w = begin(s, hello512, 5, &have);
    assert_int_equal(have, 4);
    assert_ok(blob_restart(w, &err), err);
    assert_ok(blob_write(w, "hello", 5, &err), err);
    assert_ok(blob_commit(w, &err), err);
    assert_int_equal(count_in(s->dir, "tmp"), 0);
    store_close(s);
}

static void what_the_dead_left_goes(void **state) {
    struct store *s = open_place(*state);
    struct tmp_entry mine = {.fd = -1};
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        struct tmp_entry e;
        struct err err = {0};
        struct blob_writer *w = NULL;
        int r = tmp_new_dir(s->tmp, "unpack", &e);
        for (int i = 0; i < 3000 && r == 0; i++) { /* deeper than there may be descriptors */
            r = mkdirat(e.fd, "d", i % 7 ? 0755 : 0700);
            int below = openat(e.fd, "d", O_RDONLY | O_CLOEXEC);
            (void)close(e.fd);
            e.fd = below;
        }
        r = r < 0 ? r : blob_begin(s, hello_digest, 5, &w, NULL, &err);
        _exit(r < 0 ? 1 : 0); /* as if killed: nothing is tidied */
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(tmp_new_dir(s->tmp, "mine", &mine), 0);
    assert_int_equal(count_in(s->dir, "tmp"), 3);
    (void)tmp_sweep(s->tmp, false);
    assert_int_equal(count_in(s->dir, "tmp"), 2); /* mine lives; a download is kept a while */
    (void)tmp_sweep(s->tmp, true);
    assert_int_equal(count_in(s->dir, "tmp"), 1);
    tmp_drop(s->tmp, &mine);
    assert_int_equal(count_in(s->dir, "tmp"), 0);
    store_close(s);
}

static void nothing_outside_a_tree_is_removed(void **state) {
    const struct place *p = *state;
    struct store *s = open_place(p);
    char outside[128];

    (void)snprintf(outside, sizeof(outside), "%s/outside", p->dir);
    assert_int_equal(mkdir(outside, 0755), 0);
    (void)snprintf(outside, sizeof(outside), "%s/outside/file", p->dir);
    int fd = open(outside, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    (void)close(fd);
    assert_int_equal(mkdirat(s->tmp, "t", 0755), 0);
    assert_int_equal(symlinkat("../../../outside", s->tmp, "t/link"), 0);
    assert_int_equal(mkdirat(s->tmp, "t/closed", 0755), 0);
    assert_int_equal(symlinkat("../../../../outside", s->tmp, "t/closed/link"), 0);
    assert_int_equal(fchmodat(s->tmp, "t/closed", 0, 0), 0);
    assert_int_equal(tree_remove(s->tmp, "t", NULL), 0);
    assert_int_equal(faccessat(s->tmp, "t", F_OK, AT_SYMLINK_NOFOLLOW), -1);
    assert_int_equal(access(outside, F_OK), 0);
    store_close(s);
}

/* ------------------------------------------------------------------ names */

static int find(const struct store *s, const char *text, struct index_entry *ret) {
    struct err err = {0};
    json_t *index = NULL;

    assert_ok(index_read(s->dir, &index, &err), err);
    int r = index_find(index, text, ret, NULL, &err);
    json_decref(index);
    return r;
}

static void digest_of(unsigned n, char ret[DIGEST_SIZE]) {
    (void)snprintf(ret, DIGEST_SIZE, "sha256:%064x", n);
}

static void tag(struct store *s, const char *reference, unsigned n) {
    char digest[DIGEST_SIZE];
    struct err err = {0};

    digest_of(n, digest);
    assert_ok(store_tag(s, reference, manifest_type, digest, 100 + n, &err), err);
}

static void an_image_is_found_by_each_of_its_names(void **state) {
    struct store *s = open_place(*state);
    struct index_entry e;
    char long_name[400];

    tag(s, "docker.io/library/python:3.12-slim", 0xabcdef);
    tag(s, "docker.io/library/other:latest", 0xabcdee);
    static const char *const names[] = {
        "python:3.12-slim", "docker.io/library/python:3.12-slim", "library/python:3.12-slim",
        "sha256:0000000000000000000000000000000000000000000000000000000000abcdef",
        "python@sha256:0000000000000000000000000000000000000000000000000000000000abcdef"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_int_equal(find(s, names[i], &e), 0);
        assert_string_equal(e.name, "docker.io/library/python:3.12-slim");
        assert_int_equal(e.size, 100 + 0xabcdef);
        assert_string_equal(e.media_type, manifest_type);
    }
    assert_int_equal(find(s, "other", &e), 0);
    assert_int_equal(find(s, "python", &e), -ENOENT); /* that is python:latest */
    assert_int_equal(find(s, "000000000000", &e), -EEXIST);
    assert_int_equal(find(s, "sha256:00000000", &e), -EEXIST);
    assert_int_equal(
        find(s, "0000000000000000000000000000000000000000000000000000000000abcdef", &e), 0);
    assert_int_equal(find(s, "000", &e), -ENOENT);  /* too few digits: a name */
    assert_int_equal(find(s, "ffff", &e), -ENOENT); /* it may be a name, and so be pulled */
    assert_int_equal(find(s, "sha256:ffff", &e), -ESRCH);
    tag(s, "docker.io/library/0000:latest", 7); /* a name goes before */
    assert_int_equal(find(s, "0000", &e), 0);
    assert_int_equal(e.size, 107);
    assert_int_equal(
        find(s, "ghcr.io/x@sha256:0000000000000000000000000000000000000000000000000000000000abcdef",
             &e),
        -ENOENT);
    memset(long_name, 'a', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    assert_int_equal(find(s, long_name, &e), -EINVAL);
    assert_int_equal(find(s, "", &e), -EINVAL);
    store_close(s);
}

static void a_name_moves_and_goes(void **state) {
    struct store *s = open_place(*state);
    struct index_entry e;
    struct err err = {0};

    tag(s, "docker.io/library/a:latest", 1);
    tag(s, "docker.io/library/a:latest", 2);
    tag(s, "docker.io/library/b:latest", 2);
    tag(s, NULL, 2); /* has names: needs no entry more */
    tag(s, NULL, 3);
    assert_int_equal(find(s, "a", &e), 0);
    assert_int_equal(e.size, 102);
    assert_ok(store_untag(s, "a", &e, &err), err);
    assert_int_equal(find(s, "a", &e), -ENOENT);
    assert_int_equal(find(s, "b", &e), 0);
    tag(s, "docker.io/library/c:latest", 2);
    char digest[DIGEST_SIZE];
    digest_of(2, digest);
    assert_ok(store_untag(s, digest, &e, &err), err); /* all of its names */
    assert_int_equal(find(s, "b", &e), -ENOENT);
    assert_int_equal(find(s, "c", &e), -ENOENT);
    digest_of(3, digest);
    assert_int_equal(find(s, digest, &e), 0);
    assert_string_equal(e.name, "");
    assert_int_equal(store_untag(s, "zzz", &e, &err), -ENOENT);
    store_close(s);
}

static void writers_at_once_lose_no_name(void **state) {
    enum { WRITERS = 20, EACH = 5 };
    const struct place *p = *state;
    struct index_entry e;
    char name[100];
    pid_t pids[WRITERS];

    for (int i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) { /* each opens the store for itself, which is not there yet */
            struct store *s = NULL;
            struct err err = {0};
            int r = store_open_writable(p->store, &s, &err);
            for (int k = 0; k < EACH && r == 0; k++) {
                char digest[DIGEST_SIZE];
                digest_of((unsigned)i, digest);
                (void)snprintf(name, sizeof(name), "docker.io/library/w%d:%d", i, k);
                r = store_tag(s, name, manifest_type, digest, 7, &err);
            }
            _exit(r < 0 ? 1 : 0);
        }
    }
    for (int i = 0; i < WRITERS; i++) {
        int status = -1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    struct store *s = open_place(p);
    for (int i = 0; i < WRITERS * EACH; i++) {
        (void)snprintf(name, sizeof(name), "w%d:%d", i / EACH, i % EACH);
        assert_int_equal(find(s, name, &e), 0);
    }
    assert_int_equal(count_in(s->dir, "tmp"), 0);
    store_close(s);
}

static void a_damaged_index_is_said_and_kept(void **state) {
    static const char *const texts[] = {
        "", "{", "[]", "{\"manifests\":{}}", "null", "{\"manifests\":[],\"manifests\":[]}"};
    struct store *s = open_place(*state);
    struct err err = {0};
    json_t *index = NULL;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        char digest[DIGEST_SIZE], back[64];
        int fd = openat(s->dir, "index.json", O_WRONLY | O_TRUNC | O_CLOEXEC);
        assert_int_equal(fd_write_full(fd, texts[i], strlen(texts[i])), 0);
        (void)close(fd);
        err_clear(&err);
        assert_int_equal(index_read(s->dir, &index, &err), -EBADMSG);
        digest_of(1, digest);
        assert_int_equal(store_tag(s, "docker.io/library/a:b", manifest_type, digest, 1, NULL),
                         -EBADMSG);
        assert_int_equal(file_read_at(s->dir, "index.json", back, sizeof(back)), strlen(texts[i]));
    }
    store_close(s);
}

static void one_alone_waits_for_the_others(void **state) {
    const struct place *p = *state;
    struct store *one = open_place(p), *two = open_place(p), *alone = NULL;
    struct err err = {0};

    assert_int_equal(store_open_alone(p->store, 30, &alone, &err), -EBUSY);
    store_close(one);
    err_clear(&err);
    assert_int_equal(store_open_alone(p->store, 30, &alone, &err), -EBUSY);
    store_close(two);
    err_clear(&err);
    assert_ok(store_open_alone(p->store, 30, &alone, &err), err);
    store_close(alone);
}

static void a_place_that_cannot_be_written_is_said(void **state) {
    struct err err = {0};
    struct store *s = NULL;

    (void)state;
    assert_true(store_open_writable("/proc/nowhere/store", &s, &err) < 0);
    assert_non_null(strstr(err.message, "/proc/nowhere/store"));
    err_clear(&err);
    assert_true(store_open_writable("/dev/null", &s, &err) < 0);
    assert_null(s);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_fast_place, drop_place)
    const struct CMUnitTest tests[] = {
        TEST(a_blob_that_is_right_gets_its_name),
        TEST(a_blob_that_is_wrong_gets_none),
        TEST(a_blob_goes_on_where_it_was_cut),
        TEST(what_the_dead_left_goes),
        TEST(nothing_outside_a_tree_is_removed),
        TEST(an_image_is_found_by_each_of_its_names),
        TEST(a_name_moves_and_goes),
        TEST(writers_at_once_lose_no_name),
        TEST(a_damaged_index_is_said_and_kept),
        TEST(one_alone_waits_for_the_others),
        TEST(a_place_that_cannot_be_written_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
