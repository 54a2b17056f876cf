/*
 * files_out.c: see files_out.h.
 *
 * A file appears under its name when it is complete: it is written without a
 * name (O_TMPFILE), or where a file system cannot do that under one of ours, and
 * then given its own, which the kernel refuses if it is taken.
 */
#include "lib/files_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/units.h"
#include "box/collect.h"
#include "lib/report.h"
#include "lib/writable.h"
#include "linux/sys.h"

#include "base/banned.h"

enum { SKIPPED_NAMED = 100, REASON = 160 };
#define TOO_MANY "more than %llu files and directories (--out-files)"

struct bringing {
    int dir;
    const struct policy *policy;
    struct arena *arena; /* of the result */
    uint64_t bytes_left;
    struct mayfly_file *file;
    size_t n_file, cap_file;
    uint64_t n_dir;                 /* that were made */
    struct mayfly_skipped *skipped; /* room for SKIPPED_NAMED */
    size_t n_skipped;
    uint64_t all_skipped;
    char refused[WALK_NAME]; /* the last directory that was: nor is what lies in it; "": none */
};

int files_out_open(const struct policy *policy, int *ret_dir, struct err *err) {
    static const char remedy[] = "name a directory that you may write to";

    *ret_dir = -1;
    if (!policy->out || strcmp(policy->out, "-") == 0)
        return 0;
    int r = writable_refuse(policy, "--out", policy->out, err);
    if (r < 0)
        return r;
    if (mkdir(policy->out, 0777) < 0 && errno != EEXIST)
        return err_errno(err, ERR_USAGE, -errno, "", remedy, "--out: making %s", policy->out);
    int dir = open(policy->out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_errno(err, ERR_USAGE, -errno, "", remedy, "--out: %s", policy->out);
    if (faccessat(dir, ".", W_OK | X_OK, AT_EACCESS) < 0) {
        int code = -errno;
        fd_close(&dir);
        return err_errno(err, ERR_USAGE, code, "", remedy, "--out: %s", policy->out);
    }
    *ret_dir = dir;
    return 0;
}

/* ------------------------------------------------------------------ the lists */

static int skip(struct bringing *b, const char *name, const char *fmt, ...) PRINTF_LIKE(3, 4);
static int skip(struct bringing *b, const char *name, const char *fmt, ...) {
    char reason[REASON];
    va_list ap;

    b->all_skipped++;
    if (b->n_skipped == SKIPPED_NAMED)
        return 0;
    va_start(ap, fmt);
    (void)vsnprintf(reason, sizeof(reason), fmt, ap);
    va_end(ap);
    struct mayfly_skipped s = {.name = arena_strdup(b->arena, name),
                               .reason = arena_strdup(b->arena, reason)};
    if (!s.name || !s.reason)
        return -ENOMEM;
    b->skipped[b->n_skipped++] = s;
    return 0;
}

static int add_file(struct bringing *b, const char *name, uint64_t bytes, const void *data) {
    if (b->n_file == b->cap_file) {
        size_t cap = b->cap_file ? 2 * b->cap_file : 16;
        struct mayfly_file *grown = arena_alloc(b->arena, cap * sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        if (b->n_file)
            memcpy(grown, b->file, b->n_file * sizeof(*grown));
        b->file = grown;
        b->cap_file = cap;
    }
    const char *copy = arena_strdup(b->arena, name);
    if (!copy)
        return -ENOMEM;
    b->file[b->n_file++] = (struct mayfly_file){.name = copy, .bytes = bytes, .data = data};
    b->bytes_left -= bytes;
    return 0;
}

/* ------------------------------------------------------------------ into a directory */

/* What lies below is of our making, but not out of others' reach: no link is followed on the way. */
static int open_parent(int dir, const char *name, const char **ret_base) {
    const struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                            RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
    const char *slash = strrchr(name, '/');
    char path[WALK_NAME] = ".";

    if (slash) {
        memcpy(path, name, (size_t)(slash - name));
        path[slash - name] = '\0';
    }
    *ret_base = slash ? slash + 1 : name;
    int fd = sys_openat2(dir, path, &how);
    return fd < 0 ? -errno : fd;
}

static int copy_whole(int to, int from, uint64_t bytes) {
    for (uint64_t left = bytes; left > 0;) {
        ssize_t n = sendfile(to, from, NULL, (size_t)left);

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return -EIO; /* it was longer a moment ago, and nobody lives who could have cut it */
        left -= n > 0 ? (uint64_t)n : 0;
    }
    return 0;
}

/* 0; -EEXIST; -ENOTSUP: not here. */
static int put_nameless(int parent, const char *base, int from, uint64_t bytes) {
    char path[40];
    int fd _cleanup_fd_ = openat(parent, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);

    if (fd < 0)
        return errno == EISDIR || errno == EOPNOTSUPP || errno == ENOENT ? -ENOTSUP : -errno;
    int r = copy_whole(fd, from, bytes);
    if (r < 0)
        return r;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, path, parent, base, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    return errno == EEXIST ? -EEXIST : errno == ENOSPC || errno == EDQUOT ? -errno : -ENOTSUP;
}

static int put_renamed(int parent, const char *base, const char *id, int from, uint64_t bytes) {
    char temp[64];

    (void)snprintf(temp, sizeof(temp), ".mayfly-%.32s.part", id);
    int fd _cleanup_fd_ = openat(parent, temp, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0)
        return -errno;
    int r = lseek(from, 0, SEEK_SET) < 0 ? -errno : copy_whole(fd, from, bytes);
    if (r == 0 && sys_rename_new(parent, temp, base) == 0)
        return 0;
    if (r == 0 && (errno != EINVAL || linkat(parent, temp, parent, base, 0) < 0))
        r = -errno;
    (void)unlinkat(parent, temp, 0);
    return r;
}

static int put(const struct bringing *b, const char *id, const char *name, int from,
               uint64_t bytes) {
    const char *base;
    int parent _cleanup_fd_ = open_parent(b->dir, name, &base);

    if (parent < 0)
        return parent;
    int r = put_nameless(parent, base, from, bytes);
    return r == -ENOTSUP ? put_renamed(parent, base, id, from, bytes) : r;
}

static int make_dir(const struct bringing *b, const char *name) {
    const char *base;
    int parent _cleanup_fd_ = open_parent(b->dir, name, &base);

    if (parent < 0)
        return parent;
    return mkdirat(parent, base, 0777) < 0 ? -errno : 0;
}

/* ------------------------------------------------------------------ one entry */

struct taking {
    struct bringing b;
    const char *id;
};

static int skip_failed(struct bringing *b, const char *name, int code) {
    if (code == -EEXIST)
        return skip(b, name, "there is one of that name already, which stays as it is");
    return skip(b, name, "%s", errno_words(code));
}

/* A directory that is made costs the caller what a file does. */
static bool is_full(const struct bringing *b) {
    return b->n_file + b->n_dir >= b->policy->out_files;
}

static int take_file(struct taking *t, const char *name, int fd) {
    struct bringing *b = &t->b;
    char size[32], left[32];
    struct stat st;
    char *data = NULL;
    int r = fstat(fd, &st) < 0 ? -errno : 0;

    if (r < 0)
        return skip_failed(b, name, r);
    uint64_t bytes = (uint64_t)st.st_size;
    if (is_full(b))
        return skip(b, name, TOO_MANY, (unsigned long long)b->policy->out_files);
    if (bytes > b->bytes_left)
        return skip(b, name, "is of %s, and --out-size leaves %s for it",
                    format_bytes(bytes, size, sizeof(size)),
                    format_bytes(b->bytes_left, left, sizeof(left)));
    if (b->dir >= 0) {
        r = put(b, t->id, name, fd, bytes);
    } else {
        data = arena_alloc(b->arena, bytes + 1);
        if (!data)
            return -ENOMEM;
        ssize_t n = fd_read_full(fd, data, bytes);
        r = n < 0 ? (int)n : (uint64_t)n < bytes ? -EIO : 0;
    }
    return r < 0 ? skip_failed(b, name, r) : add_file(b, name, bytes, data);
}

static int refuse_dir(struct bringing *b, const char *name, const char *why) {
    (void)str_copy(b->refused, sizeof(b->refused), name);
    return skip(b, name, "%s; nothing that is in it was brought back", why);
}

static int take_dir(struct bringing *b, const char *name) {
    char why[REASON];

    if (b->dir < 0) /* a name in the result needs none */
        return 0;
    (void)snprintf(why, sizeof(why), TOO_MANY, (unsigned long long)b->policy->out_files);
    if (is_full(b))
        return refuse_dir(b, name, why);
    int r = make_dir(b, name);
    b->n_dir += r == 0;
    if (r == -EEXIST)
        return refuse_dir(b, name, "there is one of that name already");
    return r < 0 ? refuse_dir(b, name, errno_words(r)) : 0;
}

static bool is_refused(const struct bringing *b, const char *name) {
    size_t len = strlen(b->refused);

    return len && strncmp(name, b->refused, len) == 0 && name[len] == '/';
}

static int take(void *context, const struct walk_entry *e, int fd) {
    struct taking *t = context;
    struct bringing *b = &t->b;

    if (is_refused(b, e->name))
        return 0;
    const char *fault = e->kind == WALK_ERROR ? NULL : policy_name_fault(e->name);
    if (fault && e->kind == WALK_DIR) {
        char why[REASON];
        (void)snprintf(why, sizeof(why), "its name %s", fault);
        return refuse_dir(b, e->name, why);
    }
    if (fault)
        return skip(b, e->name, "its name %s", fault);
    switch ((enum walk_kind)e->kind) {
    case WALK_FILE:
        return take_file(t, e->name, fd);
    case WALK_DIR:
        return take_dir(b, e->name);
    case WALK_LINK:
        return skip(b, e->name, "is a symbolic link");
    case WALK_DEEP:
        return skip(b, e->name, "lies deeper than %d directories", WALK_DEPTH);
    case WALK_LONG:
        return skip(b, e->name, "something in it has too long a path");
    case WALK_ERROR:
        return skip(b, e->name, "%s", errno_words(e->code));
    default:
        return skip(b, e->name, "is neither a file nor a directory");
    }
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct mayfly_file *)a)->name, ((const struct mayfly_file *)b)->name);
}

int files_out_bring(struct box *box, int dir, struct mayfly_result *result, struct err *err) {
    const struct policy *policy = box->plan->policy;
    struct taking t = {.b = {.dir = dir, .policy = policy, .bytes_left = policy->out_bytes},
                       .id = result->id};
    const struct collector c = {.context = &t, .take = take};
    struct bringing *b = &t.b;
    struct err why = {0};

    if (!policy->out)
        return 0;
    b->arena = report_arena(result);
    b->skipped = arena_alloc(b->arena, SKIPPED_NAMED * sizeof(*b->skipped));
    if (!b->skipped)
        return err_oom(err);
    int r = box_collect(box, &c, &why);
    if (r == -ENOMEM)
        return err_oom(err);
    /* The run itself went as it went: that is not lost too. */
    if (r < 0 && report_warn(result, why.message) < 0)
        return err_oom(err);
    if (b->n_file)
        qsort(b->file, b->n_file, sizeof(*b->file), by_name);
    result->has_files = 1;
    result->files = b->file;
    result->n_files = b->n_file;
    result->skipped = b->skipped;
    result->n_skipped = b->n_skipped;
    result->skipped_total = b->all_skipped;
    return 0;
}
