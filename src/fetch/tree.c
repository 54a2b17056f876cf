/*
 * tree.c: see tree.h.
 */
#include "fetch/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "fetch/tree_walk.h"
#include "image/home.h"

#include "base/banned.h"

/* The steps bound the time that names can take which are made to be long on the way, or hidden again and again. */
enum { MAX_STEPS = 8000000 };

static const char whiteout[] = TREE_WHITEOUT, opaque[] = ".wh..wh..opq", aufs[] = ".wh..wh.";

int tree_init(struct tree *t, int root, int trash, struct unpack_summary *sum) {
    *t = (struct tree){.root = root,
                       .trash = trash,
                       .as_user = geteuid() != 0,
                       .sum = sum,
                       .last_fd = -1,
                       .max_steps = MAX_STEPS};
    int r = marks_init(&t->marks);
    return r < 0 ? r : marks_init(&t->skipped);
}

void tree_done(struct tree *t) {
    marks_done(&t->marks);
    marks_done(&t->skipped);
    buf_done(&t->later);
    fd_close(&t->last_fd);
}

void tree_next_layer(struct tree *t) {
    marks_clear(&t->marks);
    t->last_stale = true; /* its way is to be marked anew */
}

int tree_refuse(struct err *err, int code, const char *path, const char *why) {
    return err_set(err, ERR_SETUP, code, "", NULL, "\"%.150s\": %s", path, why);
}

/* Of what the kernel says about an entry, that which has a plainer meaning here. `words` NULL: its own will do. */
static const struct {
    int code;
    const char *words, *remedy;
} meanings[] = {
    {E2BIG, "the layers' names lead too far about", NULL},
    {EOVERFLOW, "its owner is no id that Linux has", NULL},
    {ELOOP, "symbolic links lead to it in circles", NULL},
    {ENOTDIR, "it lies below what is no directory", NULL},
    {ENAMETOOLONG, "its name is longer than the store's file system allows", NULL},
    {EMLINK, "it has more hard links than the store's file system allows",
     "name a place on another file system with --store"},
    {EFBIG, "it is larger than the store's file system, or the limit of file sizes, takes",
     "raise the limit (ulimit -f), or name a place on another file system with --store"},
    {ENOMEM, "the layers take more memory than unpacking may have", NULL},
    {ENOSPC, NULL, "make room, with mayfly prune perhaps, or name another place with --store"},
    {EDQUOT, NULL, "make room, with mayfly prune perhaps, or name another place with --store"},
    {EROFS, NULL, "name a directory that you may write with --store"},
    {EIO, NULL, "the disk that the store is on may be failing: see the kernel's log"},
    {EINVAL, NULL,
     "the store's file system may not take such names: name another place with --store"},
    {EILSEQ, NULL,
     "the store's file system may not take such names: name another place with --store"},
};

int tree_failed(struct err *err, int code, const char *path) {
    for (size_t i = 0; i < ARRAY_LEN(meanings); i++)
        if (meanings[i].code == -code)
            return err_set(err, ERR_SETUP, code, "", meanings[i].remedy, "\"%.150s\": %s", path,
                           meanings[i].words ? meanings[i].words : errno_words(code));
    return err_errno(err, ERR_SETUP, code, "", errno_remedy(code, NULL), "\"%.150s\"", path);
}

/* ------------------------------------------------------------------ a place */

/* The place for an entry, free of what was there; a directory may stay for a directory. */
struct spot {
    char path[PATH_MAX];
    int dir;
    const char *name;
    bool kept;
};

