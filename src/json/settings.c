/*
 * settings.c: see settings.h. A policy's file is a value without a name.
 */
#include "json/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

enum { MAX_BYTES = 8 << 20 };

void settings_add(struct settings *s, const char *name, const char *value) {
    buf_add(&s->text, name, strlen(name) + 1);
    buf_add(&s->text, value, strlen(value) + 1);
}

void settings_add_policy(struct settings *s, const char *text) { settings_add(s, "", text); }

void settings_done(struct settings *s) { buf_done(&s->text); }

int settings_write(const struct settings *s) {
    int fd _cleanup_fd_ = s->text.failed ? -1 : memfd_create("mayfly-settings", 0); /* inherited */

    if (s->text.failed)
        return -ENOMEM;
    if (fd < 0)
        return -errno;
    int r = fd_write_full(fd, s->text.data, s->text.len);
    if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
        r = -errno;
    return r < 0 ? r : TAKE_FD(fd);
}

static int unreadable(struct mayfly_error *error, const char *why) {
    *error = (struct mayfly_error){.code = -EINVAL, .kind = MAYFLY_E_USAGE};
    (void)snprintf(error->message, sizeof(error->message),
                   "the settings cannot be read: %.200s; this program is for mayfly to start: "
                   "mayfly mcp",
                   why);
    return -EINVAL;
}

int settings_read(int take_fd, struct settings *ret, struct mayfly_error *error) {
    int fd _cleanup_fd_ = take_fd;
    struct settings s = {0};
    enum { STEP = 16 << 10 };
    ssize_t n = STEP;

    while (n == STEP && s.text.len <= MAX_BYTES) {
        char *to = buf_reserve(&s.text, STEP);
        n = to ? fd_read_full(fd, to, STEP) : -ENOMEM;
        s.text.len += n > 0 ? (size_t)n : 0;
    }
    bool whole = n >= 0 && n < STEP && (s.text.len == 0 || s.text.data[s.text.len - 1] == '\0');
    if (!whole) {
        settings_done(&s);
        return unreadable(error, n < 0 ? strerrordesc_np((int)-n) : "they are not whole");
    }
    *ret = s;
    return 0;
}

/* The entry at *at, which moves on to the next; false at the end, or if the value is missing. */
static bool next(const struct settings *s, const char **at, const char **ret_name,
                 const char **ret_value) {
    const char *end = s->text.data ? s->text.data + s->text.len : NULL;

    if (!*at || *at >= end)
        return false;
    *ret_name = *at;
    *ret_value = *ret_name + strlen(*ret_name) + 1;
    if (*ret_value >= end)
        return false;
    *at = *ret_value + strlen(*ret_value) + 1;
    return true;
}

bool settings_have(const struct settings *s, const char *name) {
    const char *at = s->text.data, *has, *value;

    while (next(s, &at, &has, &value))
        if (strcmp(has, name) == 0)
            return true;
    return false;
}

int settings_apply(const struct settings *s, mayfly_policy *policy, struct mayfly_error *error) {
    const char *at = s->text.data, *name, *value;

    while (next(s, &at, &name, &value)) {
        int r = *name ? mayfly_policy_set(policy, name, value, error)
                      : mayfly_policy_json(policy, value, strlen(value), error);
        if (r < 0)
            return r;
    }
    return at == (s->text.data ? s->text.data + s->text.len : NULL)
               ? 0
               : unreadable(error, "a value is missing");
}
