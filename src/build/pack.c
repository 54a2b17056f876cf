/*
 * pack.c: see pack.h.
 *
 * Two writers, one behind the other: what the first makes, the archive, is hashed for the config's diff id; the second
 * compresses it into the blob, which has a digest of its own.
 */
#include "build/pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

struct pack {
    int root; /* of the files */
    const struct pack_options *options;
    struct archive *tar, *gzip;
    struct archive_entry_linkresolver *links;
    EVP_MD_CTX *md;
    struct blob_writer *blob;
    struct err *err;
    bool as_user;
    uint64_t entries;
};

static int failed(struct pack *p, int code, const char *path) {
    if (p->err->code)
        return p->err->code;
    return err_errno(p->err, ERR_SETUP, code, "", NULL, "packing the layer: %.200s", path);
}

/* ------------------------------------------------------------------ the two writers */

static la_ssize_t put_blob(struct archive *a, void *context, const void *data, size_t len) {
    struct pack *p = context;

    if (blob_write(p->blob, data, len, p->err) == 0)
        return (la_ssize_t)len;
    archive_set_error(a, EIO, "the store");
    return -1;
}

static la_ssize_t put_tar(struct archive *a, void *context, const void *data, size_t len) {
    struct pack *p = context;

    if (EVP_DigestUpdate(p->md, data, len) == 1 &&
        archive_write_data(p->gzip, data, len) == (la_ssize_t)len)
        return (la_ssize_t)len;
    archive_set_error(a, EIO, "compressing");
    return -1;
}

static int open_gzip(struct pack *p) {
    struct archive_entry *e = archive_entry_new();

    if (!e)
        return -ENOMEM;
    archive_entry_set_filetype(e, AE_IFREG);
    bool good = archive_write_set_format_raw(p->gzip) == ARCHIVE_OK &&
                archive_write_add_filter_gzip(p->gzip) == ARCHIVE_OK &&
                archive_write_set_options(p->gzip, "gzip:!timestamp,gzip:compression-level=6") ==
                    ARCHIVE_OK &&
                archive_write_set_bytes_in_last_block(p->gzip, 1) == ARCHIVE_OK &&
                archive_write_open(p->gzip, p, NULL, put_blob, NULL) == ARCHIVE_OK &&
                archive_write_header(p->gzip, e) == ARCHIVE_OK;
    archive_entry_free(e);
    return good ? 0 : -EIO;
}

static int open_tar(struct pack *p) {
    bool good = archive_write_set_format_pax_restricted(p->tar) == ARCHIVE_OK &&
                archive_write_set_bytes_in_last_block(p->tar, 1) == ARCHIVE_OK &&
                archive_write_open(p->tar, p, NULL, put_tar, NULL) == ARCHIVE_OK;

    if (good)
        archive_entry_linkresolver_set_strategy(p->links, archive_format(p->tar));
    return good ? 0 : -EIO;
}

/* ------------------------------------------------------------------ entries */

static struct timespec time_of(const struct pack *p, struct timespec t) {
    if (p->options->epoch >= 0 && t.tv_sec >= p->options->epoch)
        return (struct timespec){.tv_sec = p->options->epoch};
    return t;
}

static void describe(struct pack *p, struct archive_entry *e, const struct snapshot_entry *s) {
    const json_t *owner = p->as_user ? json_object_get(p->options->owners, s->path) : NULL;
    struct timespec mtime = time_of(p, s->mtime);

    archive_entry_copy_pathname(e, s->path);
    archive_entry_set_mode(e, s->mode);
    /* An ordinary user's files stand for the image's root's. */
    archive_entry_set_uid(e, owner        ? json_integer_value(json_array_get(owner, 0))
                             : p->as_user ? 0
                                          : s->uid);
    archive_entry_set_gid(e, owner        ? json_integer_value(json_array_get(owner, 1))
                             : p->as_user ? 0
                                          : s->gid);
    archive_entry_set_mtime(e, mtime.tv_sec, mtime.tv_nsec);
    archive_entry_set_size(e, S_ISREG(s->mode) ? s->size : 0);
    archive_entry_set_nlink(e, (unsigned)s->nlink);
    archive_entry_set_ino64(e, (la_int64_t)s->ino);
}

static int put_header(struct pack *p, struct archive_entry *e, const char *path) {
    p->entries++;
    return archive_write_header(p->tar, e) >= ARCHIVE_WARN ? 0 : failed(p, -EIO, path);
}

