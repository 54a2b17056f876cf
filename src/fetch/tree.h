/*
 * tree.h: a root file system being filled by hostile archives.
 *
 * A name is walked a component at a time, each opened below the last with nothing followed; a symbolic link's target is
 * walked likewise, from the tree's root where it is absolute, and ".." never goes above that. So whatever an archive
 * says lands in the tree. What is in an entry's way is taken away first, never written into: no link, hard or
 * symbolic, leads a write to another file.
 */
#ifndef MAYFLY_FETCH_TREE_H
#define MAYFLY_FETCH_TREE_H

#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "fetch/marks.h"
#include "fetch/unpack.h"

struct tree_owner {
    int64_t uid, gid;
    struct timespec mtime;
};

struct tree {
    int root, trash;                /* directories on one file system */
    bool as_user;                   /* owners cannot be given */
    bool no_openat2;                /* kernels before 5.6, and tests */
    bool (*only)(const char *path); /* which entries are taken; NULL: all */
    struct marks marks;
    struct marks
        skipped; /* names of what was left out, in any layer: links to it are left out, too */
    struct unpack_summary *sum;
    /* The directory that was walked to last: most entries lie where the one before did. */
    char last_path[4096];
    int last_fd;
    uint64_t last_inode;
    bool last_stale; /* something was taken away that the way there may have led through */
    /* Directories whose times are set when nothing more comes into them: struct later, each followed by its path. */
    struct buf later;
    unsigned trashed;
    uint64_t steps,
        max_steps; /* directories walked through and names looked at: no honest image takes many */
};

/* `root` and `trash` stay the caller's. */
int tree_init(struct tree *t, int root, int trash, struct unpack_summary *sum);
void tree_done(struct tree *t);
/* The next layer begins. */
void tree_next_layer(struct tree *t);
/* An error about an entry, in words for whoever has the image. Returns `code`. */
int tree_failed(struct err *err, int code, const char *path);
/* Sets the directories' times. */
int tree_finish(struct tree *t, struct err *err);

/* Entries. `path` is as the archive has it. Each takes away what is there by that name, but a directory in the way of
 * a directory stays. 0, or -errno with the path in err. */
int tree_dir(struct tree *t, const char *path, mode_t mode, const struct tree_owner *o,
             struct err *err);
/* *ret_fd: to write the content to, and to hand to tree_file_end. */
int tree_file_begin(struct tree *t, const char *path, int *ret_fd, struct err *err);
int tree_file_end(struct tree *t, const char *path, int fd, int64_t size, mode_t mode,
                  const struct tree_owner *o, struct err *err);
int tree_symlink(struct tree *t, const char *path, const char *target, const struct tree_owner *o,
                 struct err *err);
/* The target is a name in the archive, below the root. A link to what was left out is left out. */
int tree_hardlink(struct tree *t, const char *path, const char *target, struct err *err);
/* A device, a FIFO, a socket: nothing takes its name. */
int tree_special(struct tree *t, const char *path, struct err *err);
/* True if the last part of the name is a whiteout's, which tree_whiteout() then acts on. */
bool tree_is_whiteout(const char *path);
/* True for what is part of aufs's own bookkeeping, which layers made on it have: passed over. */
bool tree_is_bookkeeping(const char *path);
int tree_whiteout(struct tree *t, const char *path, struct err *err);
/* Fills the tree with another's directories, and links to its files: what is then put into it is in no other. */
int tree_clone(struct tree *t, int from, struct err *err);
/* The directory that a box is to start in, as the config has it ("", NULL: none): not where a box has a file system of
 * its own, in which it makes it itself, and which images of the same layers share. */
int tree_need_workdir(struct tree *t, const char *path, struct err *err);
/* A directory of ours, unless there is something by that name; links on the way are walked inside the tree. */
int tree_need_dir(struct tree *t, const char *path, mode_t mode, struct err *err);

#endif
