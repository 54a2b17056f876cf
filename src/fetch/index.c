/*
 * index.c: see index.h.
 */
#include "fetch/index.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "fetch/tmp.h"

#include "base/banned.h"

/* A file of zeros that is given back when there is no room for the index that lacks an image: or nothing could be
 * removed from a full disk. */
#define SPARE "index.spare"
enum { SPARE_BYTES = 64 << 10 };

static int lock_index(const struct store *s, struct err *err) {
    int fd = openat(s->dir, "index.lock", O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);

    if (fd < 0)
        return store_failed(s, -errno, "index.lock", err);
    while (flock(fd, LOCK_EX) < 0) {
        int code = -errno;
        if (code == -EINTR)
            continue;
        fd_close(&fd);
        return store_failed(s, code, "locking its index", err);
    }
    return fd;
}

/* As large as the index at least. Where there is no room for it, there is none: nothing else fails for it. */
static void keep_spare(const struct store *s, size_t index_bytes) {
    static const char zeros[4096];
    struct tmp_entry e = {.fd = -1};
    struct stat st;
    size_t want = MAX((size_t)SPARE_BYTES, index_bytes * 2), n = 0;

    if (fstatat(s->dir, SPARE, &st, AT_SYMLINK_NOFOLLOW) == 0 && (uint64_t)st.st_size >= want / 2)
        return;
    if (tmp_new_file(s->tmp, "spare", &e) < 0)
        return;
    while (n < want && fd_write_full(e.fd, zeros, sizeof(zeros)) == 0)
        n += sizeof(zeros);
    if (n < want || renameat(s->tmp, e.name, s->dir, SPARE) < 0)
        tmp_drop(s->tmp, &e);
    else
        fd_close(&e.fd);
}

static int replace_index(const struct store *s, const char *text) {
    struct tmp_entry e = {.fd = -1};
    int r = tmp_new_file(s->tmp, "index", &e);

    if (r == 0)
        r = fd_write_full(e.fd, text, strlen(text));
    if (r == 0 && (fsync(e.fd) < 0 || renameat(s->tmp, e.name, s->dir, STORE_INDEX) < 0))
        r = -errno;
    if (r < 0)
        tmp_drop(s->tmp, &e);
    else
        fd_close(&e.fd);
    return r;
}

/* `frees`: it is one name less, and may take the spare's room. */
static int write_index(const struct store *s, const json_t *index, bool frees, struct err *err) {
    _cleanup_free_ char *text = json_dumps(index, JSON_INDENT(1));
    int r = text ? replace_index(s, text) : -ENOMEM;

    if (frees && (r == -ENOSPC || r == -EDQUOT) && unlinkat(s->dir, SPARE, 0) == 0)
        r = replace_index(s, text);
    if (r < 0)
        return store_failed(s, r, "writing its index.json", err);
    if (fsync(s->dir) < 0)
        return store_failed(s, -errno, "writing its index.json", err);
    if (!frees)
        keep_spare(s, strlen(text));
    return 0;
}

/* An entry goes if it has the name; one without a name if it is of the same digest, as then the name is enough. Told is
 * whose the name was, if it was another's. */
static void drop_named(json_t *list, const json_t *index, const char *reference, const char *digest,
                       char ret_had[DIGEST_SIZE]) {
    struct index_entry e;

    ret_had[0] = '\0';
    for (size_t i = 0; index_at(index, i, &e);) {
        bool same = strcmp(e.digest, digest) == 0;
        bool named = reference && strcmp(e.name, reference) == 0;
        if (named && !same)
            (void)str_copy(ret_had, DIGEST_SIZE, e.digest);
        if (named || (same && !e.name[0]))
            (void)json_array_remove(list, i);
        else
            i++;
    }
}

static bool is_known(const json_t *index, const char *digest) {
    struct index_entry e;

    for (size_t i = 0; index_at(index, i, &e); i++)
        if (strcmp(e.digest, digest) == 0)
            return true;
    return false;
}

static json_t *descriptor(const char *reference, const char *media_type, const char *digest,
                          int64_t size) {
    json_t *d = json_pack("{ss ss sI}", "mediaType", media_type, "digest", digest, "size",
                          (json_int_t)size);

    if (d && reference)
        (void)json_object_set_new(
            d, "annotations",
            json_pack("{ss ss}", ANNOTATION_FULL_NAME, reference, ANNOTATION_NAME, reference));
    return d;
}

/* The lock, which is the caller's to close, and the index as it is under it; or -errno. */
static int index_to_change(struct store *s, json_t **ret, struct err *err) {
    _cleanup_fd_ int lock = lock_index(s, err);

    if (lock < 0)
        return lock;
    int r = index_read(s->dir, ret, err);
    if (r < 0)
        return r == -ENOENT ? store_failed(s, r, STORE_INDEX, err) : r;
    return TAKE_FD(lock);
}

int store_name(struct store *s, const char *reference, const char *manifest_media_type,
               const char *manifest_digest, int64_t manifest_size, char ret_unnamed[DIGEST_SIZE],
               struct err *err) {
    char had[DIGEST_SIZE];
    json_t *index = NULL;
    _cleanup_fd_ int lock = index_to_change(s, &index, err);
    int r = 0;

    if (lock < 0)
        return lock;
    json_t *list = json_object_get(index, "manifests");
    drop_named(list, index, reference, manifest_digest, had);
    if (reference || !is_known(index, manifest_digest))
        r = json_array_append_new(list, descriptor(reference, manifest_media_type, manifest_digest,
                                                   manifest_size)) < 0
                ? err_oom(err)
                : write_index(s, index, false, err);
    (void)str_copy(ret_unnamed, DIGEST_SIZE, r < 0 || is_known(index, had) ? "" : had);
    json_decref(index);
    return r;
}

int store_tag(struct store *s, const char *reference, const char *manifest_media_type,
              const char *manifest_digest, int64_t manifest_size, struct err *err) {
    char unnamed[DIGEST_SIZE];

    return store_name(s, reference, manifest_media_type, manifest_digest, manifest_size, unnamed,
                      err);
}

/* Removes the entry, and the others of that digest where it was named by it. */
static void remove_entries(json_t *index, size_t at, const struct index_entry *found,
                           const char *text) {
    json_t *list = json_object_get(index, "manifests");
    struct reference r;
    struct index_entry e;
    char full[REFERENCE_SIZE];
    bool by_name = reference_parse(text, &r, NULL) == 0 && found->name[0] &&
                   (strcmp(reference_full(&r, full), found->name) == 0 ||
                    strcmp(text, found->name) == 0 || r.digest[0]);

    if (by_name) {
        (void)json_array_remove(list, at);
        return;
    }
    for (size_t i = 0; index_at(index, i, &e);) {
        if (strcmp(e.digest, found->digest) == 0)
            (void)json_array_remove(list, i);
        else
            i++;
    }
}

int store_untag(struct store *s, const char *text, struct index_entry *ret, struct err *err) {
    struct index_entry found = {0};
    json_t *index = NULL;
    size_t at = 0;
    _cleanup_fd_ int lock = index_to_change(s, &index, err);

    if (lock < 0)
        return lock;
    int r = index_find(index, text, &found, &at, err);
    if (r == 0) {
        remove_entries(index, at, &found, text);
        r = write_index(s, index, true, err);
    }
    json_decref(index);
    if (r == 0 && ret)
        *ret = found;
    return r;
}
