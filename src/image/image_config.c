/*
 * image_config.c: see image_config.h.
 */
#include "image/image_config.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "image/document.h"

#include "base/banned.h"

enum { MAX_STRINGS = 4096 };

static int bad(struct err *err, const char *what, const char *why) {
    return err_set(err, ERR_SETUP, -EBADMSG, "", "have it built again, or take another image",
                   "the image's %s: %s", what, why);
}

int image_manifest_config(const char *text, size_t len, char ret_digest[static DIGEST_SIZE],
                          struct err *err) {
    json_t *m _cleanup_json_ = NULL;
    int r = document_parse(text, len, "the image's manifest", &m, err);

    if (r < 0)
        return r;
    const json_t *config = json_object_get(m, "config");
    const char *digest = json_string_value(json_object_get(config, "digest"));
    if (json_object_get(m, "manifests"))
        return err_set(err, ERR_SETUP, -ENOTSUP, "", "import or pull the image again",
                       "the image's manifest is an index of several");
    if (!digest || !digest_is_valid(digest))
        return bad(err, "manifest", "its config has no valid digest");
    (void)str_copy(ret_digest, DIGEST_SIZE, digest);
    return 0;
}

static const char *take_text(const json_t *object, const char *key, struct arena *arena,
                             struct err *err) {
    const json_t *v = json_object_get(object, key);

    if (!v || json_is_null(v))
        return "";
    if (!json_is_string(v))
        return (void)bad(err, "config", "a field that should be text is none"), NULL;
    const char *text = arena_strdup(arena, json_string_value(v));
    if (!text)
        (void)err_oom(err);
    return text;
}

/* A list of strings, NULL-terminated; *ret NULL where there is none. */
static int take_list(const json_t *object, const char *key, struct arena *arena,
                     const char *const **ret, size_t *ret_n, struct err *err) {
    const json_t *v = json_object_get(object, key);
    size_t n = json_array_size(v);

    *ret = NULL;
    if (ret_n)
        *ret_n = 0;
    if (!v || json_is_null(v))
        return 0;
    if (!json_is_array(v) || n > MAX_STRINGS)
        return bad(err, "config", "a field that should be a list of texts is none");
    const char **list = arena_alloc(arena, (n + 1) * sizeof(*list));
    if (!list)
        return err_oom(err);
    for (size_t i = 0; i < n; i++) {
        const char *text = json_string_value(json_array_get(v, i));
        if (!text)
            return bad(err, "config", "a list of texts holds something else");
        list[i] = arena_strdup(arena, text);
        if (!list[i])
            return err_oom(err);
    }
    *ret = list;
    if (ret_n)
        *ret_n = n;
    return 0;
}

static int take_config(const json_t *c, struct arena *arena, struct image_config *ret,
                       struct err *err) {
    const json_t *run = json_object_get(c, "config"), *fs = json_object_get(c, "rootfs");

    ret->os = take_text(c, "os", arena, err);
    ret->architecture = take_text(c, "architecture", arena, err);
    ret->variant = take_text(c, "variant", arena, err);
    ret->created = take_text(c, "created", arena, err);
    ret->user = take_text(run, "User", arena, err);
    ret->workdir = take_text(run, "WorkingDir", arena, err);
    if (err->code)
        return err->code;
    int r = take_list(run, "Env", arena, &ret->env, &ret->n_env, err);
    r = r < 0 ? r : take_list(run, "Entrypoint", arena, &ret->entrypoint, NULL, err);
    r = r < 0 ? r : take_list(run, "Cmd", arena, &ret->cmd, NULL, err);
    r = r < 0 ? r : take_list(fs, "diff_ids", arena, &ret->diff_ids, &ret->n_diff_ids, err);
    for (size_t i = 0; i < ret->n_diff_ids && r == 0; i++)
        if (!digest_is_valid(ret->diff_ids[i]))
            r = bad(err, "config", "rootfs.diff_ids holds something that is no digest");
    return r;
}

int image_config_parse(const char *text, size_t len, struct arena *arena, struct image_config *ret,
                       struct err *err) {
    struct err own = {0}, *e = err ? err : &own;
    json_t *c _cleanup_json_ = NULL;
    struct image_config taken = {0};
    int r = document_parse(text, len, "the image's config", &c, e);

    r = r < 0 ? r : take_config(c, arena, &taken, e);
    if (r == 0)
        *ret = taken;
    return r;
}
