/*
 * cache.c: see cache.h.
 */
#include "build/cache.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "fetch/tmp.h"
#include "image/document.h"

#include "base/banned.h"

enum { MAX_ENTRY_BYTES = 4096 };

int cache_key(const json_t *depends, char ret[static CACHE_KEY_SIZE], struct err *err) {
    _cleanup_free_ char *text = depends ? json_dumps(depends, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned len = 0;

    if (!text || EVP_Digest(text, strlen(text), sum, &len, EVP_sha256(), NULL) != 1)
        return err_oom(err);
    for (unsigned i = 0; i < 32; i++)
        (void)snprintf(ret + 2 * (size_t)i, 3, "%02x", sum[i]);
    return 0;
}

static void entry_path(const char *key, char ret[static 128]) {
    (void)snprintf(ret, 128, STORE_BUILD_CACHE "/%s", key);
}

bool cache_get(const struct store *s, const char *key, struct packed *ret,
               char ret_created[static CACHE_TIME_SIZE]) {
    char path[128], text[MAX_ENTRY_BYTES];
    json_t *e _cleanup_json_ = NULL;

    entry_path(key, path);
    ssize_t n = file_read_at(s->dir, path, text, sizeof(text));
    if (n <= 0 || document_parse(text, (size_t)n, "a cache entry", &e, NULL) < 0)
        return false;
    const char *layer = document_text(e, "layer", DIGEST_SIZE - 1),
               *id = document_text(e, "diffId", DIGEST_SIZE - 1),
               *created = document_text(e, "created", CACHE_TIME_SIZE - 1);
    int64_t size = json_integer_value(json_object_get(e, "size"));
    if (!layer || !id || !created)
        return false;
    if (*layer &&
        (!digest_is_valid(layer) || !digest_is_valid(id) || blob_exists(s, layer, size) != 1)) {
        (void)unlinkat(s->dir, path, 0);
        return false;
    }
    *ret = (struct packed){.size = size};
    (void)str_copy(ret->digest, sizeof(ret->digest), layer);
    (void)str_copy(ret->diff_id, sizeof(ret->diff_id), id);
    (void)str_copy(ret_created, CACHE_TIME_SIZE, created);
    return true;
}

void cache_put(struct store *s, const char *key, const struct packed *layer, const char *created) {
    json_t *e _cleanup_json_ =
        json_pack("{ss ss sI ss}", "layer", layer->digest, "diffId", layer->diff_id, "size",
                  (json_int_t)layer->size, "created", created);
    _cleanup_free_ char *text = e ? json_dumps(e, JSON_COMPACT) : NULL;
    struct tmp_entry file = {.fd = -1};
    char path[128];

    if (!text || (mkdirat(s->dir, STORE_BUILD_CACHE, 0755) < 0 && errno != EEXIST) ||
        tmp_new_file(s->tmp, "cache", &file) < 0)
        return;
    entry_path(key, path);
    if (fd_write_full(file.fd, text, strlen(text)) == 0 &&
        renameat(s->tmp, file.name, s->dir, path) == 0)
        fd_close(&file.fd);
    tmp_drop(s->tmp, &file);
}
