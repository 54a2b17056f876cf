/*
 * settings.c: see settings.h.
 */
#include "fuzz/settings.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "fuzz/fuzz.h"
#include "policy/policy_json.h"
#include "policy/policy_text.h"

#include "base/banned.h"

/* ------------------------------------------------------------------ as text */

static void add_line(void *to, const struct policy_field *f, const char *value) {
    buf_printf(to, "%s=%s\n", f->name, value);
}

char *settings_text(const struct policy *p) {
    struct buf text = {0};

    (void)policy_each_setting(p, add_line, &text);
    for (size_t i = 0; p->argv && p->argv[i]; i++)
        buf_printf(&text, "command=%s\n", p->argv[i]);
    char *ret = buf_take(&text);
    if (!ret)
        abort();
    return ret;
}

static void must_be_same(const struct policy *p, const char *was, const char *way) {
    char *is _cleanup_free_ = settings_text(p);

    fuzz_must(strcmp(is, was) == 0, "by %s this policy:\n%sbecame this:\n%s", way, was, is);
}

/* ------------------------------------------------------------------ and back */

static int add_file_again(struct policy *p, const char *value, struct err *err) {
    const char *end = strchr(value, '\n');
    char *name _cleanup_free_ = strndup(value, (size_t)(end - value));
    _cleanup_buf_ struct buf data = {0};

    fuzz_must(name && base64_decode(&data, end + 1) == 0, "%s", value);
    return policy_add_file(p, name, data.data, data.len, err);
}

static json_t *file_member(const char *value) {
    const char *end = strchr(value, '\n');

    return json_pack("{s:s%,s:s}", "name", value, (size_t)(end - value), "base64", end + 1);
}

static void set_again(void *to, const struct policy_field *f, const char *value) {
    struct err err = {0};
    int r = strcmp(f->name, "file") == 0 ? add_file_again(to, value, &err)
                                         : policy_set(to, f->name, value, &err);

    fuzz_must(r == 0, "%s of a policy is refused: %s", f->name, err.message);
}

static void add_member(void *to, const struct policy_field *f, const char *value) {
    json_t *root = to, *list = json_object_get(root, f->name);

    if (!f->list) {
        fuzz_must(json_object_set_new(root, f->name, json_string(value)) == 0, "%s", value);
        return;
    }
    if (!list) {
        list = json_array();
        fuzz_must(json_object_set_new(root, f->name, list) == 0, "%s", f->name);
    }
    bool file = strcmp(f->name, "file") == 0;
    fuzz_must(json_array_append_new(list, file ? file_member(value) : json_string(value)) == 0,
              "%s", value);
}

/* JSON has no word for the code's file: a command that takes code has its flags only. */
static char *settings_json(const struct policy *p) {
    json_t *root = json_object(), *command = json_array();
    size_t n = 0;

    (void)policy_each_setting(p, add_member, root);
    while (p->argv && p->argv[n])
        (void)json_array_append_new(command, json_string(p->argv[n++]));
    if (n && n <= 256 && !p->takes_code)
        (void)json_object_set(root, "command", command);
    char *text = json_dumps(root, 0);
    json_decref(command);
    json_decref(root);
    if (!text)
        abort();
    return text;
}

static void set_command(struct policy *p, const struct policy *from) {
    struct err err = {0};
    int r = from->argv
                ? policy_set_argv(p, from->argv, from->takes_code ? from->code_name : NULL, &err)
                : 0;

    fuzz_must(r == 0, "its command is refused: %s", err.message);
}

void settings_must_survive(const struct policy *p) {
    char *was _cleanup_free_ = settings_text(p);
    struct policy *again = policy_new();
    struct err err = {0};

    (void)policy_each_setting(p, set_again, again);
    set_command(again, p);
    must_be_same(again, was, "policy_set");
    policy_free(again);
    if (!utf8_valid(was, strlen(was)))
        return;
    char *json _cleanup_free_ = settings_json(p);
    again = policy_new();
    int r = policy_from_json(again, json, strlen(json), &err);
    fuzz_must(r == 0 || strlen(json) > 16 << 20, "%s: %s", err.message, json);
    if (p->takes_code || !again->argv)
        set_command(again, p);
    if (r == 0)
        must_be_same(again, was, "JSON");
    policy_free(again);
}
