/*
 * test_import.c: images from every form of file, made by other tools and by hand; what is wrong leaves nothing; what is
 * exported other tools read; what nothing needs goes, and what a box runs on stays.
 */
#include <grp.h>

#include "fetch/export.h"
#include "fetch/facts.h"
#include "fetch/gc.h"
#include "image/lease.h"
#include "layers.h"
#include "live/live.h"

#include "base/banned.h"

#define NAME "docker.io/library/small:1"

static int run_tool(const char *const *argv) {
    pid_t pid = fork();
    int status = -1;

    assert_true(pid >= 0);
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        (void)dup2(null, 1);
        (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
#define TOOL(...)                                                                                  \
    do {                                                                                           \
        const char *const tool_[] = {__VA_ARGS__, NULL};                                           \
        if (run_tool(tool_) != 0)                                                                  \
            fail_msg("%s %s failed", tool_[0], tool_[1]);                                          \
    } while (0)

/* The program, in the place's store. `out` gets its standard output. */
static int mayfly_in(const struct place *p, const char *input, char *out, size_t size,
                     const char *const *argv) {
    int fd = input ? open(input, O_RDONLY | O_CLOEXEC) : -1;

    assert_int_equal(setenv("MAYFLY_STORE", p->store, 1), 0);
    struct live_output *o = live_program(argv, fd);
    int code = o->exit_code;
    if (out)
        (void)(str_copy(out, size, o->out) &&
               str_copy(out + strlen(out), size - strlen(out), o->err));
    if (fd >= 0)
        (void)close(fd);
    free(o);
    return code;
}
#define MAYFLY(p, out, ...)                                                                        \
    mayfly_in(p, NULL, out, sizeof(out), (const char *const[]){__VA_ARGS__, NULL})
#define MAYFLY_OK(p, ...)                                                                          \
    do {                                                                                           \
        static char said_[8192];                                                                   \
        if (MAYFLY(p, said_, __VA_ARGS__) != 0)                                                    \
            fail_msg("%s", said_);                                                                 \
    } while (0)

static const char *in(const struct place *p, const char *name) {
    static char paths[8][200];
    static unsigned n;
    char *path = paths[n++ % 8];

    (void)snprintf(path, sizeof(paths[0]), "%s/%s", p->dir, name);
    return path;
}

static void write_file(const char *path, const void *data, size_t len) {
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, data, len), 0);
    (void)close(fd);
}

/* A small image of two layers, by the name of NAME. */
static void put_small(const struct place *p, struct test_image *i) {
    struct store *s = open_place(p);
    struct err err = {0};

    LAYER(i, {.type = '0', .name = "etc/a", .content = "a"}, {.type = '5', .name = "usr"});
    LAYER(i, {.type = '0', .name = "usr/b", .content = "b", .mode = 0755},
          {.type = '0', .name = "etc/.wh.a"});
    put_image(s, i);
    assert_ok(store_unpack(s, i->manifest, UNPACK_NO_BYTECODE, NULL, &err), err);
    assert_ok(store_tag(s, NAME, "application/vnd.oci.image.manifest.v1+json", i->manifest,
                        i->manifest_size, &err),
              err);
    store_close(s);
}

/* A fresh store beside the other. */
static void other_store(const struct place *p, const char *name, struct place *ret) {
    *ret = *p;
    (void)snprintf(ret->store, sizeof(ret->store), "%s/%s", p->dir, name);
}

static void assert_small(const struct place *p, const char *name) {
    struct store *s = open_place(p);
    struct index_entry e = {0};
    json_t *index = NULL;
    struct err err = {0};
    char path[300], target[200];

    assert_ok(index_read(s->dir, &index, &err), err);
    assert_ok(index_find(index, name, &e, NULL, &err), err);
    (void)snprintf(path, sizeof(path), "images/%s", strchr(e.digest, ':') + 1);
    ssize_t n = readlinkat(s->dir, path, target, sizeof(target) - 1);
    assert_true(n > 3);
    target[n] = '\0';
    (void)snprintf(path, sizeof(path), "%s/fs/usr/b", target + 3);
    char text[16];
    assert_int_equal(file_read_at(s->dir, path, text, sizeof(text)), 1);
    (void)snprintf(path, sizeof(path), "%s/fs/etc/a", target + 3);
    assert_int_equal(faccessat(s->dir, path, F_OK, 0), -1);
    assert_int_equal(count_in(s->dir, "tmp"), 0);
    json_decref(index);
    store_close(s);
}

