/*
 * facts.c: see facts.h.
 */
#include "fetch/facts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "fetch/summary.h"

#include "base/banned.h"

static void read_link(const struct store *s, struct image_facts *f) {
    char link[sizeof(STORE_IMAGES) + DIGEST_SIZE], target[256];
    const char *hex = strchr(f->entry.digest, ':');

    (void)snprintf(link, sizeof(link), STORE_IMAGES "/%s", hex ? hex + 1 : "-");
    ssize_t n = readlinkat(s->dir, link, target, sizeof(target) - 1);
    target[n > 0 ? n : 0] = '\0';
    const char *slash = strrchr(target, '/');
    bool found = slash && faccessat(s->dir, target + strspn(target, "./"), F_OK, 0) == 0;
    f->closed = slash && !found && errno == EACCES;
    if (found || f->closed)
        (void)str_copy(f->unpacked, sizeof(f->unpacked), slash + 1);
}

static int read_texts(const struct store *s, struct image_facts *f, struct err *err) {
    _cleanup_buf_ struct buf manifest = {0}, config = {0};
    struct platform platform = {0};
    int r = blob_read_all(s, f->entry.digest, IMAGE_MANIFEST_BYTES, &manifest, err);

    r = r < 0 ? r
              : manifest_parse(manifest.data ? manifest.data : "", manifest.len,
                               f->entry.media_type, "the image", &f->manifest, err);
    if (r == 0 && f->manifest.is_index)
        return 0; /* another tool's: there is no more to be said of it */
    r = r < 0 ? r : blob_read_all(s, f->manifest.config.digest, IMAGE_CONFIG_BYTES, &config, err);
    const char *text = config.data ? config.data : "";
    r = r < 0 ? r : image_config_parse(text, config.len, &f->arena, &f->config, err);
    if (r == 0 && manifest_config_platform(text, config.len, &platform))
        (void)platform_format(&platform, f->platform);
    return r;
}

int facts_read(const struct store *s, const struct index_entry *entry, struct image_facts *ret,
               struct err *err) {
    *ret = (struct image_facts){.entry = *entry};
    int r = read_texts(s, ret, err);

    ret->whole = r == 0;
    for (size_t i = 0; i < ret->manifest.n_layers && r == 0; i++) {
        const struct descriptor *d = &ret->manifest.layers[i];
        ret->packed_bytes += (uint64_t)d->size;
        ret->whole &= blob_exists(s, d->digest, d->size) == 1;
    }
    read_link(s, ret);
    return r;
}

void facts_done(struct image_facts *f) {
    manifest_done(&f->manifest);
    arena_done(&f->arena);
}

int facts_check_platform(const struct store *s, const char *config_digest,
                         const struct platform *wanted, bool given, const char *what,
                         struct err *err) {
    struct buf text _cleanup_buf_ = {0};
    char got[PLATFORM_TEXT_SIZE], asked[PLATFORM_TEXT_SIZE];
    struct platform of;
    int r = blob_read_all(s, config_digest, IMAGE_CONFIG_BYTES, &text, err);

    if (r < 0)
        return r;
    if (!text.len || !manifest_config_platform(text.data, text.len, &of) ||
        platform_distance(wanted, &of) >= 0)
        return 0;
    (void)platform_format(&of, got);
    (void)platform_format(wanted, asked);
    return err_set(err, ERR_UNSUPPORTED, -ENOTSUP, "",
                   given ? "name another image, or that platform"
                         : "name another image, or have it all the same with --platform",
                   "%.200s: is for %s, not for %s", what, got, asked);
}

/* ------------------------------------------------------------------ JSON */

static void set(json_t *object, const char *key, json_t *value) {
    (void)json_object_set_new(object, key, value ? value : json_null());
}

static json_t *list(const char *const *texts) {
    json_t *array = json_array();

    for (; texts && *texts; texts++)
        (void)json_array_append_new(array, json_string(*texts));
    return array;
}

static json_t *run_json(const struct image_config *c) {
    json_t *run = json_object();

    set(run, "entrypoint", c->entrypoint ? list(c->entrypoint) : json_null());
    set(run, "cmd", c->cmd ? list(c->cmd) : json_null());
    set(run, "env", list(c->env));
    set(run, "workingDir", json_string(c->workdir));
    set(run, "user", json_string(c->user));
    return run;
}

static json_t *layers_json(const struct image_facts *f) {
    json_t *array = json_array();

    for (size_t i = 0; i < f->manifest.n_layers; i++) {
        const struct descriptor *d = &f->manifest.layers[i];
        json_t *layer = json_object();
        set(layer, "digest", json_string(d->digest));
        set(layer, "mediaType", json_string(d->media_type));
        set(layer, "size", json_integer((json_int_t)d->size));
        set(layer, "diffId", i < f->config.n_diff_ids ? json_string(f->config.diff_ids[i]) : NULL);
        (void)json_array_append_new(array, layer);
    }
    return array;
}

static json_t *unpacked_json(const struct store *s, const struct image_facts *f, bool briefly) {
    char path[STORE_PATH_SIZE + DIGEST_SIZE + 32];
    struct unpack_summary sum = {0};

    if (!f->unpacked[0])
        return json_null();
    (void)snprintf(path, sizeof(path), STORE_UNPACKED "/%s", f->unpacked);
    (void)snprintf(sum.chain, sizeof(sum.chain), "sha256:%.64s", f->unpacked);
    summary_read(s->dir, path, &sum);
    if (briefly || f->closed)
        return json_pack("{so}", "bytes",
                         f->closed ? json_null() : json_integer((json_int_t)sum.bytes));
    json_t *unpacked = summary_json(&sum);
    (void)snprintf(path, sizeof(path), "%s/" STORE_UNPACKED "/%s/" STORE_FS, s->path, f->unpacked);
    set(unpacked, "path", json_string(path));
    return unpacked;
}

json_t *facts_json(const struct store *s, const struct image_facts *f, bool briefly) {
    json_t *o = json_object();

    if (!o)
        return NULL;
    set(o, "name", f->entry.name[0] ? json_string(f->entry.name) : json_null());
    set(o, "digest", json_string(f->entry.digest));
    set(o, "mediaType", json_string(f->entry.media_type));
    set(o, "platform", json_string(f->platform));
    set(o, "created",
        f->config.created && *f->config.created ? json_string(f->config.created) : json_null());
    set(o, "packedBytes", json_integer((json_int_t)f->packed_bytes));
    set(o, "whole", json_boolean(f->whole));
    set(o, "unpacked", unpacked_json(s, f, briefly));
    if (briefly)
        return o;
    set(o, "config", run_json(&f->config));
    set(o, "configDigest", json_string(f->manifest.config.digest));
    set(o, "layers", layers_json(f));
    return o;
}
