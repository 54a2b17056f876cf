/*
 * files.c: see files.h. What a file is, is told by its first bytes: its name is the code's to choose.
 */
#include "tool/files.h"

#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/units.h"
#include "base/utf8.h"

#include "base/banned.h"

enum { MAX_TEXT_BYTES = 256 << 10 };

/* The type of a picture that models can look at; NULL: it is none. */
static const char *picture_type(const struct mayfly_file *f) {
    static const struct {
        const char *type, *begin;
        size_t len;
    } types[] = {
        {"image/png", "\x89PNG\r\n\x1a\n", 8},
        {"image/jpeg", "\xff\xd8\xff", 3},
        {"image/gif", "GIF8", 4},
    };

    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (f->bytes >= types[i].len && memcmp(f->data, types[i].begin, types[i].len) == 0)
            return types[i].type;
    const char *data = f->data;
    bool webp = f->bytes >= 12 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBP", 4) == 0;
    return webp ? "image/webp" : NULL;
}

static bool is_text(const struct mayfly_file *f) {
    return f->bytes <= MAX_TEXT_BYTES && utf8_valid(f->data, f->bytes) &&
           !memchr(f->data, '\0', f->bytes);
}

/* "mayfly:///out/a%20b.txt" */
static void add_uri(struct buf *b, const char *name) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";

    buf_puts(b, "mayfly:///out/");
    for (; *name; name++)
        if (strchr(plain, *name))
            buf_add(b, name, 1);
        else
            buf_printf(b, "%%%02X", (unsigned char)*name);
}

static json_t *block(const struct mayfly_file *f) {
    _cleanup_buf_ struct buf uri = {0}, base64 = {0};
    const char *picture = picture_type(f);

    add_uri(&uri, f->name);
    if (uri.failed)
        return NULL;
    if (!picture && is_text(f))
        return json_pack("{s:s,s:{s:s,s:s,s:s%}}", "type", "resource", "resource", "uri", uri.data,
                         "mimeType", "text/plain", "text", f->data, (size_t)f->bytes);
    base64_encode(&base64, f->data, f->bytes);
    const char *text = base64.data ? base64.data : "";
    if (base64.failed)
        return NULL;
    if (picture)
        return json_pack("{s:s,s:s,s:s}", "type", "image", "mimeType", picture, "data", text);
    return json_pack("{s:s,s:{s:s,s:s,s:s}}", "type", "resource", "resource", "uri", uri.data,
                     "mimeType", "application/octet-stream", "blob", text);
}

json_t *files_content(const mayfly_result *r) {
    json_t *list = r->n_files ? json_array() : NULL;

    for (size_t i = 0; list && i < r->n_files; i++)
        if (r->files[i].data && json_array_append_new(list, block(&r->files[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* A name is the code's: it is shown as one line. */
static void add_name(struct buf *b, const char *name) {
    char line[256];
    int n = snprintf(line, sizeof(line), "%s", name);

    utf8_make_line(line, strlen(line), n >= (int)sizeof(line));
    buf_puts(b, line);
}

void files_name(const mayfly_result *r, const char *kept, struct buf *b) {
    char size[32];

    if (r->n_files && kept)
        buf_printf(b, "\nfiles left in /out, kept for the user in the directory %s:\n", kept);
    else if (r->n_files)
        buf_puts(b, "\nfiles left in /out:\n");
    for (size_t i = 0; i < r->n_files; i++) {
        add_name(b, r->files[i].name);
        buf_printf(b, " (%s)\n", format_bytes(r->files[i].bytes, size, sizeof(size)));
    }
    for (size_t i = 0; i < r->n_skipped; i++) {
        buf_puts(b, "[mayfly: /out/");
        add_name(b, r->skipped[i].name);
        buf_printf(b, " was not brought back: %s]\n", r->skipped[i].reason);
    }
}
