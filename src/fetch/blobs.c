/*
 * blobs.c: see blobs.h.
 */
#include "fetch/blobs.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "fetch/tmp.h"

#include "base/banned.h"

static const char layout[] = "{\"imageLayoutVersion\":\"1.0.0\"}\n";
static const char empty_index[] = "{\"schemaVersion\":2,\"mediaType\":\"application/"
                                  "vnd.oci.image.index.v1+json\",\"manifests\":[]}\n";

int store_failed(const struct store *s, int code, const char *what, struct err *err) {
    const char *remedy =
        code == -ENOSPC || code == -EDQUOT
            ? "make room, with mayfly prune perhaps, or name another place with --store"
        : code == -EACCES || code == -EPERM || code == -EROFS
            ? "name a directory that you may write with --store"
            : errno_remedy(code, NULL);

    return err_errno(err, ERR_SETUP, code, "", remedy, "image store %.200s: %s", s->path, what);
}

/* ------------------------------------------------------------------ opening */

/* mkdir -p; what is made is for its owner alone but to look through. */
static int make_dirs(char *path) {
    for (char *p = path + 1;; p++) {
        if (*p != '/' && *p)
            continue;
        char was = *p;
        *p = '\0';
        int r = mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
        *p = was;
        if (r < 0 || !was)
            return r;
    }
}

static int make_dir(int dir, const char *name, mode_t mode) {
    return mkdirat(dir, name, mode) < 0 && errno != EEXIST ? -errno : 0;
}