static void what_is_exported_other_tools_read_and_what_they_write_is_imported(void **state) {
    const struct place *p = *state;
    struct test_image i = {0};
    struct place other;
    char from[300], to[300], text[8192];

    put_small(p, &i);
    MAYFLY_OK(p, "export", "-o", in(p, "e.tar"), "small:1");
    MAYFLY_OK(p, "export", "-o", in(p, "e2.tar"), "small:1");
    TOOL("cmp", in(p, "e.tar"), in(p, "e2.tar"));
    (void)snprintf(from, sizeof(from), "oci-archive:%s", in(p, "e.tar"));
    static const struct {
        const char *kind, *file, *named;
    } forms[] = {{"docker-archive", "d.tar", "docker.io/library/small:1"},
                 {"oci-archive", "o.tar", "small:1"},
                 {"oci", "layout", "small:1"}};
    for (size_t k = 0; k < ARRAY_LEN(forms); k++) {
        (void)snprintf(to, sizeof(to), "%s:%s:%s", forms[k].kind, in(p, forms[k].file),
                       forms[k].named);
        TOOL("skopeo", "copy", "--insecure-policy", "-q", from, to);
        other_store(p, forms[k].kind, &other);
        MAYFLY_OK(&other, "import", in(p, forms[k].file));
        assert_small(&other, "small:1");
        MAYFLY_OK(&other, "import", "--tag", "localhost:5000/a/b:c", in(p, forms[k].file));
        assert_small(&other, "localhost:5000/a/b:c");
    }
    /* docker's own archive, read back by skopeo from ours; compressed, and from standard input. */
    (void)snprintf(from, sizeof(from), "docker-archive:%s", in(p, "e.tar"));
    TOOL("skopeo", "inspect", from);
    TOOL("gzip", "-1", in(p, "d.tar"));
    other_store(p, "stdin", &other);
    assert_int_equal(mayfly_in(&other, in(p, "d.tar.gz"), text, sizeof(text),
                               (const char *const[]){"import", "--json", "-", NULL}),
                     0);
    json_t *said = json_loads(text, 0, NULL);
    assert_non_null(said);
    const json_t *first = json_array_get(json_object_get(said, "images"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "name")), NAME);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(first, "unpacked"), "files")), 2);
    json_decref(said);
    assert_small(&other, "small:1");
}

/* ------------------------------------------------------------------ docker save, as it was before it wrote OCI's layout */

static void an_old_docker_save_is_imported(void **state) {
    static const char top[] = "1111111111111111111111111111111111111111111111111111111111111111";
    static const char low[] = "2222222222222222222222222222222222222222222222222222222222222222";
    const struct place *p = *state;
    struct store *s = open_place(p);
    _cleanup_buf_ struct buf tar = {0}, config = {0}, manifest = {0};
    struct test_image i = {0};
    char digest[DIGEST_SIZE], name[4][100], said[4096];

    LAYER(&i, {.type = '0', .name = "usr/b", .content = "b"}, {.type = '5', .name = "etc"});
    put_blob(s, i.layers[0].data, i.layers[0].len, digest);
    store_close(s);
    buf_printf(&config,
               "{\"os\":\"linux\",\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"%s\",\"%s\"]}}",
               digest, digest);
    (void)snprintf(name[0], 100, "%s/layer.tar", low);
    (void)snprintf(name[1], 100, "%s/layer.tar", top);
    (void)snprintf(name[2], 100, "../%s/layer.tar", low);
    (void)snprintf(name[3], 100, "%s.json", top);
    buf_printf(&manifest,
               "[{\"Config\":\"%s\",\"RepoTags\":[\"small:1\",\"also/"
               "small:2\"],\"Layers\":[\"%s\",\"%s\"]}]",
               name[3], name[0], name[1]);
    tar_add(&tar, &(struct tar_entry){.type = '5', .name = low});
    tar_add(&tar, &(struct tar_entry){.type = '0',
                                      .name = name[0],
                                      .content = i.layers[0].data,
                                      .content_len = i.layers[0].len});
    tar_add(&tar, &(struct tar_entry){
                      .type = '2', .name = name[1], .link = name[2]}); /* the same layer again */
    tar_add(&tar, &(struct tar_entry){.type = '0', .name = name[3], .content = config.data});
    tar_add(&tar,
            &(struct tar_entry){.type = '0', .name = "manifest.json", .content = manifest.data});
    tar_add(&tar, &(struct tar_entry){.type = '0', .name = "repositories", .content = "{}"});
    tar_end(&tar);
    write_file(in(p, "saved.tar"), tar.data, tar.len);
    MAYFLY_OK(p, "import", in(p, "saved.tar"));
    assert_small(p, "small:1");
    assert_small(p, "also/small:2");
    MAYFLY_OK(p, "images");
    assert_int_equal(MAYFLY(p, said, "images", "-q"), 0);
    assert_int_equal(strlen(said), 2 * (7 + 64 + 1));
    buf_done(&i.layers[0]);
}

