/*
 * layer.c: see layer.h.
 */
#include "fetch/layer.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/units.h"
#include "fetch/gunzip.h"
#include "image/reference.h"

#include "base/banned.h"

enum { CHUNK = 256 << 10, CHUNKS = 8, BLOCK = 512 /* of tar */ };

/* What undoes the compression runs ahead in a thread of its own, by so many chunks; where there can be no thread, it
 * does not run ahead. Between `tail` and `head` are those that are filled. */
struct ring {
    pthread_t thread;
    bool threaded, stop;
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    size_t head, tail;
    ssize_t len[CHUNKS]; /* 0: the end; less: an error */
    char chunk[CHUNKS][CHUNK];
};

struct stream {
    struct archive *raw; /* undoes the compression, */
    struct gunzip *gz;   /* if this does not */
    EVP_MD_CTX *hash;
    struct layer_budget *budget;
    bool spent;      /* the budget is */
    bool held;       /* the chunk at the tail is being read */
    uint64_t bytes;  /* that came out of it */
    unsigned padded; /* with so many to a whole block */
    struct ring ring;
};

static const char *why_not(struct archive *a) {
    const char *why = archive_error_string(a);

    return why ? why : "not readable";
}

static int damaged(struct err *err, int code, const char *what, const char *why) {
    return err_set(err, ERR_SETUP, code, "", "it is damaged, or no tar archive", "%s: %s", what,
                   why);
}

static int no_archive(struct err *err, struct archive *a, const char *what) {
    return damaged(err, archive_errno(a) == ENOMEM ? -ENOMEM : -EBADMSG, what, why_not(a));
}

static int no_stream(struct err *err, struct stream *s) {
    return s->gz
               ? damaged(err, -EBADMSG, "the compressed archive", "its gzip is damaged or cut off")
               : no_archive(err, s->raw, "the compressed archive");
}

#define NO_BOMB "it may be an archive bomb; if it is not, have it built with less in it"

static int spent(const struct layer_budget *b, struct err *err) {
    char size[32];

    return err_set(err, ERR_SETUP, -EFBIG, "", NO_BOMB,
                   "the layers hold more than the %s that an image packed so small may",
                   format_bytes(b->max_bytes, size, sizeof(size)));
}

/* ------------------------------------------------------------------ the archive's bytes */

static ssize_t decompress(struct stream *s, char *to) {
    return s->gz ? gunzip_read(s->gz, to, CHUNK) : archive_read_data(s->raw, to, CHUNK);
}

static void *run_ahead(void *arg) {
    struct stream *s = arg;
    struct ring *r = &s->ring;
    ssize_t n = 1;

    (void)pthread_mutex_lock(&r->mutex);
    while (n > 0 && !r->stop) {
        size_t at = r->head % CHUNKS;
        if (r->head - r->tail == CHUNKS) {
            (void)pthread_cond_wait(&r->moved, &r->mutex);
            continue;
        }
        (void)pthread_mutex_unlock(&r->mutex);
        n = decompress(s, r->chunk[at]);
        (void)pthread_mutex_lock(&r->mutex);
        r->len[at] = n;
        r->head++;
        (void)pthread_cond_signal(&r->moved);
    }
    (void)pthread_mutex_unlock(&r->mutex);
    return NULL;
}

/* The next chunk, the one before being done with. The last of all, an end or an error, stays the last. */
static ssize_t next_chunk(struct stream *s, const char **ret) {
    struct ring *r = &s->ring;
    size_t at = r->tail % CHUNKS;

    if (!r->threaded) {
        *ret = r->chunk[0];
        return decompress(s, r->chunk[0]);
    }
    (void)pthread_mutex_lock(&r->mutex);
    if (s->held && r->len[at] > 0) {
        at = ++r->tail % CHUNKS;
        (void)pthread_cond_signal(&r->moved);
    }
    while (r->head == r->tail)
        (void)pthread_cond_wait(&r->moved, &r->mutex);
    (void)pthread_mutex_unlock(&r->mutex);
    s->held = true;
    *ret = r->chunk[at];
    return r->len[at];
}

