/*
 * lease.c: see lease.h.
 */
#include "image/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "image/document.h"
#include "image/index.h"
#include "image/store.h"

#include "base/banned.h"

static const char control[] = "image";
static const char others[] = "a store's images run for its owner alone: run it as that user, or "
                             "keep one of your own (--store)";

static int missing(const char *name, const char *what, struct err *err) {
    return err_set(err, ERR_USAGE, -ENOENT, control,
                   "get it with mayfly pull, or from a file with mayfly import",
                   "image %.200s is %s", name, what);
}

static int damaged(const char *name, const struct err *inner, struct err *err) {
    return err_set(err, ERR_SETUP, inner->code, control, NULL, "image %.150s: %.250s", name,
                   inner->message);
}

/* Still the directory of that name? Between opening and locking it a collector may have taken it away. */
static bool is_named(int dir, const char *path, int fd) {
    struct stat held, named;

    return fstat(fd, &held) == 0 && fstatat(dir, path, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

/* unpacked/CHAIN of the manifest, held; the path below the store in `path`. */
static int hold(int dir, const char *digest, char *path, size_t size) {
    char link[sizeof(STORE_IMAGES) + DIGEST_SIZE];

    (void)snprintf(link, sizeof(link), STORE_IMAGES "/%s", strchr(digest, ':') + 1);
    ssize_t n = readlinkat(dir, link, path, size - 1);
    if (n <= 3 || strncmp(path, "../", 3) != 0)
        return n < 0 ? -errno : -ENOENT;
    memmove(path, path + 3, (size_t)n - 3);
    path[n - 3] = '\0';
    int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_SH | LOCK_NB) == 0 && is_named(dir, path, fd))
        return fd;
    (void)close(fd);
    return -ENOENT; /* it is being removed */
}

static int read_config(int dir, const char *name, struct image_lease *l, struct err *err) {
    char path[BLOB_PATH_SIZE], digest[DIGEST_SIZE];
    _cleanup_free_ char *manifest = NULL, *config = NULL;
    struct err inner = {0};
    size_t len = 0;
    int r = file_read_all_at(dir, store_blob_path(l->digest, path), IMAGE_MANIFEST_BYTES, &manifest,
                             &len);

    if (r == 0)
        r = image_manifest_config(manifest, len, digest, &inner);
    if (r == 0)
        r = file_read_all_at(dir, store_blob_path(digest, path), IMAGE_CONFIG_BYTES, &config, &len);
    if (r == 0)
        r = image_config_parse(config, len, &l->arena, &l->config, &inner);
    if (r < 0 && !inner.code)
        (void)err_errno(&inner, ERR_SETUP, r, "", "pull or import it again", "%.80s", path);
    return r < 0 ? damaged(name, &inner, err) : 0;
}

static int find(int dir, const char *name, struct image_lease *l, struct err *err) {
    json_t *index _cleanup_json_ = NULL;
    struct err inner = {0};
    struct index_entry e = {0};
    int r = index_read(dir, &index, &inner);

    if (r == 0)
        r = index_find(index, name, &e, NULL, &inner);
    if (r == -ENOENT)
        return missing(name, "not in the store", err);
    if (r < 0)
        return err_set(err, inner.kind, r, control, NULL, "%.400s", inner.message);
    (void)str_copy(l->digest, sizeof(l->digest), e.digest);
    return 0;
}

int image_lease(const char *store, const char *name, bool bytecode, struct image_lease *ret,
                struct err *err) {
    char given[STORE_PATH_SIZE], real[PATH_MAX], path[256];
    struct err inner = {0};

    *ret = (struct image_lease){.fd = -1};
    if (store_path(store, given, &inner) < 0)
        return err_set(err, inner.kind, inner.code, control, NULL, "%.400s", inner.message);
    if (!realpath(given, real))
        return errno == ENOENT
                   ? missing(name, "not in the store", err)
                   : err_errno(err, ERR_SETUP, -errno, control, errno == EACCES ? others : NULL,
                               "image store %.200s", given);
    _cleanup_fd_ int dir = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_errno(err, ERR_SETUP, -errno, control,
                         errno_remedy(errno, errno == EACCES ? others : NULL), "image store %.200s",
                         real);
    int r = find(dir, name, ret, err);
    if (r < 0)
        return r;
    ret->fd = hold(dir, ret->digest, path, sizeof(path));
    if (ret->fd == -ENOENT)
        return ret->fd = -1, missing(name, "in the store, but not unpacked", err);
    if (ret->fd < 0) {
        r = ret->fd, ret->fd = -1;
        return err_errno(err, ERR_SETUP, r, control, errno_remedy(r, r == -EACCES ? others : NULL),
                         "image %.200s: its root file system in %.100s", name, real);
    }
    bool has = bytecode && faccessat(ret->fd, STORE_BYTECODE, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    ret->root = arena_printf(&ret->arena, "%s/%s/%s", real, path, has ? STORE_BYTECODE : STORE_FS);
    return ret->root ? read_config(dir, name, ret, err) : err_oom(err);
}

void image_release(struct image_lease *l) {
    if (l->fd > 0)
        (void)close(l->fd);
    l->fd = -1;
    arena_done(&l->arena);
}
