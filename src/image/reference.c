/*
 * reference.c: see reference.h. Parsed from its ends: what follows the "@" is the digest, what follows the last ":"
 * behind the last "/" is the tag, and the part before the first "/" is a registry only if it looks like a host.
 */
#include "image/reference.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/units.h"

#include "base/banned.h"

#define DOCKER "docker.io"
#define LIBRARY "library/"

enum { MAX_TEXT = REFERENCE_SIZE, MAX_PORT = 65535, MIN_DIGITS = 4 };

/* ASCII, whatever the locale. */
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static bool is_word(char c) { return is_digit(c) || is_lower(c); }
static bool is_host_char(char c) { return is_word(c) || is_upper(c); }
static bool is_tag_char(char c) { return is_host_char(c) || c == '_' || c == '.' || c == '-'; }
static bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }

static bool all_are(const char *s, bool (*is)(char)) {
    while (*s && is(*s))
        s++;
    return !*s;
}

static int bad(struct err *err, const char *text, const char *why, const char *remedy) {
    return err_set(err, ERR_USAGE, -EINVAL, "",
                   remedy ? remedy
                          : "write [HOST[:PORT]/]NAME[:TAG][@DIGEST], like python:3.12-slim",
                   "image \"%.300s\": %s", text, why);
}

bool digest_is_valid(const char *digest) {
    size_t len = strncmp(digest, "sha256:", 7) == 0   ? 64
                 : strncmp(digest, "sha512:", 7) == 0 ? 128
                                                      : 0;

    return len && strlen(digest) == 7 + len && all_are(digest + 7, is_hex);
}

bool digest_has_digits(const char *text) {
    return strlen(text) >= MIN_DIGITS && all_are(text, is_hex);
}

/* As Docker has it. Read as a name, "sha256:…" would be the tag of a repository that anyone could own. */
bool reference_is_id(const char *text) {
    bool has_algorithm = strncmp(text, "sha256:", 7) == 0 || strncmp(text, "sha512:", 7) == 0;

    return digest_has_digits(has_algorithm ? text + 7 : text) &&
           (has_algorithm || strlen(text) == 64);
}

/* Letters and digits, in parts joined by one '.', one or two '_', or any number of '-'. */
static bool is_path_component(const char *s, size_t len) {
    size_t i = 0;

    while (i < len) {
        size_t begin = i;
        while (i < len && is_word(s[i]))
            i++;
        if (i == begin)
            return false;
        if (i == len)
            return true;
        char joint = s[i];
        size_t n = 0;
        while (i < len && s[i] == joint && joint != '\0') {
            i++;
            n++;
        }
        if ((joint != '.' || n != 1) && (joint != '_' || n > 2) && joint != '-')
            return false;
    }
    return false; /* empty, or it ended with what joins */
}

static bool is_path(const char *s) {
    for (;; s++) {
        size_t len = strcspn(s, "/");
        if (!is_path_component(s, len))
            return false;
        s += len;
        if (!*s)
            return true;
    }
}

/* "a-b.example": components of letters, digits and inner '-'. An IPv4 address is one of these. */
static bool is_host_name(const char *s, size_t len) {
    for (size_t i = 0, begin = 0; i <= len; i++) {
        if (i < len && s[i] != '.') {
            if (!is_host_char(s[i]) && s[i] != '-')
                return false;
            continue;
        }
        if (i == begin || s[begin] == '-' || s[i - 1] == '-')
            return false;
        begin = i + 1;
    }
    return true;
}

static bool is_ipv6(const char *s, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (!is_hex(s[i]) && !(s[i] >= 'A' && s[i] <= 'F') && s[i] != ':')
            return false;
    return len > 1;
}

static bool is_port(const char *s) {
    uint32_t port = 0;

    return strlen(s) <= 5 && parse_u32(s, &port) == 0 && port > 0 && port <= MAX_PORT;
}

static bool is_domain(const char *s) {
    const char *rest;

    if (*s == '[') {
        rest = strchr(s, ']');
        if (!rest || !is_ipv6(s + 1, (size_t)(rest - s) - 1))
            return false;
        rest++;
    } else {
        rest = s + strcspn(s, ":");
        if (!is_host_name(s, (size_t)(rest - s)))
            return false;
    }
    return !*rest || (*rest == ':' && is_port(rest + 1));
}

