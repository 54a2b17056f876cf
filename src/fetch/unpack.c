/*
 * unpack.c: see unpack.h.
 *
 * Two processes. The parent looks at the manifest, opens the layers, makes the directory, and in the end gives it its
 * name; the child (worker.h), confined, fills it.
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
#include "fetch/layer.h"
#include "fetch/manifest.h"
#include "fetch/summary.h"
#include "fetch/tmp.h"
#include "fetch/worker.h"
#include "image/home.h"
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
        return err_set(err, ERR_SETUP, -EBADMSG, "", NULL,
                       "the image has %zu layers, and digests of %zu", ret->manifest.n_layers,
                       ret->config.n_diff_ids);
    if (r == 0 && chain_id(&ret->config, ret->chain) < 0)
        r = err_oom(err);
    return r;
}

static void done_with(struct image *image) {
    manifest_done(&image->manifest);
    arena_done(&image->arena);
}

/* ------------------------------------------------------------------ the child */

struct job {
    const struct image *image;
    const int *layers; /* descriptors */
    size_t n_layers;
    int fs, trash;
};

static struct layer_budget budget_of(const struct image *image) {
    uint64_t packed = 0;

    for (size_t i = 0; i < image->manifest.n_layers; i++)
        packed += MIN((uint64_t)image->manifest.layers[i].size, max_bytes);
    return (struct layer_budget){.bytes = MIN(BASE_BYTES + MAX_RATIO * packed, max_bytes),
                                 .entries = MAX_ENTRIES};
}

/* A working directory that is to be made: not where a box has a file system of its own, in which it makes it itself, and
 * which images of the same layers share. */
static const char *needed_workdir(int root, const struct image_config *c) {
    const char *dir = c->workdir ? c->workdir : "";
    bool covered = strncmp(dir, "/tmp/", 5) == 0 ||
                   (strncmp(dir, "/home/", 6) == 0 && home_is_free(root, "home"));

    return *dir && !covered ? dir : NULL;
}

/* What a box mounts something on, and what the image's own config wants to start in: other runtimes make them at each
 * run, which a root that is read-only does not let us. */
static int add_needed(struct tree *t, const struct image *image, struct err *err) {
    static const struct {
        const char *path;
        mode_t mode;
    } needed[] = {{"dev", 0755}, {"proc", 0755}, {"tmp", 01777}};
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(needed) && r == 0; i++)
        r = tree_need_dir(t, needed[i].path, needed[i].mode, err);
    const char *workdir = needed_workdir(t->root, &image->config);
    if (r == 0 && workdir)
        r = tree_need_dir(t, workdir, 0755, err);
    return r;
}

static int fill(void *context, struct unpack_summary *sum, struct err *err) {
    const struct job *job = context;
    struct layer_budget budget = budget_of(job->image);
    struct tree tree;
    int r = tree_init(&tree, job->fs, job->trash, sum);

    if (r < 0)
        return err_errno(err, ERR_SETUP, r, "", NULL, "starting to unpack");
    for (size_t i = 0; i < job->n_layers && r == 0; i++) {
        struct err inner = {0};
        r = layer_apply(&tree, job->layers[i], job->image->config.diff_ids[i], &budget, &inner);
        if (r < 0)
            r = err_set(err, inner.kind, r, "", NULL, "layer %zu of %zu (%.19s…): %.360s", i + 1,
                        job->n_layers, job->image->manifest.layers[i].digest, inner.message);
    }
    if (r == 0)
        r = add_needed(&tree, job->image, err);
    if (r == 0)
        r = tree_finish(&tree, err);
    tree_done(&tree);
    return r;
}

/* ------------------------------------------------------------------ the parent */

