/*
 * sse.c: see sse.h. Lines end with CR, LF or both, and a CR may be the last byte of one piece with its LF in the next.
 */
#include "agent/sse.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"

static int dispatch(struct sse *s, sse_event *on_event, void *arg, struct err *err) {
    if (!s->has_data)
        return 0;
    int r = on_event(arg, s->data.len ? s->data.data : "", s->data.len, err);
    s->data.len = 0;
    s->has_data = false;
    return r;
}

static int end_line(struct sse *s, sse_event *on_event, void *arg, struct err *err) {
    static const char bom[] = "\xEF\xBB\xBF", field[] = "data";
    const char *line = s->line.len ? s->line.data : "";
    size_t len = s->line.len, name = strlen(field);

    if (!s->past_bom && len >= strlen(bom) && memcmp(line, bom, strlen(bom)) == 0) {
        line += strlen(bom);
        len -= strlen(bom);
    }
    s->past_bom = true;
    s->line.len = 0;
    if (len == 0)
        return dispatch(s, on_event, arg, err);
    if (len < name || memcmp(line, field, name) != 0 || (len > name && line[name] != ':'))
        return 0;
    size_t skip = MIN(len, name + 1);
    if (skip < len && line[skip] == ' ')
        skip++;
    if (s->has_data)
        buf_puts(&s->data, "\n");
    buf_add(&s->data, line + skip, len - skip);
    s->has_data = true;
    return s->data.failed ? err_oom(err) : 0;
}

static int add(struct sse *s, const char *bytes, size_t len, struct err *err) {
    if (s->line.len + s->data.len + len > SSE_MAX_BYTES)
        return err_set(err, ERR_SETUP, -EMSGSIZE, "", NULL,
                       "an event of the stream is over %d MiB and does not end",
                       SSE_MAX_BYTES >> 20);
    buf_add(&s->line, bytes, len);
    return s->line.failed ? err_oom(err) : 0;
}

int sse_feed(struct sse *s, const char *bytes, size_t len, sse_event *on_event, void *arg,
             struct err *err) {
    int r = 0;

    for (size_t i = 0; i < len && r == 0; i++) {
        size_t n = 0;
        if (s->after_cr && bytes[i] == '\n') {
            s->after_cr = false;
            continue;
        }
        while (i + n < len && bytes[i + n] != '\r' && bytes[i + n] != '\n')
            n++;
        r = add(s, bytes + i, n, err);
        i += n;
        s->after_cr = i < len && bytes[i] == '\r';
        if (r == 0 && i < len)
            r = end_line(s, on_event, arg, err);
    }
    return r;
}

int sse_end(struct sse *s, sse_event *on_event, void *arg, struct err *err) {
    s->line.len = 0;
    return dispatch(s, on_event, arg, err);
}

void sse_done(struct sse *s) {
    buf_done(&s->line);
    buf_done(&s->data);
    *s = (struct sse){0};
}
