/*
 * jsonrpc.h: JSON-RPC 2.0 as MCP has it: texts to messages, and the three kinds of text that a server sends.
 *
 * What comes in is anybody's. Before a value is made of it the text is counted: how deep it nests, and of how many
 * values it is, since two bytes of text can be a hundred of memory.
 */
#ifndef MAYFLY_MCP_JSONRPC_H
#define MAYFLY_MCP_JSONRPC_H

#include <jansson.h>

#include "base/defs.h"

enum {
    RPC_MAX_BYTES = 16 << 20, /* of a message */
    RPC_MAX_DEPTH = 64,
    RPC_MAX_VALUES = 50000,
    RPC_MAX_BATCH = 100,
};

enum rpc_code {
    RPC_PARSE = -32700,
    RPC_INVALID = -32600,
    RPC_NO_METHOD = -32601,
    RPC_PARAMS = -32602,
    RPC_INTERNAL = -32603,
    RPC_BUSY = -32000,
};

struct rpc_error {
    int code; /* enum rpc_code; 0: none */
    char message[240];
};
/* Returns the code. */
int rpc_fail(struct rpc_error *error, enum rpc_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* A text as a value, and about how much memory that takes. 0, or the code, with *error filled; then *ret is the id that the
 * answer is for, or NULL where none can be made out. The caller releases it. */
int rpc_parse(const char *text, size_t len, json_t **ret, size_t *ret_cost,
              struct rpc_error *error);

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE };
/* A message, as it lies in a value. */
struct rpc_message {
    enum rpc_kind kind;
    const json_t *id;     /* a string or an integer; NULL: a notification */
    const char *method;   /* NULL: a response */
    const json_t *params; /* an object; NULL: none */
};
/* Also on failure ret->id is set where there is a usable one, for the answer. */
int rpc_read(const json_t *value, struct rpc_message *ret, struct rpc_error *error);

/* Texts, malloc'ed; NULL when memory is out. `id` NULL is null. */
char *rpc_result(const json_t *id, const char *result);
char *rpc_failure(const json_t *id, const struct rpc_error *error);
char *rpc_notification(const char *method, json_t *take_params);

#endif
