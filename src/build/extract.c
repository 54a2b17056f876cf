/*
 * extract.c: see extract.h.
 */
#include "build/extract.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "build/pattern.h"
#include "fetch/layer.h"
#include "fetch/worker.h"

#include "base/banned.h"

enum { CHUNK = 128 << 10, MOST_ENTRIES = 1000000, NOT_ONE = 1 };

bool extract_is_candidate(int fd) {
    static const struct {
        const char *bytes;
        size_t len;
        off_t at;
    } marks[] = {{"\x1f\x8b", 2, 0},
                 {"BZh", 3, 0},
                 {"\xfd"
                  "7zXZ",
                  6, 0},
                 {"\x28\xb5\x2f\xfd", 4, 0},
                 {"ustar", 5, 257}};
    char head[262];
    ssize_t n = pread(fd, head, sizeof(head), 0);

    for (size_t i = 0; i < ARRAY_LEN(marks); i++)
        if (n >= marks[i].at + (ssize_t)marks[i].len &&
            memcmp(head + marks[i].at, marks[i].bytes, marks[i].len) == 0)
            return true;
    return false;
}

/* ------------------------------------------------------------------ in the process that has nothing */

struct job {
    const struct extract *x;
    struct tree tree;
    int fd, owners; /* the latter: the list of owners is written there */
    struct archive *a;
    char path[PATH_MAX], link[PATH_MAX];
};

/* An owner that goes on the list; its path follows, ended by NUL. */
struct noted {
    uint32_t uid, gid;
};

static int no_archive(struct job *j, struct err *err) {
    const char *why = archive_error_string(j->a);

    return err_set(err, ERR_USAGE, -EBADMSG, "", "see whether the archive is whole",
                   "the archive: %s", why ? why : "not readable");
}

static int open_archive(struct job *j) {
    j->a = archive_read_new();
    if (!j->a)
        return -ENOMEM;
    (void)archive_read_support_filter_gzip(j->a);
    (void)archive_read_support_filter_bzip2(j->a);
    (void)archive_read_support_filter_xz(j->a);
    (void)archive_read_support_filter_zstd(j->a);
    (void)archive_read_support_format_tar(j->a);
    return archive_read_open_fd(j->a, j->fd, CHUNK) == ARCHIVE_OK ? 0 : NOT_ONE;
}

/* Names count from the destination; a name that leads elsewhere is refused below, as a layer's is. */
static bool below(const struct job *j, const char *name, char ret[PATH_MAX]) {
    return snprintf(ret, PATH_MAX, "%s%s%s", j->x->to, *j->x->to ? "/" : "", name) < PATH_MAX;
}

static int note(struct job *j, const struct archive_entry *e, struct err *err) {
    struct archive_entry *entry = (struct archive_entry *)(uintptr_t)e;
    const struct noted n = {(uint32_t)archive_entry_uid(entry), (uint32_t)archive_entry_gid(entry)};

    if (j->owners < 0 || archive_entry_hardlink(entry) || (!n.uid && !n.gid))
        return 0;
    int r = fd_write_full(j->owners, &n, sizeof(n));
    r = r < 0 ? r : fd_write_full(j->owners, j->path, strlen(j->path) + 1);
    return r < 0 ? err_errno(err, ERR_SETUP, r, "", NULL, "the list of owners") : 0;
}

static int put_one(struct job *j, struct archive_entry *e, struct layer_budget *budget,
                   struct err *err) {
    const char *name = archive_entry_pathname(e), *to = archive_entry_hardlink(e);
    int64_t size = archive_entry_filetype(e) == AE_IFREG ? archive_entry_size(e) : 0;

    if (!name || !below(j, name, j->path) || (to && !below(j, to, j->link)))
        return err_set(err, ERR_USAGE, -ENAMETOOLONG, "", NULL,
                       "the archive: a name is too long, or no text");
    if (budget->entries == 0 || size < 0 || (uint64_t)size > budget->bytes)
        return err_set(err, ERR_USAGE, -EFBIG, "", "allow more with --max-disk",
                       "the archive holds more than a build may write");
    if (tree_is_whiteout(j->path))
        return err_set(err, ERR_USAGE, -EINVAL, "", "leave it out of the archive",
                       "%.150s: no layer can hold a file whose name begins with .wh.", j->path);
    budget->entries--;
    archive_entry_copy_pathname(e, j->path);
    if (to)
        archive_entry_copy_hardlink(e, j->link);
    if (j->x->owner) {
        archive_entry_set_uid(e, j->x->owner->uid);
        archive_entry_set_gid(e, j->x->owner->gid);
    }
    int r = layer_put_entry(&j->tree, j->a, e, budget, err);
    budget->bytes -= (uint64_t)size;
    return r < 0 ? r : note(j, e, err);
}

static int fill(void *context, struct unpack_summary *sum, struct err *err) {
    struct job *j = context;
    struct layer_budget budget = LAYER_BUDGET(j->x->limit_bytes, MOST_ENTRIES);
    struct archive_entry *e = NULL;
    int r = open_archive(j), got = ARCHIVE_EOF, n = 0;

    j->tree.sum = sum;
    while (r == 0 && (got = archive_read_next_header(j->a, &e)) != ARCHIVE_EOF) {
        if (got != ARCHIVE_OK && got != ARCHIVE_WARN)
            r = n ? no_archive(j, err) : NOT_ONE;
        else
            r = put_one(j, e, &budget, err);
        n++;
    }
    sum->entries = r == 0 ? (uint64_t)n : 0;
    return r == NOT_ONE ? 0 : r < 0 ? r : tree_finish(&j->tree, err);
}

/* ------------------------------------------------------------------ outside of it */

/* The list comes from that process: it is believed no more than the archive. */
static int read_owners(int fd, json_t *owners) {
    _cleanup_free_ char *text = NULL;
    size_t len = 0;
    char name[40], plain[PATH_MAX];
    int r;

    (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    r = file_read_all_at(AT_FDCWD, name, 1U << 30, &text, &len);
    for (size_t at = 0; r == 0 && at + sizeof(struct noted) < len;) {
        struct noted n;
        memcpy(&n, text + at, sizeof(n));
        at += sizeof(n);
        size_t more = strnlen(text + at, len - at);
        if (at + more == len)
            break;
        if (path_plain(text + at, true, plain, sizeof(plain)))
            r = json_object_set_new(owners, plain,
                                    json_pack("[II]", (json_int_t)n.uid, (json_int_t)n.gid));
        at += more + 1;
    }
    return r;
}

int extract(struct worktree *w, int fd, const struct extract *x, struct unpack_summary *ret,
            struct err *err) {
    struct job *j = calloc(1, sizeof(*j));
    _cleanup_fd_ int owners =
        geteuid() ? memfd_create("owners", MFD_CLOEXEC) : -1; /* root's files have theirs */

    if (!j)
        return err_oom(err);
    *j = (struct job){.x = x, .fd = fd, .owners = owners};
    int r = worktree_open(w, &j->tree, ret, err);
    if (r == 0) {
        r = worker_run(w->entry.fd, fill, j, ret, err);
        tree_done(&j->tree);
    }
    if (r == 0 && owners >= 0 && read_owners(owners, x->owners) < 0)
        r = err_oom(err);
    free(j);
    return r < 0 ? r : ret->entries > 0;
}