static ssize_t pull(struct stream *s, const char **ret) {
    ssize_t n = next_chunk(s, ret);

    if (n <= 0)
        return n;
    if ((uint64_t)n > s->budget->bytes) {
        s->spent = true;
        return ARCHIVE_FATAL;
    }
    s->budget->bytes -= (uint64_t)n;
    s->bytes += (uint64_t)n;
    return EVP_DigestUpdate(s->hash, *ret, (size_t)n) ? n : ARCHIVE_FATAL;
}

/* Some tools leave out what fills the last file's last block, and the two blocks of zeros: they do not close their
 * archive. Which bytes are missing is then no question. */
static ssize_t pad(struct stream *s, const void **ret) {
    static const char zeros[BLOCK];

    s->padded = s->padded ? 0 : (unsigned)(-s->bytes % BLOCK);
    *ret = zeros;
    return (ssize_t)s->padded;
}

static ssize_t feed(struct archive *a, void *context, const void **ret_chunk) {
    struct stream *s = context;
    const char *chunk = NULL;
    ssize_t n = pull(s, &chunk);

    *ret_chunk = chunk;
    if (n < 0)
        archive_set_error(a, s->raw ? archive_errno(s->raw) : EBADMSG, "%s",
                          s->spent ? "too large"
                          : s->gz  ? "its gzip is damaged or cut off"
                                   : why_not(s->raw));
    return n == 0 && !s->padded ? pad(s, ret_chunk) : n;
}

static int open_libarchive(struct stream *s, int fd, struct err *err) {
    struct archive_entry *entry = NULL;

    s->raw = archive_read_new();
    if (!s->raw)
        return err_oom(err);
    (void)archive_read_support_filter_gzip(s->raw);
    (void)archive_read_support_filter_zstd(s->raw);
    (void)archive_read_support_format_raw(s->raw);
    if (archive_read_open_fd(s->raw, fd, CHUNK) != ARCHIVE_OK ||
        archive_read_next_header(s->raw, &entry) != ARCHIVE_OK)
        return no_archive(err, s->raw, "the compressed archive");
    return 0;
}

static int open_stream(struct stream *s, int fd, const char *diff_id, struct err *err) {
    bool wide = diff_id && strncmp(diff_id, "sha512:", 7) == 0;

    s->hash = EVP_MD_CTX_new();
    if (!s->hash || !EVP_DigestInit_ex(s->hash, wide ? EVP_sha512() : EVP_sha256(), NULL))
        return err_oom(err);
    int r = gunzip_open(fd, &s->gz) ? 0 : open_libarchive(s, fd, err);
    if (r < 0)
        return r;
    (void)pthread_mutex_init(&s->ring.mutex, NULL);
    (void)pthread_cond_init(&s->ring.moved, NULL);
    s->ring.threaded = pthread_create(&s->ring.thread, NULL, run_ahead, s) == 0;
    return 0;
}

static void close_stream(struct stream *s) {
    if (s->ring.threaded) {
        (void)pthread_mutex_lock(&s->ring.mutex);
        s->ring.stop = true;
        (void)pthread_cond_signal(&s->ring.moved);
        (void)pthread_mutex_unlock(&s->ring.mutex);
        (void)pthread_join(s->ring.thread, NULL);
    }
    if (s->raw)
        (void)archive_read_free(s->raw);
    gunzip_close(s->gz);
    EVP_MD_CTX_free(s->hash);
    free(s);
}

