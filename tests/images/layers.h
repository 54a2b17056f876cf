/*
 * layers.h: archives and images made by hand, so that they can be as wrong as an enemy's.
 */
#ifndef MAYFLY_TESTS_LAYERS_H
#define MAYFLY_TESTS_LAYERS_H

#include <stdarg.h>

#include "fetch/unpack.h"
#include "images.h"

#include "fetch/platform.h"

/* An entry as it stands in the archive; what is not given is 0644 or 0755, root's, and of the time 1000000000. */
struct tar_entry {
    char
        type; /* '0' file, '1' hard link, '2' symbolic link, '3' '4' devices, '5' directory, '6' FIFO; 'x' pax header */
    const char *name, *link, *content;
    unsigned mode, uid, gid;
    size_t content_len; /* 0: of a text */
};

IMAGES_UNUSED static void tar_octal(char *field, size_t size, unsigned long long value) {
    for (size_t i = size - 1; i-- > 0; value /= 8)
        field[i] = (char)('0' + value % 8);
}

IMAGES_UNUSED static void tar_header(struct buf *b, const struct tar_entry *e, size_t len) {
    char h[512] = "";
    unsigned sum = 0;

    (void)str_copy(h, 101, e->name); /* of longer ones a pax header has told */
    tar_octal(h + 100, 8, e->mode ? e->mode : e->type == '5' ? 0755 : 0644);
    tar_octal(h + 108, 8, e->uid);
    tar_octal(h + 116, 8, e->gid);
    tar_octal(h + 124, 12, len);
    tar_octal(h + 136, 12, 1000000000);
    h[156] = e->type;
    (void)str_copy(h + 157, 101, e->link ? e->link : "");
    memcpy(h + 257, "ustar\00000", 8);
    memset(h + 148, ' ', 8);
    for (size_t i = 0; i < sizeof(h); i++)
        sum += (unsigned char)h[i];
    (void)snprintf(h + 148, 8, "%06o", sum);
    buf_add(b, h, sizeof(h));
}

IMAGES_UNUSED static void tar_pad(struct buf *b) {
    static const char zeros[512];

    buf_add(b, zeros, (512 - b->len % 512) % 512);
}

IMAGES_UNUSED static void tar_pax(struct buf *b, const char *key, const char *value) {
    char record[5000];
    size_t body = strlen(key) + strlen(value) + 3, len = body + 1;

    while ((size_t)snprintf(NULL, 0, "%zu", len) + body != len)
        len++;
    int n = snprintf(record, sizeof(record), "%zu %s=%s\n", len, key, value);
    assert_true(n > 0 && (size_t)n == len);
    tar_header(b, &(struct tar_entry){.type = 'x', .name = "pax"}, len);
    buf_add(b, record, len);
    tar_pad(b);
}

IMAGES_UNUSED static void tar_add(struct buf *b, const struct tar_entry *e) {
    size_t len = e->content_len ? e->content_len : e->content ? strlen(e->content) : 0;

    if (e->type == 'x') {
        tar_pax(b, e->name, e->content);
        return;
    }
    if (strlen(e->name) > 100)
        tar_pax(b, "path", e->name);
    if (e->link && strlen(e->link) > 100)
        tar_pax(b, "linkpath", e->link);
    tar_header(b, e, len);
    buf_add(b, e->content, len);
    tar_pad(b);
}

IMAGES_UNUSED static void tar_end(struct buf *b) {
    static const char zeros[1024];

    buf_add(b, zeros, sizeof(zeros));
    assert_false(b->failed);
}

/* ------------------------------------------------------------------ images */

IMAGES_UNUSED static void put_blob(struct store *s, const void *data, size_t len,
                                   char digest[DIGEST_SIZE]) {
    struct err err = {0};

    assert_ok(blob_put(s, data, len, digest, &err), err);
}

enum { TEST_LAYERS = 8 };

struct test_image {
    struct buf layers[TEST_LAYERS]; /* archives, ended */
    int n_layers;
    const char *config;         /* the value of "config"; NULL: {} */
    const char *arch;           /* NULL: this machine's */
    const char *layer_type;     /* NULL: plain tar */
    const char *wrong_diff_id;  /* of the last layer */
    char manifest[DIGEST_SIZE]; /* of the image when it has been put */
    int64_t manifest_size;
};

/* Puts it into the store. */
IMAGES_UNUSED static void put_image(struct store *s, struct test_image *i) {
    _cleanup_buf_ struct buf layers = {0}, ids = {0}, config = {0}, manifest = {0};
    char digest[DIGEST_SIZE];
    struct platform host;

    platform_host(&host);
    for (int k = 0; k < i->n_layers; k++) {
        put_blob(s, i->layers[k].data, i->layers[k].len, digest);
        buf_printf(&layers, "%s{\"mediaType\":\"%s\",\"digest\":\"%s\",\"size\":%zu}", k ? "," : "",
                   i->layer_type ? i->layer_type : "application/vnd.oci.image.layer.v1.tar", digest,
                   i->layers[k].len);
        buf_printf(&ids, "%s\"%s\"", k ? "," : "",
                   i->wrong_diff_id && k + 1 == i->n_layers ? i->wrong_diff_id : digest);
    }
    buf_printf(&config,
               "{\"os\":\"linux\",\"architecture\":\"%s\",\"config\":%s,\"rootfs\":{\"type\":"
               "\"layers\",\"diff_ids\":[%s]}}",
               i->arch ? i->arch : host.arch, i->config ? i->config : "{}",
               ids.data ? ids.data : "");
    put_blob(s, config.data, config.len, digest);
    buf_printf(&manifest,
               "{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\","
               "\"config\":{\"mediaType\":\"application/vnd.oci.image.config.v1+json\",\"digest\":"
               "\"%s\",\"size\":%zu},\"layers\":[%s]}",
               digest, config.len, layers.data ? layers.data : "");
    put_blob(s, manifest.data, manifest.len, i->manifest);
    i->manifest_size = (int64_t)manifest.len;
    for (int k = 0; k < i->n_layers; k++)
        buf_done(&i->layers[k]);
}

/* One more layer of `i`; entries end with type 0. */
IMAGES_UNUSED static void add_layer(struct test_image *i, const struct tar_entry *e) {
    struct buf *b = &i->layers[i->n_layers++];

    assert_true(i->n_layers <= TEST_LAYERS);
    for (; e->type; e++)
        tar_add(b, e);
    tar_end(b);
}

#define LAYER(i, ...) add_layer(i, (const struct tar_entry[]){__VA_ARGS__, {0}})

#endif
