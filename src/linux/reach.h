/*
 * reach.h: who may write in a directory decides what the names in it lead to. Code that is given a tree can put a link in
 * the place of anything in it, and whoever goes there by name the next time follows it, with rights of his own.
 */
#ifndef MAYFLY_LINUX_REACH_H
#define MAYFLY_LINUX_REACH_H

enum reach {
    REACH_NONE,   /* no name in the tree is looked up on the way */
    REACH_TREE,   /* the path leads to the tree itself, by names outside of it */
    REACH_WITHIN, /* one is: of a directory, of a link, or the last */
};
/* Whether the way to `path`, of which the end need not be there yet, goes through the tree. An enum reach, or -errno;
 * -ENOENT: there is no such tree. Files are told by device and inode, so that a tree that is mounted twice is one. */
int reach_look(const char *path, const char *tree);

#endif
