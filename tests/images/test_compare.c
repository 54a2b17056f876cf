/*
 * test_compare.c: the trees that umoci makes of the same images, entry by entry; and Python's byte code beside an image.
 *
 * The stacks of layers are made by chance, from a few names so that they get in each other's way: files over directories
 * and back, links, whiteouts, opaque directories. What is known to differ is not made: devices, and what is without an
 * entry of its own (umoci gives it the time of the day).
 */
#include "layers.h"
#include "live/live.h"

#include <ftw.h>
#include <sys/wait.h>

#include "base/banned.h"

enum { STACKS = 8, PER_LAYER = 24, LAYERS = 4 };

static unsigned seed;
static unsigned chance(unsigned n) {
    seed = seed * 1103515245u + 12345u;
    return seed / 65536 % n;
}

/* ------------------------------------------------------------------ listing */

static struct buf *lines; /* nftw takes no context */
static size_t below;

static int list(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    char text[512] = "";

    (void)ftw;
    if (type == FTW_NS)
        return -1;
    if (S_ISLNK(st->st_mode))
        (void)!readlink(path, text, sizeof(text) - 1);
    else if (S_ISREG(st->st_mode))
        (void)file_read_at(AT_FDCWD, path, text, sizeof(text));
    buf_printf(lines, "%s %o %u:%u %lld %lld %u %s\n", path + below, st->st_mode, st->st_uid,
               st->st_gid, S_ISDIR(st->st_mode) ? 0LL : (long long)st->st_size,
               (long long)st->st_mtim.tv_sec, S_ISDIR(st->st_mode) ? 0 : (unsigned)st->st_nlink,
               text);
    return 0;
}

