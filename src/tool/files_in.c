/*
 * files_in.c: see files_in.h. A model has nothing but texts to give, so bytes come as base64. They lie in memory three
 * times at most: in the message, which is bounded, decoded, and in the policy.
 */
#include "tool/files_in.h"

#include <errno.h>
#include <string.h>

#include "base/base64.h"
#include "runlog/runlog.h"
#include "tool/answer.h"
#include "tool/word.h"

#include "base/banned.h"

enum { MAX_FILES = 64 };

json_t *files_in_schema(void) {
    return json_pack(
        "{s:s,s:i,s:s,s:{s:s,s:{s:{s:s,s:s},s:{s:s,s:s},s:{s:s,s:s}},s:[s],s:b}}", "type", "array",
        "maxItems", MAX_FILES, "description",
        "files that the program finds below /in, read-only: each a name, and either text or base64",
        "items", "type", "object", "properties", "name", "type", "string", "description",
        "relative: \"data/a.csv\" is /in/data/a.csv", "text", "type", "string", "description",
        "what is in it, as UTF-8", "base64", "type", "string", "description",
        "what is in it, where that is not text", "required", "name", "additionalProperties", 0);
}

static const char *stranger(const json_t *file) {
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)file, name,
                        value) if (strcmp(name, "name") != 0 && strcmp(name, "text") != 0 &&
                                   strcmp(name, "base64") != 0) return name;
    return NULL;
}

/* Its bytes: in the text itself, or in `decoded`. */
static int take_bytes(const json_t *file, struct buf *decoded, const char **ret, size_t *ret_len) {
    const json_t *text = json_object_get(file, "text"), *base64 = json_object_get(file, "base64");

    if (!base64 == !text || (text && !json_is_string(text)))
        return -EINVAL;
    if (text) {
        *ret = json_string_value(text);
        *ret_len = json_string_length(text);
        return 0;
    }
    if (!json_word(base64))
        return -EBADMSG;
    int r = base64_decode(decoded, json_string_value(base64));
    *ret = decoded->data ? decoded->data : "";
    *ret_len = decoded->len;
    return r == -EINVAL ? -EBADMSG : r;
}

/* The policy's words name its flag, which the model does not know. */
static const char *without_flag(const char *message) {
    static const char flag[] = "--file: ";

    return strncmp(message, flag, strlen(flag)) == 0 ? message + strlen(flag) : message;
}

static bool add(const char *tool, size_t i, const json_t *file, mayfly_policy *policy,
                json_t *logged, struct tool_answer *answer) {
    const json_t *name = json_object_get(file, "name");
    const char *strange = stranger(file), *data = "";
    _cleanup_buf_ struct buf decoded = {0};
    struct mayfly_error error = {0};
    size_t len = 0;

    if (!json_word(name) || strange) {
        answer_mistake(
            answer,
            "%s: \"files\"[%zu] %s%.64s%s; it has to be an object with \"name\", a string, "
            "and either \"text\" or \"base64\".",
            tool, i, strange ? "has a \"" : "has no name", strange ? strange : "",
            strange ? "\"" : "");
        return false;
    }
    int r = take_bytes(file, &decoded, &data, &len);
    if (r == 0)
        r = mayfly_policy_file(policy, json_string_value(name), data, len, &error);
    if (r == 0)
        r = runlog_file(logged, json_string_value(name), data, len);
    if (r == -EBADMSG)
        answer_mistake(answer,
                       "%s: \"files\"[%zu]: \"base64\" is no base64: letters, digits, + and / "
                       "only, without line breaks.",
                       tool, i);
    else if (error.code || r == -ENOMEM)
        answer_mistake(answer, "%s: \"files\"[%zu]: %s", tool, i,
                       error.code ? without_flag(error.message) : "out of memory");
    else if (r < 0)
        answer_mistake(answer,
                       "%s: \"files\"[%zu]: what is in it has to be given once, as a string: "
                       "\"text\" or \"base64\".",
                       tool, i);
    return r == 0;
}

bool files_in_add(const char *tool, const json_t *list, mayfly_policy *policy, char **ret_logged,
                  struct tool_answer *answer) {
    json_t *logged;
    size_t i;
    const json_t *file;
    bool good = true;

    if (!list || json_is_null(list))
        return true;
    if (!json_is_array(list) || json_array_size(list) > MAX_FILES) {
        answer_mistake(
            answer,
            "%s: \"files\" has to be a list of at most %d files, each {\"name\": \"a.csv\", "
            "\"text\": \"…\"}, or with \"base64\" in place of \"text\".",
            tool, MAX_FILES);
        return false;
    }
    if (json_array_size(list) == 0)
        return true;
    logged = json_array();
    json_array_foreach(list, i, file) { good = good && add(tool, i, file, policy, logged, answer); }
    *ret_logged = good ? json_dumps(logged, JSON_COMPACT) : NULL;
    json_decref(logged);
    if (good && !*ret_logged)
        answer_mistake(answer, "%s: \"files\": out of memory", tool);
    return good && *ret_logged;
}