static int take_spot(struct tree *t, const char *path, bool keep_dir, struct spot *s,
                     struct err *err) {
    struct stat st;
    int r = tree_clean(path, s->path, false, err);

    if (r < 0)
        return r;
    if (!s->path[0])
        return tree_refuse(err, -EINVAL, path, "the image's root can only be a directory");
    r = tree_parent(t, s->path, WALK_MAKE, &s->dir, &s->name);
    s->kept = false;
    if (r == 0 && fstatat(s->dir, s->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        s->kept = keep_dir && S_ISDIR(st.st_mode);
        r = s->kept ? 0 : tree_take_away(t, s->dir, s->name);
    }
    if (r == 0)
        r = marks_set(&t->marks, t->last_inode, s->name, MARK_WRITTEN);
    return r < 0 ? tree_failed(err, r, path) : 0;
}

/* ------------------------------------------------------------------ entries */

static mode_t usable(struct tree *t, mode_t mode, bool is_dir) {
    mode_t given = mode & 07777, use = given;

    if (!is_dir && given & (S_ISUID | S_ISGID))
        t->sum->setid++;
    use &= is_dir ? ~(mode_t)S_ISUID : ~(mode_t)(S_ISUID | S_ISGID);
    if (t->as_user) /* root needs no such thing */
        use |= is_dir ? S_IRWXU : S_IRUSR;
    t->sum->modes += (given & 0777) != (use & 0777);
    return use;
}

static int give(struct tree *t, int dir, const char *name, int flags, const struct tree_owner *o) {
    if (o->uid < 0 || o->gid < 0 || o->uid > UINT32_MAX - 1 || o->gid > UINT32_MAX - 1)
        return -EOVERFLOW;
    if (t->as_user)
        return t->sum->owners += o->uid != 0 || o->gid != 0, 0;
    return fchownat(dir, name, (uid_t)o->uid, (gid_t)o->gid, flags) < 0 ? -errno : 0;
}

int tree_dir(struct tree *t, const char *path, mode_t mode, const struct tree_owner *o,
             struct err *err) {
    struct spot s;
    char whole[PATH_MAX];
    int r = tree_clean(path, whole, false, err);

    if (r < 0)
        return r;
    if (!whole[0]) { /* "./" */
        s.dir = t->root, s.name = ".", s.kept = true;
    } else {
        r = take_spot(t, path, true, &s, err);
        if (r < 0)
            return r;
    }
    if (!s.kept && mkdirat(s.dir, s.name, 0700) < 0)
        return tree_failed(err, -errno, path);
    r = give(t, s.dir, s.name, AT_SYMLINK_NOFOLLOW, o); /* first: it takes bits of the mode away */
    if (r == 0 && fchmodat(s.dir, s.name, usable(t, mode, true), 0) < 0)
        r = -errno;
    if (r == 0)
        r = tree_add_later(t, whole, o->mtime);
    t->sum->directories++;
    return r < 0 ? tree_failed(err, r, path) : 0;
}

int tree_file_begin(struct tree *t, const char *path, int *ret_fd, struct err *err) {
    struct spot s;
    int r = take_spot(t, path, false, &s, err);

    if (r < 0)
        return r;
    int fd = openat(s.dir, s.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return tree_failed(err, -errno, path);
    *ret_fd = fd;
    t->sum->files++;
    return 0;
}

int tree_file_end(struct tree *t, const char *path, int fd, int64_t size, mode_t mode,
                  const struct tree_owner *o, struct err *err) {
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, o->mtime};
    struct stat st;
    int r = fstat(fd, &st) < 0 ? -errno : 0;

    if (r == 0 && st.st_size != size && ftruncate(fd, size) < 0) /* a hole at its end */
        r = -errno;
    /* It mostly is whose it should be: the journal of the file system is the dearer of the two. */
    if (r == 0 && (t->as_user || st.st_uid != o->uid || st.st_gid != o->gid))
        r = give(t, fd, "", AT_EMPTY_PATH, o);
    if (r == 0 && (fchmod(fd, usable(t, mode, false)) < 0 || futimens(fd, times) < 0))
        r = -errno;
    return r < 0 ? tree_failed(err, r, path) : 0;
}

int tree_symlink(struct tree *t, const char *path, const char *target, const struct tree_owner *o,
                 struct err *err) {
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, o->mtime};
    struct spot s;
    int r = take_spot(t, path, false, &s, err);

    if (r < 0)
        return r;
    t->last_stale = true;
    r = symlinkat(target, s.dir, s.name) < 0 ? -errno : 0;
    if (r == 0)
        r = give(t, s.dir, s.name, AT_SYMLINK_NOFOLLOW, o);
    if (r == 0 && utimensat(s.dir, s.name, times, AT_SYMLINK_NOFOLLOW) < 0)
        r = -errno;
    t->sum->symlinks++;
    return r < 0 ? tree_failed(err, r, path) : 0;
}

