/*
 * unpack.c: see unpack.h.
 *
 * Two processes. This one looks at the manifest, opens the layers, makes the directory, and in the end gives it its name;
 * the other (job.h), confined, fills it, and gets each layer when that is in the store.
 */
#include "fetch/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fd.h"
#include "fetch/bytecode.h"
#include "fetch/job.h"
#include "fetch/manifest.h"
#include "fetch/summary.h"
#include "fetch/tree.h"
#include "image/image_config.h"
#include "image/index.h"

#include "base/banned.h"

enum { MAX_ENTRIES = 500000, MAX_RATIO = 64, BASE_BYTES = 512 << 20 };
static const uint64_t max_bytes = UINT64_C(64) << 30;

/* ------------------------------------------------------------------ which layers */

struct image {
    struct arena arena;
    struct manifest manifest;
    struct image_config config;
    char chain[DIGEST_SIZE];
};

/* ChainID of OCI's config.md: each layer's is the digest of the one below it and its own. */
static int chain_id(const struct image_config *c, char ret[DIGEST_SIZE]) {
    char both[2 * DIGEST_SIZE];
    unsigned char md[EVP_MAX_MD_SIZE];
    unsigned n = 0;

    /* No layer at all: the chain of nothing. */
    (void)str_copy(ret, DIGEST_SIZE, c->n_diff_ids ? c->diff_ids[0] : "");
    for (size_t i = c->n_diff_ids ? 1 : 0; i < MAX(c->n_diff_ids, (size_t)1); i++) {
        int len = snprintf(both, sizeof(both), "%s%s%s", ret, c->n_diff_ids ? " " : "",
                           c->n_diff_ids ? c->diff_ids[i] : "");
        if (!EVP_Digest(both, (size_t)len, md, &n, EVP_sha256(), NULL))
            return -ENOMEM;
        (void)str_copy(ret, DIGEST_SIZE, "sha256:");
        for (unsigned k = 0; k < n; k++)
            (void)snprintf(ret + 7 + 2 * k, 3, "%02x", md[k]);
    }
    return 0;
}

static int read_image(const struct store *s, const char *manifest_digest, struct image *ret,
                      struct err *err) {
    _cleanup_buf_ struct buf manifest = {0}, config = {0};
    int r = blob_read_all(s, manifest_digest, IMAGE_MANIFEST_BYTES, &manifest, err);

    if (r == 0)
        r = manifest_parse(manifest.data ? manifest.data : "", manifest.len, "", "the image",
                           &ret->manifest, err);
    if (r == 0 && ret->manifest.is_index)
        r = err_set(err, ERR_SETUP, -ENOTSUP, "", NULL, "the image's manifest is an index");
    if (r == 0)
        r = blob_read_all(s, ret->manifest.config.digest, IMAGE_CONFIG_BYTES, &config, err);
    if (r == 0)
        r = image_config_parse(config.data ? config.data : "", config.len, &ret->arena,
                               &ret->config, err);
    if (r < 0)
        return r;
    const char *os = ret->config.os;
    if (os && *os && strcmp(os, "linux") != 0)
        return err_set(err, ERR_UNSUPPORTED, -ENOTSUP, "", NULL,
                       "the image is for %.40s, not linux", ret->config.os);
    if (ret->config.n_diff_ids != ret->manifest.n_layers)
        return err_set(
            err, ERR_SETUP, -EBADMSG, "", NULL,
            "the manifest and the config do not agree: layers %zu, digests of layers %zu",
            ret->manifest.n_layers, ret->config.n_diff_ids);
    if (r == 0 && chain_id(&ret->config, ret->chain) < 0)
        r = err_oom(err);
    return r;
}

static void done_with(struct image *image) {
    manifest_done(&image->manifest);
    arena_done(&image->arena);
}

/* ------------------------------------------------------------------ the process that fills it */

struct unpacking {
    struct store *store;
    struct image image;
    unsigned flags;
    struct tmp_entry stage;
    struct job job;
    size_t given; /* layers */
};

