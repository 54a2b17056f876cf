/*
 * import_rootfs.c: a directory that is a root file system, as an archive of one layer.
 *
 * In the order of names, without what differs from one day or machine to the next but the files' own times: so the same
 * directory gives the same digest. Nothing is followed, no other file system entered, and what no box would show
 * (devices, sockets) is left out.
 */
#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/units.h"
#include "fetch/import.h"

#include "base/banned.h"

enum { LARGE = 1 << 26 };

struct pack {
    struct import *import;
    struct archive *tar;
    struct archive_entry_linkresolver *links;
    struct blob_writer *blob;
    const char *what;
    dev_t dev;
    struct err *err;
    char path[PATH_MAX];
};

static int failed(struct pack *p, int code) {
    return err_errno(
        p->err, ERR_SETUP, code, "",
        errno_remedy(code, "import it as a user who may read all of it, or leave that out"),
        "%.150s: %.150s", p->what, p->path[0] ? p->path : ".");
}

/* An archive has no holes: a sparse file would fill the disk before that shows. */
static int check_room(struct pack *p, int64_t size) {
    char takes[32], free[32];
    struct statvfs v;

    if (size < LARGE || fstatvfs(p->import->store->dir, &v) < 0 ||
        (uint64_t)size < (uint64_t)v.f_bavail * v.f_frsize)
        return 0;
    return err_set(p->err, ERR_SETUP, -ENOSPC, "", "make room, or leave that file out",
                   "%.100s: %.150s takes %s, and %s is free in %.100s", p->what, p->path,
                   format_bytes((uint64_t)size, takes, sizeof(takes)),
                   format_bytes((uint64_t)v.f_bavail * v.f_frsize, free, sizeof(free)),
                   p->import->store->path);
}

static la_ssize_t put(struct archive *a, void *context, const void *data, size_t len) {
    struct pack *p = context;

    if (blob_write(p->blob, data, len, p->err) == 0)
        return (la_ssize_t)len;
    archive_set_error(a, EIO, "the store");
    return -1;
}

static int put_header(struct pack *p, struct archive_entry *e) {
    if (archive_write_header(p->tar, e) >= ARCHIVE_WARN)
        return 0;
    return p->err->code ? p->err->code : failed(p, -EIO);
}

static int put_content(struct pack *p, int fd, int64_t size) {
    char chunk[64 << 10];
    ssize_t n;

    /* A file that shrinks meanwhile is filled up, one that grows is cut: the header has been written. */
    while (size > 0 &&
           (n = fd_read_full(fd, chunk, (size_t)MIN(size, (int64_t)sizeof(chunk)))) > 0) {
        if (archive_write_data(p->tar, chunk, (size_t)n) != n)
            return p->err->code ? p->err->code : failed(p, -EIO);
        size -= n;
    }
    return archive_write_finish_entry(p->tar) >= ARCHIVE_WARN ? 0 : failed(p, -EIO);
}

