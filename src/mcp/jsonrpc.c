/*
 * jsonrpc.c: see jsonrpc.h.
 */
#include "mcp/jsonrpc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "tool/word.h"

#include "base/banned.h"

int rpc_fail(struct rpc_error *error, enum rpc_code code, const char *fmt, ...) {
    va_list ap;

    error->code = code;
    va_start(ap, fmt);
    int n = vsnprintf(error->message, sizeof(error->message), fmt, ap);
    va_end(ap);
    utf8_make_line(error->message, strlen(error->message), n >= (int)sizeof(error->message));
    return code;
}

/* ------------------------------------------------------------------ what comes in */

/* The byte after a string whose first quote is at i; `len` if it has no end. */
static size_t after_string(const char *text, size_t i, size_t len) {
    for (i++; i < len && text[i] != '"'; i++)
        if (text[i] == '\\')
            i++;
    return i < len ? i + 1 : len;
}

enum { VALUE_BYTES = 112 }; /* an empty list */

/* Whether the text is one that a parser may be given. It need not be JSON. */
static int measure(const char *text, size_t len, size_t *ret_cost, struct rpc_error *error) {
    size_t depth = 0, values = 1;

    for (size_t i = 0; i < len;) {
        char c = text[i];
        if (c == '"') {
            i = after_string(text, i, len);
            continue;
        }
        if (c == '[' || c == '{') {
            depth++;
            values++;
        } else if (c == ']' || c == '}') {
            depth -= depth > 0;
        } else if (c == ',' || c == ':') {
            values++;
        }
        if (depth > RPC_MAX_DEPTH)
            return rpc_fail(error, RPC_PARSE, "nested deeper than %d", RPC_MAX_DEPTH);
        if (values > RPC_MAX_VALUES)
            return rpc_fail(error, RPC_PARSE, "more than %d values in a message", RPC_MAX_VALUES);
        i++;
    }
    *ret_cost = len + values * VALUE_BYTES;
    return 0;
}

/* Who waits for the answer to a message that is no JSON, but nearly: it is to get one, and not to wait for ever. Only the
 * id is taken from it, and none that had to be repaired. */
static json_t *salvage_id(const char *text, size_t len) {
    static const char replaced[] = "\xef\xbf\xbd";
    json_t *value = json_repaired(text, len);
    json_t *id = json_incref(json_object_get(value, "id"));
    json_decref(value);
    if (json_is_integer(id) || (json_is_string(id) && !strstr(json_string_value(id), replaced)))
        return id;
    json_decref(id);
    return NULL;
}

int rpc_parse(const char *text, size_t len, json_t **ret, size_t *ret_cost,
              struct rpc_error *error) {
    json_error_t why;

    *ret = NULL;

    if (len > RPC_MAX_BYTES)
        return rpc_fail(error, RPC_INVALID, "a message of more than %d MiB", RPC_MAX_BYTES >> 20);
    int r = measure(text, len, ret_cost, error);
    if (r)
        return r;
    /* A NUL in a string is a character like any other: code can be given that has one. */
    json_t *value =
        json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &why);
    *ret = value ? value : salvage_id(text, len);
    if (!value)
        return rpc_fail(error, RPC_PARSE, "not JSON: %.160s (column %d)", why.text, why.column);
    return 0;
}

static int invalid(struct rpc_error *error, const char *why) {
    return rpc_fail(error, RPC_INVALID, "%s", why);
}

int rpc_read(const json_t *value, struct rpc_message *ret, struct rpc_error *error) {
    const json_t *id = json_object_get(value, "id"), *method = json_object_get(value, "method"),
                 *params = json_object_get(value, "params");
    const char *version = json_word(json_object_get(value, "jsonrpc"));

    *ret = (struct rpc_message){.id = json_is_string(id) || json_is_integer(id) ? id : NULL};
    if (!json_is_object(value))
        return invalid(error, "a message has to be an object");
    if (!version || strcmp(version, "2.0") != 0)
        return invalid(error, "\"jsonrpc\" has to be \"2.0\"");
    if (!method) {
        bool response = json_object_get(value, "result") || json_object_get(value, "error");
        ret->kind = RPC_RESPONSE;
        return response ? 0 : invalid(error, "\"method\" is missing");
    }
    if (id && !ret->id)
        return invalid(error, "\"id\" has to be a string or a whole number");
    ret->method = json_word(method);
    if (!ret->method)
        return invalid(error, "\"method\" has to be a string");
    if (params && !json_is_object(params))
        return rpc_fail(error, RPC_PARAMS, "\"params\" has to be an object");
    ret->params = params;
    ret->kind = id ? RPC_REQUEST : RPC_NOTIFICATION;
    return 0;
}

/* ------------------------------------------------------------------ what goes out */

static void add_id(struct buf *b, const json_t *id) {
    char *text _cleanup_free_ = id ? json_dumps(id, JSON_ENCODE_ANY) : NULL;

    b->failed |= id && !text;
    buf_puts(b, text ? text : "null");
}

static char *take(struct buf *b) { return b->failed ? NULL : buf_take(b); }

char *rpc_result(const json_t *id, const char *result) {
    _cleanup_buf_ struct buf b = {0};

    buf_puts(&b, "{\"jsonrpc\":\"2.0\",\"id\":");
    add_id(&b, id);
    buf_puts(&b, ",\"result\":");
    buf_puts(&b, result);
    buf_puts(&b, "}");
    return take(&b);
}

char *rpc_failure(const json_t *id, const struct rpc_error *error) {
    _cleanup_buf_ struct buf b = {0};
    json_t *o = json_pack("{s:i,s:s}", "code", error->code, "message", error->message);
    char *text _cleanup_free_ = o ? json_dumps(o, JSON_COMPACT) : NULL;

    json_decref(o);
    if (!text)
        return NULL;
    buf_puts(&b, "{\"jsonrpc\":\"2.0\",\"id\":");
    add_id(&b, id);
    buf_puts(&b, ",\"error\":");
    buf_puts(&b, text);
    buf_puts(&b, "}");
    return take(&b);
}

char *rpc_notification(const char *method, json_t *take_params) {
    json_t *o =
        json_pack("{s:s,s:s,s:o}", "jsonrpc", "2.0", "method", method, "params", take_params);
    char *text = o ? json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;

    json_decref(o);
    return text;
}
