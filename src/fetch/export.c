/*
 * export.c: see export.h.
 */
#include "fetch/export.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "fetch/facts.h"
#include "image/document.h"

#include "base/banned.h"

struct out {
    const struct store *store;
    struct archive *tar;
    json_t *written; /* digests, as an object's keys */
    struct err *err;
};

static int failed(struct out *o) {
    int code = archive_errno(o->tar);

    return err_errno(o->err, ERR_SETUP, code > 0 ? -code : -EIO, "",
                     code == ENOSPC || code == EDQUOT
                         ? "make room, or name a file elsewhere with -o"
                         : "see whether it can be written there",
                     "writing the archive");
}

static int put_header(struct out *o, const char *name, int64_t size) {
    struct archive_entry *e = archive_entry_new();

    if (!e)
        return err_oom(o->err);
    archive_entry_set_pathname(e, name);
    archive_entry_set_mode(e, size < 0 ? S_IFDIR | 0755 : S_IFREG | 0644);
    archive_entry_set_size(e, MAX(size, 0));
    archive_entry_set_mtime(e, 0, 0);
    int r = archive_write_header(o->tar, e);
    archive_entry_free(e);
    return r == ARCHIVE_OK ? 0 : failed(o);
}

static int put_text(struct out *o, const char *name, const char *text) {
    size_t len = strlen(text);
    int r = put_header(o, name, (int64_t)len);

    return r < 0 ? r : archive_write_data(o->tar, text, len) == (la_ssize_t)len ? 0 : failed(o);
}

static int put_blob(struct out *o, const char *digest, int64_t size) {
    char path[BLOB_PATH_SIZE];
    _cleanup_free_ char *chunk = malloc(256 << 10);
    ssize_t n;

    if (json_object_get(o->written, digest))
        return 0;
    _cleanup_fd_ int fd = blob_open(o->store, digest, o->err);
    if (fd < 0)
        return fd;
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_size != size)
        return err_set(o->err, ERR_SETUP, -EBADMSG, "", "pull or import the image again",
                       "%.30s…: has another size than its descriptor says", digest);
    int r = put_header(o, store_blob_path(digest, path), size);
    while (r == 0 && chunk && (n = fd_read_full(fd, chunk, 256 << 10)) > 0)
        if (archive_write_data(o->tar, chunk, (size_t)n) != (la_ssize_t)n)
            r = failed(o);
    (void)json_object_set_new(o->written, digest, json_true());
    return chunk ? r : err_oom(o->err);
}

static int put_image(struct out *o, const struct image_facts *f) {
    int r = put_blob(o, f->entry.digest, f->entry.size);

    r = r < 0 ? r : put_blob(o, f->manifest.config.digest, f->manifest.config.size);
    for (size_t i = 0; i < f->manifest.n_layers && r == 0; i++)
        r = put_blob(o, f->manifest.layers[i].digest, f->manifest.layers[i].size);
    return r;
}

/* ------------------------------------------------------------------ the two indexes */

static json_t *index_entry(const struct index_entry *e) {
    json_t *d = json_pack("{ss ss sI}", "mediaType", e->media_type, "digest", e->digest, "size",
                          (json_int_t)e->size);

    if (e->name[0])
        (void)json_object_set_new(
            d, "annotations",
            json_pack("{ss ss}", ANNOTATION_FULL_NAME, e->name, ANNOTATION_NAME, e->name));
    return d;
}

static json_t *docker_entry(const struct image_facts *f) {
    char path[BLOB_PATH_SIZE], name[REFERENCE_SIZE];
    json_t *layers = json_array(), *tags = json_array();
    struct reference r;

    for (size_t i = 0; i < f->manifest.n_layers; i++)
        (void)json_array_append_new(
            layers, json_string(store_blob_path(f->manifest.layers[i].digest, path)));
    /* Docker takes no digest for a tag. */
    if (f->entry.name[0] && reference_parse(f->entry.name, &r, NULL) == 0 && r.tag[0] &&
        !r.digest[0])
        (void)json_array_append_new(tags, json_string(reference_short(&r, name)));
    return json_pack("{ss so so}", "Config", store_blob_path(f->manifest.config.digest, path),
                     "RepoTags", tags, "Layers", layers);
}

