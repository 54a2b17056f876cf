/*
 * fuzz_image.c: what an image and a store say of themselves, by texts from anywhere: a config, a store's index, the
 * passwd in an image's root. First what is looked for (an image, a user), up to a newline, then the text, which is taken
 * for each of them. What comes out can be worked with, and is of the text.
 */
#include "fuzz/target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "image/document.h"
#include "image/image_config.h"
#include "image/index.h"
#include "lib/image_use.h"

#include "base/banned.h"

static size_t count(const char *const *list) {
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

static void must_be_config(const char *text) {
    struct image_config c;
    struct arena arena = {0};
    struct err err = {0};

    memset(&c, 0x5a, sizeof(c));
    const struct image_config before = c;
    int e = image_config_parse(text, strlen(text), &arena, &c, &err);
    if (e < 0) {
        fuzz_must(e == -EBADMSG, "%d", e);
        fuzz_refusal(&err, e, "the image's config: ");
        fuzz_must(memcmp(&c, &before, sizeof(c)) == 0, "%s", err.message);
    } else {
        fuzz_must(c.os && c.architecture && c.variant && c.created && c.user && c.workdir, "%s",
                  text);
        fuzz_must(count(c.env) == c.n_env && count(c.diff_ids) == c.n_diff_ids, "%zu %zu", c.n_env,
                  c.n_diff_ids);
        for (size_t i = 0; i < c.n_diff_ids; i++)
            fuzz_must(digest_is_valid(c.diff_ids[i]), "%s", c.diff_ids[i]);
    }
    arena_done(&arena);
}

static void must_be_found(const json_t *index, const char *name) {
    struct index_entry e, found;
    struct err err = {0};
    size_t at = SIZE_MAX;

    for (size_t i = 0; index_at(index, i, &e); i++)
        fuzz_must(!e.digest[0] || digest_is_valid(e.digest), "%s", e.digest);
    int r = index_find(index, name, &found, &at, &err);
    if (r < 0) {
        fuzz_must(r == -ENOENT || r == -ESRCH || r == -EEXIST || r == -EINVAL, "%d", r);
        fuzz_refusal(&err, r, "image ");
        return;
    }
    fuzz_must(digest_is_valid(found.digest), "%s", found.digest);
    fuzz_must(index_at(index, at, &e) && strcmp(e.digest, found.digest) == 0, "%zu", at);
    fuzz_must(index_find(index, found.digest, &e, NULL, NULL) == 0 &&
                  strcmp(e.digest, found.digest) == 0,
              "%s", found.digest);
}

static void must_be_user(const char *user, const char *passwd) {
    struct user_login login;
    uint32_t uid = 0, gid = 0;
    struct err err = {0};
    int r = user_lookup(user, passwd, passwd, &uid, &gid, &err);

    if (r < 0)
        fuzz_refusal(&err, r, "the image knows no ");
    else
        fuzz_must(uid <= 4000000000u && gid <= 4000000000u, "%u %u", uid, gid);
    user_login(user, passwd, &login);
    fuzz_must(login.home[0] == '/', "%s", login.home);
    fuzz_must(!strpbrk(login.home, ":\n") && !strpbrk(login.name, ":"), "%s", login.name);
    fuzz_must(strcmp(login.home, "/") == 0 || strstr(passwd, login.home), "%s", login.home);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input in = {data, size};
    char *name _cleanup_free_ = fuzz_text(&in, '\n'), *text _cleanup_free_ = fuzz_text(&in, -1);
    json_t *index _cleanup_json_ = NULL;
    char digest[DIGEST_SIZE];
    struct err err = {0};

    must_be_config(text);
    int e = image_manifest_config(text, strlen(text), digest, &err);
    if (e == 0)
        fuzz_must(digest_is_valid(digest), "%s", digest);
    else
        fuzz_refusal(&err, e, "");
    if (document_parse(text, strlen(text), "x", &index, NULL) == 0)
        must_be_found(index, name);
    must_be_user(name, text);
    return 0;
}