/* ------------------------------------------------------------------ root file systems */

static void a_root_file_system_is_imported_as_archive_and_as_directory(void **state) {
    const struct place *p = *state;
    struct test_image i = {0};
    struct place other;
    char first[8192], second[8192];

    LAYER(&i, {.type = '5', .name = "./"}, {.type = '0', .name = "./usr/b", .content = "b"},
          {.type = '2', .name = "./bin", .link = "usr/bin"},
          {.type = '1', .name = "./usr/c", .link = "./usr/b"});
    write_file(in(p, "rootfs.tar"), i.layers[0].data, i.layers[0].len);
    MAYFLY_OK(p, "import", "-t", "tree", in(p, "rootfs.tar"));
    assert_small(p, "tree");
    TOOL("xz", "-0", "-k", in(p, "rootfs.tar"));
    other_store(p, "xz", &other);
    assert_int_equal(mayfly_in(&other, in(p, "rootfs.tar.xz"), first, sizeof(first),
                               (const char *const[]){"import", "--tag=tree", "-", NULL}),
                     0);
    assert_small(&other, "tree");

    TOOL("mkdir", in(p, "tree"));
    TOOL("tar", "-C", in(p, "tree"), "-xf", in(p, "rootfs.tar"));
    assert_int_equal(mkfifo(in(p, "tree/fifo"), 0644), 0);
    other_store(p, "dir", &other);
    assert_int_equal(MAYFLY(&other, first, "import", "--json", "-t", "tree", in(p, "tree")), 0);
    assert_small(&other, "tree");
    assert_int_equal(MAYFLY(&other, second, "import", "--json", "-t", "tree", in(p, "tree")), 0);
    json_t *a = json_loads(first, 0, NULL), *b = json_loads(second, 0, NULL);
    const json_t *a0 = json_array_get(json_object_get(a, "images"), 0),
                 *b0 = json_array_get(json_object_get(b, "images"), 0);
    assert_string_equal(json_string_value(json_object_get(a0, "digest")),
                        json_string_value(json_object_get(b0, "digest")));
    assert_true(json_is_true(json_object_get(b0, "wasUnpacked")));
    json_decref(a);
    json_decref(b);
    /* The store is an image layout that others unpack. */
    char image[300];
    (void)snprintf(image, sizeof(image), "oci:%s:docker.io/library/tree:latest", other.store);
    TOOL("skopeo", "inspect", image);
    buf_done(&i.layers[0]);
}

/* ------------------------------------------------------------------ what is wrong */

static void assert_nothing_new(const struct place *p) {
    struct store *s = open_place(p);
    json_t *index = NULL;
    struct index_entry e;
    struct err err = {0};

    assert_ok(index_read(s->dir, &index, &err), err);
    assert_false(index_at(index, 0, &e));
    assert_int_equal(count_in(s->dir, "unpacked"), 0);
    assert_int_equal(count_in(s->dir, "blobs/sha256"), 0);
    assert_int_equal(count_in(s->dir, "tmp"), 0);
    json_decref(index);
    store_close(s);
}

static void assert_refused(const struct place *p, const char *word, const char *const *argv) {
    static char said[8192];

    assert_int_equal(mayfly_in(p, NULL, said, sizeof(said), argv), 125);
    if (strncmp(said, "mayfly: ", 8) != 0 || !strstr(said, word) || !strstr(said, "; ") ||
        strchr(said, '\n') != said + strlen(said) - 1)
        fail_msg("\"%s\" is not one line that says \"%s\", and what to do", said, word);
}
#define REFUSED(p, word, ...) assert_refused(p, word, (const char *const[]){__VA_ARGS__, NULL})

