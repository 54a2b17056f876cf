/*
 * import_archive.c: archives that hold images (read by a process that can change nothing but the store): OCI's, docker save's; and a root file system's own archive.
 *
 * They come as a stream, in which what says what is what may be last. Blobs go to the store as they come; they are
 * found again by their digest. Which of the forms it is shows in the first name: the bytes up to there are kept, since
 * of a root file system the archive itself becomes the layer.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "fetch/import.h"

#include "base/banned.h"

enum { CHUNK = 256 << 10, MAX_HEAD = 16 << 20, MAX_FILES = 10000 };
/* What may come out of it: this much, and so many times what went in. */
enum { BASE_BYTES = 1 << 30, MAX_RATIO = 64 };

struct source {
    struct archive *raw, *tar;
    const char *what;
    struct buf head; /* what came before the form was known */
    bool decided;
    uint64_t bytes;
    char chunk[CHUNK];
};

static const char made_by[] = "it should be made by docker save, docker export, skopeo or tar";

static int not_readable(const struct source *s, struct archive *a, struct err *err) {
    const char *why = archive_error_string(a);

    return err_set(err, ERR_SETUP, -EBADMSG, "", made_by, "%.150s: %s", s->what,
                   why ? why : "is no archive");
}

/* ------------------------------------------------------------------ the stream */

static la_ssize_t feed(struct archive *a, void *context, const void **ret_chunk) {
    struct source *s = context;
    la_ssize_t n = archive_read_data(s->raw, s->chunk, sizeof(s->chunk));

    *ret_chunk = s->chunk;
    if (n > 0 && (s->bytes += (uint64_t)n) >
                     BASE_BYTES + MAX_RATIO * (uint64_t)archive_filter_bytes(s->raw, -1)) {
        archive_set_error(a, EFBIG, "more comes out of it than an image of its size should hold");
        return ARCHIVE_FATAL;
    }
    if (n > 0 && !s->decided)
        buf_add(&s->head, s->chunk, (size_t)n);
    if (n < 0 || s->head.failed || s->head.len > MAX_HEAD) {
        archive_set_error(a, archive_errno(s->raw), "%s",
                          archive_error_string(s->raw) ? archive_error_string(s->raw)
                                                       : "not readable");
        return ARCHIVE_FATAL;
    }
    return n;
}

static int open_source(struct source *s, int fd, struct err *err) {
    struct archive_entry *e = NULL;

    s->raw = archive_read_new();
    s->tar = archive_read_new();
    if (!s->raw || !s->tar)
        return err_oom(err);
    (void)archive_read_support_filter_gzip(s->raw);
    (void)archive_read_support_filter_bzip2(s->raw);
    (void)archive_read_support_filter_xz(s->raw);
    (void)archive_read_support_filter_zstd(s->raw);
    (void)archive_read_support_format_raw(s->raw);
    (void)archive_read_support_format_tar(s->tar);
    if (archive_read_open_fd(s->raw, fd, CHUNK) != ARCHIVE_OK ||
        archive_read_next_header(s->raw, &e) != ARCHIVE_OK)
        return not_readable(s, s->raw, err);
    return archive_read_open(s->tar, s, NULL, feed, NULL) == ARCHIVE_OK
               ? 0
               : not_readable(s, s->tar, err);
}

static void close_source(struct source *s) {
    if (s->tar)
        (void)archive_read_free(s->tar);
    if (s->raw)
        (void)archive_read_free(s->raw);
    buf_done(&s->head);
    free(s);
}

/* ------------------------------------------------------------------ a root file system */

/* The archive as it is, all of it, is the layer. */
static int take_rootfs(struct import *i, struct source *s, struct err *err) {
    struct blob_writer *w = NULL;
    const void *chunk;
    la_ssize_t n = 0;
    int r = blob_begin(i->store, NULL, -1, &w, NULL, err);

    s->decided = true;
    r = r < 0 ? r : blob_write(w, s->head.data, s->head.len, err);
    while (r == 0 && (n = feed(s->tar, s, &chunk)) > 0)
        r = blob_write(w, chunk, (size_t)n, err);
    if (r == 0 && n < 0)
        r = not_readable(s, s->tar, err);
    if (r == 0)
        return blob_commit_as(w, i->tar, &i->tar_size, err);
    blob_abandon(w, false);
    return r;
}

/* ------------------------------------------------------------------ an image's files */

static const char *plain(const char *path) {
    while (path[0] == '.' && path[1] == '/')
        path += 2 + strspn(path + 2, "/");
    return path;
}

static bool is_hex64(const char *s) { return strspn(s, "0123456789abcdef") == 64; }

/* Names that stand at the top of an archive with images in it, and of no root file system. */
static bool is_images(const char *path) {
    static const char *const names[] = {"oci-layout", "index.json", "manifest.json", "repositories",
                                        "blobs"};

    for (size_t k = 0; k < ARRAY_LEN(names); k++) {
        size_t len = strlen(names[k]);
        if (strncmp(path, names[k], len) == 0 && (!path[len] || path[len] == '/'))
            return true;
    }
    return is_hex64(path) && (!path[64] || path[64] == '/' || strcmp(path + 64, ".json") == 0 ||
                              strcmp(path + 64, ".tar") == 0);
}

static struct import_file *add_file(struct import *i, const char *path) {
    if (i->n_files >= MAX_FILES)
        return NULL;
    struct import_file *more = reallocarray(i->files, i->n_files + 1, sizeof(*more));
    if (!more)
        return NULL;
    i->files = more;
    more[i->n_files] = (struct import_file){.path = strdup(path)};
    return more[i->n_files].path ? &more[i->n_files++] : NULL;
}

