/*
 * image.c: see image.h.
 */
#include "build/image.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fetch/manifest.h"
#include "image/document.h"

#include "base/banned.h"

#define CONFIG_TYPE "application/vnd.oci.image.config.v1+json"
#define LAYER_TYPE "application/vnd.oci.image.layer.v1.tar"

static const char epoch_text[] = "1970-01-01T00:00:00Z";

/* ------------------------------------------------------------------ beginnings */

int built_scratch(struct built *b, const struct platform *platform, struct err *err) {
    *b = (struct built){.layers = json_array()};
    b->whole = json_pack("{ss ss s{} s{ss s[]} s[]}", "architecture", platform->arch, "os",
                         platform->os, "config", "rootfs", "type", "layers", "diff_ids", "history");
    if (b->whole && platform->variant[0])
        (void)json_object_set_new(b->whole, "variant", json_string(platform->variant));
    b->config = json_object_get(b->whole, "config");
    return b->config && b->layers ? 0 : err_oom(err);
}

/* Docker's names for the same, in OCI's words; the manifest is to be OCI's. */
static const char *layer_type(const char *type) {
    size_t len = strlen(type);

    if (len > 5 && strcmp(type + len - 5, "+zstd") == 0)
        return LAYER_TYPE "+zstd";
    if (len > 4 && strcmp(type + len - 4, "gzip") == 0)
        return LAYER_TYPE "+gzip";
    return LAYER_TYPE;
}

static json_t *descriptor(const char *type, const char *digest, int64_t size) {
    return json_pack("{ss ss sI}", "mediaType", type, "digest", digest, "size", (json_int_t)size);
}

/* What is there is of the right kind, and what is needed is there: the config comes from anywhere. */
static int complete(struct built *b, const char *key, json_t *empty) {
    json_t *have = json_object_get(b->whole, key);

    if (have && json_typeof(have) == json_typeof(empty)) {
        json_decref(empty);
        return 0;
    }
    return json_object_set_new(b->whole, key, empty);
}

static int take_config(struct built *b, struct err *err) {
    static const char *const dropped[] = {"container", "container_config", "docker_version",
                                          "id",        "parent",           "throwaway"};

    for (size_t i = 0; i < ARRAY_LEN(dropped); i++)
        (void)json_object_del(b->whole, dropped[i]);
    if (complete(b, "config", json_object()) < 0 || complete(b, "history", json_array()) < 0)
        return err_oom(err);
    b->config = json_object_get(b->whole, "config");
    return 0;
}

int built_from(struct built *b, const struct store *s, const char *manifest_digest,
               struct err *err) {
    _cleanup_buf_ struct buf text = {0}, config = {0};
    struct manifest m = {0};

    *b = (struct built){.layers = json_array()};
    int r = blob_read_all(s, manifest_digest, IMAGE_MANIFEST_BYTES, &text, err);
    r = r < 0 ? r
              : manifest_parse(text.data ? text.data : "", text.len, "", "the base image", &m, err);
    if (r == 0 && m.is_index)
        r = err_set(err, ERR_SETUP, -ENOTSUP, "", "import or pull the image again",
                    "the base image is an index of several");
    r = r < 0 ? r : blob_read_all(s, m.config.digest, IMAGE_CONFIG_BYTES, &config, err);
    r = r < 0 ? r
              : document_parse(config.data ? config.data : "", config.len,
                               "the base image's config", &b->whole, err);
    for (size_t i = 0; i < m.n_layers && r == 0; i++)
        if (json_array_append_new(b->layers, descriptor(layer_type(m.layers[i].media_type),
                                                        m.layers[i].digest, m.layers[i].size)) < 0)
            r = err_oom(err);
    manifest_done(&m);
    return r < 0 ? r : take_config(b, err);
}

int built_copy(struct built *b, const struct built *from, struct err *err) {
    *b = (struct built){.whole = json_deep_copy(from->whole), .layers = json_copy(from->layers)};
    b->config = json_object_get(b->whole, "config");
    return b->config && b->layers ? 0 : err_oom(err);
}

void built_done(struct built *b) {
    json_decref(b->whole);
    json_decref(b->layers);
    *b = (struct built){0};
}

/* ------------------------------------------------------------------ steps */

const char *built_created(const struct built *b) {
    const char *text = json_string_value(json_object_get(b->whole, "created"));

    return text ? text : epoch_text;
}

