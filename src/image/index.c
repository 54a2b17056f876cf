/*
 * index.c: see index.h.
 */
#include "image/index.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "image/document.h"
#include "image/store.h"

#include "base/banned.h"

static const char again[] =
    "it is damaged, or no OCI layout's: move it away, and pull or import the images again, "
    "which finds their blobs";

int index_read(int store_dir, json_t **ret_index, struct err *err) {
    _cleanup_free_ char *text = NULL;
    size_t len = 0;
    int r = file_read_all_at(store_dir, STORE_INDEX, STORE_INDEX_BYTES, &text, &len);

    if (r == -ENOENT)
        return r;
    if (r < 0)
        return err_errno(err, ERR_SETUP, r, "",
                         r == -EACCES ? "name a store of your own with --store"
                                      : errno_remedy(r, NULL),
                         "the image store's index.json");
    json_t *index = NULL;
    r = document_parse_or(text, len, "the image store's index.json", again, &index, err);
    if (r == 0 && !json_is_array(json_object_get(index, "manifests")))
        r = err_set(err, ERR_SETUP, -EBADMSG, "", again,
                    "the image store's index.json: it has no list of manifests");
    if (r < 0) {
        json_decref(index);
        return r;
    }
    *ret_index = index;
    return 0;
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

bool index_at(const json_t *index, size_t i, struct index_entry *ret) {
    const json_t *list = json_object_get(index, "manifests"), *e = json_array_get(list, i);
    const json_t *notes = json_object_get(e, "annotations");
    const char *name = text_of(notes, ANNOTATION_FULL_NAME);

    if (i >= json_array_size(list))
        return false;
    *ret = (struct index_entry){.size = json_integer_value(json_object_get(e, "size"))};
    if (!*name)
        name = text_of(notes, ANNOTATION_NAME);
    (void)str_copy(ret->name, sizeof(ret->name), name);
    (void)str_copy(ret->media_type, sizeof(ret->media_type), text_of(e, "mediaType"));
    const char *digest = text_of(e, "digest");
    (void)str_copy(ret->digest, sizeof(ret->digest), digest_is_valid(digest) ? digest : "");
    return true;
}

/* ------------------------------------------------------------------ finding */

static bool has_digits(const struct index_entry *e, const char *digits) {
    const char *in = strchr(digits, ':') ? e->digest : strchr(e->digest, ':');

    if (!in)
        return false;
    in += *in == ':';
    return strncmp(in, digits, strlen(digits)) == 0;
}

static int none(const char *text, struct err *err) {
    if (reference_is_id(text))
        return err_set(err, ERR_USAGE, -ESRCH, "", "mayfly images lists those that there are",
                       "image %.140s: none in the store has that id", text);
    return err_set(err, ERR_USAGE, -ENOENT, "",
                   "get it with mayfly pull, or from a file with mayfly import",
                   "image %.200s is not in the store", text);
}

static int find_digits(const json_t *index, const char *digits, struct index_entry *ret,
                       size_t *ret_at, struct err *err) {
    struct index_entry e, found = {0};
    size_t at = 0;

    for (size_t i = 0; index_at(index, i, &e); i++) {
        if (!has_digits(&e, digits))
            continue;
        if (found.digest[0] && strcmp(found.digest, e.digest) != 0)
            return err_set(err, ERR_USAGE, -EEXIST, "", "write more of its digits",
                           "image %.100s: several digests begin like that", digits);
        if (!found.digest[0])
            found = e, at = i;
    }
    if (!found.digest[0])
        return none(digits, err);
    *ret = found;
    if (ret_at)
        *ret_at = at;
    return 0;
}

/* "host/name[:tag]@digest" also means an image that is here by another tag: the digest says which it is. */
static bool is_named(const struct index_entry *e, const struct reference *want, const char *full,
                     const char *given) {
    struct reference has;

    if (strcmp(e->name, full) == 0 || (e->name[0] && strcmp(e->name, given) == 0))
        return true;
    return want->digest[0] && strcmp(e->digest, want->digest) == 0 && e->name[0] &&
           reference_parse(e->name, &has, NULL) == 0 && strcmp(has.domain, want->domain) == 0 &&
           strcmp(has.path, want->path) == 0;
}

int index_find(const json_t *index, const char *text, struct index_entry *ret, size_t *ret_at,
               struct err *err) {
    char full[REFERENCE_SIZE];
    struct reference want;
    struct index_entry e;

    if (reference_is_id(text))
        return find_digits(index, text, ret, ret_at, err);
    int r = reference_parse(text, &want, err);
    if (r < 0)
        return r;
    (void)reference_full(&want, full);
    for (size_t i = 0; index_at(index, i, &e); i++)
        if (e.digest[0] && is_named(&e, &want, full, text)) {
            *ret = e;
            if (ret_at)
                *ret_at = i;
            return 0;
        }
    return digest_has_digits(text) ? find_digits(index, text, ret, ret_at, err) : none(text, err);
}