static int put_json(struct out *o, const char *name, const json_t *value) {
    _cleanup_free_ char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;

    return text ? put_text(o, name, text) : err_oom(o->err);
}

static int put_indexes(struct out *o, const json_t *entries, const json_t *docker) {
    json_t *index _cleanup_json_ =
        json_pack("{si ss sO}", "schemaVersion", 2, "mediaType",
                  "application/vnd.oci.image.index.v1+json", "manifests", entries);
    int r = put_json(o, STORE_INDEX, index);

    r = r < 0 ? r : put_json(o, "manifest.json", docker);
    return r < 0 ? r : put_text(o, STORE_LAYOUT, "{\"imageLayoutVersion\":\"1.0.0\"}");
}

/* ------------------------------------------------------------------ all of it */

static int put_named(struct out *o, const json_t *index, const char *name, json_t *entries,
                     json_t *docker) {
    struct index_entry e;
    struct image_facts f;
    int r = index_find(index, name, &e, NULL, o->err);

    if (r < 0)
        return r;
    r = facts_read(o->store, &e, &f, o->err);
    r = r < 0 ? r : put_image(o, &f);
    if (r == 0) {
        (void)json_array_append_new(entries, index_entry(&e));
        (void)json_array_append_new(docker, docker_entry(&f));
    }
    facts_done(&f);
    return r;
}

/* Before the first byte is written: what is not there or damaged is no archive, not the beginning of one. */
static int check_one(struct out *o, const struct image_facts *f) {
    const struct manifest *m = &f->manifest;
    int r = blob_verify(o->store, m->config.digest, m->config.size, o->err);

    for (size_t i = 0; i < m->n_layers && r == 0; i++)
        r = blob_verify(o->store, m->layers[i].digest, m->layers[i].size, o->err);
    return r;
}

static int check_all(struct out *o, const json_t *index, char *const *images, int n) {
    struct index_entry e;
    struct image_facts f;
    int r = 0;

    for (int i = 0; i < n && r == 0; i++) {
        r = index_find(index, images[i], &e, NULL, o->err);
        if (r < 0)
            break;
        r = facts_read(o->store, &e, &f, o->err);
        if (r == 0 && f.manifest.is_index)
            r = err_set(o->err, ERR_UNSUPPORTED, -ENOTSUP, "",
                        "pull the one that is for a platform",
                        "%.100s is an index of several images", images[i]);
        r = r < 0 ? r : check_one(o, &f);
        facts_done(&f);
    }
    return r;
}

static int put_all(struct out *o, char *const *images, int n) {
    json_t *index _cleanup_json_ = NULL, *entries _cleanup_json_ = json_array(),
                  *docker _cleanup_json_ = json_array();
    int r = index_read(o->store->dir, &index, o->err);

    if (r == -ENOENT)
        return store_failed(o->store, r, STORE_INDEX, o->err);
    r = r < 0 ? r : check_all(o, index, images, n);
    r = r < 0 ? r : put_header(o, "blobs/", -1);
    r = r < 0 ? r : put_header(o, "blobs/sha256/", -1);
    for (int i = 0; i < n && r == 0; i++)
        r = put_named(o, index, images[i], entries, docker);
    r = r < 0 ? r : put_indexes(o, entries, docker);
    return r == 0 && archive_write_close(o->tar) != ARCHIVE_OK ? failed(o) : r;
}

int store_export(const struct store *s, char *const *images, int n, int fd, struct err *err) {
    struct out o = {.store = s, .tar = archive_write_new(), .written = json_object(), .err = err};
    int r = o.tar && o.written ? 0 : err_oom(err);

    /* The same bytes into a pipe as into a file: no record is filled up. */
    if (r == 0 && (archive_write_set_format_pax_restricted(o.tar) != ARCHIVE_OK ||
                   archive_write_set_bytes_in_last_block(o.tar, 1) != ARCHIVE_OK ||
                   archive_write_open_fd(o.tar, fd) != ARCHIVE_OK))
        r = failed(&o);
    r = r < 0 ? r : put_all(&o, images, n);
    if (o.tar && r < 0)
        (void)archive_write_fail(o.tar); /* or it would write an end to what is none */
    if (o.tar)
        (void)archive_write_free(o.tar);
    json_decref(o.written);
    return r;
}
