/*
 * http_check.c: which requests are heard at all: those that come from programs of this machine's or show the token, and
 * are in the form that MCP has.
 *
 * A page in a browser of this machine can send requests here, too: Origin says which page. And a page whose name has
 * been made to point here (DNS rebinding) is told by Host. Both must be this machine's own, or be named by the operator.
 */
#include <string.h>
#include <strings.h>

#include "mcp/http_internal.h"

#include "base/banned.h"

static const char *header(struct MHD_Connection *c, const char *name) {
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

struct counting {
    const char *name;
    unsigned n;
};

static enum MHD_Result count_one(void *data, enum MHD_ValueKind kind, const char *name,
                                 const char *value) {
    struct counting *counting = data;

    (void)kind, (void)value;
    counting->n += strcasecmp(name, counting->name) == 0;
    return MHD_YES;
}

/* Of two, one program would take the first and another the second. */
static unsigned n_headers(struct MHD_Connection *c, const char *name) {
    struct counting counting = {.name = name};

    (void)MHD_get_connection_values(c, MHD_HEADER_KIND, count_one, &counting);
    return counting.n;
}

/* ------------------------------------------------------------------ names */

static bool is_port(const char *text) {
    return !*text || (*text == ':' && strspn(text + 1, "0123456789") == strlen(text + 1));
}

/* "localhost:8080" */
static bool is_local(const char *host) {
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strncasecmp(host, names[i], strlen(names[i])) == 0 && is_port(host + strlen(names[i])))
            return true;
    return false;
}

static bool is_named(const char *const *names, const char *name, bool with_port) {
    for (; *names; names++) {
        size_t len = strlen(*names);
        if (strncasecmp(name, *names, len) == 0 && (with_port ? is_port(name + len) : !name[len]))
            return true;
    }
    return false;
}

static bool host_is_ours(const struct http_options *o, const char *host) {
    return host && (is_local(host) || is_named(o->hosts, host, true));
}

static bool origin_is_ours(const struct http_options *o, const char *origin) {
    size_t skip = strncasecmp(origin, "http://", 7) == 0    ? 7
                  : strncasecmp(origin, "https://", 8) == 0 ? 8
                                                            : 0;

    return (skip && is_local(origin + skip)) || is_named(o->origins, origin, false);
}

/* In a time that does not tell how much of it is right. */
static bool is_token(const char *given, const char *token) {
    size_t len = strlen(token);
    unsigned char differs = strlen(given) != len;

    for (size_t i = 0; i < len; i++)
        differs |= (unsigned char)(token[i] ^ (differs ? 0 : given[i]));
    return !differs;
}

static bool is_authorized(struct MHD_Connection *c, const char *token) {
    const char *given = header(c, "Authorization");

    return !*token ||
           (given && strncasecmp(given, "Bearer ", 7) == 0 && is_token(given + 7, token));
}

/* ------------------------------------------------------------------ types */

/* Whether the list has the type, whatever its parameters. */
static bool lists(const char *list, const char *type) {
    size_t len = strlen(type);

    while (list && *list) {
        list += strspn(list, " \t,");
        if (strncasecmp(list, type, len) == 0 && strchr(" \t,;", list[len])) /* or the end */
            return true;
        list = strchr(list, ',');
    }
    return false;
}

bool http_accepts(struct MHD_Connection *c, const char *type) {
    return lists(header(c, "Accept"), type);
}

static struct refusal check_post(struct MHD_Connection *c) {
    const char *length = header(c, "Content-Length"), *accept = header(c, "Accept");

    if (n_headers(c, "Content-Type") != 1 || !lists(header(c, "Content-Type"), "application/json"))
        return (struct refusal){415, "Content-Type has to be application/json", NULL, NULL};
    if (accept && !lists(accept, "application/json") && !lists(accept, "text/event-stream") &&
        !lists(accept, "*/*") && !lists(accept, "application/*"))
        return (struct refusal){406, "Accept has to have application/json and text/event-stream",
                                NULL, NULL};
    if (length && (strlen(length) > 9 || strtoul(length, NULL, 10) > RPC_MAX_BYTES))
        return (struct refusal){413, "the message is too long", NULL, NULL};
    return (struct refusal){0};
}

struct refusal http_check(struct MHD_Connection *c, const struct http_options *o, const char *path,
                          const char *method) {
    const char *origin = header(c, "Origin"), *version = header(c, "MCP-Protocol-Version");
    bool post = strcmp(method, "POST") == 0, get = strcmp(method, "GET") == 0;

    if (n_headers(c, "Transfer-Encoding") + n_headers(c, "Content-Length") > 1)
        return (struct refusal){400, "more than one length is given for the body", NULL, NULL};
    if (n_headers(c, "Host") != 1 || !host_is_ours(o, header(c, "Host")))
        return (struct refusal){403, "the Host is none of this server's", NULL, NULL};
    if (n_headers(c, "Origin") > 1 || (origin && !origin_is_ours(o, origin)))
        return (struct refusal){403, "the Origin may not ask here", NULL, NULL};
    if (n_headers(c, "Authorization") > 1 || !is_authorized(c, o->token))
        return (struct refusal){401, "a bearer token is wanted", "WWW-Authenticate", "Bearer"};
    if (strcmp(path, "/mcp") != 0)
        return (struct refusal){404, "MCP is at /mcp", NULL, NULL};
    if (!post && !get && strcmp(method, "DELETE") != 0)
        return (struct refusal){405, "POST, GET and DELETE are answered", "Allow",
                                "POST, GET, DELETE"};
    if (version && !version_is_known(version))
        return (struct refusal){400, "MCP-Protocol-Version is none that is spoken here", NULL,
                                NULL};
    if (get && !http_accepts(c, "text/event-stream"))
        return (struct refusal){406, "Accept has to have text/event-stream", NULL, NULL};
    return post ? check_post(c) : (struct refusal){0};
}