/* To the end: what follows the archive's own end is part of what was hashed. */
static int check_digest(struct stream *s, const char *diff_id, struct err *err) {
    unsigned char md[EVP_MAX_MD_SIZE];
    char text[DIGEST_SIZE];
    const char *rest;
    unsigned n = 0;
    ssize_t more;

    while ((more = pull(s, &rest)) > 0)
        ;
    if (s->spent)
        return spent(s->budget, err);
    if (more < 0)
        return no_stream(err, s);
    if (!diff_id)
        return 0;
    if (!EVP_DigestFinal_ex(s->hash, md, &n))
        return err_oom(err);
    (void)str_copy(text, sizeof(text), n == 64 ? "sha512:" : "sha256:");
    for (unsigned i = 0; i < n; i++)
        (void)snprintf(text + 7 + 2 * i, 3, "%02x", md[i]);
    if (strcmp(text, diff_id) == 0)
        return 0;
    return err_set(err, ERR_SETUP, -EBADMSG, "", "the image was put together wrongly",
                   "its archive has the digest %s, where the config says %s", text, diff_id);
}

/* ------------------------------------------------------------------ entries */

static struct tree_owner owner_of(struct archive_entry *e) {
    return (struct tree_owner){
        .uid = archive_entry_uid(e),
        .gid = archive_entry_gid(e),
        .mtime = {.tv_sec = archive_entry_mtime(e), .tv_nsec = archive_entry_mtime_nsec(e)}};
}

/* user.* is data like any other; the rest means something to the host's kernel, and so does what an overlay without
 * privileges, as builds have, keeps of its own: with it a layer could say where a file's content is. */
static bool is_plain_data(const char *name) {
    return strncmp(name, "user.", 5) == 0 && strncmp(name, "user.overlay.", 13) != 0;
}

static void put_xattrs(struct tree *t, struct archive_entry *e, int fd) {
    const char *name;
    const void *value;
    size_t size;

    (void)archive_entry_xattr_reset(e);
    while (archive_entry_xattr_next(e, &name, &value, &size) == ARCHIVE_OK) {
        if (fd >= 0 && is_plain_data(name) && fsetxattr(fd, name, value, size, 0) == 0)
            continue;
        if (strcmp(name, "security.capability") == 0)
            t->sum->filecaps++;
        else
            t->sum->xattrs++;
    }
    t->sum->xattrs += (uint64_t)archive_entry_acl_reset(e, ARCHIVE_ENTRY_ACL_TYPE_ACCESS |
                                                               ARCHIVE_ENTRY_ACL_TYPE_DEFAULT) > 0;
}

/* The content; holes stay holes. */
static int put_content(struct tree *t, struct archive *a, const char *path, int fd,
                       struct err *err) {
    const void *block;
    size_t len;
    la_int64_t at;
    int r;

    while ((r = archive_read_data_block(a, &block, &len, &at)) == ARCHIVE_OK) {
        for (size_t done = 0; done < len;) {
            ssize_t n = pwrite(fd, (const char *)block + done, len - done, at + (la_int64_t)done);
            if (n < 0 && errno == EINTR)
                continue;
            if (n <= 0)
                return tree_failed(err, n < 0 ? -errno : -EIO, path);
            done += (size_t)n;
        }
        t->sum->bytes += len;
    }
    return r == ARCHIVE_EOF ? 0 : no_archive(err, a, "the archive");
}

static const int64_t max_sparse = INT64_C(64) << 30;

static int put_file(struct tree *t, struct archive *a, struct archive_entry *e, const char *path,
                    struct layer_budget *budget, struct err *err) {
    const struct tree_owner owner = owner_of(e);
    int64_t size = archive_entry_size(e);
    _cleanup_fd_ int fd = -1;

    /* What is a hole takes no disk, but who copies the tree without knowing of holes would need as much. */
    if (archive_entry_sparse_count(e) > 0 && size > max_sparse)
        return err_set(err, ERR_SETUP, -EFBIG, "", NO_BOMB,
                       "%.200s: a sparse file of more than 64 GiB", path);
    if (archive_entry_sparse_count(e) == 0 &&
        (size < 0 || (uint64_t)size > budget->bytes + (UINT64_C(1) << 30)))
        return spent(budget, err);
    int r = tree_file_begin(t, path, &fd, err);
    r = r < 0 ? r : put_content(t, a, path, fd, err);
    if (r < 0)
        return r;
    put_xattrs(t, e, fd);
    return tree_file_end(t, path, fd, size, archive_entry_mode(e), &owner, err);
}