static int make_at(int dir, const char *name, mode_t mode) {
    if (mkdirat(dir, name, mode) < 0)
        return -errno;
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int fill_stage(struct store *s, const struct image *image, const struct tmp_entry *stage,
                      unsigned flags, struct unpack_summary *ret, struct err *err) {
    int layers[MANIFEST_MAX_LAYERS];
    struct job job = {.image = image, .layers = layers};
    _cleanup_fd_ int fs = make_at(stage->fd, STORE_FS, 0755);
    _cleanup_fd_ int trash = make_at(stage->fd, "trash", 0700);
    int r = fs < 0 ? fs : trash < 0 ? trash : 0;

    if (r == 0 && fchmod(fs, 0755) < 0)
        r = -errno;
    if (r < 0)
        return store_failed(s, r, "making a directory to unpack in", err);
    job.fs = fs;
    job.trash = trash;
    for (; job.n_layers < image->manifest.n_layers && r == 0; job.n_layers += r == 0) {
        layers[job.n_layers] = blob_open(s, image->manifest.layers[job.n_layers].digest, err);
        r = layers[job.n_layers] < 0 ? layers[job.n_layers] : 0;
    }
    if (r == 0)
        r = worker_run(stage->fd, fill, &job, ret, err);
    (void)str_copy(ret->chain, sizeof(ret->chain), image->chain);
    while (job.n_layers)
        (void)close(layers[--job.n_layers]);
    if (r == 0 && (r = tree_remove(stage->fd, "trash", NULL)) < 0)
        (void)store_failed(s, r, "tidying up", err);
    if (r == 0 && !(flags & UNPACK_NO_BYTECODE))
        bytecode_add(s, stage, ret);
    return r < 0 ? r : summary_write(stage->fd, ret, err);
}

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

static int unpack_new(struct store *s, const struct image *image, const char *path, unsigned flags,
                      struct unpack_summary *ret, struct err *err) {
    struct tmp_entry stage = {.fd = -1};
    int r = tmp_new_dir(s->tmp, "unpack", &stage);

    if (r < 0)
        return store_failed(s, r, "making a directory to unpack in", err);
    r = fill_stage(s, image, &stage, flags, ret, err);
    if (r == 0)
        r = name_stage(s, &stage, path, err);
    tmp_drop(s->tmp, &stage);
    return r;
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
        const char *workdir = root < 0 ? NULL : needed_workdir(root, &image->config);
        if (!workdir || tree_init(&tree, root, -1, &none) < 0)
            continue;
        (void)tree_need_dir(&tree, workdir, 0755, NULL);
        tree_done(&tree);
    }
}

/* images/HEX -> ../unpacked/CHAIN; put in place whole. */
static int link_image(struct store *s, const char *manifest_digest, const char *hex,
                      struct err *err) {
    char link[sizeof(STORE_IMAGES) + DIGEST_SIZE], target[sizeof(STORE_UNPACKED) + DIGEST_SIZE + 3];
    char now[sizeof(target)], name[TMP_NAME_SIZE];

    (void)snprintf(link, sizeof(link), STORE_IMAGES "/%s", strchr(manifest_digest, ':') + 1);
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

int store_unpack(struct store *s, const char *manifest_digest, unsigned flags,
                 struct unpack_summary *ret, struct err *err) {
    struct image image = {0};
    struct unpack_summary sum = {0};
    char path[sizeof(STORE_UNPACKED) + DIGEST_SIZE], lock_name[sizeof(path) + 8];
    struct stat st;
    int r = read_image(s, manifest_digest, &image, err);

    if (r < 0)
        return done_with(&image), r;
    const char *hex = strchr(image.chain, ':') + 1;
    (void)snprintf(path, sizeof(path), STORE_UNPACKED "/%s", hex);
    _cleanup_fd_ int lock = lock_chain(s, hex, lock_name, sizeof(lock_name), err);
    r = lock < 0 ? lock : 0;
    if (r == 0 && fstatat(s->dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        summary_read(s->dir, path, &sum);
        sum.was_there = true;
        add_workdir(s, path, &image);
    } else if (r == 0) {
        r = unpack_new(s, &image, path, flags, &sum, err);
    }
    if (r == 0)
        r = link_image(s, manifest_digest, hex, err);
    if (lock >= 0)
        (void)unlinkat(s->dir, lock_name, 0);
    (void)str_copy(sum.chain, sizeof(sum.chain), image.chain);
    done_with(&image);
    if (r == 0 && ret)
        *ret = sum;
    return r;
}
