/*
 * procfs.c: the formats of /proc are read by position, on the caller's stack.
 * The command name in a stat file, and every path in mountinfo, is chosen by
 * whoever runs there, so each parser is built on what such a name cannot hold.
 * proc_read_stat and what it calls run in the cloned child too: no stdio, no
 * allocation.
 */
#include "linux/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

enum { STAT_TEXT_BYTES = 2048 }; /* 52 numbers of up to 20 digits and a name of up to 64 bytes */

/* Positions in a stat file, as proc_pid_stat(5) counts them. */
enum stat_field {
    STAT_STATE = 3,
    STAT_PPID = 4,
    STAT_START_TIME = 22,
    STAT_START_BRK = 47,
    STAT_ARG_START = 48,
    STAT_ARG_END = 49,
    STAT_ENV_START = 50,
    STAT_ENV_END = 51,
};

/* Digits at *s, moved past. False if there are none or they overflow. */
static bool take_u64(const char **s, uint64_t *ret) {
    uint64_t value = 0;
    const char *p = *s;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            return false;
    }
    if (p == *s)
        return false;
    *s = p;
    *ret = value;
    return true;
}

static bool take_int(const char **s, int *ret) {
    uint64_t value;
    if (!take_u64(s, &value) || value > INT_MAX)
        return false;
    *ret = (int)value;
    return true;
}

/* The field at *s, moved past; false if it is one we use and cannot read. */
static bool take_stat_field(unsigned field, const char **s, struct proc_stat *st) {
    switch (field) {
    case STAT_PPID:
        return take_int(s, &st->ppid);
    case STAT_START_TIME:
        return take_u64(s, &st->start_time);
    case STAT_START_BRK:
        return take_u64(s, &st->start_brk);
    case STAT_ARG_START:
        return take_u64(s, &st->arg_start);
    case STAT_ARG_END:
        return take_u64(s, &st->arg_end);
    case STAT_ENV_START:
        return take_u64(s, &st->env_start);
    case STAT_ENV_END:
        return take_u64(s, &st->env_end);
    default: /* not ours; may be negative */
        *s += strcspn(*s, " \n");
        return true;
    }
}

int proc_parse_stat(const char *text, struct proc_stat *ret) {
    struct proc_stat st = {0};
    const char *s = text;
    if (!take_int(&s, &st.pid) || s[0] != ' ' || s[1] != '(')
        return -EINVAL;
    /* The name may hold anything, the rest holds no parenthesis: so the last one ends the name. */
    s = strrchr(s, ')');
    if (!s || s[1] != ' ' || s[2] < 'A' || s[2] > 'z' || s[3] != ' ')
        return -EINVAL;
    st.state = s[2];
    s += 3;
    for (unsigned field = STAT_STATE + 1; field <= STAT_ENV_END; field++) {
        if (*s++ != ' ' || !take_stat_field(field, &s, &st))
            return -EINVAL;
    }
    if (*s && *s != ' ' && *s != '\n')
        return -EINVAL;
    *ret = st;
    return 0;
}

/* "/proc/PID/stat" without printf. `path` holds 32 bytes. */
static void stat_path(pid_t pid, char *path) {
    static const char head[] = "/proc/", tail[] = "/stat";
    char digits[12];
    size_t at = sizeof(digits);
    for (unsigned rest = (unsigned)pid; rest > 0; rest /= 10)
        digits[--at] = (char)('0' + rest % 10);
    size_t n = sizeof(digits) - at;
    memcpy(path, head, sizeof(head) - 1);
    memcpy(path + sizeof(head) - 1, digits + at, n);
    memcpy(path + sizeof(head) - 1 + n, tail, sizeof(tail));
}

int proc_read_stat(pid_t pid, struct proc_stat *ret) {
    char path[32] = "/proc/self/stat", text[STAT_TEXT_BYTES];
    if (pid < 0)
        return -ESRCH;
    if (pid > 0)
        stat_path(pid, path);
    ssize_t n = file_read_at(AT_FDCWD, path, text, sizeof(text));
    if (n == -ENOENT && pid > 0)
        return -ESRCH;
    return n < 0 ? (int)n : proc_parse_stat(text, ret);
}