static void sources_that_are_wrong_leave_nothing(void **state) {
    const struct place *p = *state;
    struct place other;
    struct test_image i = {0};
    _cleanup_free_ char *text = NULL;
    size_t len = 0;

    put_small(p, &i);
    MAYFLY_OK(p, "export", "-o", in(p, "e.tar"), "small:1");
    assert_int_equal(file_read_all_at(AT_FDCWD, in(p, "e.tar"), 1 << 20, &text, &len), 0);
    other_store(p, "other", &other);
    write_file(in(p, "empty"), "", 0);
    write_file(in(p, "junk"), "no archive, but some text that is long enough to be looked at", 61);
    write_file(in(p, "cut"), text, len / 2);
    char *layer = memmem(text, len, "usr/b", 5);
    assert_non_null(layer);
    *layer = 'U'; /* a blob that its digest is not of */
    write_file(in(p, "wrong"), text, len);
    static const struct {
        const char *file, *word;
    } cases[] = {{"empty", "empty"},  {"junk", "junk"}, {"cut", "cut"},
                 {"wrong", "digest"}, {"none", "none"}, {".", "no root"}};
    for (size_t k = 0; k < ARRAY_LEN(cases); k++)
        REFUSED(&other, cases[k].word, "import", in(p, cases[k].file));
    assert_int_equal(setenv("MAYFLY_STORE", other.store, 1), 0);
    REFUSED(&other, "digest", "import", "-t",
            "x@sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
            in(p, "e.tar"));
    REFUSED(&other, "image", "import", "-t", "UPPER", in(p, "e.tar"));
    REFUSED(&other, "no such flag", "import", "--nonsense", in(p, "e.tar"));
    REFUSED(&other, "one source", "import", in(p, "e.tar"), in(p, "e.tar"));
    REFUSED(&other, "wants a value", "import", "--tag");
    REFUSED(&other, "--tag is given 2 times", "import", "-t", "x:1", "--tag=y:1", in(p, "e.tar"));
    char said[8192];
    assert_int_equal(MAYFLY(&other, said, "import", "--json", in(p, "none")), 125);
    assert_non_null(strstr(said, "\"error\":{\"message\":\""));
    assert_non_null(strstr(said, "\"kind\":\"usage\",\"control\":null,\"code\":\"ENOENT\""));
    REFUSED(&other, "not in the store", "export", "-o", in(p, "x.tar"), "nothing");
    REFUSED(&other, "not in the store", "rmi", "nothing");
    REFUSED(&other, "not in the store", "inspect", "nothing");
    REFUSED(&other, "no image store", "inspect", "--store", p->dir, "nothing");
    assert_int_equal(access(in(p, "x.tar"), F_OK), -1);
    /* More than there is room for, though it takes none here. */
    TOOL("mkdir", in(p, "sparse"), in(p, "sparse/usr"));
    write_file(in(p, "sparse/usr/huge"), "", 0);
    if (truncate(in(p, "sparse/usr/huge"), INT64_C(1) << 42) == 0)
        REFUSED(&other, "usr/huge takes 4 TiB", "import", in(p, "sparse"));
    assert_nothing_new(&other);

    /* An archive in which a layer is missing. */
    TOOL("mkdir", in(p, "x"));
    TOOL("tar", "-C", in(p, "x"), "-xf", in(p, "e.tar"));
    char path[300];
    struct store *s = open_place(p);
    int dir = open(in(p, "x/blobs/sha256"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(count_in(dir, "."), 4);
    DIR *d = fdopendir(dir);
    for (struct dirent *e; (e = readdir(d));) {
        struct stat st;
        if (fstatat(dirfd(d), e->d_name, &st, 0) == 0 && S_ISREG(st.st_mode) &&
            st.st_size % 512 == 0)
            assert_int_equal(unlinkat(dirfd(d), e->d_name, 0), 0);
    }
    (void)closedir(d);
    store_close(s);
    TOOL("tar", "-C", in(p, "x"), "-cf", in(p, "lacks.tar"), ".");
    REFUSED(&other, "lacks", "import", in(p, "lacks.tar"));
    (void)snprintf(path, sizeof(path), "%s/x", p->dir);
    REFUSED(&other, "not whole", "import", path);
    assert_nothing_new(&other);
}

/* A file of the layout's is not what the index says: none of it is kept, and nothing waits for it. */
static void a_layout_that_is_wrong_leaves_nothing(void **state) {
    const struct place *p = *state;
    struct place other;
    struct test_image i = {0};
    char path[BLOB_PATH_SIZE], file[400];
    struct store *s;
    struct stat st;

    put_small(p, &i);
    TOOL("cp", "-r", p->store, in(p, "layout"));
    other_store(p, "other", &other);
    (void)snprintf(file, sizeof(file), "%s/layout/%s", p->dir, store_blob_path(i.manifest, path));
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(truncate(file, st.st_size - 1), 0);
    REFUSED(&other, "instead of the", "import", in(p, "layout"));
    assert_nothing_new(&other);
    assert_int_equal(truncate(file, st.st_size), 0); /* the right size, another text */
    REFUSED(&other, "digest", "import", in(p, "layout"));
    assert_nothing_new(&other);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(mkfifo(file, 0644), 0);
    REFUSED(&other, "is no file", "import", in(p, "layout"));
    assert_int_equal(rename(file, in(p, "layout/index.json")), 0);
    REFUSED(&other, "index.json", "import", in(p, "layout"));
    /* What another had begun to get is no part of it. */
    s = open_place(&other);
    struct blob_writer *w = NULL;
    struct err err = {0};
    assert_ok(blob_begin(s, i.manifest, i.manifest_size, &w, NULL, &err), err);
    assert_ok(blob_write(w, "wrong", 5, &err), err);
    blob_abandon(w, true);
    store_close(s);
    MAYFLY_OK(&other, "import", p->store);
    assert_small(&other, "small:1");
}

/* An image says in its config what it is for, whatever brought it. */
static void an_image_for_another_machine_is_taken_only_when_asked_for(void **state) {
    const struct place *p = *state;
    struct test_image i = {.arch = "s390x"}, own = {0};
    _cleanup_buf_ struct buf index = {0};
    struct place other;
    char said[8192];

    put_small(p, &i);
    MAYFLY_OK(p, "export", "-o", in(p, "foreign.tar"), "small:1");
    other_store(p, "other", &other);
    REFUSED(&other, "is for linux/s390x, not for linux/", "import", in(p, "foreign.tar"));
    REFUSED(&other, "is for linux/s390x, not for linux/", "import", p->store);
    REFUSED(&other, "is for linux/s390x, not for linux/ppc64le", "import", "--platform=ppc64le",
            in(p, "foreign.tar"));
    assert_nothing_new(&other);
    MAYFLY_OK(&other, "import", "--platform", "linux/s390x", in(p, "foreign.tar"));
    assert_small(&other, "small:1");

    /* One name for both: the one that this machine can run, whichever comes last. */
    put_small(p, &own);
    struct platform host;
    platform_host(&host);
    static const char entry[] =
        "{\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\"digest\":\"%s\",\"size\":"
        "%lld,\"platform\":{\"os\":\"linux\",\"architecture\":\"%s\"},\"annotations\":{"
        "\"" ANNOTATION_NAME "\":\"small:1\"}}";
    buf_puts(&index, "{\"schemaVersion\":2,\"manifests\":[");
    buf_printf(&index, entry, own.manifest, (long long)own.manifest_size, host.arch);
    buf_puts(&index, ",");
    buf_printf(&index, entry, i.manifest, (long long)i.manifest_size, "s390x");
    buf_puts(&index, "]}");
    TOOL("cp", "-r", p->store, in(p, "layout"));
    write_file(in(p, "layout/index.json"), index.data, index.len);
    other_store(p, "both", &other);
    MAYFLY_OK(&other, "import", in(p, "layout"));
    assert_int_equal(MAYFLY(&other, said, "images", "-q"), 0);
    assert_int_equal(strncmp(said, own.manifest, strlen(own.manifest)), 0);
    assert_int_equal(strlen(said), strlen(own.manifest) + 1);
    MAYFLY_OK(&other, "import", "-t", "named", "--platform=s390x", in(p, "layout"));
    assert_int_equal(MAYFLY(&other, said, "inspect", "named"), 0);
    assert_non_null(strstr(said, i.manifest));
}

/* A name that goes to another image leaves the first where nobody sees it: so it is said. */
static void what_a_name_leaves_behind_is_said(void **state) {
    const struct place *p = *state;
    struct test_image one = {0}, two = {0};
    struct place other;
    char said[8192];

    other_store(p, "other", &other);
    put_small(p, &one);
    MAYFLY_OK(p, "export", "-o", in(p, "one.tar"), "small:1");
    struct store *s = open_place(p);
    struct err err = {0};
    LAYER(&two, {.type = '0', .name = "usr/b", .content = "other"});
    put_image(s, &two);
    assert_ok(store_unpack(s, two.manifest, UNPACK_NO_BYTECODE, NULL, &err), err);
    assert_ok(store_tag(s, NAME, "application/vnd.oci.image.manifest.v1+json", two.manifest,
                        two.manifest_size, &err),
              err);
    store_close(s);
    MAYFLY_OK(p, "export", "-o", in(p, "two.tar"), "small:1");
    MAYFLY_OK(&other, "import", in(p, "one.tar"));
    assert_int_equal(MAYFLY(&other, said, "images"), 0);
    assert_null(strstr(said, "prune"));
    assert_int_equal(MAYFLY(&other, said, "import", in(p, "two.tar")), 0);
    assert_non_null(strstr(said, "had this name before and has none now; mayfly prune"));
    assert_int_equal(MAYFLY(&other, said, "images"), 0);
    assert_non_null(
        strstr(said, "1 root file system of images that are here no more: mayfly prune frees"));
    assert_int_equal(MAYFLY(&other, said, "import", "--json", in(p, "one.tar")), 0);
    assert_non_null(strstr(said, "\"unnamed\":\"sha256:"));
    assert_non_null(strstr(said, two.manifest));
    /* With another name there is nothing to say. */
    MAYFLY_OK(&other, "import", "-t", "also", in(p, "one.tar"));
    assert_int_equal(MAYFLY(&other, said, "import", in(p, "two.tar")), 0);
    assert_null(strstr(said, "prune"));
    MAYFLY_OK(&other, "rmi", "also", "small:1");
    MAYFLY_OK(&other, "prune");
    assert_int_equal(MAYFLY(&other, said, "images"), 0);
    assert_null(strstr(said, "prune"));
}

/* The statuses that a shell would see of a program that knows nothing of all this. */
static void a_reader_that_goes_away_ends_it_quietly(void **state) {
    const struct place *p = *state;
    struct test_image i = {0};
    struct stat st;

    put_small(p, &i);
    assert_int_equal(setenv("MAYFLY_STORE", p->store, 1), 0);
    static const char *const commands[][3] = {
        {"export", "small:1"}, {"images"}, {"inspect", "small:1"}};
    for (size_t k = 0; k < ARRAY_LEN(commands); k++) {
        FILE *err = tmpfile();
        int ends[2], status = -1;
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        (void)close(ends[0]);
        pid_t pid = live_spawn(commands[k], -1, ends[1], fileno(err));
        (void)close(ends[1]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 141);
        assert_int_equal(fstat(fileno(err), &st), 0);
        assert_int_equal(st.st_size, 0);
        (void)fclose(err);
        int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
        pid = live_spawn(commands[k], -1, full, open("/dev/null", O_WRONLY | O_CLOEXEC));
        (void)close(full);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(WEXITSTATUS(status), 125);
    }
    char said[8192];
    assert_int_equal(MAYFLY(p, said, "export", "-o", "/dev/null/x", "small:1"), 125);
    assert_string_equal(said, "mayfly: export: /dev/null/x: Not a directory; name a file that can "
                              "be made with -o\n");
    assert_int_equal(mkdir(in(p, "d"), 0755), 0);
    assert_int_equal(MAYFLY(p, said, "export", "-o", in(p, "d/e"), "nothing"), 125);
    int dir = open(in(p, "d"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(count_in(dir, "."), 0);
    MAYFLY_OK(p, "export", "-o", in(p, "d/e"), "small:1");
    MAYFLY_OK(p, "export", "-o", in(p, "d/e"), "small:1"); /* in place of the first */
    assert_int_equal(count_in(dir, "."), 1);
    (void)close(dir);
}

/* One byte is changed in each of its blobs in turn: what is exported is right or nothing, what is imported mends it. */
static void what_the_store_has_damaged_is_told_and_mended(void **state) {
    static const char script[] =
        "cd $1; M=$MAYFLY_BIN; export MAYFLY_STORE=$1/store; mkdir l; tar -xf e.tar -C l\n"
        "$M export small:1 | cmp - e.tar || exit 1\n" /* a pipe's bytes are a file's */
        "$M export small:1 nope >o.tar 2>err && exit 2; [ -s o.tar ] && exit 3\n"
        "for source in e.tar l; do for b in store/blobs/sha256/*; do\n"
        "  printf Z | dd of=$b bs=1 seek=20 conv=notrunc status=none\n"
        "  $M export small:1 2>err >o.tar && exit 4; [ -s o.tar ] && exit 5\n"
        "  grep -q 'is damaged; pull or import the image again' err || exit 6\n"
        "  $M export -o x.tar small:1 2>err && exit 7; [ -e x.tar ] && exit 8\n"
        "  rm -rf store/unpacked/* store/images/*\n"
        "  $M import $source >/dev/null || exit 9\n"
        "  [ $(sha256sum <$b | cut -c1-64) = ${b##*/} ] || exit 10\n"
        "  $M export small:1 | cmp - e.tar || exit 11\n"
        "done; done";
    const struct place *p = *state;
    struct test_image i = {0};

    put_small(p, &i);
    MAYFLY_OK(p, "export", "-o", in(p, "e.tar"), "small:1");
    TOOL("sh", "-c", script, "sh", p->dir);
}

/* What is a hole is no byte of a bomb, up to a size that is none of any file's. */
static void holes_take_nothing(void **state) {
    static const char script[] =
        "cd $1; M=$MAYFLY_BIN; export MAYFLY_STORE=$1/store; mkdir -p r/usr; echo a >r/usr/f\n"
        "truncate -s 5G r/usr/f; echo z >>r/usr/f\n"
        "for f in gnu posix; do tar -S --format=$f -C r -cf $f.tar .; $M import $f.tar -t h:1 || "
        "exit 1\n"
        "  set -- $(stat -c '%s %b' store/unpacked/*/fs/usr/f); [ $1 = 5368709122 ] || exit 2\n"
        "  [ $2 -lt 100 ] || exit 3; $M rmi h:1; done\n"
        "truncate -s 65G r/usr/f; tar -S --format=posix -C r -cf big.tar .\n"
        "$M import -t h:2 big.tar 2>err && exit 4; grep -q 'usr/f: a sparse file of more' err";
    const struct place *p = *state;

    TOOL("sh", "-c", script, "sh", p->dir);
}

/* Root's store is there for all to look at and to take images from; its root file systems are not. */
static void a_store_of_another_user_is_told_from_one_that_lacks_something(void **state) {
    const struct place *p = *state;
    struct test_image i = {0};

    if (geteuid() != 0)
        skip();
    put_small(p, &i);
    assert_int_equal(chmod(p->dir, 0755), 0);
    pid_t pid = fork();
    if (pid == 0) {
        static const char *const right = "a store's images run for its owner alone";
        char *names[] = {"small:1"};
        struct image_lease lease;
        struct image_facts f = {0};
        struct gc_report g;
        struct index_entry e;
        struct store *s = NULL;
        struct err err = {0};
        json_t *index = NULL;
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (setgroups(0, NULL) < 0 || setgid(31234) < 0 || setuid(31234) < 0)
            _exit(2);
        if (image_lease(p->store, "small:1", true, &lease, &err) != -EACCES ||
            !strstr(err.message, right))
            _exit(3);
        err_clear(&err);
        if (store_open_held(p->store, &s, &err) < 0 || s->lock < 0 ||
            store_export(s, names, 1, null, &err) < 0)
            _exit(4);
        if (index_read(s->dir, &index, &err) < 0 || !index_at(index, 0, &e) ||
            facts_read(s, &e, &f, &err) < 0 || !f.closed || !f.whole)
            _exit(5);
        if (store_unneeded(s, index, &g) != -EACCES)
            _exit(6);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void the_right_platform_is_taken(void **state) {
    const struct place *p = *state;
    struct place other;
    struct test_image one = {.arch = "s390x"},
                      two = {.config = "{\"User\":\"other\"}", .arch = "riscv64"};
    _cleanup_buf_ struct buf index = {0};
    char digest[DIGEST_SIZE], said[8192];

    put_small(p, &one);
    put_small(p, &two);
    static const char entry[] = "{\"mediaType\":\"application/"
                                "vnd.oci.image.manifest.v1+json\",\"digest\":\"%s\",\"size\":%lld,"
                                "\"platform\":{\"os\":\"%s\",\"architecture\":\"%s\"}}";
    buf_puts(&index, "{\"schemaVersion\":2,\"mediaType\":\"application/"
                     "vnd.oci.image.index.v1+json\",\"manifests\":[");
    buf_printf(&index, entry, one.manifest, (long long)one.manifest_size, "linux", "s390x");
    buf_puts(&index, ",");
    buf_printf(&index, entry, two.manifest, (long long)two.manifest_size, "linux", "riscv64");
    buf_puts(&index, ",");
    buf_printf(&index, entry, two.manifest, (long long)two.manifest_size, "unknown", "unknown");
    buf_puts(&index, "]}");
    struct store *s = open_place(p);
    put_blob(s, index.data, index.len, digest);
    store_close(s);
    TOOL("mkdir", in(p, "layout"));
    TOOL("cp", "-r", in(p, "store/blobs"), in(p, "store/oci-layout"), in(p, "layout"));
    size_t len = index.len;
    index.len = 0;
    buf_printf(
        &index,
        "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":\"application/"
        "vnd.oci.image.index.v1+json\",\"digest\":"
        "\"%s\",\"size\":%zu,\"annotations\":{\"org.opencontainers.image.ref.name\":\"many:1\"}}]}",
        digest, len);
    write_file(in(p, "layout/index.json"), index.data, index.len);
    other_store(p, "other", &other);
    MAYFLY_OK(&other, "import", "--platform=linux/riscv64", in(p, "layout"));
    assert_int_equal(MAYFLY(&other, said, "inspect", "many:1"), 0);
    assert_non_null(strstr(said, two.manifest));
    assert_non_null(strstr(said, "\"user\": \"other\"") ? said
                                                        : strstr(said, "\"user\":\"other\""));
    REFUSED(&other, "linux/s390x", "import", "--platform", "linux/ppc64le", in(p, "layout"));
}

/* ------------------------------------------------------------------ what goes, and what stays */

static void what_no_image_needs_goes(void **state) {
    const struct place *p = *state;
    struct test_image one = {0}, two = {.config = "{\"User\":\"other\"}"}, three = {0};
    struct store *s;
    struct err err = {0};
    char digest[DIGEST_SIZE], said[8192];

    put_small(p, &one);
    s = open_place(p);
    LAYER(&two, {.type = '0', .name = "etc/a", .content = "a"},
          {.type = '5', .name = "usr"}); /* shared with the first */
    put_image(s, &two);
    assert_ok(store_unpack(s, two.manifest, 0, NULL, &err), err);
    assert_ok(store_tag(s, "docker.io/library/two:1", "application/vnd.oci.image.manifest.v1+json",
                        two.manifest, two.manifest_size, &err),
              err);
    LAYER(&three, {.type = '0', .name = "three", .content = "3"});
    put_image(s, &three); /* nothing names it */
    put_blob(s, "rubbish", 7, digest);
    assert_int_equal(count_in(s->dir, "blobs/sha256"), 4 + 2 + 3 + 1);
    store_close(s);
    MAYFLY_OK(p, "prune");
    s = open_place(p);
    assert_int_equal(count_in(s->dir, "blobs/sha256"), 4 + 2);
    assert_int_equal(count_in(s->dir, "unpacked"), 2);
    store_close(s);
    /* One name that is not there is no reason to leave the others. */
    assert_int_equal(MAYFLY(p, said, "rmi", "nothing:1", "small:1"), 125);
    s = open_place(p);
    assert_int_equal(count_in(s->dir, "blobs/sha256"),
                     3); /* the layer that two has as well is there */
    assert_int_equal(count_in(s->dir, "unpacked"), 1);
    assert_int_equal(count_in(s->dir, "images"), 1);
    store_close(s);
    assert_int_equal(MAYFLY(p, said, "rmi", "--json", two.manifest), 0);
    s = open_place(p);
    assert_int_equal(count_in(s->dir, "blobs/sha256") + count_in(s->dir, "unpacked") +
                         count_in(s->dir, "images") + count_in(s->dir, "tmp"),
                     0);
    /* While others write, nothing of theirs is taken: the name goes, the rest later. */
    three.n_layers = 0;
    put_small(p, &three);
    assert_int_equal(MAYFLY(p, said, "rmi", "small:1"), 0);
    assert_non_null(strstr(said, "prune"));
    assert_true(count_in(s->dir, "blobs/sha256") > 0);
    store_close(s);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_place, drop_place)
    const struct CMUnitTest tests[] = {
        TEST(what_is_exported_other_tools_read_and_what_they_write_is_imported),
        TEST(what_the_store_has_damaged_is_told_and_mended),
        TEST(holes_take_nothing),
        TEST(an_old_docker_save_is_imported),
        TEST(a_root_file_system_is_imported_as_archive_and_as_directory),
        TEST(sources_that_are_wrong_leave_nothing),
        TEST(a_layout_that_is_wrong_leaves_nothing),
        TEST(the_right_platform_is_taken),
        TEST(an_image_for_another_machine_is_taken_only_when_asked_for),
        TEST(what_a_name_leaves_behind_is_said),
        TEST(a_reader_that_goes_away_ends_it_quietly),
        TEST(a_store_of_another_user_is_told_from_one_that_lacks_something),
        TEST(what_no_image_needs_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