static void describe(struct archive_entry *e, const char *path, const struct stat *st) {
    bool as_user = geteuid() != 0; /* whose files stand for the image's root's */

    archive_entry_clear(e);
    archive_entry_copy_pathname(e, path);
    archive_entry_set_mode(e, st->st_mode);
    archive_entry_set_uid(e, as_user ? 0 : st->st_uid);
    archive_entry_set_gid(e, as_user ? 0 : st->st_gid);
    archive_entry_set_mtime(e, st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
    archive_entry_set_size(e, S_ISREG(st->st_mode) ? st->st_size : 0);
    archive_entry_set_nlink(e, (unsigned)st->st_nlink);
    archive_entry_set_ino64(e, (la_int64_t)st->st_ino);
    archive_entry_set_dev(e, st->st_dev);
}

static int pack_dir(struct pack *p, int dir, size_t len);

static int pack_one(struct pack *p, int dir, const char *name, size_t len) {
    struct archive_entry *e = archive_entry_new(), *spare = NULL, *whole = e;
    char link[PATH_MAX];
    _cleanup_fd_ int fd = -1;
    struct stat st;
    int r = e ? 0 : -ENOMEM;

    if (r == 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        r = -errno;
    if (r == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) {
        fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        r = fd < 0 ? -errno : 0;
    } else if (r == 0 && S_ISLNK(st.st_mode)) {
        ssize_t n = readlinkat(dir, name, link, sizeof(link) - 1);
        r = n < 0 ? -errno : (link[n] = '\0', 0);
    } else if (r == 0) {
        archive_entry_free(e);
        return 0;
    }
    if (r < 0) {
        archive_entry_free(e);
        return failed(p, r);
    }
    if (S_ISREG(st.st_mode) && (r = check_room(p, st.st_size)) < 0) {
        archive_entry_free(e);
        return r;
    }
    describe(e, p->path, &st);
    if (S_ISLNK(st.st_mode))
        archive_entry_copy_symlink(e, link);
    archive_entry_linkify(p->links, &e, &spare); /* the second of a hard link's names becomes one */
    r = e ? put_header(p, e) : 0;
    if (r == 0 && e && S_ISREG(st.st_mode) && archive_entry_size(e) > 0)
        r = put_content(p, fd, archive_entry_size(e));
    archive_entry_free(whole);
    if (r == 0 && S_ISDIR(st.st_mode) && st.st_dev == p->dev)
        r = pack_dir(p, fd, len);
    return r;
}

static int plain_name(const struct dirent *e) {
    return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* What is in the directory whose name is the first `len` bytes of the path. */
static int pack_dir(struct pack *p, int dir, size_t len) {
    struct dirent **list = NULL;
    int n = scandirat(dir, ".", &list, plain_name, by_name), r = n < 0 ? failed(p, -errno) : 0;

    for (int k = 0; k < n; k++) {
        int more =
            snprintf(p->path + len, sizeof(p->path) - len, "%s%s", len ? "/" : "", list[k]->d_name);
        if (r == 0)
            r = more < (int)(sizeof(p->path) - len)
                    ? pack_one(p, dir, list[k]->d_name, len + (size_t)more)
                    : failed(p, -ENAMETOOLONG);
        free(list[k]);
    }
    free((void *)list);
    p->path[len] = '\0';
    return r;
}

static int pack_all(struct pack *p, int dir) {
    struct stat st;
    bool is_root = false;
    static const char *const roots[] = {"usr", "bin", "etc", "lib", "opt", "srv", "app", "home"};

    for (size_t k = 0; k < ARRAY_LEN(roots); k++)
        is_root |= faccessat(dir, roots[k], F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    if (!is_root)
        return err_set(p->err, ERR_USAGE, -ENOENT, "",
                       "name one that holds usr and the like, or an OCI image layout",
                       "%.200s: is no root file system", p->what);
    if (fstat(dir, &st) < 0)
        return failed(p, -errno);
    p->dev = st.st_dev;
    if (archive_write_set_format_pax_restricted(p->tar) != ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(p->tar, 1) != ARCHIVE_OK ||
        archive_write_open(p->tar, p, NULL, put, NULL) != ARCHIVE_OK)
        return err_oom(p->err);
    archive_entry_linkresolver_set_strategy(p->links, archive_format(p->tar));
    int r = pack_dir(p, dir, 0);
    if (r == 0 && archive_write_close(p->tar) != ARCHIVE_OK)
        r = p->err->code ? p->err->code : failed(p, -EIO);
    return r;
}

int import_rootfs(struct import *i, int dir, const char *what, struct err *err) {
    struct pack *p = calloc(1, sizeof(*p));

    if (!p)
        return err_oom(err);
    *p = (struct pack){.import = i,
                       .tar = archive_write_new(),
                       .links = archive_entry_linkresolver_new(),
                       .what = what,
                       .err = err};
    int r = p->tar && p->links ? blob_begin(i->store, NULL, -1, &p->blob, NULL, err) : err_oom(err);
    r = r < 0 ? r : pack_all(p, dir);
    if (p->tar)
        (void)archive_write_free(p->tar);
    archive_entry_linkresolver_free(p->links);
    if (r == 0)
        r = blob_commit_as(p->blob, i->tar, &i->tar_size, err);
    else
        blob_abandon(p->blob, false);
    free(p);
    return r;
}
