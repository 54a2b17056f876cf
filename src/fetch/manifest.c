/*
 * manifest.c: see manifest.h. A text that could be read as an index and as a manifest is refused: two tools would see
 * two images under one digest.
 */
#include "fetch/manifest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/fd.h"
#include "image/document.h"
#include "image/store.h"

#include "base/banned.h"

#define OCI "application/vnd.oci.image."
#define DOCKER "application/vnd.docker.distribution."
#define ROOTFS "application/vnd.docker.image.rootfs."

const char manifest_types[] = OCI "index.v1+json, " DOCKER "manifest.list.v2+json, " OCI
                                  "manifest.v1+json, " DOCKER "manifest.v2+json";

static const char *const index_types[] = {OCI "index.v1+json", DOCKER "manifest.list.v2+json"};
static const char *const image_types[] = {OCI "manifest.v1+json", DOCKER "manifest.v2+json"};
static const char *const old_types[] = {DOCKER "manifest.v1+json", DOCKER "manifest.v1+prettyjws"};
/* The last is what Docker's first clients of this format called it; such images are still about. */
static const char *const config_types[] = {OCI "config.v1+json",
                                           "application/vnd.docker.container.image.v1+json",
                                           "application/octet-stream"};
static const char *const layer_types[] = {OCI "layer.v1.tar",      OCI "layer.v1.tar+gzip",
                                          OCI "layer.v1.tar+zstd", ROOTFS "diff.tar",
                                          ROOTFS "diff.tar.gzip",  ROOTFS "diff.tar.zstd",
                                          ROOTFS "diff.tar+gzip",  ROOTFS "diff.tar+zstd"};
static const char *const foreign_types[] = {
    OCI "layer.nondistributable.v1.tar", OCI "layer.nondistributable.v1.tar+gzip",
    OCI "layer.nondistributable.v1.tar+zstd", ROOTFS "foreign.diff.tar",
    ROOTFS "foreign.diff.tar.gzip"};

static bool is_one_of(const char *type, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(type, list[i]) == 0)
            return true;
    return false;
}
#define IS_ONE_OF(type, list) is_one_of(type, list, ARRAY_LEN(list))

struct reader {
    const char *what;
    struct manifest *m;
    struct err *err;
};

static int bad(const struct reader *r, const char *where, const char *why) {
    return err_set(r->err, ERR_SETUP, -EBADMSG, "",
                   "have it pushed again: it is not as the OCI image specification has it",
                   "%s: %s: %s", r->what, where, why);
}

static int no_image(const struct reader *r, const char *why, const char *type, const char *remedy) {
    return err_set(r->err, ERR_UNSUPPORTED, -ENOTSUP, "", remedy, "%s: %s (%.120s)", r->what, why,
                   type);
}

/* ------------------------------------------------------------------ parts */

static int read_descriptor(const struct reader *r, const json_t *o, const char *where,
                           struct descriptor *ret) {
    const char *type = document_text(o, "mediaType", MEDIA_TYPE_SIZE - 1);
    const char *digest = document_text(o, "digest", DIGEST_SIZE - 1);
    const json_t *size = json_object_get(o, "size");

    if (!type || !*type)
        return bad(r, where, "has no mediaType");
    if (!digest || !digest_is_valid(digest))
        return bad(r, where, "has no digest that is known");
    if (!json_is_integer(size) || json_integer_value(size) < 0)
        return bad(r, where, "has no size");
    (void)str_copy(ret->media_type, sizeof(ret->media_type), type);
    (void)str_copy(ret->digest, sizeof(ret->digest), digest);
    ret->size = json_integer_value(size);
    return 0;
}

static int check_layer(const struct reader *r, const struct descriptor *d, size_t i) {
    char where[32];

    (void)snprintf(where, sizeof(where), "layer %zu", i);
    if (IS_ONE_OF(d->media_type, layer_types))
        return 0;
    if (IS_ONE_OF(d->media_type, foreign_types))
        return no_image(r, "has a foreign layer, which registries do not give out", d->media_type,
                        "there is no way to pull it; take another image");
    return no_image(r, "has a layer of an unknown type", d->media_type,
                    "it is no image that boxes can be made of");
}

