/*
 * fuzz_idmap.c: /etc/subuid, /etc/subgid and uid_map, as they may be on any host. Whatever they hold,
 * the host's root is behind no id of a box's, no id is behind two boxes at once, and none is named
 * that was not given. The first line says who asks (`root` or a user), the texts follow, parted by
 * an empty line.
 */
#include "fuzz/target.h"

#include <string.h>

#include "linux/idmap.h"

#include "base/banned.h"

static const uint32_t OWN_UID = 1000, OWN_GID = 1001;

/* Inclusive ends: an extent may reach the last id there is. */
static bool overlap(const struct idmap_extent *a, const struct idmap_extent *b, bool inside) {
    uint64_t x = inside ? a->inside : a->outside, y = inside ? b->inside : b->outside;

    return x < y + b->count && y < x + a->count;
}

static void must_be_a_map(const struct idmap_facts *f, const struct idmap_extent *e, int n,
                          uint32_t payload, bool groups) {
    const struct idmap_range *given = groups ? &f->sub_gid : &f->sub_uid;
    uint32_t own = groups ? f->gid : f->uid;
    bool has_payload = false;

    fuzz_must(n >= 1 && n <= IDMAP_EXTENTS, "%d extents", n);
    for (int i = 0; i < n; i++) {
        uint64_t end = (uint64_t)e[i].outside + e[i].count;
        bool is_own = e[i].count == 1 && e[i].outside == own && f->kind != IDMAP_BLOCK;

        fuzz_must(e[i].count > 0 && end <= UINT32_MAX, "%u ids from %u", e[i].count, e[i].outside);
        fuzz_must(e[i].outside > 0 || is_own, "the host's root is %u", e[i].inside);
        fuzz_must(is_own || (e[i].outside >= given->start &&
                             end <= (uint64_t)given->start + given->count),
                  "%u to %llu is not given", e[i].outside, (unsigned long long)end);
        has_payload |= payload >= e[i].inside && payload - e[i].inside < e[i].count;
        for (int j = 0; j < i; j++)
            fuzz_must(!overlap(&e[i], &e[j], true) && !overlap(&e[i], &e[j], false),
                      "extents %d and %d overlap", i, j);
    }
    fuzz_must(has_payload || groups, "payload %u has no id", payload);
}

/* Of two slots at once; the user's own id is behind 0 in all boxes of a user. */
static void must_be_apart(const struct idmap_facts *f, uint32_t slot, uint32_t other,
                          uint32_t payload) {
    struct idmap_extent a[IDMAP_EXTENTS], b[IDMAP_EXTENTS];

    for (int groups = 0; groups < 2; groups++) {
        int n = idmap_extents(f, slot, payload, groups, a);
        int m = idmap_extents(f, other, payload, groups, b);
        uint32_t own = groups ? f->gid : f->uid;

        must_be_a_map(f, a, n, payload, groups);
        must_be_a_map(f, b, m, payload, groups);
        for (int i = 0; i < n && slot != other && f->kind != IDMAP_SINGLE; i++)
            for (int j = 0; j < m; j++)
                fuzz_must(!overlap(&a[i], &b[j], false) ||
                              (f->kind == IDMAP_SUBID && a[i].outside == own),
                          "slots %u and %u share ids from %u", slot, other, a[i].outside);
    }
}

static void must_be_facts(const struct idmap_facts *f) {
    static const uint32_t payloads[] = {0, 1, 1000, 65535, 65536, 4000000000u};

    if (f->kind == IDMAP_SINGLE) {
        fuzz_must(f->why_single[0], "no reason");
        must_be_apart(f, 0, 0, 1000);
        return;
    }
    fuzz_must(f->slots > 0, "no slots");
    for (size_t i = 0; i < ARRAY_LEN(payloads); i++) {
        must_be_apart(f, 0, f->slots - 1, payloads[i]);
        must_be_apart(f, f->slots / 2, f->slots - 1, payloads[i]);
    }
}

/* Up to an empty line. */
static char *take_file(struct fuzz_input *in) {
    const uint8_t *end = in->left ? memmem(in->at, in->left, "\n\n", 2) : NULL;
    struct fuzz_input part = {in->at, end ? (size_t)(end - in->at) + 1 : in->left};
    size_t used = part.left + (end ? 1 : 0);
    char *text = fuzz_text(&part, -1);

    in->at += used;
    in->left -= used;
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input in = {data, size};
    char *who _cleanup_free_ = fuzz_text(&in, '\n');
    char *first _cleanup_free_ = take_file(&in), *second _cleanup_free_ = take_file(&in);
    bool root = strcmp(who, "root") == 0;
    /* With the ids given, nothing is asked of the real host but for the place of the lock. */
    const struct idmap_source source = {.subuid = first,
                                        .subgid = second,
                                        .uid_map = first,
                                        .gid_map = second,
                                        .user_name = who,
                                        .uid = root ? 0 : (long)OWN_UID,
                                        .gid = root ? 0 : (long)OWN_GID,
                                        .have_helpers = 1};
    struct idmap_facts facts;

    idmap_detect(&source, &facts);
    fuzz_must(facts.unread == 0, "%d", facts.unread);
    must_be_facts(&facts);
    return 0;
}