static int put_content(struct pack *p, const struct snapshot_entry *s) {
    _cleanup_fd_ int fd = openat(p->root, s->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char chunk[64 << 10];
    int64_t left = s->size;
    ssize_t n = 0;

    if (fd < 0)
        return failed(p, -errno, s->path);
    while (left > 0 &&
           (n = fd_read_full(fd, chunk, (size_t)MIN(left, (int64_t)sizeof(chunk)))) > 0) {
        if (archive_write_data(p->tar, chunk, (size_t)n) != n)
            return failed(p, -EIO, s->path);
        left -= n;
    }
    return n < 0 || left ? failed(p, n < 0 ? (int)n : -EIO, s->path) : 0;
}

static int put_entry(struct pack *p, const struct snapshot_entry *s) {
    struct archive_entry *whole = archive_entry_new(), *e = whole, *spare = NULL;
    const char *name = strrchr(s->path, '/');
    char link[PATH_MAX];

    if (!e)
        return err_oom(p->err);
    name = name ? name + 1 : s->path;
    int r = 0;
    if (strncmp(name, ".wh.", 4) == 0)
        r = err_set(p->err, ERR_USAGE, -EINVAL, "", "have the step remove it, or name it otherwise",
                    "%.200s: no layer can hold a file whose name begins with .wh.", s->path);
    describe(p, e, s);
    if (r == 0 && S_ISLNK(s->mode)) {
        ssize_t n = readlinkat(p->root, s->path, link, sizeof(link) - 1);
        link[n < 0 ? 0 : n] = '\0';
        r = n < 0 ? failed(p, -errno, s->path) : 0;
        archive_entry_copy_symlink(e, link);
    }
    archive_entry_linkify(p->links, &e, &spare); /* the second of a file's names becomes a link */
    if (r == 0 && e)
        r = put_header(p, e, s->path);
    if (r == 0 && e && S_ISREG(s->mode) && archive_entry_size(e) > 0)
        r = put_content(p, s);
    archive_entry_free(whole);
    return r;
}

static int put_whiteout(struct pack *p, const char *path) {
    struct archive_entry *e = archive_entry_new();
    char white[PATH_MAX + 8];
    const char *slash = strrchr(path, '/');
    int dir = slash ? (int)(slash + 1 - path) : 0;

    if (!e)
        return err_oom(p->err);
    (void)snprintf(white, sizeof(white), "%.*s.wh.%s", dir, path, path + dir);
    archive_entry_copy_pathname(e, white);
    archive_entry_set_mode(e, S_IFREG | 0600);
    archive_entry_set_mtime(e, MAX(p->options->epoch, (int64_t)0), 0);
    archive_entry_set_size(e, 0);
    int r = put_header(p, e, path);
    archive_entry_free(e);
    return r;
}

/* ------------------------------------------------------------------ the difference */

static bool same_time(struct timespec a, struct timespec b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool changed(const struct snapshot_entry *a, const struct snapshot_entry *b) {
    if (a->mode != b->mode || a->uid != b->uid || a->gid != b->gid)
        return true;
    if (S_ISDIR(a->mode))
        return false; /* its times change with what is in it, which is told by itself */
    /* The change time too: a file of the same size can be given its old time back. */
    return a->ino != b->ino || a->size != b->size || !same_time(a->mtime, b->mtime) ||
           !same_time(a->ctime, b->ctime);
}

static bool is_below(const char *path, const char *dir) {
    size_t len = strlen(dir);

    return strncmp(path, dir, len) == 0 && path[len] == '/';
}

/* Calls for each that is new or changed, and each that is gone with nothing above it gone. `p` NULL: only counts. */
static int walk(struct pack *p, const struct snapshot *before, const struct snapshot *after,
                size_t *ret_n) {
    size_t i = 0, k = 0, n = 0;
    const char *gone = NULL; /* a directory that is none any more */
    int r = 0;

    while (r == 0 && (i < before->n || k < after->n)) {
        const struct snapshot_entry *a = i < before->n ? &before->entries[i] : NULL;
        const struct snapshot_entry *b = k < after->n ? &after->entries[k] : NULL;
        int order = !a ? 1 : !b ? -1 : snapshot_order(a->path, b->path);
        if (order < 0) {
            i++;
            if (gone && is_below(a->path, gone))
                continue;
            gone = S_ISDIR(a->mode) ? a->path : NULL;
            n++;
            r = p ? put_whiteout(p, a->path) : 0;
            continue;
        }
        k++;
        if (order == 0) {
            i++;
            if (S_ISDIR(a->mode) && !S_ISDIR(b->mode))
                gone = a->path; /* what it held goes with it */
            if (!changed(a, b))
                continue;
        }
        n++;
        r = p ? put_entry(p, b) : 0;
    }
    *ret_n = n;
    return r;
}

static int finish(struct pack *p, struct packed *ret) {
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned len = 0;

    if (archive_write_close(p->tar) != ARCHIVE_OK || archive_write_close(p->gzip) != ARCHIVE_OK ||
        EVP_DigestFinal_ex(p->md, sum, &len) != 1)
        return failed(p, -EIO, "its end");
    (void)str_copy(ret->diff_id, sizeof(ret->diff_id), "sha256:");
    for (unsigned i = 0; i < 32; i++)
        (void)snprintf(ret->diff_id + 7 + 2 * (size_t)i, 3, "%02x", sum[i]);
    ret->entries = p->entries;
    return blob_commit_as(TAKE_PTR(p->blob), ret->digest, &ret->size, p->err);
}

int pack_changes(struct store *s, int root, const struct snapshot *before,
                 const struct snapshot *after, const struct pack_options *options,
                 struct packed *ret, struct err *err) {
    size_t n = 0;

    *ret = (struct packed){0};
    (void)walk(NULL, before, after, &n);
    if (n == 0)
        return 0;
    struct pack p = {.root = root,
                     .options = options,
                     .tar = archive_write_new(),
                     .gzip = archive_write_new(),
                     .links = archive_entry_linkresolver_new(),
                     .md = EVP_MD_CTX_new(),
                     .as_user = geteuid() != 0,
                     .err = err};
    int r = p.tar && p.gzip && p.links && p.md && EVP_DigestInit_ex(p.md, EVP_sha256(), NULL) == 1
                ? blob_begin(s, NULL, -1, &p.blob, NULL, err)
                : err_oom(err);
    if (r == 0)
        r = open_gzip(&p);
    if (r == 0)
        r = open_tar(&p);
    r = r < 0 ? failed(&p, r, "its beginning") : walk(&p, before, after, &n);
    r = r < 0 ? r : finish(&p, ret);
    /* The first writer's end still writes to the second. */
    if (p.tar)
        (void)archive_write_free(p.tar);
    if (p.gzip)
        (void)archive_write_free(p.gzip);
    archive_entry_linkresolver_free(p.links);
    EVP_MD_CTX_free(p.md);
    blob_abandon(p.blob, false);
    return r;
}