static int read_layers(const struct reader *r, const json_t *list) {
    size_t n = json_array_size(list);
    int64_t total = 0;

    if (!json_is_array(list))
        return bad(r, "layers", "are no list");
    if (n > MANIFEST_MAX_LAYERS)
        return bad(r, "layers", "are more than 500");
    r->m->layers = arena_alloc(&r->m->arena, (n + 1) * sizeof(*r->m->layers));
    if (!r->m->layers)
        return err_oom(r->err);
    for (size_t i = 0; i < n; i++) {
        struct descriptor *d = &r->m->layers[i];
        char where[32];
        (void)snprintf(where, sizeof(where), "layers[%zu]", i);
        int e = read_descriptor(r, json_array_get(list, i), where, d);
        e = e < 0 ? e : check_layer(r, d, i);
        if (e < 0)
            return e;
        if (__builtin_add_overflow(total, d->size, &total))
            return bad(r, where, "is too large");
        r->m->n_layers++;
    }
    return 0;
}

static int read_image(const struct reader *r, const json_t *root) {
    struct descriptor *config = &r->m->config;
    int e = read_descriptor(r, json_object_get(root, "config"), "config", config);

    if (e < 0)
        return e;
    if (!IS_ONE_OF(config->media_type, config_types))
        return no_image(r, "is no image but something else that is kept in registries",
                        config->media_type, "name a container image");
    if (config->size > IMAGE_CONFIG_BYTES)
        return bad(r, "config", "is larger than 8 MiB");
    return read_layers(r, json_object_get(root, "layers"));
}

static void read_platform(const json_t *o, struct index_item *item) {
    const json_t *p = json_object_get(o, "platform");
    const char *os = document_text(p, "os", sizeof(item->platform.os) - 1);
    const char *arch = document_text(p, "architecture", sizeof(item->platform.arch) - 1);
    const char *variant = document_text(p, "variant", sizeof(item->platform.variant) - 1);

    item->has_platform = os && arch;
    if (!item->has_platform)
        return;
    (void)str_copy(item->platform.os, sizeof(item->platform.os), os);
    (void)str_copy(item->platform.arch, sizeof(item->platform.arch), arch);
    (void)str_copy(item->platform.variant, sizeof(item->platform.variant), variant ? variant : "");
    platform_normalise(&item->platform);
}

static bool is_attestation(const json_t *o, const struct index_item *item) {
    const json_t *annotations = json_object_get(o, "annotations");
    const char *type = document_text(annotations, "vnd.docker.reference.type", 100);

    return (type && strcmp(type, "attestation-manifest") == 0) ||
           (item->has_platform && strcmp(item->platform.os, "unknown") == 0 &&
            strcmp(item->platform.arch, "unknown") == 0);
}

static int read_index(const struct reader *r, const json_t *root) {
    const json_t *list = json_object_get(root, "manifests");
    size_t n = json_array_size(list);

    if (!json_is_array(list))
        return bad(r, "manifests", "are no list");
    if (n > MANIFEST_MAX_ITEMS)
        return bad(r, "manifests", "are more than 2000");
    r->m->items = arena_alloc(&r->m->arena, (n + 1) * sizeof(*r->m->items));
    if (!r->m->items)
        return err_oom(r->err);
    for (size_t i = 0; i < n; i++) {
        const json_t *o = json_array_get(list, i);
        struct index_item *item = &r->m->items[i];
        char where[32];
        (void)snprintf(where, sizeof(where), "manifests[%zu]", i);
        int e = read_descriptor(r, o, where, &item->manifest);
        if (e < 0)
            return e;
        read_platform(o, item);
        item->attestation = is_attestation(o, item);
        r->m->n_items++;
    }
    return 0;
}

/* ------------------------------------------------------------------ the whole */

