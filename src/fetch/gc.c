/*
 * gc.c: see gc.h. Marks first, all of it; where something cannot be read there is no telling what it leads to, and
 * nothing is removed.
 */
#include "fetch/gc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "fetch/index.h"
#include "fetch/summary.h"
#include "fetch/tmp.h"
#include "image/document.h"

#include "base/banned.h"

enum { MAX_DEPTH = 8 };

/* ------------------------------------------------------------------ marks */

struct marked {
    void *tree; /* of tsearch: digests, and names below unpacked/ and images/ */
};

static int compare(const void *a, const void *b) { return strcmp(a, b); }

/* 1 if it is new, 0 if it was marked already, -ENOMEM. */
static int mark(struct marked *m, const char *name) {
    if (tfind(name, &m->tree, compare))
        return 0;
    char *copy = strdup(name);
    if (copy && tsearch(copy, &m->tree, compare))
        return 1;
    free(copy);
    return -ENOMEM;
}

static bool is_marked(const struct marked *m, const char *name) {
    return tfind(name, &m->tree, compare) != NULL;
}

/* Every digest that the document names, wherever: a new kind of document may name more than manifests do today. */
static int mark_digests(struct store *s, struct marked *m, const json_t *value, int depth,
                        struct err *err);

static bool is_document(const char *type) {
    return strstr(type, "manifest") || strstr(type, "index");
}

static int mark_document(struct store *s, struct marked *m, const char *digest, int depth,
                         struct err *err) {
    _cleanup_buf_ struct buf text = {0};
    json_t *root _cleanup_json_ = NULL;

    if (!blob_exists(s, digest, -1))
        return 0; /* leads to nothing */
    if (depth > MAX_DEPTH)
        return err_set(err, ERR_SETUP, -ELOOP, "", NULL, "%.30s…: indexes in indexes without end",
                       digest);
    int r = blob_read_all(s, digest, IMAGE_MANIFEST_BYTES, &text, err);
    r = r < 0 ? r : document_parse(text.data ? text.data : "", text.len, digest, &root, err);
    return r < 0 ? r : mark_digests(s, m, root, depth + 1, err);
}

static int mark_descriptor(struct store *s, struct marked *m, const json_t *d, const char *digest,
                           int depth, struct err *err) {
    const char *type = document_text(d, "mediaType", 256);
    int r = digest_is_valid(digest) ? mark(m, digest) : 0;

    if (r < 0)
        return err_oom(err);
    return r == 1 && type && is_document(type) ? mark_document(s, m, digest, depth, err) : 0;
}

static int mark_digests(struct store *s, struct marked *m, const json_t *value, int depth,
                        struct err *err) {
    const char *digest = document_text(value, "digest", DIGEST_SIZE - 1), *key;
    json_t *part;
    size_t i;
    int r = digest ? mark_descriptor(s, m, value, digest, depth, err) : 0;

    if (json_is_object(value)) {
        json_object_foreach((json_t *)(uintptr_t)value, key, part) {
            r = r < 0 ? r : mark_digests(s, m, part, depth, err);
        }
    } else if (json_is_array(value)) {
        json_array_foreach((json_t *)(uintptr_t)value, i, part) {
            r = r < 0 ? r : mark_digests(s, m, part, depth, err);
        }
    }
    return r;
}

