/*
 * error_json.c: see error_json.h. A message has names in it that may be any bytes; as text of JSON they have to be UTF-8,
 * or there would be no error at all to read.
 */
#include "fetch/error_json.h"

#include <string.h>

#include "base/utf8.h"

#include "base/banned.h"

json_t *error_json(const struct err *err) {
    char message[3 * sizeof(err->message) + 1];

    message[utf8_repair(err->message, strlen(err->message), message)] = '\0';
    return json_pack("{ss ss so ss}", "message", message, "kind", err_kind_name(err->kind),
                     "control", *err->control ? json_string(err->control) : json_null(), "code",
                     errno_name(err->code));
}
