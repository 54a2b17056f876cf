/*
 * test_unpack.c: hostile layers. Whatever they say, nothing outside the tree is read or written; what is refused
 * leaves the store as it was; what is taken is the tree that OCI's rules give, in whatever order it comes.
 */
#include "layers.h"

#include <archive.h>
#include <archive_entry.h>
#include <ftw.h>
#include <grp.h>
#include <sys/xattr.h>

#include "fetch/layer.h"

#include "base/banned.h"

#define FILE_(n, c)                                                                                \
    { .type = '0', .name = n, .content = c }
#define DIR_(n)                                                                                    \
    { .type = '5', .name = n }
#define LINK_(n, to)                                                                               \
    { .type = '2', .name = n, .link = to }
#define HARD_(n, to)                                                                               \
    { .type = '1', .name = n, .link = to }

/* ------------------------------------------------------------------ looking */

/* The unpacked root of the image. */
static int open_fs(const struct store *s, const struct unpack_summary *sum) {
    char path[400];

    (void)snprintf(path, sizeof(path), "unpacked/%s/fs", strchr(sum->chain, ':') + 1);
    int fd = openat(s->dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static int unpack(struct store *s, struct test_image *i, int *ret_fs, struct unpack_summary *sum) {
    struct err err = {0};

    put_image(s, i);
    assert_ok(store_unpack(s, i->manifest, UNPACK_NO_BYTECODE, sum, &err), err);
    *ret_fs = open_fs(s, sum);
    return 0;
}

static const char *text_at(int fs, const char *path) {
    static char text[4096];
    ssize_t n = file_read_at(fs, path, text, sizeof(text));

    return n < 0 ? errno_name((int)n) : text;
}

static const char *link_at(int fs, const char *path) {
    static char text[4096];
    ssize_t n = readlinkat(fs, path, text, sizeof(text) - 1);

    if (n < 0)
        return errno_name(errno);
    text[n] = '\0';
    return text;
}

static struct stat stat_at(int fs, const char *path) {
    struct stat st = {0};

    if (fstatat(fs, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        fail_msg("%s: %s", path, strerror(errno));
    return st;
}

static bool is_there(int fs, const char *path) {
    return faccessat(fs, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Nothing was unpacked, and nothing is left of the attempt. */
static void assert_as_before(const struct store *s) {
    assert_int_equal(count_in(s->dir, "tmp"), 0);
    assert_int_equal(count_in(s->dir, "unpacked"), 0);
    assert_int_equal(count_in(s->dir, "images"), 0);
}

static void assert_refused(struct store *s, struct test_image *i, const char *word) {
    struct err err = {0};

    put_image(s, i);
    assert_true(store_unpack(s, i->manifest, UNPACK_NO_BYTECODE, NULL, &err) < 0);
    if (!strstr(err.message, word))
        fail_msg("\"%s\" does not say \"%s\"", err.message, word);
    assert_null(strchr(err.message, '\n'));
    assert_as_before(s);
}

/* ------------------------------------------------------------------ I1 */

static void names_that_lead_out_are_refused(void **state) {
    static const char *const names[] = {"../x",     "../../etc/x", "a/../../x", "a/..",    "..",
                                        "/etc/abs", "//abs",       "./../x",    "a/b/../x"};
    struct store *s = open_place(*state);

    for (size_t n = 0; n < ARRAY_LEN(names); n++) {
        for (const char *type = "01256"; *type; type++) {
            struct test_image i = {0};
            add_layer(&i, (struct tar_entry[]){
                              FILE_("f", "f"),
                              {.type = *type, .name = names[n], .link = "f", .content = NULL},
                              {0}});
            assert_refused(s, &i, names[n][0] == '/' ? "absolute" : "..");
        }
    }
    assert_false(is_there(s->dir, "x"));
    assert_false(is_there(AT_FDCWD, "/etc/abs"));
    store_close(s);
}

static void names_that_are_nothing_are_refused(void **state) {
    char name[5000] = "a", part[400];
    struct store *s = open_place(*state);

    for (size_t k = 0; k < 2100; k++)
        memcpy(name + 1 + 2 * k, "/a", 3);
    memset(part, 'n', sizeof(part) - 1);
    part[sizeof(part) - 1] = '\0';
    struct test_image deep = {0}, wide = {0}, below = {0}, root = {0};
    LAYER(&deep, FILE_(name, "x"));
    assert_refused(s, &deep, "too long");
    LAYER(&wide, FILE_(part, "x"));
    assert_refused(s, &wide, "longer than");
    LAYER(&below, FILE_(".wh.x/y", "x"));
    assert_refused(s, &below, "whiteout");
    LAYER(&root, LINK_("./.", "x"));
    assert_refused(s, &root, "root");
    store_close(s);
}

/* ------------------------------------------------------------------ I2 */

static void links_are_followed_inside_only(void **state) {
    const struct place *p = *state;
    struct store *s = open_place(p);
    struct unpack_summary sum;
    char outside[100], target[200], inside[200];
    int fs;

    (void)snprintf(outside, sizeof(outside), "%s/outside", p->dir);
    assert_int_equal(mkdir(outside, 0777), 0);
    (void)snprintf(target, sizeof(target), "../../../../../../../../..%s", outside);
    struct test_image i = {0};
    LAYER(&i, LINK_("abs", outside), FILE_("abs/same", "1"), LINK_("rel", target),
          FILE_("rel/same2", "2"), LINK_("up", ".."), FILE_("up/top", "3"), DIR_("d"),
          LINK_("d/up", "../../.."), FILE_("d/up/top2", "4"), LINK_("usr", "real/usr"),
          FILE_("usr/lib/x", "5"));
    LAYER(&i, FILE_("abs/later", "6"), FILE_("rel/later2", "7"),
          {.type = '5', .name = "abs/dir", .mode = 0700}, FILE_("d/up/.wh.top", ""),
          FILE_("usr/lib/x", "8"));
    (void)unpack(s, &i, &fs, &sum);
    assert_int_equal(count_in(AT_FDCWD, outside), 0);
    (void)snprintf(inside, sizeof(inside), "%s/same", outside + 1);
    assert_string_equal(text_at(fs, inside), "1");
    (void)snprintf(inside, sizeof(inside), "%s/later2", outside + 1);
    assert_string_equal(text_at(fs, inside), "7");
    assert_false(is_there(fs, "top"));
    assert_string_equal(text_at(fs, "top2"), "4");
    assert_string_equal(text_at(fs, "real/usr/lib/x"), "8");
    assert_string_equal(link_at(fs, "usr"), "real/usr");
    assert_non_null(strstr(sum.boxed, "seccomp"));
    (void)close(fs);

    struct test_image loop = {0};
    LAYER(&loop, LINK_("a", "b"), LINK_("b", "a"), FILE_("a/x", "x"));
    put_image(s, &loop);
    struct err err = {0};
    assert_int_equal(store_unpack(s, loop.manifest, UNPACK_NO_BYTECODE, NULL, &err), -ELOOP);
    store_close(s);
}

/* ------------------------------------------------------------------ I3 */

static void hard_links_stay_inside(void **state) {
    const struct place *p = *state;
    struct store *s = open_place(p);
    struct unpack_summary sum;
    char secret[100];
    int fs;

    (void)snprintf(secret, sizeof(secret), "%s/secret", p->dir);
    int fd = open(secret, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    assert_int_equal(fd_write_full(fd, "secret", 6), 0);
    const char *const targets[] = {
        "../../secret", "../../../../secret", secret, secret + 1, "nothing", "/", "d"};
    for (size_t n = 0; n < ARRAY_LEN(targets); n++) {
        struct test_image i = {0};
        LAYER(&i, DIR_("d"), HARD_("x", targets[n]));
        assert_refused(s, &i, "x");
    }
    struct test_image by_link = {0};
    LAYER(&by_link, LINK_("l", p->dir), HARD_("x", "l/secret"));
    assert_refused(s, &by_link, "not in the image");

    struct test_image i = {0};
    LAYER(&i, FILE_("low", "low"), LINK_("l", "/etc/passwd"), FILE_("two", "two"));
    LAYER(&i, HARD_("x", "low"), HARD_("ll", "l"), HARD_("two", "./two"), HARD_("again", "/low"),
          HARD_("d/low", "low"), FILE_("low", "new"));
    (void)unpack(s, &i, &fs, &sum);
    assert_string_equal(text_at(fs, "x"), "low"); /* written anew, not through the link */
    assert_string_equal(text_at(fs, "low"), "new");
    assert_string_equal(link_at(fs, "ll"), "/etc/passwd");
    assert_string_equal(text_at(fs, "two"), "two");
    assert_int_equal(stat_at(fs, "x").st_ino, stat_at(fs, "again").st_ino);
    assert_int_equal(stat_at(fs, "x").st_nlink, 3);
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_nlink, 1);
    (void)close(fd);
    (void)close(fs);
    store_close(s);
}

/* ------------------------------------------------------------------ I5 */

static uint64_t listing; /* nftw takes no context */
static size_t below;

static void mix(const void *data, size_t len) {
    for (const unsigned char *p = data; len--; p++)
        listing = (listing ^ *p) * UINT64_C(1099511628211);
}

static int list(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    char text[256] = "";
    const uint64_t facts[] = {st->st_mode, st->st_uid, st->st_gid,
                              S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0};
    uint64_t whole = listing;

    (void)ftw;
    listing = UINT64_C(14695981039346656037);
    mix(path + below, strlen(path + below));
    mix(facts, sizeof(facts));
    if (type == FTW_F && S_ISREG(st->st_mode))
        (void)file_read_at(AT_FDCWD, path, text, sizeof(text));
    mix(text, strlen(text));
    listing += whole; /* in whatever order a directory lists them */
    return type == FTW_NS ? -1 : 0;
}

static uint64_t list_tree(const char *dir) {
    listing = 0;
    below = strlen(dir);
    assert_int_equal(nftw(dir, list, 64, FTW_PHYS), 0);
    return listing;
}

/* Applies layers to a tree of its own, without a process of its own: many, quickly. */
static uint64_t apply(const char *dir, const struct tar_entry *const *layers, size_t n,
                      bool no_openat2) {
    struct layer_budget budget = LAYER_BUDGET(1 << 20, 1000);
    struct unpack_summary sum = {0};
    char fs[120], trash[120];
    struct tree tree;
    struct err err = {0};

    (void)snprintf(fs, sizeof(fs), "%s/fs", dir);
    (void)snprintf(trash, sizeof(trash), "%s/trash", dir);
    assert_int_equal(mkdir(fs, 0755) | mkdir(trash, 0755), 0);
    int fs_fd = open(fs, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        trash_fd = open(trash, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(tree_init(&tree, fs_fd, trash_fd, &sum), 0);
    tree.no_openat2 = no_openat2;
    for (size_t k = 0; k < n; k++) {
        struct test_image i = {0};
        char file[120];
        add_layer(&i, layers[k]);
        (void)snprintf(file, sizeof(file), "%s/layer", dir);
        int fd = open(file, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
        assert_int_equal(fd_write_full(fd, i.layers[0].data, i.layers[0].len), 0);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        assert_ok(layer_apply(&tree, fd, NULL, &budget, &err), err);
        (void)close(fd);
        buf_done(&i.layers[0]);
    }
    assert_ok(tree_finish(&tree, &err), err);
    tree_done(&tree);
    uint64_t listed = list_tree(fs);
    (void)close(fs_fd);
    (void)close(trash_fd);
    assert_int_equal(tree_remove(AT_FDCWD, fs, NULL), 0);
    assert_int_equal(tree_remove(AT_FDCWD, trash, NULL), 0);
    return listed;
}

static void swap(struct tar_entry *a, struct tar_entry *b) {
    struct tar_entry t = *a;

    *a = *b;
    *b = t;
}

/* Each order of the upper layer's entries (Heap's algorithm) gives the tree that `want` gives. */
static unsigned each_order(const char *dir, const struct tar_entry *low, struct tar_entry *up,
                           size_t n, uint64_t want) {
    const struct tar_entry *layers[] = {low, up};
    size_t c[8] = {0};
    unsigned orders = 1;

    assert_true(apply(dir, layers, 2, false) == want);
    for (size_t i = 1; i < n;) {
        if (c[i] >= i) {
            c[i++] = 0;
            continue;
        }
        swap(&up[i % 2 ? c[i] : 0], &up[i]);
        if (apply(dir, layers, 2, orders % 2) != want)
            fail_msg("order %u of %s gives another tree", orders, up[0].name);
        orders++;
        c[i]++;
        i = 1;
    }
    return orders;
}

static void whiteouts_know_no_order(void **state) {
    const struct place *p = *state;
    const struct tar_entry low[] = {{.type = '5', .name = "d", .mode = 0700, .uid = 7},
                                    FILE_("d/old", "old"),
                                    FILE_("d/sub/deep", "deep"),
                                    FILE_("d/sub/more", "more"),
                                    FILE_("x", "x"),
                                    FILE_("keep", "keep"),
                                    {0}};
    /* What comes out is said by a layer that has no whiteout in it. */
    static const struct {
        struct tar_entry up[8], want[8];
        size_t n;
    } cases[] = {
        /* a name and its whiteout: the upper's stays */
        {{FILE_("x", "new"), FILE_(".wh.x", ""), FILE_("y", "y"), {0}},
         {{.type = '5', .name = "d", .mode = 0700, .uid = 7},
          FILE_("d/old", "old"),
          FILE_("d/sub/deep", "deep"),
          FILE_("d/sub/more", "more"),
          FILE_("x", "new"),
          FILE_("keep", "keep"),
          FILE_("y", "y"),
          {0}},
         3},
        /* opaque: all that is below goes but what this layer brings */
        {{FILE_("d/.wh..wh..opq", ""),
          FILE_("d/new", "new"),
          FILE_("d/sub/own", "own"),
          FILE_("d/sub/deep", "mine"),
          {0}},
         {{.type = '5', .name = "d", .mode = 0700, .uid = 7},
          FILE_("d/new", "new"),
          FILE_("d/sub/own", "own"),
          FILE_("d/sub/deep", "mine"),
          FILE_("x", "x"),
          FILE_("keep", "keep"),
          {0}},
         4},
        /* a directory's whiteout, and things put into it by name only */
        {{FILE_(".wh.d", ""),
          FILE_("d/new", "new"),
          FILE_("d/sub/own", "own"),
          HARD_("z", "keep"),
          {0}},
         {FILE_("d/new", "new"),
          FILE_("d/sub/own", "own"),
          FILE_("x", "x"),
          FILE_("keep", "keep"),
          HARD_("z", "keep"),
          {0}},
         4},
        /* the same with an entry of its own */
        {{FILE_(".wh.d", ""),
          {.type = '5', .name = "d", .mode = 0711, .gid = 9},
          FILE_("d/sub/.wh.more", ""),
          {0}},
         {{.type = '5', .name = "d", .mode = 0711, .gid = 9},
          FILE_("x", "x"),
          FILE_("keep", "keep"),
          {0}},
         3},
        /* what is not there is hidden by nothing */
        {{FILE_("nowhere/.wh.a", ""),
          FILE_(".wh.b", ""),
          FILE_("x/.wh.c", ""),
          FILE_("d/sub/.wh.deep", ""),
          {0}},
         {{.type = '5', .name = "d", .mode = 0700, .uid = 7},
          FILE_("d/old", "old"),
          FILE_("d/sub/more", "more"),
          FILE_("x", "x"),
          FILE_("keep", "keep"),
          {0}},
         4},
    };
    unsigned orders = 0;

    for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
        const struct tar_entry *wanted[] = {cases[c].want};
        struct tar_entry up[8];
        memcpy(up, cases[c].up, sizeof(up));
        orders += each_order(p->dir, low, up, cases[c].n, apply(p->dir, wanted, 1, false));
    }
    assert_int_equal(orders, 6 + 24 + 24 + 6 + 24);
}

static void whiteouts_that_name_nothing_are_refused(void **state) {
    static const char *const names[] = {".wh.",   ".wh..",   ".wh...",
                                        "d/.wh.", "d/.wh..", "d/.wh.../"};
    struct store *s = open_place(*state);

    for (size_t n = 0; n < ARRAY_LEN(names); n++) {
        struct test_image i = {0};
        LAYER(&i, DIR_("d"), FILE_(names[n], ""));
        assert_refused(s, &i, "whiteout");
    }
    store_close(s);
}

static void a_whiteout_hides_no_file_of_the_hosts(void **state) {
    const struct place *p = *state;
    struct store *s = open_place(p);
    struct unpack_summary sum;
    char outside[100], name[100];
    int fs;

    (void)snprintf(outside, sizeof(outside), "%s/outside", p->dir);
    (void)snprintf(name, sizeof(name), "%s/outside/file", p->dir);
    assert_int_equal(mkdir(outside, 0777), 0);
    int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    (void)close(fd);
    struct test_image i = {0};
    LAYER(&i, LINK_("l", outside), LINK_("d/l", "../../../../../../../../../.."), FILE_("f", ""));
    LAYER(&i, FILE_("l/.wh.file", ""), FILE_("l/.wh..wh..opq", ""), FILE_("d/l/.wh.f", ""),
          FILE_(".wh..wh.plnk/x", "x"), FILE_(".wh..wh.aufs", "x"));
    (void)unpack(s, &i, &fs, &sum);
    assert_true(is_there(AT_FDCWD, name));
    assert_false(is_there(fs, "f"));
    assert_false(is_there(fs, ".wh..wh.plnk"));
    (void)close(fs);
    store_close(s);
}

/* ------------------------------------------------------------------ I6 */

static void the_last_entry_of_a_name_wins(void **state) {
    struct store *s = open_place(*state);
    struct unpack_summary sum;
    int fs;
    struct test_image i = {0};

    LAYER(&i, FILE_("twice", "first, and longer"), FILE_("twice", "second"), DIR_("a"),
          FILE_("a/in", "in"), FILE_("a", "a file"), DIR_("a"), FILE_("a/new", "new"), DIR_("b"),
          FILE_("b/in", "in"), LINK_("b", "a"), FILE_("b/through", "through"), FILE_("c", "c"),
          FILE_("c/below", "below"), LINK_("e", "/twice"), FILE_("e", "no link"),
          {.type = '5', .name = "made/", .mode = 0701}, FILE_("some/where/deep", "deep"));
    LAYER(&i, FILE_("made", "file"), DIR_("twice"));
    (void)unpack(s, &i, &fs, &sum);
    assert_false(is_there(fs, "a/in"));
    assert_string_equal(text_at(fs, "a/new"), "new");
    assert_string_equal(link_at(fs, "b"), "a");
    assert_string_equal(text_at(fs, "a/through"), "through");
    assert_string_equal(text_at(fs, "c/below"), "below");
    assert_string_equal(text_at(fs, "e"), "no link");
    assert_true(S_ISDIR(stat_at(fs, "twice").st_mode));
    assert_string_equal(text_at(fs, "made"), "file");
    assert_int_equal(stat_at(fs, "some/where").st_mode & 07777, 0755);
    assert_int_equal(stat_at(fs, "a").st_mtim.tv_sec,
                     1000000000); /* though something came into it later */
    assert_int_equal(stat_at(fs, "a/new").st_mtim.tv_sec, 1000000000);
    assert_int_equal(stat_at(fs, "some").st_mtim.tv_sec, 0);
    assert_true(S_ISDIR(stat_at(fs, "proc").st_mode) && S_ISDIR(stat_at(fs, "dev").st_mode));
    assert_int_equal(stat_at(fs, "tmp").st_mode & 07777, 01777);
    (void)close(fs);
    store_close(s);
}

/* ------------------------------------------------------------------ I7 */

static void odd_entries(struct test_image *i, const char *long_name) {
    LAYER(i, {.type = '5', .name = "closed", .mode = 01}, FILE_("closed/file", "in"),
          {.type = '0', .name = "su", .content = "su", .mode = 04755},
          {.type = '0', .name = "sg", .content = "sg", .mode = 02755},
          {.type = '5', .name = "sgdir", .mode = 02775, .gid = 50}, {.type = '3', .name = "null"},
          {.type = '4', .name = "sda"}, {.type = '6', .name = "fifo"},
          {.type = '0', .name = "shadow", .content = "s", .mode = 0040, .gid = 42},
          {.type = 'x', .name = "SCHILY.xattr.security.capability", .content = "caps"},
          FILE_("ping", "ping"),
          {.type = 'x', .name = "SCHILY.xattr.user.note", .content = "noted"},
          FILE_("noted", "noted"),
          {.type = 'x', .name = "SCHILY.xattr.trusted.overlay.opaque", .content = "y"},
          FILE_("trusted", "t"),
          {.type = 'x', .name = "SCHILY.xattr.user.overlay.redirect", .content = "/ping"},
          FILE_("meta", "m"), HARD_("null2", "null"), FILE_(long_name, "long"),
          FILE_("gr\xc3\xbc\xc3\x9f", "utf8"), FILE_("latin\xe9", "latin"),
          FILE_("new\nline", "nl"), FILE_("pipe", "there was one"));
    LAYER(i, HARD_("null3", "null2"), HARD_("pipe", "./fifo")); /* of what was left out: left out */
}

static void check_odd(struct store *s, bool root) {
    struct unpack_summary sum;
    char long_name[1001], note[16] = "";
    struct test_image i = {0};
    int fs, file;

    for (size_t k = 0; k < 1000; k++)
        long_name[k] = k % 50 == 49 ? '/' : 'n';
    long_name[999] = 'n';
    long_name[1000] = '\0';
    odd_entries(&i, long_name);
    (void)unpack(s, &i, &fs, &sum);
    assert_string_equal(text_at(fs, long_name), "long");
    assert_string_equal(text_at(fs, "closed/file"), "in");
    assert_string_equal(text_at(fs, "gr\xc3\xbc\xc3\x9f"), "utf8");
    assert_string_equal(text_at(fs, "latin\xe9"), "latin");
    assert_string_equal(text_at(fs, "new\nline"), "nl");
    assert_string_equal(text_at(fs, "shadow"), "s");
    assert_int_equal(stat_at(fs, "su").st_mode & 07777, 0755);
    assert_int_equal(stat_at(fs, "sg").st_mode & 07777, 0755);
    assert_false(is_there(fs, "null") || is_there(fs, "sda") || is_there(fs, "fifo"));
    assert_int_equal(stat_at(fs, "closed").st_mode & 07777, root ? 01 : 0701);
    assert_int_equal(stat_at(fs, "shadow").st_mode & 07777, root ? 0040 : 0440);
    assert_int_equal(stat_at(fs, "shadow").st_gid, root ? 42 : getegid());
    assert_int_equal(stat_at(fs, "shadow").st_uid, root ? 0 : geteuid());
    assert_false(is_there(fs, "null2") || is_there(fs, "null3") || is_there(fs, "pipe"));
    assert_int_equal(sum.devices, 6);
    assert_int_equal(sum.setid, 2);
    assert_int_equal(sum.filecaps, 1);
    assert_int_equal(sum.xattrs, 2);
    file = openat(fs, "meta", O_RDONLY | O_CLOEXEC);
    assert_int_equal(fgetxattr(file, "user.overlay.redirect", note, sizeof(note)), -1);
    (void)close(file);
    assert_int_equal(sum.owners, root ? 0 : 2);
    assert_int_equal(sum.modes, root ? 0 : 2);
    file = openat(fs, "ping", O_RDONLY | O_CLOEXEC);
    assert_int_equal(fgetxattr(file, "security.capability", note, sizeof(note)), -1);
    (void)close(file);
    file = openat(fs, "noted", O_RDONLY | O_CLOEXEC);
    ssize_t n =
        fgetxattr(file, "user.note", note, sizeof(note)); /* not every file system has them */
    assert_true(n == 5 ? memcmp(note, "noted", 5) == 0 : errno == ENOTSUP);
    (void)close(file);
    (void)close(fs);
}

static void odd_entries_are_made_harmless_and_counted(void **state) {
    struct store *s = open_place(*state);

    check_odd(s, geteuid() == 0);
    store_close(s);
}

static void a_user_gets_a_tree_he_can_use(void **state) {
    const struct place *p = *state;
    int status = -1;

    if (geteuid() != 0) {
        print_message("SKIPPED: called by a user, for whom the test before was that\n");
        skip();
    }
    assert_int_equal(chown(p->dir, 31234, 31234), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (setgroups(0, NULL) < 0 || setgid(31234) < 0 || setuid(31234) < 0)
            _exit(2);
        struct store *s = open_place(p);
        check_odd(s, false);
        store_close(s);
        _exit(tree_remove(AT_FDCWD, p->store, NULL) < 0 ? 3 : 0); /* and can remove it */
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* ------------------------------------------------------------------ I8, I11 */

static void layers_that_are_wrong_are_refused_by_name(void **state) {
    struct store *s = open_place(*state);
    static const struct {
        const char *type, *word;
    } types[] = {{"application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", "foreign"},
                 {"application/vnd.oci.image.layer.nondistributable.v1.tar", "foreign"},
                 {"application/vnd.oci.image.layer.v1.tar+gzip+encrypted", "encrypted"},
                 {"application/vnd.cncf.helm.chart.content.v1.tar+gzip", "helm"}};

    for (size_t n = 0; n < ARRAY_LEN(types); n++) {
        struct test_image i = {.layer_type = types[n].type};
        LAYER(&i, FILE_("f", "f"));
        assert_refused(s, &i, types[n].word);
    }
    struct test_image wrong = {
        .wrong_diff_id = "sha256:0000000000000000000000000000000000000000000000000000000000000001"};
    LAYER(&wrong, FILE_("f", "f"));
    assert_refused(s, &wrong, "digest");
    struct test_image cut = {0}, junk = {0}, bent = {0};
    LAYER(&cut, FILE_("f", "0123456789"), FILE_("g", "g"));
    cut.layers[0].len = 516;
    assert_refused(s, &cut, "it ends in the middle of a file");
    LAYER(&bent, FILE_("f", "0123456789"), FILE_("g", "g"));
    bent.layers[0].data[1024] = 'G'; /* a header whose checksum is another's */
    assert_refused(s, &bent, "damaged");
    buf_puts(&junk.layers[junk.n_layers++],
             "this is no archive, and a long enough text to be sure of it");
    assert_refused(s, &junk, "layer 1 of 1");
    store_close(s);
}

/* umoci insert closes no archive, and calls the root "/". */
static void what_is_odd_and_clear_is_taken(void **state) {
    static const struct tar_entry roots[] = {{.type = '5', .name = "/", .mode = 0711},
                                             {.type = '5', .name = "./", .mode = 0711},
                                             {.type = '5', .name = ".", .mode = 0711}};
    struct store *s = open_place(*state);

    for (size_t k = 0; k < ARRAY_LEN(roots); k++) {
        struct test_image i = {0}, as_file = {0};
        struct unpack_summary sum;
        struct tar_entry file = FILE_("f", "0123456789");
        int fs;
        file.mode = 0644 - (unsigned)k; /* so that each is another */
        add_layer(&i, (struct tar_entry[]){roots[k], file, {0}});
        i.layers[0].len = 512 + 512 + 10;
        (void)unpack(s, &i, &fs, &sum);
        assert_string_equal(text_at(fs, "f"), "0123456789");
        assert_int_equal(stat_at(fs, ".").st_mode & 07777, geteuid() ? 0711 | 0700 : 0711);
        (void)close(fs);
        LAYER(&as_file, {.type = '2', .name = roots[k].name, .link = "x"});
        put_image(s, &as_file);
        struct err err = {0};
        assert_int_equal(store_unpack(s, as_file.manifest, UNPACK_NO_BYTECODE, NULL, &err),
                         -EINVAL);
        assert_non_null(strstr(err.message, "root can only be a directory"));
    }
    store_close(s);
}

static void what_the_kernel_would_say_is_said_plainly(void **state) {
    struct store *s = open_place(*state);
    struct test_image owner = {0}, negative = {0};

    LAYER(&owner, {.type = 'x', .name = "uid", .content = "4294967295"}, FILE_("f", "f"));
    assert_refused(s, &owner, "\"f\": its owner is no id that Linux has");
    LAYER(&negative, {.type = 'x', .name = "gid", .content = "99999999999"}, FILE_("f", "f"));
    assert_refused(s, &negative, "\"f\": its owner is no id that Linux has");
    static const int codes[] = {E2BIG, EOVERFLOW, ELOOP,  ENOTDIR, ENAMETOOLONG, EMLINK,
                                EFBIG, ENOMEM,    ENOSPC, EDQUOT,  EROFS,        EIO};
    for (size_t k = 0; k < ARRAY_LEN(codes); k++) {
        struct err err = {0};
        assert_int_equal(tree_failed(&err, -codes[k], "a/b"), -codes[k]);
        assert_true(strncmp(err.message, "\"a/b\": ", 7) == 0);
        /* Its own words only where they are people's, and then with what to do. */
        if (strstr(err.message, strerror(codes[k])))
            assert_non_null(strstr(err.message, "; "));
    }
    store_close(s);
}

static void append(struct buf *to, const char *packed, size_t len) {
    buf_add(to, packed, len);
    assert_false(to->failed);
}

/* `tar` as gzip has it: in so many members. */
static void pack(struct buf *to, const struct buf *tar, int members) {
    for (int k = 0; k < members; k++) {
        size_t from = tar->len * (size_t)k / (size_t)members,
               end = tar->len * (size_t)(k + 1) / (size_t)members, used = 0;
        struct archive *a = archive_write_new();
        struct archive_entry *e = archive_entry_new();
        size_t room = (end - from) + 4096;
        _cleanup_free_ char *packed = malloc(room);
        assert_true(packed && archive_write_set_format_raw(a) == ARCHIVE_OK &&
                    archive_write_add_filter_gzip(a) == ARCHIVE_OK &&
                    archive_write_set_bytes_in_last_block(a, 1) == ARCHIVE_OK &&
                    archive_write_open_memory(a, packed, room, &used) == ARCHIVE_OK);
        archive_entry_set_filetype(e, AE_IFREG);
        assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
        assert_int_equal(archive_write_data(a, tar->data + from, end - from), end - from);
        archive_entry_free(e);
        assert_int_equal(archive_write_close(a), ARCHIVE_OK);
        (void)archive_write_free(a);
        append(to, packed, used);
    }
}

/* The digest of the layer would tell as well; but a layer that is damaged is not to be called another's. */
static void gzip_is_undone_or_refused_whatever_is_wrong_with_it(void **state) {
    enum { BIG = 3 << 20 };
    const struct place *p = *state;
    _cleanup_free_ char *big = malloc(BIG);
    _cleanup_buf_ struct buf tar = {0};
    char file[120], path[120];
    int n = 0;

    assert_non_null(big);
    for (unsigned k = 0, x = 1; k < BIG; k++)
        big[k] = (char)((x = x * 1103515245u + 12345u) >> 20 & (k & 1 << 16 ? 0xff : 3));
    tar_add(&tar,
            &(struct tar_entry){.type = '0', .name = "big", .content = big, .content_len = BIG});
    tar_end(&tar);
    for (int members = 1; members <= 20; members += 19) {
        _cleanup_buf_ struct buf whole = {0};
        pack(&whole, &tar, members);
        for (int wrong = 0; wrong < 12; wrong++) {
            struct layer_budget budget = LAYER_BUDGET(UINT64_C(8) << 20, 10);
            struct unpack_summary sum = {0};
            struct err err = {0};
            struct stat st;
            struct tree tree;
            size_t len = whole.len;
            (void)snprintf(file, sizeof(file), "%s/layer%d", p->dir, n);
            (void)snprintf(path, sizeof(path), "%s/fs%d", p->dir, n++);
            _cleanup_fd_ int fd = open(file, O_CREAT | O_RDWR | O_CLOEXEC, 0644);
            assert_int_equal(mkdir(path, 0755), 0);
            _cleanup_fd_ int fs = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            _cleanup_free_ char *bytes = malloc(len + 600);
            assert_non_null(bytes);
            memcpy(bytes, whole.data, len);
            memset(bytes + len, 0, 600);
            if (wrong == 1) /* filled up with zeros, as tapes are */
                len += 600;
            else if (wrong == 2) /* its sum */
                bytes[len - 8] ^= 1;
            else if (wrong == 3) /* its length */
                bytes[len - 1] ^= 1;
            else if (wrong > 3 && wrong < 8) /* cut: in the sums, or anywhere */
                len -= wrong == 4 ? 1 : wrong == 5 ? 8 : wrong == 6 ? 9 : len / 3;
            else if (wrong >= 8)
                bytes[len / 16 * (size_t)wrong] ^= (char)0x55;
            assert_int_equal(fd_write_full(fd, bytes, len), 0);
            assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
            assert_int_equal(tree_init(&tree, fs, -1, &sum), 0);
            int r = layer_apply(&tree, fd, NULL, &budget, &err);
            tree_done(&tree);
            if (wrong < 2) {
                assert_ok(r, err);
                st = stat_at(fs, "big");
                assert_int_equal(st.st_size, BIG);
                _cleanup_fd_ int got = openat(fs, "big", O_RDONLY | O_CLOEXEC);
                _cleanup_free_ char *content = malloc(BIG);
                assert_true(content && fd_read_full(got, content, BIG) == BIG);
                assert_memory_equal(content, big, BIG);
            } else if (r != -EBADMSG || !strstr(err.message, "damaged")) {
                fail_msg("%d members, %d: %d %s", members, wrong, r, err.message);
            }
        }
    }
}

static void too_much_is_stopped(void **state) {
    const struct place *p = *state;
    char file[120], path[120];
    struct err err = {0};

    for (int c = 0; c < 2; c++) {
        struct layer_budget budget = LAYER_BUDGET(c ? 1 << 20 : 64 << 10, c ? 10 : 100);
        struct unpack_summary sum = {0};
        struct test_image i = {0};
        struct tree tree;
        _cleanup_free_ char *big = calloc(1, 1 << 18);
        struct tar_entry e[24] = {
            {.type = '0', .name = "big", .content = big, .content_len = 1 << 18}};
        for (int k = 1; c && k < 20; k++)
            e[k] = (struct tar_entry){.type = '0', .name = "f", .content = "f"};
        add_layer(&i, e);
        (void)snprintf(file, sizeof(file), "%s/layer", p->dir);
        (void)snprintf(path, sizeof(path), "%s/fs%d", p->dir, c);
        assert_int_equal(mkdir(path, 0755), 0);
        int fs = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
            fd = open(file, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
        assert_int_equal(fd_write_full(fd, i.layers[0].data, i.layers[0].len), 0);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        assert_int_equal(tree_init(&tree, fs, -1, &sum), 0);
        err_clear(&err);
        assert_int_equal(layer_apply(&tree, fd, NULL, &budget, &err), -EFBIG);
        assert_non_null(strstr(err.message, c ? "more than 10 files and directories; it may be an"
                                              : "more than the 64 KiB that an image"));
        assert_true(sum.bytes <= (1 << 18) + 9 && sum.entries <= 10);
        tree_done(&tree);
        (void)close(fd);
        (void)close(fs);
        buf_done(&i.layers[0]);
    }
}

/* A small archive that would keep the machine busy for hours: the same large directory hidden again and again, or a long
 * way to each name. */
static void time_is_bounded_too(void **state) {
    enum { FILES = 300, STEPS = 20000 };
    const struct place *p = *state;
    char name[4000], path[120], file[120];

    for (int c = 0; c < 2; c++) {
        struct layer_budget budget = LAYER_BUDGET(1 << 30, 100000);
        struct unpack_summary sum = {0};
        struct test_image i = {0};
        struct err err = {0};
        struct tree tree;
        struct buf *b = &i.layers[0];
        for (int k = 0; k < FILES; k++) {
            (void)snprintf(name, sizeof(name), "d/%d", k);
            tar_add(b, &(struct tar_entry)FILE_(name, ""));
        }
        for (int k = 0; k < FILES; k++) {
            memset(name, 0, sizeof(name));
            for (size_t n = 0; c && n < 3600; n += 2)
                memcpy(name + n, "a/", 2);
            (void)snprintf(name + strlen(name), 40, c ? "%d/x" : "d/.wh..wh..opq", k);
            tar_add(b, &(struct tar_entry)FILE_(name, ""));
        }
        tar_end(b);
        (void)snprintf(file, sizeof(file), "%s/layer", p->dir);
        (void)snprintf(path, sizeof(path), "%s/fs%d", p->dir, c);
        assert_int_equal(mkdir(path, 0755), 0);
        int fs = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
            fd = open(file, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
        assert_int_equal(fd_write_full(fd, b->data, b->len), 0);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        assert_int_equal(tree_init(&tree, fs, -1, &sum), 0);
        assert_true(tree.max_steps > 100 * STEPS);
        tree.max_steps = STEPS;
        assert_int_equal(layer_apply(&tree, fd, NULL, &budget, &err), -E2BIG);
        assert_non_null(strstr(err.message, "too far about"));
        tree_done(&tree);
        (void)close(fd);
        (void)close(fs);
        buf_done(b);
    }
}

/* ------------------------------------------------------------------ at once, and again */

static void many_at_once_unpack_once(void **state) {
    enum { AT_ONCE = 20 };
    const struct place *p = *state;
    struct store *s = open_place(p);
    struct test_image i = {.config = "{\"WorkingDir\":\"/srv/app\"}"};
    pid_t pids[AT_ONCE];

    LAYER(&i, FILE_("f", "f"), DIR_("d"));
    put_image(s, &i);
    for (int k = 0; k < AT_ONCE; k++) {
        pids[k] = fork();
        if (pids[k] == 0) {
            struct store *own = NULL;
            struct unpack_summary sum;
            struct err err = {0};
            int r = store_open_writable(p->store, &own, &err);
            r = r < 0 ? r : store_unpack(own, i.manifest, UNPACK_NO_BYTECODE, &sum, &err);
            _exit(r < 0 ? 99 : sum.was_there ? 1 : 0);
        }
    }
    int first = 0;
    for (int k = 0; k < AT_ONCE; k++) {
        int status = -1;
        assert_int_equal(waitpid(pids[k], &status, 0), pids[k]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
        first += WEXITSTATUS(status) == 0;
    }
    assert_int_equal(first, 1);
    assert_int_equal(count_in(s->dir, "unpacked"), 1);
    assert_int_equal(count_in(s->dir, "images"), 1);
    assert_int_equal(count_in(s->dir, "tmp"), 0);

    struct test_image other = {.config = "{\"WorkingDir\":\"/srv/other/\"}"};
    struct unpack_summary sum;
    int fs;
    LAYER(&other, FILE_("f", "f"), DIR_("d")); /* the same layers, another config */
    (void)unpack(s, &other, &fs, &sum);
    assert_true(sum.was_there);
    assert_int_equal(sum.files, 1);
    assert_true(is_there(fs, "srv/app") && is_there(fs, "srv/other"));
    assert_int_equal(count_in(s->dir, "unpacked"), 1);
    assert_int_equal(count_in(s->dir, "images"), 2);
    (void)close(fs);
    store_close(s);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_fast_place, drop_place)
    const struct CMUnitTest tests[] = {
        TEST(names_that_lead_out_are_refused),
        TEST(names_that_are_nothing_are_refused),
        TEST(links_are_followed_inside_only),
        TEST(hard_links_stay_inside),
        TEST(whiteouts_know_no_order),
        TEST(whiteouts_that_name_nothing_are_refused),
        TEST(a_whiteout_hides_no_file_of_the_hosts),
        TEST(the_last_entry_of_a_name_wins),
        TEST(odd_entries_are_made_harmless_and_counted),
        TEST(a_user_gets_a_tree_he_can_use),
        TEST(layers_that_are_wrong_are_refused_by_name),
        TEST(what_is_odd_and_clear_is_taken),
        TEST(what_the_kernel_would_say_is_said_plainly),
        TEST(gzip_is_undone_or_refused_whatever_is_wrong_with_it),
        TEST(too_much_is_stopped),
        TEST(time_is_bounded_too),
        TEST(many_at_once_unpack_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
