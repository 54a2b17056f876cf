/*
 * import.c: see import.h.
 */
#include "fetch/import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "fetch/facts.h"
#include "fetch/tmp.h"
#include "fetch/worker.h"
#include "image/document.h"

#include "base/banned.h"

#define MANIFEST_TYPE "application/vnd.oci.image.manifest.v1+json"
#define CONFIG_TYPE "application/vnd.oci.image.config.v1+json"
#define LAYER_TYPE "application/vnd.oci.image.layer.v1.tar"

static const char again[] = "have it made again, by docker save, skopeo or mayfly export";
static const char not_whole[] = "the layout is not whole: have it made again";

enum { MAX_DEPTH = 3, COPY_CHUNK = 256 << 10, FOUND_BYTES = 64 << 20 };

/* ------------------------------------------------------------------ blobs */

/* A file of the layout's, which is what it should be as far as can be told without reading it: what is short is no
 * download that could go on. Whatever its name stands for, opening it takes no time. */
static int open_blob(const struct import *i, const char *path, int64_t size, struct err *err) {
    _cleanup_fd_ int fd = openat(i->layout, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(err, ERR_SETUP, -errno, "", not_whole, "%.140s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_SETUP, -EBADMSG, "", not_whole, "%.140s: is no file", path);
    if (size >= 0 && st.st_size != size)
        return err_set(err, ERR_SETUP, -EBADMSG, "", not_whole,
                       "%.140s: %lld bytes instead of the %lld that its descriptor says", path,
                       (long long)st.st_size, (long long)size);
    return TAKE_FD(fd);
}

static int copy_blob(struct import *i, const char *digest, int64_t size, struct err *err) {
    char path[BLOB_PATH_SIZE];
    _cleanup_free_ char *chunk = malloc(COPY_CHUNK);
    _cleanup_fd_ int fd = open_blob(i, store_blob_path(digest, path), size, err);
    struct blob_writer *w = NULL;
    ssize_t n = 0;

    if (fd < 0)
        return fd;
    if (!chunk)
        return err_oom(err);
    int r = blob_begin(i->store, digest, size, &w, NULL, err);
    r = r < 0 ? r : blob_restart(w, err); /* what another had of it may be wrong */
    while (r == 0 && (n = fd_read_full(fd, chunk, COPY_CHUNK)) > 0)
        r = blob_write(w, chunk, (size_t)n, err);
    if (r == 0 && n < 0)
        r = err_errno(err, ERR_SETUP, (int)n, "", again, "%.140s", path);
    if (r == 0)
        return blob_commit(w, err);
    blob_abandon(w, false);
    return r;
}

int import_need(struct import *i, const char *digest, int64_t size, struct err *err) {
    /* What an archive brought was verified on its way. */
    if (i->layout < 0 ? blob_exists(i->store, digest, size) : blob_is_good(i->store, digest, size))
        return 0;
    if (i->layout >= 0)
        return copy_blob(i, digest, size, err);
    return err_set(err, ERR_SETUP, -ENOENT, "", "make it again, with all of the image's layers",
                   "the archive lacks %.30s…, which its index names", digest);
}

int import_find(const struct import *i, const char *path, char ret_digest[DIGEST_SIZE],
                int64_t *ret_size, struct err *err) {
    char named[DIGEST_SIZE];
    struct stat st;
    char blob[BLOB_PATH_SIZE];

    for (int links = 0; links < 8; links++) {
        const struct import_file *f = NULL;
        for (size_t k = 0; k < i->n_files; k++)
            if (strcmp(i->files[k].path, path) == 0)
                f = &i->files[k]; /* the last of a name, as in any archive */
        if (!f)
            break;
        if (!f->link) {
            (void)str_copy(ret_digest, DIGEST_SIZE, f->digest);
            *ret_size = f->size;
            return 0;
        }
        path = f->link;
    }
    /* Newer ones keep them as blobs/sha256/HEX. */
    if (strncmp(path, "blobs/", 6) == 0 && str_copy(named, sizeof(named), path + 6)) {
        named[strcspn(named, "/")] = ':';
        if (digest_is_valid(named) &&
            fstatat(i->store->dir, store_blob_path(named, blob), &st, AT_SYMLINK_NOFOLLOW) == 0) {
            (void)str_copy(ret_digest, DIGEST_SIZE, named);
            *ret_size = st.st_size;
            return 0;
        }
    }
    return err_set(err, ERR_SETUP, -ENOENT, "", "make it again with docker save",
                   "the archive lacks %.120s, which its manifest.json names", path);
}

/* ------------------------------------------------------------------ one image */

static int add_image(struct import *i, const char *name, const char *media_type, const char *digest,
                     int64_t size, struct err *err) {
    struct imported *list = reallocarray(i->images, i->n_images + 1, sizeof(*list));

    if (!list)
        return err_oom(err);
    i->images = list;
    struct imported *new = &list[i->n_images];
    *new = (struct imported){0};
    (void)str_copy(new->name, sizeof(new->name), name);
    (void)str_copy(new->digest, sizeof(new->digest), digest);
    int r = store_unpack(i->store, digest, i->flags, &new->sum, err);
    r = r < 0 ? r
              : store_name(i->store, *name ? name : NULL, media_type, digest, size, new->unnamed,
                           err);
    i->n_images += r == 0;
    return r;
}

static int read_manifest(struct import *i, const char *digest, int64_t size, const char *type,
                         struct manifest *ret, struct err *err) {
    _cleanup_buf_ struct buf text = {0};
    int r = import_need(i, digest, size, err);

    r = r < 0 ? r : blob_read_all(i->store, digest, IMAGE_MANIFEST_BYTES, &text, err);
    return r < 0 ? r
                 : manifest_parse_or(text.data ? text.data : "", text.len, type,
                                     "the archive's manifest", again, ret, err);
}

/* What the descriptor stands for: an image, or the one of an index that is for the platform. */
static int take_descriptor(struct import *i, const char *name, const struct descriptor *d,
                           int depth, struct err *err) {
    struct manifest m = {0};
    int r = read_manifest(i, d->digest, d->size, d->media_type, &m, err);

    if (r < 0)
        return r;
    if (m.is_index) {
        const struct index_item *item =
            depth < MAX_DEPTH ? manifest_choose(&m, &i->platform, "the archive's index", err)
                              : NULL;
        r = item ? take_descriptor(i, name, &item->manifest, depth + 1, err) : -ENOTSUP;
        if (r < 0 && err && !err->code)
            r = err_set(err, ERR_SETUP, r, "", again,
                        "the archive's index names an index, and so on");
    } else {
        r = import_need(i, m.config.digest, m.config.size, err);
        r = r < 0 ? r
                  : facts_check_platform(i->store, m.config.digest, &i->platform, i->platform_given,
                                         *name ? name : "the archive's image", err);
        for (size_t k = 0; k < m.n_layers && r == 0; k++)
            r = import_need(i, m.layers[k].digest, m.layers[k].size, err);
        r = r < 0 ? r : add_image(i, name, m.media_type, d->digest, d->size, err);
    }
    manifest_done(&m);
    return r;
}

/* ------------------------------------------------------------------ OCI's index.json */

/* The name that the source gives it, in full. A bare tag ("latest") is none. */
static int name_of(const struct import *i, const char *given, char ret[REFERENCE_SIZE],
                   struct err *err) {
    struct reference r;

    ret[0] = '\0';
    if (!i->name && (!given || !strpbrk(given, "/:")))
        return 0;
    int code = reference_parse(i->name ? i->name : given, &r, i->name ? err : NULL);
    if (code == 0)
        (void)reference_full(&r, ret);
    return i->name ? code : 0;
}

/* `variant`: what it stands for, where that is not the entry itself. */
static int take_entry(struct import *i, const json_t *e, const struct descriptor *variant,
                      struct err *err) {
    const json_t *notes = json_object_get(e, "annotations");
    const char *type = document_text(e, "mediaType", MEDIA_TYPE_SIZE - 1);
    const char *digest = document_text(e, "digest", DIGEST_SIZE - 1);
    const char *given = document_text(notes, ANNOTATION_FULL_NAME, REFERENCE_SIZE - 1);
    struct descriptor d = {.size = json_integer_value(json_object_get(e, "size"))};
    char name[REFERENCE_SIZE];

    if (!digest || !digest_is_valid(digest))
        return err_set(err, ERR_SETUP, -EBADMSG, "", again,
                       "index.json names something without a digest");
    (void)str_copy(d.digest, sizeof(d.digest), digest);
    (void)str_copy(d.media_type, sizeof(d.media_type), type ? type : "");
    int r = name_of(i, given ? given : document_text(notes, ANNOTATION_NAME, REFERENCE_SIZE - 1),
                    name, err);
    return r < 0 ? r : take_descriptor(i, name, variant ? variant : &d, 0, err);
}

/* Entries of one name (or of none) that say each for which platform they are: one image, of which one is taken. */
static bool is_variant(const json_t *a, const json_t *b) {
    const json_t *x = json_object_get(json_object_get(a, "annotations"), ANNOTATION_NAME);
    const json_t *y = json_object_get(json_object_get(b, "annotations"), ANNOTATION_NAME);

    return json_is_object(json_object_get(a, "platform")) &&
           json_is_object(json_object_get(b, "platform")) && (x == y || json_equal(x, y));
}

static bool is_first(const json_t *list, size_t k) {
    for (size_t j = 0; j < k; j++)
        if (is_variant(json_array_get(list, j), json_array_get(list, k)))
            return false;
    return true;
}

static size_t count_images(const json_t *list) {
    size_t n = 0;

    for (size_t k = 0; k < json_array_size(list); k++)
        n += is_first(list, k);
    return n;
}

/* The k-th entry, which is the first of its image: the one of its variants that is for the platform. */
static int take_variant(struct import *i, const json_t *list, size_t k, struct err *err) {
    json_t *same _cleanup_json_ = json_object(), *one = json_array_get(list, k), *e;
    struct manifest m = {0};
    size_t j;

    (void)json_object_set_new(same, "manifests", json_array());
    json_array_foreach((json_t *)(uintptr_t)list, j, e) {
        if (is_variant(one, e))
            (void)json_array_append(json_object_get(same, "manifests"), e);
    }
    _cleanup_free_ char *text = same ? json_dumps(same, JSON_COMPACT) : NULL;
    if (!text)
        return err_oom(err);
    int r = manifest_parse_or(text, strlen(text), "", "index.json", again, &m, err);
    const struct index_item *item =
        r < 0 ? NULL : manifest_choose(&m, &i->platform, "index.json", err);
    r = item ? 0 : r < 0 ? r : -ENOTSUP;
    if (r == 0)
        r = take_entry(i, one, &item->manifest, err);
    manifest_done(&m);
    return r;
}

static bool has_variants(const json_t *list, size_t k) {
    size_t n = 0;

    for (size_t j = 0; j < json_array_size(list); j++)
        n += is_variant(json_array_get(list, j), json_array_get(list, k));
    return n > 1;
}

static int take_index(struct import *i, struct err *err) {
    json_t *index _cleanup_json_ = NULL;
    int r = document_parse_or(i->index.data ? i->index.data : "", i->index.len, "index.json", again,
                              &index, err);

    if (r < 0)
        return r;
    const json_t *list = json_object_get(index, "manifests");
    size_t n = json_array_size(list);
    if (n == 0 || n > IMPORT_IMAGES)
        return err_set(err, ERR_SETUP, -EBADMSG, "", again, "index.json names %s",
                       n ? "too many images" : "no image");
    if (i->name && count_images(list) > 1)
        return err_set(err, ERR_USAGE, -EINVAL, "",
                       "leave --tag out, and they keep their own names",
                       "there are %zu images, and one name for them", count_images(list));
    for (size_t k = 0; k < n && r == 0; k++)
        if (is_first(list, k))
            r = has_variants(list, k) ? take_variant(i, list, k, err)
                                      : take_entry(i, json_array_get(list, k), NULL, err);
    return r;
}

/* ------------------------------------------------------------------ docker save, and root file systems */

/* By its first bytes: docker save does not say. */
static const char *layer_type(const struct import *i, const char *digest) {
    _cleanup_fd_ int fd = blob_open(i->store, digest, NULL);
    unsigned char magic[4] = {0};

    (void)fd_read_full(fd, magic, sizeof(magic));
    if (magic[0] == 0x1f && magic[1] == 0x8b)
        return LAYER_TYPE "+gzip";
    return memcmp(magic, "\x28\xb5\x2f\xfd", 4) == 0 ? LAYER_TYPE "+zstd" : LAYER_TYPE;
}

static json_t *descriptor(const char *type, const char *digest, int64_t size) {
    return json_pack("{ss ss sI}", "mediaType", type, "digest", digest, "size", (json_int_t)size);
}

/* A manifest made here, of blobs that are in the store. `layers` is taken. */
static int put_manifest(struct import *i, const char *config, int64_t config_size, json_t *layers,
                        char ret_digest[DIGEST_SIZE], int64_t *ret_size, struct err *err) {
    json_t *m = json_pack("{si ss so so}", "schemaVersion", 2, "mediaType", MANIFEST_TYPE, "config",
                          descriptor(CONFIG_TYPE, config, config_size), "layers", layers);
    _cleanup_free_ char *text = m ? json_dumps(m, JSON_COMPACT) : NULL;

    json_decref(m);
    if (!text)
        return err_oom(err);
    *ret_size = (int64_t)strlen(text);
    return blob_put(i->store, text, strlen(text), ret_digest, err);
}

static int take_saved(struct import *i, const json_t *image, struct err *err) {
    const char *config = document_text(image, "Config", 4096);
    json_t *list = json_object_get(image, "Layers"), *tags = json_object_get(image, "RepoTags"), *e;
    char digest[DIGEST_SIZE], manifest[DIGEST_SIZE], name[REFERENCE_SIZE];
    json_t *layers = json_array();
    int64_t config_size = 0, size = 0;
    size_t k;
    int r = 0;

    if (!config || !json_is_array(list) || !layers) {
        json_decref(layers);
        return err_set(err, ERR_SETUP, -EBADMSG, "", again,
                       "manifest.json: an image without a config or layers");
    }
    json_array_foreach(list, k, e) {
        const char *path = json_string_value(e);
        r = r < 0 ? r : import_find(i, path ? path : "", digest, &size, err);
        if (r == 0)
            (void)json_array_append_new(layers, descriptor(layer_type(i, digest), digest, size));
    }
    r = r < 0 ? r : import_find(i, config, digest, &config_size, err);
    r = r < 0 ? r
              : facts_check_platform(i->store, digest, &i->platform, i->platform_given,
                                     "the archive's image", err);
    if (r < 0) {
        json_decref(layers);
        return r;
    }
    r = put_manifest(i, digest, config_size, layers, manifest, &size, err);
    if (r == 0 && (i->name || json_array_size(tags) == 0)) {
        r = name_of(i, NULL, name, err);
        return r < 0 ? r : add_image(i, name, MANIFEST_TYPE, manifest, size, err);
    }
    json_array_foreach(tags, k, e) {
        r = r < 0 ? r : name_of(i, json_string_value(e), name, err);
        r = r < 0 ? r : add_image(i, name, MANIFEST_TYPE, manifest, size, err);
    }
    return r;
}

/* manifest.json is an array, which no document of OCI's is. */
static int take_docker(struct import *i, struct err *err) {
    _cleanup_buf_ struct buf wrapped = {0};
    json_t *root _cleanup_json_ = NULL, *e;
    size_t k;

    buf_puts(&wrapped, "{\"images\":");
    buf_add(&wrapped, i->docker.data, i->docker.len);
    buf_puts(&wrapped, "}");
    if (wrapped.failed)
        return err_oom(err);
    int r = document_parse_or(wrapped.data, wrapped.len, "manifest.json", again, &root, err);
    json_t *list = json_object_get(root, "images");
    if (r == 0 &&
        (!json_is_array(list) || !json_array_size(list) || json_array_size(list) > IMPORT_IMAGES))
        r = err_set(err, ERR_SETUP, -EBADMSG, "", again, "manifest.json: is no list of images");
    if (r == 0 && i->name && json_array_size(list) > 1)
        r = err_set(err, ERR_USAGE, -EINVAL, "", "leave --tag out, and they keep their own names",
                    "there are %zu images, and one name for them", json_array_size(list));
    json_array_foreach(list, k, e) { r = r < 0 ? r : take_saved(i, e, err); }
    return r;
}

static int take_tar(struct import *i, struct err *err) {
    json_t *config = json_pack("{ss ss s{s[s]} s{ss s[s]}}", "architecture", i->platform.arch, "os",
                               i->platform.os, "config", "Env",
                               "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                               "rootfs", "type", "layers", "diff_ids", i->tar);
    _cleanup_free_ char *text = config ? json_dumps(config, JSON_COMPACT) : NULL;
    char digest[DIGEST_SIZE], name[REFERENCE_SIZE];
    int64_t size = 0;

    json_decref(config);
    json_t *layers = json_pack("[o]", descriptor(LAYER_TYPE, i->tar, i->tar_size));
    if (!text || !layers) {
        json_decref(layers);
        return err_oom(err);
    }
    int r = blob_put(i->store, text, strlen(text), digest, err);
    if (r < 0) {
        json_decref(layers);
        return r;
    }
    r = put_manifest(i, digest, (int64_t)strlen(text), layers, digest, &size, err);
    r = r < 0 ? r : name_of(i, NULL, name, err);
    return r < 0 ? r : add_image(i, name, MANIFEST_TYPE, digest, size, err);
}

/* ------------------------------------------------------------------ all of it */

int import_layout(struct import *i, int dir, struct err *err) {
    struct stat st;
    char *text = NULL;
    size_t len = 0;
    int r = fstatat(dir, STORE_INDEX, &st, 0) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;

    r = r < 0 ? r : file_read_all_at(dir, STORE_INDEX, STORE_INDEX_BYTES, &text, &len);
    if (r < 0)
        return err_errno(err, ERR_SETUP, r, "", not_whole, "the layout's index.json");
    buf_add(&i->index, text, len);
    free(text);
    i->layout = dir;
    return i->index.failed ? err_oom(err) : 0;
}

/* ------------------------------------------------------------------ an archive, read by a process of its own */

struct reading {
    struct import *import;
    const char *what;
    int fd, dir; /* the archive; a directory for what is found out */
};

static const char found_out[] = "found.json";

static int write_found(const struct reading *r, struct err *err) {
    const struct import *i = r->import;
    json_t *files = json_array();

    for (size_t k = 0; k < i->n_files; k++) {
        const struct import_file *f = &i->files[k];
        (void)json_array_append_new(files, json_pack("{ss ss ss sI}", "path", f->path, "digest",
                                                     f->digest, "link", f->link ? f->link : "",
                                                     "size", (json_int_t)f->size));
    }
    json_t *all =
        json_pack("{ss% ss% ss sI so}", "index", i->index.data ? i->index.data : "", i->index.len,
                  "docker", i->docker.data ? i->docker.data : "", i->docker.len, "tar", i->tar,
                  "tarSize", (json_int_t)i->tar_size, "files", files);
    _cleanup_free_ char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    if (!text)
        return err_set(err, ERR_SETUP, -EBADMSG, "", again, "%.200s: a name in it is no UTF-8",
                       r->what);
    _cleanup_fd_ int fd = openat(r->dir, found_out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int code = fd < 0 ? -errno : fd_write_full(fd, text, strlen(text));
    return code < 0 ? store_failed(i->store, code, "noting what is in the archive", err) : 0;
}

static int read_archive(void *context, struct unpack_summary *sum UNUSED, struct err *err) {
    const struct reading *r = context;
    int code = import_archive(r->import, r->fd, r->what, err);

    return code < 0 ? code : write_found(r, err);
}

/* Said by a process that read hostile data: nothing here is more than a text to be looked at. */
static int take_found(struct import *i, const char *text, size_t len, struct err *err) {
    json_t *all _cleanup_json_ = NULL, *f;
    size_t k;
    int r = document_parse(text, len, "what the archive holds", &all, err);

    if (r < 0)
        return r;
    const json_t *index = json_object_get(all, "index"), *docker = json_object_get(all, "docker");
    const char *tar = document_text(all, "tar", DIGEST_SIZE - 1);
    json_t *files = json_object_get(all, "files");
    buf_add(&i->index, json_string_value(index), json_string_length(index));
    buf_add(&i->docker, json_string_value(docker), json_string_length(docker));
    (void)str_copy(i->tar, sizeof(i->tar), tar && digest_is_valid(tar) ? tar : "");
    i->tar_size = json_integer_value(json_object_get(all, "tarSize"));
    i->files = calloc(json_array_size(files) + 1, sizeof(*i->files));
    if (!i->files || i->index.failed || i->docker.failed)
        return err_oom(err);
    json_array_foreach(files, k, f) {
        struct import_file *file = &i->files[i->n_files];
        const char *path = json_string_value(json_object_get(f, "path"));
        const char *link = json_string_value(json_object_get(f, "link"));
        const char *digest = json_string_value(json_object_get(f, "digest"));
        file->size = json_integer_value(json_object_get(f, "size"));
        file->path = strdup(path ? path : "");
        file->link = link && *link ? strdup(link) : NULL;
        (void)str_copy(file->digest, sizeof(file->digest), digest ? digest : "");
        i->n_files++;
        if (!file->path || (link && *link && !file->link))
            return err_oom(err);
    }
    return 0;
}

static int bring_archive(struct import *i, int fd, const char *what, struct err *err) {
    struct tmp_entry dir = {.fd = -1};
    struct unpack_summary none = {0};
    _cleanup_free_ char *text = NULL;
    size_t len = 0;
    int r = tmp_new_dir(i->store->tmp, "import", &dir);

    if (r < 0)
        return store_failed(i->store, r, "making a directory", err);
    struct reading reading = {.import = i, .what = what, .fd = fd, .dir = dir.fd};
    r = worker_run(i->store->dir, read_archive, &reading, &none, err);
    if (r == 0) {
        r = file_read_all_at(dir.fd, found_out, FOUND_BYTES, &text, &len);
        r = r < 0 ? store_failed(i->store, r, "reading what is in the archive", err)
                  : take_found(i, text, len, err);
    }
    tmp_drop(i->store->tmp, &dir);
    return r;
}

static int bring(struct import *i, const char *source, int *ret_fd, struct err *err) {
    struct stat st;
    int fd = strcmp(source, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                      : open(source, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(err, ERR_USAGE, -errno, "", "name a file or a directory that you may read",
                         "%.200s", source);
    *ret_fd = fd;
    if (strcmp(source, "-") == 0 && isatty(fd))
        return err_set(err, ERR_USAGE, -EINVAL, "",
                       "put a < FILE or a pipe there, or name the file",
                       "standard input is a terminal");
    if (!S_ISDIR(st.st_mode))
        return bring_archive(i, fd, strcmp(source, "-") == 0 ? "standard input" : source, err);
    if (faccessat(fd, STORE_LAYOUT, F_OK, 0) == 0 && faccessat(fd, STORE_INDEX, F_OK, 0) == 0)
        return import_layout(i, fd, err);
    return import_rootfs(i, fd, source, err);
}

int import(struct import *i, const char *source, struct err *err) {
    _cleanup_fd_ int fd = -1;

    i->layout = -1;
    int r = bring(i, source, &fd, err);
    if (r < 0)
        return r;
    if (i->tar[0])
        return take_tar(i, err);
    if (i->index.len)
        return take_index(i, err);
    if (i->docker.len)
        return take_docker(i, err);
    return err_set(err, ERR_SETUP, -EBADMSG, "", "make it again with docker save or skopeo",
                   "%.200s: has neither index.json nor manifest.json", source);
}

void import_done(struct import *i) {
    for (size_t k = 0; k < i->n_files; k++) {
        free(i->files[k].path);
        free(i->files[k].link);
    }
    free(i->files);
    free(i->images);
    buf_done(&i->index);
    buf_done(&i->docker);
}