static int by_line(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The tree in sorted lines, without what a box needs and the image has not. */
static char *listing_of(const char *dir) {
    struct buf all = {0}, sorted = {0};
    char *line[4096], *save = NULL;
    size_t n = 0;

    lines = &all;
    below = strlen(dir);
    assert_int_equal(nftw(dir, list, 64, FTW_PHYS), 0);
    assert_false(all.failed);
    for (char *l = strtok_r(all.data, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
        if (strncmp(l, "/dev ", 5) != 0 && strncmp(l, "/proc ", 6) != 0 &&
            strncmp(l, "/tmp ", 5) != 0 && *l != ' ') {
            assert_true(n < ARRAY_LEN(line));
            line[n++] = l;
        }
    qsort((void *)line, n, sizeof(*line), by_line);
    for (size_t i = 0; i < n; i++)
        buf_printf(&sorted, "%s\n", line[i]);
    buf_done(&all);
    char *text = buf_take(&sorted);
    assert_non_null(text);
    return text;
}

/* ------------------------------------------------------------------ stacks */

static char names[2048][64];
static size_t n_names;

static const char *name(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static const char *name(const char *fmt, ...) {
    va_list ap;

    assert_true(n_names < ARRAY_LEN(names));
    va_start(ap, fmt);
    (void)vsnprintf(names[n_names], sizeof(names[0]), fmt, ap);
    va_end(ap);
    return names[n_names++];
}

/* Directories first, so that no parent is without an entry; then what lies in them. */
static void add_chance_layer(struct test_image *i, int layer) {
    struct tar_entry e[2 * PER_LAYER + 8] = {0};
    bool used[4][5] = {{0}};
    size_t n = 0;

    for (unsigned d = 0; d < 4; d++)
        e[n++] = (struct tar_entry){
            .type = '5', .name = name("d%u", d), .mode = 0700 + chance(64), .uid = chance(3)};
    for (int k = 0; k < PER_LAYER; k++) {
        unsigned d = chance(4), f = chance(5);
        const char *path = name("d%u/%c", d, (char)('a' + f));
        if (used[d][f])
            continue; /* umoci and we agree on the last of two, but not always on the first's remains */
        used[d][f] = true;
        switch (chance(layer ? 7 : 4)) {
        case 0:
            e[n++] = (struct tar_entry){.type = '5', .name = path, .mode = 0711 + chance(8)};
            e[n++] = (struct tar_entry){
                .type = '0', .name = name("%s/in", path), .content = name("in %d %d", layer, k)};
            break;
        case 1:
            e[n++] =
                (struct tar_entry){.type = '2',
                                   .name = path,
                                   .link = name("../d%u/%c", chance(4), (char)('a' + chance(5)))};
            break;
        case 4:
            e[n++] =
                (struct tar_entry){.type = '0', .name = name("d%u/.wh.%c", d, (char)('a' + f))};
            break;
        case 5:
            e[n++] = (struct tar_entry){.type = '5', .name = path, .mode = 0755};
            e[n++] = (struct tar_entry){.type = '0', .name = name("%s/.wh..wh..opq", path)};
            e[n++] =
                (struct tar_entry){.type = '0', .name = name("%s/only", path), .content = "only"};
            break;
        default:
            e[n++] = (struct tar_entry){.type = '0',
                                        .name = path,
                                        .content = name("file %d %d", layer, k),
                                        .mode = 0400 + chance(256),
                                        .uid = chance(3),
                                        .gid = chance(50)};
            if (chance(3) == 0)
                e[n++] =
                    (struct tar_entry){.type = '1', .name = name("d%u/hard%d", d, k), .link = path};
            break;
        }
    }
    add_layer(i, e);
}

static void umoci_makes_the_same_trees(void **state) {
    const struct place *p = *state;
    struct store *s = open_place(p);
    struct err err = {0};
    size_t compared = 0;

    if (geteuid() != 0)
        live_skip("root", "umoci gives files their owners");
    for (unsigned k = 0; k < STACKS; k++) {
        struct test_image i = {0};
        struct unpack_summary sum;
        char image[200], theirs[128], ours[400], tag[64];
        seed = k + 1;
        n_names = 0;
        for (int layer = 0; layer < LAYERS; layer++)
            add_chance_layer(&i, layer);
        put_image(s, &i);
        assert_ok(store_unpack(s, i.manifest, UNPACK_NO_BYTECODE, &sum, &err), err);
        (void)snprintf(tag, sizeof(tag), "docker.io/library/stack:%u", k);
        assert_ok(store_tag(s, tag, "application/vnd.oci.image.manifest.v1+json", i.manifest,
                            i.manifest_size, &err),
                  err);
        (void)snprintf(image, sizeof(image), "%s:%s", p->store, tag);
        (void)snprintf(theirs, sizeof(theirs), "%s/umoci%u", p->dir, k);
        (void)snprintf(ours, sizeof(ours), "%s/unpacked/%s/fs", p->store,
                       strchr(sum.chain, ':') + 1);
        pid_t pid = fork();
        if (pid == 0) {
            (void)execlp("umoci", "umoci", "raw", "unpack", "--image", image, theirs, (char *)NULL);
            _exit(99);
        }
        int status = -1;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        _cleanup_free_ char *a = listing_of(ours), *b = listing_of(theirs);
        if (strcmp(a, b) != 0) {
            size_t at = 0;
            while (a[at] == b[at])
                at++;
            while (at && a[at - 1] != '\n')
                at--;
            fail_msg("stack %u differs: ours \"%.120s\", umoci's \"%.120s\"", k, a + at, b + at);
        }
        for (const char *l = a; (l = strchr(l, '\n')); l++)
            compared++;
    }
    assert_true(compared > STACKS * 20);
    store_close(s);
}

/* ------------------------------------------------------------------ byte code */

static double best_of(const char *root_flag, const char *root) {
    double best = 1e9;

    for (int k = 0; k < 5; k++) {
        struct live_output *o = live_program(
            (const char *const[]){
                "python", root_flag, root, "-c",
                "import json, re, datetime, statistics, asyncio; print(json.__cached__)", NULL},
            -1);
        if (o->exit_code != 0 || !strstr(o->out, "__pycache__"))
            fail_msg("%s%s", o->out, o->err);
        best = o->ms < best ? o->ms : best;
        free(o);
    }
    return best;
}

static uint64_t count_of(const char *image) {
    struct live_output *o = live_program((const char *const[]){"inspect", image, NULL}, -1);
    json_t *list = json_loads(o->out, 0, NULL);
    const json_t *unpacked = json_object_get(json_array_get(list, 0), "unpacked");
    uint64_t n = (uint64_t)json_integer_value(json_object_get(unpacked, "bytecodeFiles"));

    assert_non_null(unpacked);
    json_decref(list);
    free(o);
    return n;
}

static void run_sh(const char *script) {
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        (void)execl("/bin/sh", "sh", "-ec", script, (char *)NULL);
        _exit(99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status != 0)
        fail_msg("%s: status %x", script, (unsigned)status);
}

static void byte_code_is_made_beside_an_image_that_has_none(void **state) {
    const struct place *p = *state;
    char script[8192], root[400], bare[100];
    struct live_output *o;

    (void)snprintf(bare, sizeof(bare), "%s/bare.tar", p->dir);
    (void)snprintf(script, sizeof(script),
                   "tar -C '%s' --exclude=__pycache__ -cf '%s' usr bin lib lib64 etc home",
                   live_env("MAYFLY_ROOTFS"), bare);
    run_sh(script);
    (void)setenv("MAYFLY_STORE", p->store, 1);
    o = live_program((const char *const[]){"import", "-t", "bare", bare, NULL}, -1);
    if (o->exit_code != 0)
        fail_msg("%s", o->err);
    free(o);
    assert_true(count_of("bare") > 100);
    /* The image's own tree is as it was, and so is its digest: the layer is the archive that was given. */
    (void)snprintf(
        script, sizeof(script),
        "cd %s/unpacked/*/fs; test -z \"$(find . -name __pycache__)\"; cd ../bytecode;"
        "test -n \"$(find . -name 'os.cpython-*.pyc')\"; test -z \"$(find . -name '*.pyc' -not "
        "-path '*/__pycache__/*')\";"
        "test \"$(sha256sum < %s | cut -c1-64)\" = \"$(basename \"$(dirname \"$PWD\")\")\"",
        p->store, bare);
    run_sh(script);
    (void)snprintf(script, sizeof(script),
                   "cd %s/unpacked/*/fs; test $(stat -c %%i usr/bin/python3*[0-9]|head -1) = "
                   "$(stat -c %%i ../bytecode/usr/bin/python3*[0-9]|head -1)",
                   p->store);
    run_sh(script); /* its files are not copied */
    struct store *s = open_place(p);
    int dir = openat(s->dir, "unpacked", O_RDONLY | O_CLOEXEC);
    DIR *d = fdopendir(dir);
    struct dirent *e;
    while ((e = readdir(d)) && e->d_name[0] == '.')
        ;
    assert_non_null(e);
    (void)snprintf(root, sizeof(root), "%s/unpacked/%s/fs", p->store, e->d_name);
    (void)closedir(d);
    store_close(s);
    double with = best_of("--image", "bare"), without = best_of("--rootfs", root);
    print_message("imports: %.0f ms without byte code, %.0f ms with\n", without, with);
    assert_true(with * 1.5 < without);

    o = live_program((const char *const[]){"rmi", "bare", NULL}, -1);
    assert_int_equal(o->exit_code, 0);
    free(o);
    o = live_program((const char *const[]){"import", "--no-bytecode", "-t", "bare", bare, NULL},
                     -1);
    assert_int_equal(o->exit_code, 0);
    free(o);
    assert_int_equal(count_of("bare"), 0);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_place, drop_place)
    const struct CMUnitTest tests[] = {
        TEST(umoci_makes_the_same_trees),
        TEST(byte_code_is_made_beside_an_image_that_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