/* images/HEX of each image that there is, and the unpacked/CHAIN that it leads to. */
static int mark_unpacked(const struct store *s, struct marked *m, const json_t *index,
                         struct err *err) {
    struct index_entry e;
    char link[sizeof(STORE_IMAGES) + DIGEST_SIZE], target[256];

    for (size_t i = 0; index_at(index, i, &e); i++) {
        if (!e.digest[0])
            continue;
        (void)snprintf(link, sizeof(link), STORE_IMAGES "/%s", strchr(e.digest, ':') + 1);
        ssize_t n = readlinkat(s->dir, link, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = '\0';
        if (n > 0 && (mark(m, link) < 0 || mark(m, target + strspn(target, "./")) < 0))
            return err_oom(err);
    }
    return 0;
}

static int mark_all(struct store *s, struct marked *m, struct err *err) {
    json_t *index _cleanup_json_ = NULL;
    int r = index_read(s->dir, &index, err);

    if (r == -ENOENT)
        return store_failed(s, r, STORE_INDEX, err);
    r = r < 0 ? r : mark_digests(s, m, index, 0, err);
    return r < 0 ? r : mark_unpacked(s, m, index, err);
}

/* ------------------------------------------------------------------ sweep */

/* From its name into tmp/ at once, and then piece by piece: whatever happens between, no half of it has the name. */
static int remove_unpacked(struct store *s, const char *path, struct gc_report *ret) {
    _cleanup_fd_ int fd = openat(s->dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    char name[TMP_NAME_SIZE];

    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return ret->in_use++, 0;
    (void)snprintf(name, sizeof(name), "removed-%d-%.70s", (int)getpid(), strrchr(path, '/') + 1);
    if (renameat(s->dir, path, s->tmp, name) < 0)
        return -errno;
    ret->unpacked++;
    return tree_remove(s->tmp, name, &ret->bytes);
}

static int remove_blob(struct store *s, const char *path, struct gc_report *ret) {
    struct stat st;

    if (fstatat(s->dir, path, &st, AT_SYMLINK_NOFOLLOW) < 0 || unlinkat(s->dir, path, 0) < 0)
        return errno == ENOENT ? 0 : -errno;
    ret->blobs++;
    ret->bytes += (uint64_t)st.st_blocks * 512;
    return 0;
}

static int remove_link(struct store *s, const char *path, struct gc_report *ret UNUSED) {
    return unlinkat(s->dir, path, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* Each name in `dir` that is not marked; `prefix` and it are what is marked. */
static int sweep(struct store *s, const struct marked *m, const char *dir, const char *prefix,
                 int (*remove_one)(struct store *, const char *, struct gc_report *),
                 struct gc_report *ret, struct err *err) {
    int fd = openat(s->dir, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r = 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    char name[512], path[512];
    struct dirent *e;

    while (d && r == 0 && (e = readdir(d))) {
        (void)snprintf(name, sizeof(name), "%s%s", prefix, e->d_name);
        (void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || is_marked(m, name))
            continue;
        r = remove_one(s, path, ret);
        if (r < 0)
            (void)store_failed(s, r, path, err);
    }
    if (d)
        (void)closedir(d);
    return r;
}

static int list_blobs_in(const struct store *s, const char *dir, const char *prefix,
                         struct buf *ret) {
    int fd = openat(s->dir, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;

    if (!d)
        return fd_close(&fd), -errno;
    while ((e = readdir(d))) {
        buf_puts(ret, prefix);
        buf_add(ret, e->d_name, strlen(e->d_name) + 1);
    }
    (void)closedir(d);
    return ret->failed ? -ENOMEM : 0;
}

int store_list_blobs(const struct store *s, struct buf *ret, struct err *err) {
    int r = list_blobs_in(s, "blobs/sha256", "sha256:", ret);

    r = r < 0 ? r : list_blobs_in(s, "blobs/sha512", "sha512:", ret);
    return r < 0 ? store_failed(s, r, "reading blobs", err) : 0;
}

int store_drop_added(struct store *s, const struct buf *before, struct err *err) {
    struct gc_report none = {0};
    struct marked m = {0};
    int r = mark_all(s, &m, err);

    for (size_t at = 0; at < before->len && r == 0; at += strlen(before->data + at) + 1)
        if (mark(&m, before->data + at) < 0)
            r = err_oom(err);
    r = r < 0 ? r : sweep(s, &m, "blobs/sha256", "sha256:", remove_blob, &none, err);
    r = r < 0 ? r : sweep(s, &m, "blobs/sha512", "sha512:", remove_blob, &none, err);
    tdestroy(m.tree, free);
    return r;
}

int store_unneeded(const struct store *s, const json_t *index, struct gc_report *ret) {
    int fd = openat(s->dir, STORE_UNPACKED, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct marked m = {0};
    struct err err = {0};
    struct dirent *e;
    char name[512];
    int r = d ? mark_unpacked(s, &m, index, &err) : -errno;

    *ret = (struct gc_report){0};
    while (d && r == 0 && (e = readdir(d))) {
        struct unpack_summary sum = {0};
        (void)snprintf(name, sizeof(name), STORE_UNPACKED "/%s", e->d_name);
        if (e->d_name[0] == '.' || is_marked(&m, name))
            continue;
        summary_read(s->dir, name, &sum);
        ret->unpacked++;
        ret->bytes += sum.bytes;
    }
    if (d)
        (void)closedir(d);
    tdestroy(m.tree, free);
    return r;
}

int store_gc(struct store *s, bool partials_too, struct gc_report *ret, struct err *err) {
    struct marked m = {0};
    int r = mark_all(s, &m, err);

    *ret = (struct gc_report){0};
    if (r == 0)
        ret->bytes = tmp_sweep(s->tmp, partials_too);
    r = r < 0 ? r : sweep(s, &m, STORE_IMAGES, STORE_IMAGES "/", remove_link, ret, err);
    r = r < 0 ? r : sweep(s, &m, STORE_UNPACKED, STORE_UNPACKED "/", remove_unpacked, ret, err);
    r = r < 0 ? r : sweep(s, &m, STORE_BUILD_CACHE, "", remove_link, ret, err);
    r = r < 0 ? r : sweep(s, &m, "blobs/sha256", "sha256:", remove_blob, ret, err);
    r = r < 0 ? r : sweep(s, &m, "blobs/sha512", "sha512:", remove_blob, ret, err);
    tdestroy(m.tree, free);
    return r;
}
