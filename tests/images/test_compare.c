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

/* The root file system of that chain in the place's store, and the one that umoci makes of the image in a layout. Returns
 * how many entries they have. */
static size_t compare_with_umoci(const struct place *p, const char *chain, const char *image) {
    static unsigned n;
    char theirs[128], ours[400];
    int status = -1;
    size_t entries = 0, at = 0;

    (void)snprintf(theirs, sizeof(theirs), "%s/umoci%u", p->dir, n++);
    (void)snprintf(ours, sizeof(ours), "%s/unpacked/%s/fs", p->store, chain);
    pid_t pid = fork();
    if (pid == 0) {
        (void)execlp("umoci", "umoci", "raw", "unpack", "--image", image, theirs, (char *)NULL);
        _exit(99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    _cleanup_free_ char *a = listing_of(ours), *b = listing_of(theirs);
    if (strcmp(a, b) != 0) {
        while (a[at] == b[at])
            at++;
        while (at && a[at - 1] != '\n')
            at--;
        fail_msg("%s differs: ours \"%.120s\", umoci's \"%.120s\"", image, a + at, b + at);
    }
    for (const char *l = a; (l = strchr(l, '\n')); l++)
        entries++;
    return entries;
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
        char image[200], tag[64];
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
        compared += compare_with_umoci(p, strchr(sum.chain, ':') + 1, image);
    }
    assert_true(compared > STACKS * 20);
    store_close(s);
}

/* What others make of the same two steps; the second takes away, replaces and adds. In $m is the root. */
static const char first_step[] = "mkdir -p $m/usr/bin $m/etc/d $m/opt/old $m/opt/kept; echo hi > "
                                 "$m/usr/bin/x; chmod 755 $m/usr/bin/x;"
                                 "ln $m/usr/bin/x $m/usr/bin/y; ln -s ../usr/bin/x $m/etc/l; echo "
                                 "1 > $m/etc/d/f; echo 2 > $m/opt/old/a;"
                                 "chown 5:42 $m/etc/d/f; chmod 1777 $m/opt/kept; truncate -s 1M "
                                 "$m/opt/kept/sparse; touch -d @7 $m/opt/kept/old";
static const char second_step[] =
    "rm -r $m/opt/old $m/etc/l $m/usr/bin/y $m/etc/d; mkdir $m/etc/l $m/etc/d; echo n > "
    "$m/etc/l/new;"
    "echo 3 > $m/etc/d/g; ln -s nowhere $m/opt/old; chmod 700 $m/opt/kept; chown 7 $m/usr/bin/x";

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

static void images_of_other_tools_make_the_same_trees(void **state) {
    static const struct {
        const char *made, *image; /* what is imported, and of which layout umoci makes the tree */
        const char *script;
    } makers[] = {
        {"buildah", "buildah",
         "export STORAGE_DRIVER=vfs; b=\"buildah --root $T/root --runroot $T/run\";"
         "c=$($b from scratch); m=$($b mount $c); eval \"$first\"; $b commit -q --rm $c base;"
         "c=$($b from base); m=$($b mount $c); eval \"$second\";"
         "$b config --user 5:42 --workingdir /opt --cmd /usr/bin/x --env A=b $c;"
         "$b commit -q --rm $c oci:$T/buildah:small:1"},
        {"umoci", "umoci",
         "umoci init --layout $T/umoci; umoci new --image $T/umoci:small:1; m=$T/bundle/rootfs;"
         "for step in \"$first\" \"$second\"; do rm -rf $T/bundle;"
         "umoci unpack --image $T/umoci:small:1 $T/bundle; eval \"$step\";"
         "umoci repack --image $T/umoci:small:1 $T/bundle; done"},
        {"zstd", "buildah",
         "skopeo copy -q --insecure-policy --dest-compress --dest-compress-format zstd "
         "oci:$T/buildah:small:1 dir:$T/dir;"
         "skopeo copy -q --insecure-policy dir:$T/dir oci:$T/zstd:small:1;"
         "grep -q tar+zstd $T/zstd/blobs/sha256/*"},
        {"saved.tar", "umoci",
         "skopeo copy -q --insecure-policy oci:$T/umoci:small:1 "
         "docker-archive:$T/saved.tar:saved:1"},
    };
    const struct place *p = *state;
    char script[2048], made[200], image[300];

    if (geteuid() != 0)
        live_skip("root", "umoci gives files their owners");
    assert_int_equal(setenv("T", p->dir, 1) | setenv("first", first_step, 1) |
                         setenv("second", second_step, 1) | setenv("MAYFLY_STORE", p->store, 1),
                     0);
    for (size_t i = 0; i < ARRAY_LEN(makers); i++) {
        (void)snprintf(script, sizeof(script), "exec > /dev/null; %s", makers[i].script);
        run_sh(script);
        (void)snprintf(made, sizeof(made), "%s/%s", p->dir, makers[i].made);
        (void)snprintf(image, sizeof(image), "%s/%s:small:1", p->dir, makers[i].image);
        struct live_output *o =
            live_program((const char *const[]){"import", "--json", made, NULL}, -1);
        json_t *said = json_loads(o->out, 0, NULL);
        const json_t *first = json_array_get(json_object_get(said, "images"), 0);
        const char *chain =
            json_string_value(json_object_get(json_object_get(first, "unpacked"), "chainId"));
        if (!chain)
            fail_msg("%s: %s%s", made, o->out, o->err);
        assert_true(compare_with_umoci(p, strchr(chain, ':') + 1, image) > 12);
        json_decref(said);
        free(o);
    }
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
    o = live_program((const char *const[]){"import", "--no-bytecode", "-t", "bare", bare, NULL},
                     -1);
    assert_int_equal(o->exit_code, 0);
    free(o);
    assert_int_equal(count_of("bare"), 0);
    /* Beside a tree that is there, and after one who was killed in the middle of it. */
    (void)snprintf(script, sizeof(script), "cd %s/unpacked/*/; mkdir -p trash/x bytecode.part/usr",
                   p->store);
    run_sh(script);
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
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_place, drop_place)
    const struct CMUnitTest tests[] = {
        TEST(umoci_makes_the_same_trees),
        TEST(images_of_other_tools_make_the_same_trees),
        TEST(byte_code_is_made_beside_an_image_that_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