int layer_put_entry(struct tree *t, struct archive *a, struct archive_entry *e,
                    struct layer_budget *budget, struct err *err) {
    const char *path = archive_entry_pathname(e), *to = archive_entry_hardlink(e);
    const struct tree_owner owner = owner_of(e);

    if (!path)
        return err_set(err, ERR_SETUP, -EBADMSG, "", NULL, "an entry whose name is no valid text");
    if (tree_is_bookkeeping(path) || (t->only && !t->only(path)))
        return 0;
    if (tree_is_whiteout(path))
        return tree_whiteout(t, path, err);
    if (to)
        return tree_hardlink(t, path, to, err);
    if (archive_entry_filetype(e) == AE_IFREG)
        return put_file(t, a, e, path, budget, err);
    put_xattrs(t, e, -1);
    switch (archive_entry_filetype(e)) {
    case AE_IFDIR:
        return tree_dir(t, path, archive_entry_mode(e), &owner, err);
    case AE_IFLNK:
        to = archive_entry_symlink(e);
        return tree_symlink(t, path, to ? to : "", &owner, err);
    default:
        return tree_special(t, path, err);
    }
}

/* Nothing but the filling of the last file's last block was missing. */
static int check_end(const struct stream *s, int64_t last_size, struct err *err) {
    if (s->padded <= (uint64_t)-last_size % BLOCK)
        return 0;
    return damaged(err, -EBADMSG, "the archive", "it ends in the middle of a file");
}

static int put_all(struct tree *t, struct archive *a, struct stream *s, struct err *err) {
    struct archive_entry *e = NULL;
    int64_t size = 0;
    int r = 0, got;

    while (r == 0 && (got = archive_read_next_header(a, &e)) != ARCHIVE_EOF) {
        if (got != ARCHIVE_OK && got != ARCHIVE_WARN)
            return s->spent ? spent(s->budget, err) : no_archive(err, a, "the archive");
        if (s->budget->entries == 0)
            return err_set(err, ERR_SETUP, -EFBIG, "", NO_BOMB,
                           "the layers hold more than %llu files and directories",
                           (unsigned long long)s->budget->max_entries);
        s->budget->entries--;
        t->sum->entries++;
        size = archive_entry_size(e);
        r = layer_put_entry(t, a, e, s->budget, err);
        if (r < 0 && s->spent) { /* the cause of it */
            err_clear(err);
            return spent(s->budget, err);
        }
    }
    return r < 0 ? r : check_end(s, size, err);
}

int layer_apply(struct tree *t, int fd, const char *diff_id, struct layer_budget *budget,
                struct err *err) {
    struct stream *s = calloc(1, sizeof(*s));
    struct archive *a = archive_read_new();

    if (!s || !a) {
        free(s);
        if (a)
            (void)archive_read_free(a);
        return err_oom(err);
    }
    s->budget = budget;
    int r = open_stream(s, fd, diff_id, err);
    if (r == 0) {
        tree_next_layer(t);
        (void)archive_read_support_format_tar(a);
        (void)archive_read_support_format_empty(a);
        if (archive_read_open(a, s, NULL, feed, NULL) != ARCHIVE_OK)
            r = s->spent ? spent(s->budget, err) : no_archive(err, a, "the archive");
        else
            r = put_all(t, a, s, err);
    }
    if (r == 0)
        r = check_digest(s, diff_id, err);
    (void)archive_read_free(a);
    close_stream(s);
    if (r == 0)
        t->sum->layers++;
    return r;
}
