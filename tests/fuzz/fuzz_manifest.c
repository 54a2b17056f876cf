/*
 * fuzz_manifest.c: what a registry may send as a manifest: first the type that it gives, up to a newline, then the text.
 * What is taken has digests and sizes that can be worked with; an index gives one of its own items, of the platform
 * that is wanted, or an error.
 */
#include "fuzz/target.h"

#include <errno.h>
#include <string.h>

#include "fetch/manifest.h"

#include "base/banned.h"

static void must_be_descriptor(const struct descriptor *d) {
    fuzz_must(digest_is_valid(d->digest), "%s", d->digest);
    fuzz_must(d->size >= 0 && d->media_type[0], "%s", d->digest);
}

static void must_choose(const struct manifest *m, const char *platform) {
    struct platform wanted;
    struct err err = {0};

    fuzz_must(platform_parse(platform, &wanted, &err) == 0, "%s", err.message);
    const struct index_item *item = manifest_choose(m, &wanted, "x", &err);
    if (!item) {
        fuzz_refusal(&err, -ENOTSUP, "x: there is none for ");
        return;
    }
    fuzz_must(item >= m->items && item < m->items + m->n_items && !item->attestation, "%s",
              platform);
    fuzz_must(!item->has_platform || platform_distance(&wanted, &item->platform) >= 0, "%s",
              platform);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input in = {data, size};
    char *type _cleanup_free_ = fuzz_text(&in, '\n'), *text _cleanup_free_ = fuzz_text(&in, -1);
    struct manifest m = {0};
    struct platform platform;
    struct err err = {0};

    (void)manifest_config_platform(text, strlen(text), &platform);
    int e = manifest_parse(text, strlen(text), type, "x", &m, &err);
    if (e < 0) {
        fuzz_must(e == -EBADMSG || e == -ENOTSUP, "%d", e);
        fuzz_refusal(&err, e, "x: ");
        fuzz_must(!m.layers && !m.items && !m.arena.head, "%s", err.message);
        return 0;
    }
    if (!m.is_index)
        must_be_descriptor(&m.config);
    for (size_t i = 0; i < m.n_layers; i++)
        must_be_descriptor(&m.layers[i]);
    for (size_t i = 0; i < m.n_items; i++)
        must_be_descriptor(&m.items[i].manifest);
    if (m.is_index) {
        must_choose(&m, "linux/amd64");
        must_choose(&m, "linux/arm/v7");
    }
    manifest_done(&m);
    return 0;
}
