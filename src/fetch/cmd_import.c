/*
 * cmd_import.c: the commands import and export.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/units.h"
#include "fetch/commands.h"
#include "fetch/error_json.h"
#include "fetch/export.h"
#include "fetch/gc.h"
#include "fetch/import.h"
#include "fetch/index.h"
#include "fetch/options.h"
#include "fetch/summary.h"

#include "base/banned.h"

/* ------------------------------------------------------------------ import */

static void add_word(struct buf *b, uint64_t n, const char *word) {
    if (n)
        buf_printf(b, "%s%llu %s", b->len ? ", " : "", (unsigned long long)n, word);
}

/* What is not as the image has it: one line, where there is any. */
static void print_left_out(const struct unpack_summary *sum) {
    _cleanup_buf_ struct buf b = {0};

    add_word(&b, sum->devices, "devices and the like left out");
    add_word(&b, sum->setid, "setuid and setgid bits dropped");
    add_word(&b, sum->filecaps, "file capabilities dropped");
    add_word(&b, sum->xattrs, "extended attributes dropped");
    add_word(&b, sum->owners, "files without their owner");
    add_word(&b, sum->modes, "modes made usable");
    if (b.len && !b.failed)
        (void)printf("  %s\n", b.data);
}

static void print_images(const struct import *i) {
    char size[32];

    for (size_t k = 0; k < i->n_images; k++) {
        const struct imported *image = &i->images[k];
        const struct unpack_summary *sum = &image->sum;
        (void)printf("%s %s: %llu files, %s%s\n", image->name[0] ? image->name : "(no name)",
                     image->digest, (unsigned long long)sum->files,
                     format_bytes(sum->bytes, size, sizeof(size)),
                     sum->was_there ? ", unpacked already" : "");
        print_left_out(sum);
        if (image->unnamed[0])
            (void)printf("  " UNNAMED_NOTE "\n", image->unnamed);
    }
}

static json_t *text_or_null(const char *text) { return *text ? json_string(text) : json_null(); }

/* Of several images those that came before a wrong one are there. */
static void print_images_json(const struct import *i, const struct err *err) {
    json_t *list = json_array();

    for (size_t k = 0; k < i->n_images; k++) {
        const struct imported *image = &i->images[k];
        (void)json_array_append_new(
            list, json_pack("{so ss so sb so}", "name", text_or_null(image->name), "digest",
                            image->digest, "unnamed", text_or_null(image->unnamed), "wasUnpacked",
                            image->sum.was_there, "unpacked", summary_json(&image->sum)));
    }
    json_t *all = json_pack("{so}", "images", list);
    if (all && err->code)
        (void)json_object_set_new(all, "error", error_json(err));
    char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
    (void)puts(text ? text : "{}");
    free(text);
    json_decref(all);
}

/* What an import that failed has brought goes again, unless others are writing: then prune finds it. */
static void drop_added(const char *path, const struct buf *before) {
    struct store *s = NULL;

    if (store_open_alone(path, 0, &s, NULL) == 0)
        (void)store_drop_added(s, before, NULL);
    store_close(s);
}

int fetch_import(int argc, char **argv) {
    const char *path = NULL, *tags[8], *tag = NULL, *platform = NULL;
    int n_tags = 0;
    bool json = false, no_bytecode = false;
    const struct option_row rows[] = {{"--store", 0, NULL, &path},
                                      {"--platform", 0, NULL, &platform},
                                      {"--json", 0, &json, NULL},
                                      {"--no-bytecode", 0, &no_bytecode, NULL},
                                      {0}};
    struct err err = {0};
    struct buf before _cleanup_buf_ = {0};
    struct import i = {.name = NULL, .layout = -1};
    struct reference name = {0};
    const struct option_list lists[] = {{"--tag", 't', tags, &n_tags, ARRAY_LEN(tags)}, {0}};
    int n = options_take_lists(argc, argv, rows, lists, &err), r = n < 0 ? n : 0;

    tag = n_tags ? tags[0] : NULL;
    if (r == 0 && n_tags > 1)
        r = err_set(&err, ERR_USAGE, -EINVAL, "", "give one; mayfly import once more gives another",
                    "import: --tag is given %d times, and an image gets one name", n_tags);
    if (r == 0 && n != 1)
        r = err_set(&err, ERR_USAGE, -EINVAL, "",
                    "name a file, a directory, or - for standard input", "import: %s",
                    n ? "one source at a time" : "from what?");
    platform_host(&i.platform);
    i.platform_given = platform;
    if (r == 0 && platform)
        r = platform_parse(platform, &i.platform, &err);
    if (r == 0 && tag)
        r = reference_parse(tag, &name, &err);
    if (r == 0 && tag && name.digest[0])
        r = err_set(&err, ERR_USAGE, -EINVAL, "", "leave the digest out",
                    "import: --tag: a digest is what the content says, and cannot be chosen");
    r = r < 0 ? r : store_open_writable(path, &i.store, &err);
    r = r < 0 ? r : store_list_blobs(i.store, &before, &err);
    if (r == 0) {
        i.name = tag;
        i.flags = no_bytecode ? UNPACK_NO_BYTECODE : 0;
        r = import(&i, argv[0], &err);
        if (!json)
            print_images(&i); /* of several, those that came before a wrong one are there */
    }
    if (json)
        print_images_json(&i, &err);
    import_done(&i);
    if (r < 0 && i.store) {
        store_close(TAKE_PTR(i.store));
        drop_added(path, &before);
    }
    store_close(i.store);
    if (r < 0)
        return complain_of(&err);
    return finish_output();
}