/* A file with that text, unless there is one. The name appears with the text in it. */
static int make_file(const struct store *s, const char *name, const char *text) {
    struct tmp_entry e = {.fd = -1};

    if (faccessat(s->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    int r = tmp_new_file(s->tmp, "layout", &e);
    if (r < 0)
        return r;
    r = fd_write_full(e.fd, text, strlen(text));
    if (r == 0 && fsync(e.fd) < 0)
        r = -errno;
    if (r == 0 && linkat(s->tmp, e.name, s->dir, name, 0) < 0 && errno != EEXIST)
        r = -errno;
    tmp_drop(s->tmp, &e);
    return r;
}

static int make_store(struct store *s) {
    static const struct {
        const char *name;
        mode_t mode;
    } dirs[] = {{"blobs", 0755},
                {"blobs/sha256", 0755},
                {"blobs/sha512", 0755},
                {STORE_IMAGES, 0755},
                {STORE_TMP, 0700},
                /* Its files belong to ids that are other people's on the host. */
                {STORE_UNPACKED, 0700}};
    int r = make_dirs(s->path);

    if (r < 0)
        return r;
    s->dir = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->dir < 0)
        return -errno;
    for (size_t i = 0; i < ARRAY_LEN(dirs) && r == 0; i++)
        r = make_dir(s->dir, dirs[i].name, dirs[i].mode);
    if (r < 0)
        return r;
    s->tmp = openat(s->dir, STORE_TMP, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->tmp < 0)
        return -errno;
    r = make_file(s, STORE_INDEX, empty_index);
    return r < 0 ? r : make_file(s, STORE_LAYOUT, layout); /* last: it says that there is a store */
}

static int take_lock(struct store *s, int how, unsigned wait_ms) {
    uint64_t until = now_ns() + (uint64_t)wait_ms * 1000000u;

    s->lock = openat(s->dir, "lock", O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (s->lock < 0)
        return -errno;
    /* A writer waits for who collects, which takes no time. */
    while (flock(s->lock, how == LOCK_SH ? LOCK_SH : LOCK_EX | LOCK_NB) < 0) {
        if (errno != EINTR && (errno != EWOULDBLOCK || now_ns() >= until))
            return errno == EWOULDBLOCK ? -EBUSY : -errno;
        (void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return 0;
}

static int open_store(const char *path, int how, unsigned wait_ms, struct store **ret_store,
                      struct err *err) {
    struct store *s = calloc(1, sizeof(*s));

    if (!s)
        return err_oom(err);
    s->dir = s->tmp = s->lock = -1;
    int r = store_path(path, s->path, err);
    if (r == 0) {
        r = make_store(s);
        r = r < 0 ? r : take_lock(s, how, wait_ms);
        if (r == -EBUSY)
            (void)err_set(err, ERR_SETUP, r, "", "wait for them to end, and try again",
                          "image store %.200s: others are writing to it", s->path);
        else if (r < 0)
            (void)store_failed(s, r, "opening it", err);
    }
    if (r < 0) {
        store_close(s);
        return r;
    }
    (void)tmp_sweep(s->tmp, false);
    *ret_store = s;
    return 0;
}

int store_open_writable(const char *path, struct store **ret_store, struct err *err) {
    return open_store(path, LOCK_SH, 0, ret_store, err);
}

int store_open_alone(const char *path, unsigned wait_ms, struct store **ret_store,
                     struct err *err) {
    return open_store(path, LOCK_EX, wait_ms, ret_store, err);
}

int store_open_reading(const char *path, struct store **ret_store, struct err *err) {
    struct store *s = calloc(1, sizeof(*s));

    if (!s)
        return err_oom(err);
    s->dir = s->tmp = s->lock = -1;
    int r = store_path(path, s->path, err);
    if (r == 0 && (s->dir = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        r = store_failed(s, -errno, "opening it", err);
    if (r < 0)
        store_close(s);
    else
        *ret_store = s;
    return r;
}

int store_open_held(const char *path, struct store **ret_store, struct err *err) {
    int r = store_open_reading(path, ret_store, err);

    if (r < 0)
        return r;
    struct store *s = *ret_store;
    s->lock = openat(s->dir, "lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    while (s->lock >= 0 && flock(s->lock, LOCK_SH) < 0 && errno == EINTR)
        continue;
    return 0;
}

void store_close(struct store *s) {
    if (!s)
        return;
    fd_close(&s->lock);
    fd_close(&s->tmp);
    fd_close(&s->dir);
    free(s);
}

/* ------------------------------------------------------------------ writing one */

struct blob_writer {
    struct store *store;
    struct tmp_entry file;
    bool known, resumable;
    char digest[DIGEST_SIZE];
    int64_t size; /* -1: not known */
    uint64_t len;
    EVP_MD_CTX *hash;
};

static const EVP_MD *algorithm_of(const char *digest) {
    return strncmp(digest, "sha512:", 7) == 0 ? EVP_sha512() : EVP_sha256();
}

static int failed(const struct blob_writer *w, int code, struct err *err) {
    char what[160];

    (void)snprintf(what, sizeof(what), "writing %.20s", w->known ? w->digest : "a blob");
    return store_failed(w->store, code, what, err);
}

static void free_writer(struct blob_writer *w) {
    EVP_MD_CTX_free(w->hash);
    free(w);
}

/* What an earlier writer left is hashed again: how it was hashed so far has gone with him. */
static int take_up(struct blob_writer *w) {
    char chunk[64 << 10];
    ssize_t n;

    while ((n = fd_read_full(w->file.fd, chunk, sizeof(chunk))) > 0) {
        if (!EVP_DigestUpdate(w->hash, chunk, (size_t)n))
            return -ENOMEM;
        w->len += (uint64_t)n;
    }
    return n < 0 ? (int)n : 0;
}

static int start_over(struct blob_writer *w) {
    w->len = 0;
    if (ftruncate(w->file.fd, 0) < 0 || lseek(w->file.fd, 0, SEEK_SET) < 0)
        return -errno;
    return EVP_DigestInit_ex(w->hash, algorithm_of(w->digest), NULL) ? 0 : -ENOMEM;
}

static int open_file(struct blob_writer *w) {
    char name[DIGEST_SIZE];
    int r = -EBUSY;

    if (w->known) {
        (void)str_copy(name, sizeof(name), w->digest);
        name[strcspn(name, ":")] = '-';
        r = tmp_take_partial(w->store->tmp, name, &w->file);
        w->resumable = r == 0;
    }
    if (r == -EBUSY) /* another has it in hand; waiting for him could be for ever */
        r = tmp_new_file(w->store->tmp, "blob", &w->file);
    return r;
}

int blob_begin(struct store *s, const char *digest, int64_t size, struct blob_writer **ret_writer,
               uint64_t *ret_have, struct err *err) {
    if (digest && !digest_is_valid(digest))
        return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "\"%.100s\" is no digest", digest);
    struct blob_writer *w = calloc(1, sizeof(*w));
    if (!w)
        return err_oom(err);
    *w = (struct blob_writer){.store = s, .file.fd = -1, .known = digest, .size = size};
    (void)str_copy(w->digest, sizeof(w->digest), digest ? digest : "");
    w->hash = EVP_MD_CTX_new();
    int r = w->hash && EVP_DigestInit_ex(w->hash, algorithm_of(w->digest), NULL) ? open_file(w)
                                                                                 : -ENOMEM;
    if (r == 0)
        r = take_up(w);
    if (r == 0 && size >= 0 && w->len > (uint64_t)size)
        r = start_over(w);
    if (r < 0) {
        (void)failed(w, r, err);
        fd_close(&w->file.fd);
        free_writer(w);
        return r;
    }
    *ret_writer = w;
    if (ret_have)
        *ret_have = w->len;
    return 0;
}

int blob_write(struct blob_writer *w, const void *data, size_t len, struct err *err) {
    if (w->size >= 0 && len > (uint64_t)w->size - w->len)
        return err_set(err, ERR_SETUP, -EFBIG, "", NULL,
                       "%.20s…: more than the %lld bytes that its descriptor says", w->digest,
                       (long long)w->size);
    int r = fd_write_full(w->file.fd, data, len);
    if (r < 0)
        return failed(w, r, err);
    if (!EVP_DigestUpdate(w->hash, data, len))
        return err_oom(err);
    w->len += len;
    return 0;
}

int blob_restart(struct blob_writer *w, struct err *err) {
    int r = start_over(w);

    return r < 0 ? failed(w, r, err) : 0;
}

/* The digest of what was hashed, in words. */
static int digest_text(EVP_MD_CTX *hash, char ret[DIGEST_SIZE]) {
    unsigned char md[EVP_MAX_MD_SIZE];
    unsigned n = 0;

    if (!EVP_DigestFinal_ex(hash, md, &n))
        return -ENOMEM;
    (void)str_copy(ret, DIGEST_SIZE, n == 64 ? "sha512:" : "sha256:");
    for (unsigned i = 0; i < n; i++)
        (void)snprintf(ret + 7 + 2 * i, 3, "%02x", md[i]);
    return 0;
}

/* First what it is, then the name, then that there is the name: after any crash a name has its bytes. */
static int name_it(struct blob_writer *w, const char *digest) {
    char path[BLOB_PATH_SIZE];

    (void)store_blob_path(digest, path);
    if (blob_is_good(w->store, digest, (int64_t)w->len))
        return tmp_drop(w->store->tmp, &w->file), 0; /* another was first */
    if (fchmod(w->file.fd, 0644) < 0 || fsync(w->file.fd) < 0 ||
        renameat(w->store->tmp, w->file.name, w->store->dir, path) < 0)
        return -errno;
    path[strlen("blobs/sha256")] = '\0';
    _cleanup_fd_ int dir = openat(w->store->dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir < 0 || fsync(dir) < 0 ? -errno : 0;
}

int blob_commit_as(struct blob_writer *w, char ret_digest[DIGEST_SIZE], int64_t *ret_size,
                   struct err *err) {
    char digest[DIGEST_SIZE] = "";
    bool keep = false;
    int r;

    if (w->size >= 0 && w->len != (uint64_t)w->size) {
        keep = true;
        r = err_set(err, ERR_SETUP, -EBADMSG, "", "get it again",
                    "%.20s…: %llu bytes instead of the %lld that its descriptor says", w->digest,
                    (unsigned long long)w->len, (long long)w->size);
    } else if ((r = digest_text(w->hash, digest)) < 0) {
        (void)err_oom(err);
    } else if (w->known && strcmp(digest, w->digest) != 0) {
        r = err_set(
            err, ERR_SETUP, -EBADMSG, "",
            "it was damaged or changed on its way; get it again, from another place perhaps",
            "%s: its content has the digest %s", w->digest, digest);
    } else if ((r = name_it(w, digest)) < 0) {
        keep = true;
        (void)failed(w, r, err);
    } else {
        if (ret_digest)
            (void)str_copy(ret_digest, DIGEST_SIZE, digest);
        if (ret_size)
            *ret_size = (int64_t)w->len;
        fd_close(&w->file.fd);
    }
    blob_abandon(w, keep);
    return r;
}

int blob_commit(struct blob_writer *w, struct err *err) {
    return blob_commit_as(w, NULL, NULL, err);
}

void blob_abandon(struct blob_writer *w, bool keep_partial) {
    if (!w)
        return;
    if (keep_partial && w->resumable)
        fd_close(&w->file.fd);
    else
        tmp_drop(w->store->tmp, &w->file);
    free_writer(w);
}

/* ------------------------------------------------------------------ reading */

int blob_exists(const struct store *s, const char *digest, int64_t size) {
    char path[BLOB_PATH_SIZE];
    struct stat st;

    return digest_is_valid(digest) &&
           fstatat(s->dir, store_blob_path(digest, path), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(st.st_mode) && (size < 0 || st.st_size == size);
}

static int hash_file(int fd, const char *digest, char ret[DIGEST_SIZE]) {
    enum { CHUNK = 256 << 10 };
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    _cleanup_free_ char *chunk = malloc(CHUNK);
    int r = hash && chunk && EVP_DigestInit_ex(hash, algorithm_of(digest), NULL) ? 0 : -ENOMEM;
    ssize_t n = 0;

    while (r == 0 && (n = fd_read_full(fd, chunk, CHUNK)) > 0)
        r = EVP_DigestUpdate(hash, chunk, (size_t)n) ? 0 : -ENOMEM;
    r = r < 0 ? r : n < 0 ? (int)n : digest_text(hash, ret);
    EVP_MD_CTX_free(hash);
    return r;
}

static int damaged(const struct store *s, const char *digest, struct err *err) {
    return err_set(err, ERR_SETUP, -EBADMSG, "", "pull or import the image again",
                   "image store %.200s: its copy of %.30s… is damaged", s->path, digest);
}

int blob_verify(const struct store *s, const char *digest, int64_t size, struct err *err) {
    char got[DIGEST_SIZE] = "";
    _cleanup_fd_ int fd = blob_open(s, digest, err);
    struct stat st;

    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return store_failed(s, -errno, "reading a blob", err);
    if (!S_ISREG(st.st_mode) || (size >= 0 && st.st_size != size))
        return damaged(s, digest, err);
    int r = hash_file(fd, digest, got);
    if (r < 0 && r != -EIO) /* which is what a disk says of what it has lost */
        return store_failed(s, r, "reading a blob", err);
    return strcmp(got, digest) == 0 ? 0 : damaged(s, digest, err);
}

bool blob_is_good(const struct store *s, const char *digest, int64_t size) {
    return blob_exists(s, digest, size) && blob_verify(s, digest, size, NULL) == 0;
}

int blob_open(const struct store *s, const char *digest, struct err *err) {
    char path[BLOB_PATH_SIZE];

    if (!digest_is_valid(digest))
        return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "\"%.100s\" is no digest", digest);
    int fd = openat(s->dir, store_blob_path(digest, path), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    return err_errno(err, ERR_SETUP, -errno, "",
                     errno == ENOENT ? "pull or import the image again" : NULL,
                     "image store %.200s: blob %.30s…", s->path, digest);
}

int blob_read_all(const struct store *s, const char *digest, size_t limit, struct buf *ret,
                  struct err *err) {
    _cleanup_fd_ int fd = blob_open(s, digest, err);
    char got[DIGEST_SIZE];
    struct stat st;

    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return store_failed(s, -errno, "reading a blob", err);
    if ((uint64_t)st.st_size > limit)
        return err_set(err, ERR_SETUP, -EFBIG, "", NULL,
                       "%.30s…: %lld bytes, where %zu are the most that make sense", digest,
                       (long long)st.st_size, limit);
    char *to = buf_reserve(ret, (size_t)st.st_size);
    if (!to)
        return err_oom(err);
    ssize_t n = fd_read_full(fd, to, (size_t)st.st_size);
    if (n < 0)
        return store_failed(s, (int)n, "reading a blob", err);
    int r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : hash_file(fd, digest, got);
    if (r < 0)
        return store_failed(s, r, "reading a blob", err);
    if (strcmp(got, digest) != 0)
        return damaged(s, digest, err);
    ret->len += (size_t)n;
    return 0;
}

int blob_put(struct store *s, const void *data, size_t len, char ret_digest[DIGEST_SIZE],
             struct err *err) {
    struct blob_writer *w = NULL;
    int r = blob_begin(s, NULL, (int64_t)len, &w, NULL, err);

    if (r < 0 || !w)
        return r;
    r = blob_write(w, data, len, err);
    if (r < 0)
        blob_abandon(w, false);
    return r < 0 ? r : blob_commit_as(w, ret_digest, NULL, err);
}