bool proc_alive(pid_t pid, uint64_t start_time) {
    struct proc_stat st;
    if (pid <= 0)
        return false;
    int r = proc_read_stat(pid, &st);
    /* The sweep kills what the dead left, so what cannot be read counts as alive. That includes a
     * process that hidepid= keeps out of our /proc: kill(2) still knows it. */
    if (r == -ESRCH)
        return kill(pid, 0) == 0 || errno != ESRCH;
    if (r < 0)
        return true;
    return st.start_time == start_time && st.state != 'Z' && st.state != 'X' && st.state != 'x';
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

bool proc_field(const char *text, const char *key, char *value, size_t size) {
    size_t key_len = strlen(key);
    const char *line = text;
    while (strncmp(line, key, key_len) != 0 || line[key_len] != ':') {
        line = strchr(line, '\n');
        if (!line)
            return false;
        line++;
    }
    const char *start = line + key_len + 1;
    const char *end = strchrnul(start, '\n');
    while (start < end && is_blank(*start))
        start++;
    while (end > start && is_blank(end[-1]))
        end--;
    size_t len = (size_t)(end - start);
    if (len >= size) /* half a capability mask would be worse than none */
        return false;
    memcpy(value, start, len);
    value[len] = '\0';
    return true;
}

static bool is_octal(char c) { return c >= '0' && c <= '7'; }

/* The kernel writes blanks, newlines, backslashes and '#' as \NNN. */
static char *unescape(char *s) {
    char *to = s;
    for (const char *from = s; *from;) {
        if (from[0] == '\\' && from[1] <= '3' && is_octal(from[1]) && is_octal(from[2]) &&
            is_octal(from[3])) {
            *to++ = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
    return s;
}

static bool whole_int(const char *s, int *ret) { return s && take_int(&s, ret) && *s == '\0'; }

static bool parse_device(const char *s, unsigned *ret_major, unsigned *ret_minor) {
    int major, minor;
    if (!s || !take_int(&s, &major) || *s++ != ':' || !take_int(&s, &minor) || *s)
        return false;
    *ret_major = (unsigned)major;
    *ret_minor = (unsigned)minor;
    return true;
}

int proc_parse_mount(char *line, struct mount_info *ret) {
    struct mount_info m = {0};
    char *rest = line;
    line[strcspn(line, "\n")] = '\0';
    /* strsep, not strtok: a source may be empty, and is then seen as two spaces. */
    if (!whole_int(strsep(&rest, " "), &m.id) || !whole_int(strsep(&rest, " "), &m.parent) ||
        !parse_device(strsep(&rest, " "), &m.major, &m.minor))
        return -EINVAL;
    char *root = strsep(&rest, " "), *target = strsep(&rest, " "), *options = strsep(&rest, " ");
    char *word;
    do { /* optional fields, of any number, up to a lone "-" */
        word = strsep(&rest, " ");
    } while (word && strcmp(word, "-") != 0);
    char *fstype = strsep(&rest, " "), *source = strsep(&rest, " ");
    if (!word || !rest || !*root || !*target || !*options || !*fstype)
        return -EINVAL;
    m.root = unescape(root);
    m.target = unescape(target);
    m.options = unescape(options);
    m.fstype = unescape(fstype);
    m.source = unescape(source);
    m.super_options = unescape(rest); /* the last: some filesystems leave spaces in it */
    *ret = m;
    return 0;
}

bool proc_next_mount(const char **text, char *line, size_t size, struct mount_info *ret) {
    while (**text) {
        const char *end = strchrnul(*text, '\n');
        size_t len = MIN((size_t)(end - *text), size - 1);

        memcpy(line, *text, len);
        line[len] = '\0';
        *text = *end ? end + 1 : end;
        if (proc_parse_mount(line, ret) == 0)
            return true;
    }
    return false;
}

bool mount_has_option(const char *options, const char *word) {
    size_t len = strlen(word);
    if (len == 0)
        return false;
    for (const char *s = options;; s++) {
        size_t n = strcspn(s, ",");
        if (n == len && memcmp(s, word, len) == 0)
            return true;
        s += n;
        if (!*s)
            return false;
    }
}