static int make_at(int dir, const char *name, mode_t mode) {
    return mkdirat(dir, name, mode) < 0 || fchmodat(dir, name, mode, 0) < 0 ? -errno : 0;
}

static int start(struct unpacking *u, struct err *err) {
    const struct manifest *m = &u->image.manifest;
    struct job_head head = {
        .kind = JOB_LAYERS, .layers = (uint32_t)m->n_layers, .max_entries = MAX_ENTRIES};
    const char *workdir = u->image.config.workdir;
    uint64_t packed = 0;
    int r = tmp_new_dir(u->store->tmp, "unpack", &u->stage);

    r = r < 0 ? r : make_at(u->stage.fd, STORE_FS, 0755);
    r = r < 0 ? r : make_at(u->stage.fd, JOB_TRASH, 0700);
    if (r < 0)
        return store_failed(u->store, r, "making a directory to unpack in", err);
    for (size_t i = 0; i < m->n_layers; i++)
        packed += MIN((uint64_t)m->layers[i].size, max_bytes);
    head.max_bytes = MIN(BASE_BYTES + MAX_RATIO * packed, max_bytes);
    if (workdir && !str_copy(head.workdir, sizeof(head.workdir), workdir))
        return err_set(err, ERR_SETUP, -ENAMETOOLONG, "", NULL,
                       "the config's working directory is longer than a path may be");
    return job_start(&u->job, u->stage.fd, &head, err);
}

/* Those that are not given yet, up to `n`: 0, also where it would have to wait and is not to. */
static int give(struct unpacking *u, size_t n, bool wait, struct err *err) {
    int r = 1;

    while (r == 1 && u->given < n) {
        const struct descriptor *d = &u->image.manifest.layers[u->given];
        struct job_layer layer = {0};
        _cleanup_fd_ int fd = blob_open(u->store, d->digest, err);
        if (fd < 0)
            return fd;
        (void)str_copy(layer.diff_id, sizeof(layer.diff_id), u->image.config.diff_ids[u->given]);
        (void)str_copy(layer.digest, sizeof(layer.digest), d->digest);
        r = job_layer(&u->job, &layer, fd, wait, err);
        u->given += r == 1;
    }
    return MIN(r, 0);
}

static const char *stage_path(const struct unpacking *u, char *ret, size_t size) {
    (void)snprintf(ret, size, STORE_TMP "/%s", u->stage.name);
    return ret;
}

/* The rest of them, and what is made of all. */
static int fill_stage(struct unpacking *u, struct unpack_summary *ret, struct err *err) {
    char path[sizeof(STORE_TMP) + TMP_NAME_SIZE];
    int r = give(u, u->image.manifest.n_layers, true, err);

    r = r < 0 ? r : job_end(&u->job, ret, err);
    (void)str_copy(ret->chain, sizeof(ret->chain), u->image.chain);
    if (r == 0 && (r = tree_remove(u->stage.fd, JOB_TRASH, NULL)) < 0)
        (void)store_failed(u->store, r, "tidying up", err);
    if (r == 0 && !(u->flags & UNPACK_NO_BYTECODE))
        bytecode_add(u->store, u->stage.fd, stage_path(u, path, sizeof(path)), ret);
    if (r == 0 && (r = summary_write(u->stage.fd, ret)) < 0)
        (void)store_failed(u->store, r, "writing " STORE_SUMMARY, err);
    return r;
}

void unpack_drop(struct unpacking *u) {
    if (!u)
        return;
    job_drop(&u->job);
    tmp_drop(u->store->tmp, &u->stage);
    done_with(&u->image);
    free(u);
}

static int new_unpacking(struct store *s, const char *manifest_digest, unsigned flags,
                         struct unpacking **ret, struct err *err) {
    struct unpacking *u = calloc(1, sizeof(*u));

    if (!u)
        return err_oom(err);
    *u = (struct unpacking){.store = s, .flags = flags, .stage.fd = -1, .job.socket = -1};
    int r = read_image(s, manifest_digest, &u->image, err);
    if (r < 0)
        unpack_drop(u);
    else
        *ret = u;
    return r;
}

/* ------------------------------------------------------------------ its name */