/* ------------------------------------------------------------------ export */

/* A file without a name, so that whatever ends this leaves nothing behind; or, on a file system that has none such, one
 * beside the other, *ret_named. */
static int open_part(const char *file, const char *part, bool *ret_named) {
    _cleanup_free_ char *copy = strdup(file);
    char *slash = copy ? strrchr(copy, '/') : NULL;

    if (!copy)
        return -ENOMEM;
    if (slash)
        slash[slash == copy] = '\0';
    int fd = open(slash ? copy : ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    *ret_named = fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT);
    if (*ret_named)
        fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return fd < 0 ? -errno : fd;
}

/* On the disk first, then there in one step, in place of what has the name. */
static int name_part(int fd, bool named, const char *part, const char *file) {
    char self[32];

    (void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    if (fsync(fd) < 0 || (!named && linkat(AT_FDCWD, self, AT_FDCWD, part, AT_SYMLINK_FOLLOW) < 0))
        return -errno;
    int r = rename(part, file) < 0 ? -errno : 0;
    if (r < 0)
        (void)unlink(part);
    return r;
}

static int failed_to_write(const char *file, int code, struct err *err) {
    return err_errno(err, ERR_USAGE, code, "",
                     code == -ENOSPC || code == -EDQUOT
                         ? "make room, or name a file elsewhere with -o"
                         : "name a file that can be made with -o",
                     "export: %.200s", file);
}

static int export_to_file(const struct store *s, char **images, int n, const char *file,
                          struct err *err) {
    char part[STORE_PATH_SIZE];
    bool named = false;

    if (snprintf(part, sizeof(part), "%s.part-%d", file, (int)getpid()) >= (int)sizeof(part))
        return failed_to_write(file, -ENAMETOOLONG, err);
    _cleanup_fd_ int fd = open_part(file, part, &named);
    if (fd < 0)
        return failed_to_write(file, fd, err);
    int r = store_export(s, images, n, fd, err);
    if (r == 0) {
        r = name_part(fd, named, part, file);
        return r < 0 ? failed_to_write(file, r, err) : 0;
    }
    if (named)
        (void)unlink(part);
    return r;
}

static int export_images(const char *path, char **images, int n, const char *file,
                         struct err *err) {
    struct store *s = NULL;
    struct stat st;

    if (n == 0)
        return err_set(err, ERR_USAGE, -EINVAL, "", "mayfly images lists them",
                       "export: no image is named");
    if (!file && isatty(STDOUT_FILENO))
        return err_set(err, ERR_USAGE, -EINVAL, "", "name a file with -o, or put > FILE there",
                       "export: standard output is a terminal");
    if (file && stat(file, &st) == 0 && !S_ISREG(st.st_mode))
        return err_set(err, ERR_USAGE, -EEXIST, "", "put > there to write to it, or name another",
                       "export: %.200s: is no plain file", file);
    /* Replaced is the file, not a link to it. */
    _cleanup_free_ char *real = file ? realpath(file, NULL) : NULL;
    file = real ? real : file;
    int r = store_open_held(path, &s, err);
    if (r == 0)
        r = file ? export_to_file(s, images, n, file, err)
                 : store_export(s, images, n, STDOUT_FILENO, err);
    store_close(s);
    return r;
}

int fetch_export(int argc, char **argv) {
    const char *path = NULL, *file = NULL;
    const struct option_row rows[] = {
        {"--store", 0, NULL, &path}, {"--output", 'o', NULL, &file}, {0}};
    struct err err = {0};
    int n = options_take(argc, argv, rows, &err);
    int r = n < 0 ? n : export_images(path, argv, n, file, &err);

    if (r == -EPIPE && !file)
        return EXIT_READER_GONE;
    return r < 0 ? complain_of(&err) : 0;
}