static bool was_skipped(const struct tree *t, int dir, const char *name) {
    struct stat st;

    return dir >= 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && fstat(dir, &st) == 0 &&
           marks_get(&t->skipped, st.st_ino, name) != MARK_NONE;
}

int tree_hardlink(struct tree *t, const char *path, const char *target, struct err *err) {
    char to[PATH_MAX], own[PATH_MAX];
    struct stat st, here;
    struct spot s;
    int r = tree_clean(path, own, false, err);

    if (r < 0)
        return r;
    if (tree_clean(target, to, true, NULL) < 0)
        return tree_refuse(err, -EINVAL, path, "a hard link to a name that leads out of the image");
    char *slash = strrchr(to, '/');
    const char *name = slash ? slash + 1 : to;
    if (slash)
        *slash = '\0';
    _cleanup_fd_ int dir = tree_walk(t, slash ? to : "", WALK_FIND);
    if (was_skipped(t, dir, name))
        return tree_special(t, path, err);
    if (dir < 0 || !*name || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return tree_refuse(err, -ENOENT, path, "a hard link to what is not in the image");
    if (S_ISDIR(st.st_mode))
        return tree_refuse(err, -EISDIR, path, "a hard link to a directory");
    /* To itself, or to what it is a link to already: what would be taken away is what is wanted. */
    int slot = -1;
    const char *own_name = NULL;
    r = own[0] ? tree_parent(t, own, WALK_MAKE, &slot, &own_name) : 0;
    if (r == 0 && own_name && fstatat(slot, own_name, &here, AT_SYMLINK_NOFOLLOW) == 0 &&
        here.st_ino == st.st_ino && here.st_dev == st.st_dev)
        return marks_set(&t->marks, t->last_inode, own_name, MARK_WRITTEN) < 0 ? err_oom(err) : 0;
    r = take_spot(t, path, false, &s, err);
    if (r < 0)
        return r;
    t->last_stale |= S_ISLNK(st.st_mode);
    t->sum->hardlinks++;
    return linkat(dir, name, s.dir, s.name, 0) < 0 ? tree_failed(err, -errno, path) : 0;
}

int tree_special(struct tree *t, const char *path, struct err *err) {
    struct spot s;

    t->sum->devices++;
    int r = take_spot(t, path, false, &s, err);
    if (r == 0 && marks_set(&t->skipped, t->last_inode, s.name, MARK_WRITTEN) < 0)
        r = err_oom(err);
    return r;
}

/* ------------------------------------------------------------------ whiteouts */

static int purge(struct tree *t, int dir);

/* Hides what lower layers have by that name. */
static int hide(struct tree *t, int dir, uint64_t inode, const char *name) {
    enum mark mark = marks_get(&t->marks, inode, name);
    struct stat st;

    if (++t->steps > t->max_steps)
        return -E2BIG;
    if (mark == MARK_NONE)
        return tree_take_away(t, dir, name);
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
        return 0;
    /* As if the whiteout had come first, and the directory been made after it. */
    if (mark == MARK_PASSED &&
        (fchmodat(dir, name, 0755, 0) < 0 ||
         (!t->as_user && fchownat(dir, name, 0, 0, AT_SYMLINK_NOFOLLOW) < 0)))
        return -errno;
    int fd = tree_step(t, dir, name), r = fd < 0 ? fd : purge(t, fd);
    fd_close(&fd);
    return r;
}

/* All that lower layers have in a directory. */
static int purge(struct tree *t, int dir) {
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r = 0;
    struct stat st;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;

    if (!d) {
        r = -errno;
        fd_close(&fd);
        return r;
    }
    if (fstat(fd, &st) < 0)
        r = -errno;
    while (r == 0 && (errno = 0, e = readdir(d)))
        if (!tree_is_dots(e->d_name))
            r = hide(t, fd, st.st_ino, e->d_name);
    if (r == 0 && errno)
        r = -errno;
    (void)closedir(d);
    return r;
}

/* The last part of an archive's name, which may end with a slash. */
static void last_part(const char *path, const char **ret, size_t *ret_len) {
    size_t end = strlen(path);

    while (end && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin && path[begin - 1] != '/')
        begin--;
    *ret = path + begin;
    *ret_len = end - begin;
}

bool tree_is_whiteout(const char *path) {
    const char *name;
    size_t len, prefix = sizeof(whiteout) - 1;

    last_part(path, &name, &len);
    return len >= prefix && strncmp(name, whiteout, prefix) == 0;
}

int tree_whiteout(struct tree *t, const char *path, struct err *err) {
    char at[PATH_MAX], name[NAME_MAX + 1];
    int r = tree_clean(path, at, false, err);
    struct stat st;

    if (r < 0)
        return r;
    char *slash = strrchr(at, '/'), *last = slash ? slash + 1 : at;
    if (!str_copy(name, sizeof(name), last))
        return tree_refuse(err, -ENAMETOOLONG, path, "its name is too long");
    *(slash ? slash : at) = '\0';
    const char *hidden = name + sizeof(whiteout) - 1;
    bool all = strcmp(name, opaque) == 0;
    if (!*hidden || tree_is_dots(hidden))
        return tree_refuse(err, -EINVAL, path, "a whiteout that names no file");
    _cleanup_fd_ int dir = tree_walk(t, at, WALK_FIND);
    if (dir == -ENOENT || dir == -ENOTDIR)
        return 0; /* there is nothing to hide */
    r = dir < 0 ? dir : fstat(dir, &st) < 0 ? -errno : 0;
    if (r == 0)
        r = all ? purge(t, dir) : hide(t, dir, st.st_ino, hidden);
    t->last_stale = true;
    t->sum->whiteouts++;
    return r < 0 ? tree_failed(err, r, path) : 0;
}

bool tree_is_bookkeeping(const char *path) {
    const char *name = path;

    for (; *name; name += strcspn(name, "/"), name += strspn(name, "/"))
        if (strncmp(name, aufs, sizeof(aufs) - 1) == 0)
            return strcmp(name, opaque) != 0;
    return false;
}

/* ------------------------------------------------------------------ at the end */

int tree_need_dir(struct tree *t, const char *path, mode_t mode, struct err *err) {
    char at[PATH_MAX];
    const char *name = "";
    struct stat st;
    int dir = -1, r = tree_clean(path, at, true, err);

    if (r < 0 || !at[0])
        return r;
    char whole[PATH_MAX];
    (void)str_copy(whole, sizeof(whole), at);
    r = tree_parent(t, at, WALK_ADD, &dir, &name);
    if (r == 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        r = errno == ENOENT ? tree_make_dir(t, dir, name, whole, mode) : -errno;
    return r < 0 ? tree_failed(err, r, path) : 0;
}

int tree_need_workdir(struct tree *t, const char *path, struct err *err) {
    bool covered = !path || !*path || strncmp(path, "/tmp/", 5) == 0 ||
                   (strncmp(path, "/home/", 6) == 0 && home_is_free(t->root, "home"));

    return covered ? 0 : tree_need_dir(t, path, 0755, err);
}

int tree_finish(struct tree *t, struct err *err) {
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};
    char path[PATH_MAX];

    for (size_t at = 0; at < t->later.len;) {
        const char *name = "";
        struct stat st;
        int dir = -1;
        memcpy(&times[1], t->later.data + at, sizeof(times[1]));
        (void)str_copy(path, sizeof(path), t->later.data + at + sizeof(times[1]));
        at += sizeof(times[1]) + strlen(path) + 1;
        int r =
            path[0] ? tree_parent(t, path, WALK_FIND, &dir, &name) : (dir = t->root, name = ".", 0);
        if (r < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
            continue; /* a later entry took it away */
        if (utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0)
            return tree_failed(err, -errno, path);
    }
    return 0;
}