/* "sha256:HEX" of "blobs/sha256/HEX"; false for any other name. */
static bool blob_name(const char *path, char digest[DIGEST_SIZE]) {
    if (strncmp(path, "blobs/", 6) != 0 || !str_copy(digest, DIGEST_SIZE, path + 6))
        return false;
    char *slash = strchr(digest, '/');
    if (slash)
        *slash = ':';
    return digest_is_valid(digest);
}

static int take_text(struct source *s, struct archive_entry *e, struct buf *ret, struct err *err) {
    int64_t size = archive_entry_size(e);

    if (size < 0 || size > STORE_INDEX_BYTES)
        return err_set(err, ERR_SETUP, -EFBIG, "", made_by, "%.150s: its index is too large",
                       s->what);
    ret->len = 0;
    char *to = buf_reserve(ret, (size_t)size);
    if (!to)
        return err_oom(err);
    la_ssize_t n = archive_read_data(s->tar, to, (size_t)size);
    if (n < 0)
        return not_readable(s, s->tar, err);
    ret->len = (size_t)n;
    to[n] = '\0';
    return 0;
}

static int take_blob(struct import *i, struct source *s, struct archive_entry *e, const char *path,
                     struct err *err) {
    char digest[DIGEST_SIZE], chunk[64 << 10];
    int64_t size = archive_entry_size(e);
    bool named = blob_name(path, digest);
    struct blob_writer *w = NULL;
    la_ssize_t n = 0;

    if (named && blob_is_good(i->store, digest, size))
        return 0;
    struct import_file *file = named ? NULL : add_file(i, path);
    if (!named && !file)
        return err_set(err, ERR_SETUP, -EFBIG, "", made_by, "%.150s: too many files for an image",
                       s->what);
    int r = blob_begin(i->store, named ? digest : NULL, size, &w, NULL, err);
    r = r < 0 ? r
              : blob_restart(w, err); /* the archive does not go on where another writer was cut */
    while (r == 0 && (n = archive_read_data(s->tar, chunk, sizeof(chunk))) > 0)
        r = blob_write(w, chunk, (size_t)n, err);
    if (r == 0 && n < 0)
        r = not_readable(s, s->tar, err);
    if (r < 0)
        return blob_abandon(w, false), r;
    return blob_commit_as(w, file ? file->digest : NULL, file ? &file->size : NULL, err);
}

/* docker save links layers that are the same. */
static int take_link(struct import *i, const char *path, const char *target, bool hard,
                     struct err *err) {
    char to[PATH_MAX];
    const char *slash = hard ? NULL : strrchr(path, '/');
    int dir = slash ? (int)(slash - path) + 1 : 0;
    struct import_file *file = add_file(i, path);

    while (dir && strncmp(target, "../", 3) == 0) { /* one directory deep is all there is */
        target += 3;
        dir = 0;
    }
    if (!file || snprintf(to, sizeof(to), "%.*s%s", dir, path, target) >= (int)sizeof(to) ||
        !(file->link = strdup(to)))
        return err_oom(err);
    return 0;
}

static int take_entry(struct import *i, struct source *s, struct archive_entry *e, const char *path,
                      struct err *err) {
    const char *last = strrchr(path, '/'), *to = archive_entry_hardlink(e);

    if (to || archive_entry_filetype(e) == AE_IFLNK)
        return take_link(i, path, plain(to ? to : archive_entry_symlink(e)), to, err);
    if (archive_entry_filetype(e) != AE_IFREG)
        return 0;
    if (strcmp(path, STORE_INDEX) == 0)
        return take_text(s, e, &i->index, err);
    if (strcmp(path, "manifest.json") == 0)
        return take_text(s, e, &i->docker, err);
    if (!is_images(path) || strcmp(path, STORE_LAYOUT) == 0 || strcmp(path, "repositories") == 0 ||
        (last && (strcmp(last, "/json") == 0 || strcmp(last, "/VERSION") == 0)))
        return 0; /* says nothing that the others do not */
    return take_blob(i, s, e, path, err);
}

static int take_entries(struct import *i, struct source *s, struct err *err) {
    struct archive_entry *e = NULL;
    int r = 0, got;

    while (r == 0 && (got = archive_read_next_header(s->tar, &e)) != ARCHIVE_EOF) {
        if (got != ARCHIVE_OK && got != ARCHIVE_WARN)
            return not_readable(s, s->tar, err);
        const char *path = archive_entry_pathname(e);
        path = path ? plain(path) : "?";
        if (!s->decided && *path && strcmp(path, ".") != 0) {
            if (!is_images(path))
                return take_rootfs(i, s, err);
            s->decided = true;
            buf_done(&s->head);
        }
        if (s->decided)
            r = take_entry(i, s, e, path, err);
    }
    if (r == 0 && !s->decided)
        return err_set(err, ERR_SETUP, -EBADMSG, "", made_by, "%.150s: there is nothing in it",
                       s->what);
    return r;
}

int import_archive(struct import *i, int fd, const char *what, struct err *err) {
    struct source *s = calloc(1, sizeof(*s));

    if (!s)
        return err_oom(err);
    s->what = what;
    int r = open_source(s, fd, err);
    r = r < 0 ? r : take_entries(i, s, err);
    close_source(s);
    return r;
}