int built_step(struct built *b, const char *created_by, const char *created,
               const struct packed *layer, struct err *err) {
    json_t *history = json_object_get(b->whole, "history");
    json_t *ids = json_object_get(json_object_get(b->whole, "rootfs"), "diff_ids");
    bool empty = !layer || !layer->digest[0];
    int r = created ? json_object_set_new(b->whole, "created", json_string(created)) : 0;
    json_t *step = json_pack("{ss ss}", "created", built_created(b), "created_by", created_by);

    if (step && empty)
        r |= json_object_set_new(step, "empty_layer", json_true());
    r |= json_array_append_new(history, step);
    if (!empty) {
        r |= json_array_append_new(ids, json_string(layer->diff_id));
        r |= json_array_append_new(b->layers,
                                   descriptor(LAYER_TYPE "+gzip", layer->digest, layer->size));
    }
    return r < 0 ? err_oom(err) : 0;
}

/* ------------------------------------------------------------------ the config */

static bool same_name(const char *entry, const char *name) {
    size_t len = strlen(name);

    return strncmp(entry, name, len) == 0 && entry[len] == '=';
}

const char *built_env(const struct built *b, const char *name) {
    const json_t *e;
    size_t i;

    json_array_foreach(json_object_get(b->config, "Env"), i, e) {
        const char *text = json_string_value(e);
        if (text && same_name(text, name))
            return text + strlen(name) + 1;
    }
    return NULL;
}

int built_set_env(struct built *b, const char *name, const char *value, struct err *err) {
    _cleanup_buf_ struct buf text = {0};
    json_t *list = json_object_get(b->config, "Env"), *e;
    size_t i;

    buf_printf(&text, "%s=%s", name, value);
    if (!json_is_array(list)) {
        if (json_object_set_new(b->config, "Env", json_array()) < 0)
            return err_oom(err);
        list = json_object_get(b->config, "Env");
    }
    json_t *entry = text.failed ? NULL : json_string(text.data);
    json_array_foreach(list, i, e) {
        if (json_string_value(e) && same_name(json_string_value(e), name))
            return json_array_set_new(list, i, entry) < 0 ? err_oom(err) : 0;
    }
    return json_array_append_new(list, entry) < 0 ? err_oom(err) : 0;
}

const char *built_text(const struct built *b, const char *key) {
    const char *text = json_string_value(json_object_get(b->config, key));

    return text ? text : "";
}

int built_set(struct built *b, const char *key, json_t *value, struct err *err) {
    return json_object_set_new(b->config, key, value) < 0 ? err_oom(err) : 0;
}

int built_set_in(struct built *b, const char *object, const char *key, json_t *value,
                 struct err *err) {
    if (!json_is_object(json_object_get(b->config, object)) &&
        json_object_set_new(b->config, object, json_object()) < 0) {
        json_decref(value);
        return err_oom(err);
    }
    return json_object_set_new(json_object_get(b->config, object), key, value) < 0 ? err_oom(err)
                                                                                   : 0;
}

json_t *built_list(const char *const *texts) {
    json_t *list = json_array();

    for (; list && texts && *texts; texts++)
        if (json_array_append_new(list, json_string(*texts)) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* ------------------------------------------------------------------ the end */

static int put_json(struct store *s, const json_t *value, char ret_digest[DIGEST_SIZE],
                    int64_t *ret_size, struct err *err) {
    /* In one order, whichever it grew in: the digest is of the bytes. */
    _cleanup_free_ char *text = value ? json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    if (!text)
        return err_oom(err);
    *ret_size = (int64_t)strlen(text);
    return blob_put(s, text, strlen(text), ret_digest, err);
}

int built_commit(const struct built *b, struct store *s, char ret_digest[DIGEST_SIZE],
                 int64_t *ret_size, struct err *err) {
    char config[DIGEST_SIZE];
    int64_t size = 0;

    if (!json_object_get(b->whole, "created") &&
        json_object_set_new(b->whole, "created", json_string(epoch_text)) < 0)
        return err_oom(err);
    int r = put_json(s, b->whole, config, &size, err);
    if (r < 0)
        return r;
    json_t *m _cleanup_json_ =
        json_pack("{si ss so sO}", "schemaVersion", 2, "mediaType", BUILT_MANIFEST_TYPE, "config",
                  descriptor(CONFIG_TYPE, config, size), "layers", b->layers);
    return put_json(s, m, ret_digest, ret_size, err);
}