/* From tmp/ to its name, once all of it is on the disk. */
static int name_stage(struct store *s, struct tmp_entry *stage, const char *path, struct err *err) {
    _cleanup_fd_ int dir = openat(s->dir, STORE_UNPACKED, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    /* A shared lock will do to keep it from being swept, and is what a run takes. */
    if (dir < 0 || fchmod(stage->fd, 0755) < 0 || syncfs(stage->fd) < 0 ||
        flock(stage->fd, LOCK_SH) < 0)
        return store_failed(s, -errno, "writing an unpacked image", err);
    if (renameat(s->tmp, stage->name, s->dir, path) < 0 || fsync(dir) < 0)
        return store_failed(s, -errno, "writing an unpacked image", err);
    fd_close(&stage->fd);
    return 0;
}

/* One at a time for each chain: the others would do the same work for nothing. */
static int lock_chain(const struct store *s, const char *hex, char *name, size_t size,
                      struct err *err) {
    (void)snprintf(name, size, STORE_UNPACKED "/.lock-%s", hex);
    for (;;) {
        struct stat held, named;
        int fd = openat(s->dir, name, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
            return store_failed(s, -errno, "locking an unpacked image", err);
        while (flock(fd, LOCK_EX) < 0)
            if (errno != EINTR)
                return fd_close(&fd), store_failed(s, -errno, "locking an unpacked image", err);
        /* Who had it before may have removed the file. */
        if (fstat(fd, &held) == 0 && fstatat(s->dir, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
            held.st_ino == named.st_ino)
            return fd;
        fd_close(&fd);
    }
}

/* Another image of the same layers may want another directory to start in. */
static void add_workdir(const struct store *s, const char *path, const struct image *image) {
    static const char *const trees[] = {STORE_FS, STORE_BYTECODE};

    for (size_t i = 0; i < ARRAY_LEN(trees); i++) {
        char name[STORE_PATH_SIZE];
        struct unpack_summary none = {0};
        struct tree tree;
        (void)snprintf(name, sizeof(name), "%s/%s", path, trees[i]);
        _cleanup_fd_ int root =
            openat(s->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (root < 0 || tree_init(&tree, root, -1, &none) < 0)
            continue;
        (void)tree_need_workdir(&tree, image->config.workdir, NULL);
        tree_done(&tree);
    }
}

/* Who unpacked it wanted none. Runs that are under way go on without it. */
static void add_bytecode(const struct store *s, const char *path, struct unpack_summary *sum) {
    _cleanup_fd_ int dir = openat(s->dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir < 0 || faccessat(dir, STORE_BYTECODE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return;
    bytecode_add(s, dir, path, sum);
    if (sum->bytecode)
        (void)summary_write(dir, sum);
}

/* What comes after "sha256:". */
static const char *hex_of(const char *digest) {
    const char *colon = strchr(digest, ':');

    return colon ? colon + 1 : digest;
}

/* images/HEX -> ../unpacked/CHAIN; put in place whole. */
static int link_image(struct store *s, const char *manifest_digest, const char *hex,
                      struct err *err) {
    char link[sizeof(STORE_IMAGES) + DIGEST_SIZE], target[sizeof(STORE_UNPACKED) + DIGEST_SIZE + 3];
    char now[sizeof(target)], name[TMP_NAME_SIZE];

    (void)snprintf(link, sizeof(link), STORE_IMAGES "/%s", hex_of(manifest_digest));
    (void)snprintf(target, sizeof(target), "../" STORE_UNPACKED "/%s", hex);
    ssize_t n = readlinkat(s->dir, link, now, sizeof(now));
    if (n == (ssize_t)strlen(target) && memcmp(now, target, (size_t)n) == 0)
        return 0;
    /* Links cannot be locked, but are nothing to leave behind either: a sweep takes them. */
    (void)snprintf(name, sizeof(name), "link-%d-%.40s", (int)getpid(), hex);
    (void)unlinkat(s->tmp, name, 0);
    if (symlinkat(target, s->tmp, name) < 0 || renameat(s->tmp, name, s->dir, link) < 0)
        return store_failed(s, -errno, "naming an unpacked image", err);
    return 0;
}

static const char *path_of(const struct unpacking *u, char *ret, size_t size) {
    (void)snprintf(ret, size, STORE_UNPACKED "/%s", hex_of(u->image.chain));
    return ret;
}

/* The tree of its own, unless another has put one there meanwhile. */
static int settle(struct unpacking *u, bool filled, struct unpack_summary *sum, struct err *err) {
    char path[sizeof(STORE_UNPACKED) + DIGEST_SIZE];
    struct stat st;

    (void)path_of(u, path, sizeof(path));
    if (fstatat(u->store->dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        *sum = (struct unpack_summary){.was_there = true};
        summary_read(u->store->dir, path, sum);
        add_workdir(u->store, path, &u->image);
        if (!sum->bytecode && !(u->flags & UNPACK_NO_BYTECODE))
            add_bytecode(u->store, path, sum);
        return 0;
    }
    int r = filled ? 0 : start(u, err);
    r = r < 0 || filled ? r : fill_stage(u, sum, err);
    return r < 0 ? r : name_stage(u->store, &u->stage, path, err);
}

static int finish(struct unpacking *u, const char *manifest_digest, bool filled,
                  struct unpack_summary *sum, struct err *err) {
    const char *hex = hex_of(u->image.chain);
    char lock_name[sizeof(STORE_UNPACKED) + DIGEST_SIZE + 8];
    _cleanup_fd_ int lock = lock_chain(u->store, hex, lock_name, sizeof(lock_name), err);
    int r = lock < 0 ? lock : settle(u, filled, sum, err);

    r = r < 0 ? r : link_image(u->store, manifest_digest, hex, err);
    if (lock >= 0)
        (void)unlinkat(u->store->dir, lock_name, 0);
    (void)str_copy(sum->chain, sizeof(sum->chain), u->image.chain);
    return r;
}

/* A layer that was verified when it came and is another now: the image is not to blame. */
static void blame_store(const struct unpacking *u, struct err *err) {
    const struct manifest *m = &u->image.manifest;

    for (size_t i = 0; err && i < m->n_layers; i++) {
        struct err why = {0};
        if (blob_verify(u->store, m->layers[i].digest, m->layers[i].size, &why) != -EBADMSG)
            continue;
        why.code = err->code; /* as was returned */
        *err = why;
        return;
    }
}

int store_unpack(struct store *s, const char *manifest_digest, unsigned flags,
                 struct unpack_summary *ret, struct err *err) {
    struct unpack_summary sum = {0};
    struct unpacking *u = NULL;
    int r = new_unpacking(s, manifest_digest, flags, &u, err);

    if (r < 0 || !u)
        return r;
    r = finish(u, manifest_digest, false, &sum, err);
    if (r < 0)
        blame_store(u, err);
    unpack_drop(u);
    if (r == 0 && ret)
        *ret = sum;
    return r;
}

/* ------------------------------------------------------------------ beside the download */

int unpack_begin(struct store *s, const char *manifest_digest, unsigned flags,
                 struct unpacking **ret, struct err *err) {
    char path[sizeof(STORE_UNPACKED) + DIGEST_SIZE];
    struct unpacking *u = NULL;
    int r = new_unpacking(s, manifest_digest, flags, &u, err);

    if (r < 0 || !u)
        return r;
    if (faccessat(s->dir, path_of(u, path, sizeof(path)), F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return unpack_drop(u), 0;
    r = start(u, err);
    if (r < 0)
        unpack_drop(u);
    else
        *ret = u;
    return r;
}

int unpack_more(struct unpacking *u, size_t n, struct err *err) {
    int r = give(u, n, false, err);

    return r < 0 ? r : job_look(&u->job, err);
}

int unpack_end(struct unpacking *u, const char *manifest_digest, struct unpack_summary *ret,
               struct err *err) {
    int r = fill_stage(u, ret, err);

    r = r < 0 ? r : finish(u, manifest_digest, true, ret, err);
    unpack_drop(u);
    return r;
}