/* What the text says of itself; what the server says; what it looks like. */
static int find_type(const struct reader *r, const json_t *root, const char *served) {
    const json_t *own = json_object_get(root, "mediaType");
    const char *type = own ? document_text(root, "mediaType", MEDIA_TYPE_SIZE - 1) : NULL;
    bool served_known = IS_ONE_OF(served, index_types) || IS_ONE_OF(served, image_types);
    bool has_index = json_object_get(root, "manifests"),
         has_image = json_object_get(root, "layers");

    if (own && !type)
        return bad(r, "mediaType", "is none");
    if (json_integer_value(json_object_get(root, "schemaVersion")) == 1 ||
        IS_ONE_OF(type ? type : served, old_types))
        return no_image(r, "is of Docker's first format, which has no verifiable layers",
                        "schema 1", "pull and push it once with a newer Docker");
    if (type && served_known && strcasecmp(type, served) != 0)
        return bad(r, "mediaType", "is not what the registry says that it is");
    if (has_index && (has_image || json_object_get(root, "config")))
        return bad(r, "it", "could be an index and an image both");
    if (!type)
        type = served_known ? served : has_index ? index_types[0] : image_types[0];
    (void)str_copy(r->m->media_type, sizeof(r->m->media_type), type);
    r->m->is_index = IS_ONE_OF(type, index_types);
    if (!r->m->is_index && !IS_ONE_OF(type, image_types))
        return no_image(r, "is of an unknown type", type, "name a container image");
    return 0;
}

int manifest_parse(const char *text, size_t len, const char *type, const char *what,
                   struct manifest *ret, struct err *err) {
    return manifest_parse_or(text, len, type, what,
                             "see whether there is a registry at that address", ret, err);
}

int manifest_parse_or(const char *text, size_t len, const char *type, const char *what,
                      const char *remedy, struct manifest *ret, struct err *err) {
    struct manifest m = {0};
    const struct reader r = {.what = what, .m = &m, .err = err};
    json_t *root _cleanup_json_ = NULL;
    int e = document_parse_or(text, len, what, remedy, &root, err);

    if (e == 0)
        e = find_type(&r, root, type);
    if (e == 0)
        e = m.is_index ? read_index(&r, root) : read_image(&r, root);
    if (e < 0) {
        manifest_done(&m);
        return e;
    }
    *ret = m;
    return 0;
}

void manifest_done(struct manifest *m) {
    arena_done(&m->arena);
    *m = (struct manifest){0};
}

/* An index of one image need not say what it is for: then the image's configuration does. */
static const struct index_item *only_item(const struct manifest *index) {
    const struct index_item *only = NULL;

    for (size_t i = 0; i < index->n_items; i++) {
        if (index->items[i].attestation)
            continue;
        if (only)
            return NULL;
        only = &index->items[i];
    }
    return only && !only->has_platform ? only : NULL;
}

static void list_platforms(const struct manifest *index, struct buf *b) {
    char text[PLATFORM_TEXT_SIZE];

    for (size_t i = 0; i < index->n_items; i++) {
        const struct index_item *item = &index->items[i];
        if (item->attestation || !item->has_platform)
            continue;
        (void)platform_format(&item->platform, text);
        if (!b->data || !strstr(b->data, text))
            buf_printf(b, "%s%s", b->len ? ", " : "", text);
    }
}

const struct index_item *manifest_choose(const struct manifest *index,
                                         const struct platform *wanted, const char *what,
                                         struct err *err) {
    const struct index_item *best = only_item(index);
    struct buf list _cleanup_buf_ = {0};
    char text[PLATFORM_TEXT_SIZE];
    int nearest = INT32_MAX;

    for (size_t i = 0; i < index->n_items; i++) {
        const struct index_item *item = &index->items[i];
        int distance = item->has_platform && !item->attestation
                           ? platform_distance(wanted, &item->platform)
                           : -1;
        if (distance >= 0 && distance < nearest) {
            best = item;
            nearest = distance;
        }
    }
    if (best)
        return best;
    list_platforms(index, &list);
    (void)err_set(err, ERR_UNSUPPORTED, -ENOTSUP, "",
                  list.len ? "choose one with --platform" : NULL,
                  "%.150s: there is none for %s; there is %.180s", what,
                  platform_format(wanted, text), list.len ? list.data : "nothing in it");
    return NULL;
}

bool manifest_config_platform(const char *text, size_t len, struct platform *ret) {
    struct index_item item = {0};
    json_t *root _cleanup_json_ = NULL, *wrapped _cleanup_json_ = NULL;

    if (document_parse(text, len, "", &root, NULL) < 0)
        return false;
    wrapped = json_pack("{sO}", "platform", root);
    read_platform(wrapped, &item);
    *ret = item.platform;
    return item.has_platform && item.platform.os[0] && item.platform.arch[0];
}
