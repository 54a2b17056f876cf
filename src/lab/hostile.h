/*
 * hostile.h: images as wrong as an enemy's, byte by byte, and what the program that takes images in makes of them.
 */
#ifndef MAYFLY_LAB_HOSTILE_H
#define MAYFLY_LAB_HOSTILE_H

#include "base/buf.h"
#include "lab/probe.h"

/* As it stands in the archive. */
struct image_entry {
    char
        type; /* '0' file, '1' hard link, '2' symbolic link, '5' directory, 'x' an attribute of what follows; 0: the end */
    const char *name, *link;
    const char *text; /* NULL: empty */
    size_t len;       /* 0: the text's */
    unsigned mode;    /* 0: 0644, or 0755 of a directory */
};

/* Images in one archive, as docker save writes it. */
struct hostile {
    struct buf archive, names;
};
#define _cleanup_hostile_ __attribute__((cleanup(hostile_done)))

/* One more image; layers end with NULL, entries with type 0. `config`: the members of its config, as JSON. */
void hostile_add(struct hostile *h, const char *name, const char *config,
                 const struct image_entry *const *layers);
void hostile_done(struct hostile *h);

/* Below the attempt's directory. */
#define HOSTILE_STORE "store"

/* The path of the real program, mayfly-fetch; NULL: there is none. Found once, by the first call: in the box around the
 * lab nothing says any more where this program was started from. */
const char *hostile_program(void);
/* It takes the images into the attempt's own store. Its exit status, with what it said of it, on one line; or
 * -errno: there is no such program, or it came to no end. */
int hostile_import(struct attempt *a, struct hostile *h, char *words, size_t size);
/* What is at `path` in the one root file system of the store; below it, if "". False: nothing is, or there is no root. */
bool hostile_has(const struct attempt *a, const char *path);

#endif
