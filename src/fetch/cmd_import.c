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
#include "fetch/export.h"
#include "fetch/import.h"
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
    }
}

static void print_images_json(const struct import *i) {
    json_t *list = json_array();

    for (size_t k = 0; k < i->n_images; k++) {
        const struct imported *image = &i->images[k];
        (void)json_array_append_new(
            list, json_pack("{so ss sb so}", "name",
                            image->name[0] ? json_string(image->name) : json_null(), "digest",
                            image->digest, "wasUnpacked", image->sum.was_there, "unpacked",
                            summary_json(&image->sum)));
    }
    json_t *all = json_pack("{so}", "images", list);
    char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
    (void)puts(text ? text : "{}");
    free(text);
    json_decref(all);
}

int fetch_import(int argc, char **argv) {
    const char *path = NULL, *tag = NULL, *platform = NULL;
    bool json = false, no_bytecode = false;
    const struct option_row rows[] = {{"--store", 0, NULL, &path},
                                      {"--tag", 't', NULL, &tag},
                                      {"--platform", 0, NULL, &platform},
                                      {"--json", 0, &json, NULL},
                                      {"--no-bytecode", 0, &no_bytecode, NULL},
                                      {0}};
    struct err err = {0};
    struct import i = {.name = NULL, .layout = -1};
    struct reference name = {0};
    int n = options_take(argc, argv, rows, &err), r = n < 0 ? n : 0;

    if (r == 0 && n != 1)
        r = err_set(&err, ERR_USAGE, -EINVAL, "", NULL,
                    n ? "import: one source at a time"
                      : "import: from what? name a file, a directory, or - for standard input");
    platform_host(&i.platform);
    if (r == 0 && platform)
        r = platform_parse(platform, &i.platform, &err);
    if (r == 0 && tag)
        r = reference_parse(tag, &name, &err);
    if (r == 0 && tag && name.digest[0])
        r = err_set(&err, ERR_USAGE, -EINVAL, "", "leave the digest out",
                    "import: --tag: a digest is what the content says, and cannot be chosen");
    r = r < 0 ? r : store_open_writable(path, &i.store, &err);
    if (r == 0) {
        i.name = tag;
        i.flags = no_bytecode ? UNPACK_NO_BYTECODE : 0;
        r = import(&i, argv[0], &err);
        if (json && r == 0)
            print_images_json(&i);
        else if (!json)
            print_images(&i); /* of several, those that came before a wrong one are there */
    }
    import_done(&i);
    store_close(i.store);
    if (r < 0)
        return complain_of(&err);
    return fflush(stdout) == 0 ? 0 : EXIT_FETCH;
}

/* ------------------------------------------------------------------ export */

/* Into a file beside it that takes its name when it is whole. */
static int export_to_file(const struct store *s, char **images, int n, const char *file,
                          struct err *err) {
    char path[STORE_PATH_SIZE];

    if (snprintf(path, sizeof(path), "%s.part-%d", file, (int)getpid()) >= (int)sizeof(path))
        return err_set(err, ERR_USAGE, -ENAMETOOLONG, "", NULL, "export: --output: too long");
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_errno(err, ERR_USAGE, -errno, "", NULL, "export: %.200s", path);
    int r = store_export(s, images, n, fd, err);
    if (r == 0 && (fsync(fd) < 0 || rename(path, file) < 0))
        r = err_errno(err, ERR_SETUP, -errno, "", NULL, "export: %.200s", file);
    if (r < 0)
        (void)unlink(path);
    return r;
}

int fetch_export(int argc, char **argv) {
    const char *path = NULL, *file = NULL;
    const struct option_row rows[] = {
        {"--store", 0, NULL, &path}, {"--output", 'o', NULL, &file}, {0}};
    struct err err = {0};
    struct store *s = NULL;
    struct stat st;
    int n = options_take(argc, argv, rows, &err), r = n < 0 ? n : 0;

    if (r == 0 && n == 0)
        r = err_set(&err, ERR_USAGE, -EINVAL, "", "mayfly images lists them",
                    "export: no image is named");
    if (r == 0 && !file && isatty(STDOUT_FILENO))
        r = err_set(&err, ERR_USAGE, -EINVAL, "", "name a file with -o, or put > FILE there",
                    "export: standard output is a terminal");
    r = r < 0 ? r
              : store_open_writable(path, &s, &err); /* so that nothing is collected meanwhile */
    if (r == 0)
        r = file && (stat(file, &st) < 0 || S_ISREG(st.st_mode))
                ? export_to_file(s, argv, n, file, &err)
            : file ? err_set(&err, ERR_USAGE, -EEXIST, "", NULL, "export: %.200s: is no file", file)
                   : store_export(s, argv, n, STDOUT_FILENO, &err);
    store_close(s);
    return r < 0 ? complain_of(&err) : 0;
}