/* Docker's rule. A path is of lower case, so with upper case it can only be a host. */
static bool looks_like_domain(const char *s) {
    bool upper = false;

    for (const char *c = s; *c; c++)
        upper = upper || is_upper(*c);
    return upper || strpbrk(s, ".:") || strcmp(s, "localhost") == 0;
}

/* Cuts the digest off `name`. */
static int take_digest(const char *text, char *name, struct reference *r, struct err *err) {
    char *at = strchr(name, '@');

    if (!at)
        return 0;
    *at = '\0';
    if (!digest_is_valid(at + 1))
        return bad(err, text, "is no digest that is known behind the @",
                   "a digest is sha256: and 64, or sha512: and 128, lower-case hex digits");
    (void)str_copy(r->digest, sizeof(r->digest), at + 1);
    return 0;
}

static int take_tag(const char *text, char *name, struct reference *r, struct err *err) {
    char *slash = strrchr(name, '/'), *colon = strchr(slash ? slash : name, ':');

    if (!colon)
        return 0;
    *colon = '\0';
    const char *tag = colon + 1;
    if (!*tag || !all_are(tag, is_tag_char) || *tag == '.' || *tag == '-' ||
        !str_copy(r->tag, sizeof(r->tag), tag))
        return bad(err, text, "the tag is none",
                   "a tag is up to 128 letters, digits, and _ . - (neither . nor - at its start)");
    return 0;
}

static int take_name(const char *text, char *name, struct reference *r, struct err *err) {
    char *slash = strchr(name, '/'), *path = name;
    const char *domain = DOCKER;

    if (slash)
        *slash = '\0';
    if (slash && looks_like_domain(name)) {
        domain = strcmp(name, "index." DOCKER) == 0 ? DOCKER : name;
        path = slash + 1;
    } else if (slash) {
        *slash = '/';
    }
    if (!is_domain(domain) || !str_copy(r->domain, sizeof(r->domain), domain))
        return bad(err, text, "the part before the first / is no host", NULL);
    const char *library = strcmp(domain, DOCKER) == 0 && !strchr(path, '/') ? LIBRARY : "";
    int n = snprintf(r->path, sizeof(r->path), "%s%s", library, path);
    if (n >= (int)sizeof(r->path))
        return bad(err, text, "the name has more than 255 characters", NULL);
    if (is_path(path))
        return 0;
    for (const char *c = path; *c; c++)
        if (is_upper(*c))
            return bad(err, text, "the name has upper-case letters", "write it in lower case");
    return bad(err, text, "is no name of an image", NULL);
}

int reference_parse(const char *text, struct reference *ret, struct err *err) {
    struct reference r = {0};
    char name[MAX_TEXT];
    int e;

    if (!*text)
        return bad(err, text, "is empty", NULL);
    if (!str_copy(name, sizeof(name), text))
        return bad(err, text, "is too long", NULL);
    if (reference_is_id(name))
        return bad(err, text, "is an id, not a name", "an id is only for what is in the store");
    if ((e = take_digest(text, name, &r, err)) < 0 || (e = take_tag(text, name, &r, err)) < 0 ||
        (e = take_name(text, name, &r, err)) < 0)
        return e;
    if (!r.tag[0] && !r.digest[0])
        (void)str_copy(r.tag, sizeof(r.tag), "latest");
    *ret = r;
    return 0;
}

static const char *put(const struct reference *r, const char *domain, const char *path, char *out) {
    (void)snprintf(out, REFERENCE_SIZE, "%s%s%s%s%s%s%s", domain, *domain ? "/" : "", path,
                   r->tag[0] ? ":" : "", r->tag, r->digest[0] ? "@" : "", r->digest);
    return out;
}

const char *reference_full(const struct reference *r, char *out) {
    return put(r, r->domain, r->path, out);
}

const char *reference_short(const struct reference *r, char *out) {
    bool docker = strcmp(r->domain, DOCKER) == 0;
    bool library = docker && strncmp(r->path, LIBRARY, strlen(LIBRARY)) == 0 &&
                   !strchr(r->path + strlen(LIBRARY), '/');
    const char *path = r->path + (library ? strlen(LIBRARY) : 0);
    char first[256];

    /* "docker.io/a.b/c" without its host would be read as the host a.b's. */
    (void)snprintf(first, sizeof(first), "%.*s", (int)strcspn(path, "/"), path);
    bool whole = !docker || (strchr(path, '/') && looks_like_domain(first));
    return put(r, whole ? r->domain : "", whole ? r->path : path, out);
}
