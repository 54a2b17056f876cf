/*
 * fuzz_layer.c: layers, written as lines so that what is changed is what they say and not their check sums: an entry a
 * line, "f755 NAME<tab>CONTENT", "d700 NAME", "l NAME<tab>TARGET" and "h NAME<tab>TARGET" for links, "c NAME" and "p NAME"
 * for devices and pipes; "-" begins the next layer; what follows a line "!" is an archive as it is.
 *
 * Whatever they say, what is beside the tree stays as it was, and in the tree there is nothing but files, directories
 * and links, without setuid bits. As root it is done by another user, so that a fault found here harms no host.
 */
#include "fuzz/target.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "fetch/layer.h"
#include "fetch/tmp.h"

#include "base/banned.h"

enum { NOBODY = 65534, BLOCK = 512, MAX_OUT = 1 << 20, MAX_ENTRIES = 500 };

static const char secret[] = "what is outside";

/* ------------------------------------------------------------------ archives */

static void add_entry(struct buf *b, char type, unsigned mode, const char *name, const char *link,
                      const char *content) {
    static const char zeros[BLOCK];
    char h[BLOCK + 1] = {0};
    size_t len = type == '0' ? strlen(content) : 0;
    unsigned sum = 0;

    (void)snprintf(h, 100, "%s", name);
    (void)snprintf(h + 100, 8, "%07o", mode & 07777);
    (void)snprintf(h + 108, 8, "%07o", 7u);
    (void)snprintf(h + 116, 8, "%07o", 8u);
    (void)snprintf(h + 124, 12, "%011o", (unsigned)len & 077777777u);
    (void)snprintf(h + 136, 12, "%011o", 1000000000u);
    memset(h + 148, ' ', 8);
    h[156] = type;
    (void)snprintf(h + 157, 100, "%s", link);
    memcpy(h + 257,
           "ustar\0"
           "00",
           8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char)h[i];
    (void)snprintf(h + 148, 8, "%06o", sum);
    buf_add(b, h, BLOCK);
    buf_add(b, content, len);
    buf_add(b, zeros, (BLOCK - len % BLOCK) % BLOCK);
}

static void add_line(struct buf *b, const char *line) {
    static const struct {
        char letter, type;
    } types[] = {{'f', '0'}, {'d', '5'}, {'l', '2'}, {'h', '1'}, {'c', '3'}, {'p', '6'}};
    char *end, name[256] = "";
    unsigned mode = (unsigned)strtoul(line + (*line != '\0'), &end, 8);
    const char *tab = strchrnul(end + (*end == ' '), '\t');

    end += *end == ' ';
    (void)snprintf(name, sizeof(name), "%.*s", (int)MIN(tab - end, 255), end);
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (*line == types[i].letter)
            add_entry(b, types[i].type, mode, name, *tab ? tab + 1 : "", *tab ? tab + 1 : "");
}

/* ------------------------------------------------------------------ what must hold */

static void must_be_as_it_was(int place) {
    char text[64];
    struct stat st;

    fuzz_must(file_read_at(place, "outside/secret", text, sizeof(text)) ==
                      (ssize_t)strlen(secret) &&
                  memcmp(text, secret, strlen(secret)) == 0,
              "its content");
    fuzz_must(fstatat(place, "outside/secret", &st, 0) == 0 && st.st_nlink == 1 &&
                  (st.st_mode & 07777) == 0640 && st.st_mtime > 1000000000,
              "%o", st.st_mode);
    fuzz_must(fstatat(place, "outside", &st, 0) == 0 && (st.st_mode & 07777) == 0755, "%o",
              st.st_mode);
    fuzz_must(unlinkat(place, "outside/secret", 0) == 0 &&
                  unlinkat(place, "outside", AT_REMOVEDIR) == 0,
              "there is more in it: %d", errno);
}

static int is_harmless(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)ftw;
    fuzz_must(type != FTW_NS, "%s", path);
    fuzz_must(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) || S_ISLNK(st->st_mode), "%s", path);
    fuzz_must(!(st->st_mode & S_ISUID), "%s", path);
    fuzz_must(!S_ISREG(st->st_mode) || !(st->st_mode & S_ISGID), "%s", path);
    return 0;
}

/* ------------------------------------------------------------------ one image */

static int apply(struct tree *t, const struct buf *layer, struct layer_budget *budget,
                 struct err *err) {
    _cleanup_fd_ int fd = memfd_create("layer", MFD_CLOEXEC);

    fuzz_must(fd >= 0 && fd_write_full(fd, layer->data, layer->len) == 0 &&
                  lseek(fd, 0, SEEK_SET) == 0,
              "%d", errno);
    return layer_apply(t, fd, NULL, budget, err);
}

static int apply_all(struct tree *t, struct fuzz_input *in, struct err *err) {
    static const char end[2 * BLOCK];
    struct layer_budget budget = {.bytes = MAX_OUT, .entries = MAX_ENTRIES};
    int r = 0;

    while (in->left && r == 0) {
        struct buf layer _cleanup_buf_ = {0};
        for (bool more = true; more && in->left;) {
            char *line _cleanup_free_ = fuzz_text(in, '\n');
            more = *line != '-';
            if (*line == '!') {
                buf_add(&layer, in->at, in->left);
                in->left = 0;
            } else if (more) {
                add_line(&layer, line);
            }
        }
        buf_add(&layer, end, sizeof(end));
        r = apply(t, &layer, &budget, err);
    }
    return r < 0 ? r : tree_finish(t, err);
}

static void fill(int place, struct fuzz_input *in) {
    struct unpack_summary sum = {0};
    struct err err = {0};
    struct tree t;
    int root = openat(place, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int trash = openat(place, "trash", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    fuzz_must(root >= 0 && trash >= 0 && tree_init(&t, root, trash, &sum) == 0, "%d", errno);
    int r = apply_all(&t, in, &err);
    if (r < 0)
        fuzz_refusal(&err, r, "");
    fuzz_must(sum.files + sum.directories + sum.symlinks <= sum.entries + sum.made, "%llu entries",
              (unsigned long long)sum.entries);
    tree_done(&t);
    (void)close(root);
    (void)close(trash);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64], root[80];
    struct fuzz_input in = {data, size};
    uid_t self = geteuid();

    (void)snprintf(path, sizeof(path), "%s/mayfly-fuzz-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    fuzz_must(mkdtemp(path) && (self != 0 || chown(path, NOBODY, NOBODY) == 0), "%d", errno);
    fuzz_must(self != 0 || seteuid(NOBODY) == 0, "%d", errno);
    int place = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fuzz_must(mkdirat(place, "root", 0755) == 0 && mkdirat(place, "trash", 0755) == 0 &&
                  mkdirat(place, "outside", 0755) == 0,
              "%d", errno);
    int fd = openat(place, "outside/secret", O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
    fuzz_must(fd_write_full(fd, secret, strlen(secret)) == 0 && fchmod(fd, 0640) == 0, "%d", errno);
    (void)close(fd);
    fill(place, &in);
    must_be_as_it_was(place);
    fuzz_must(seteuid(self) == 0, "%d", errno);
    (void)snprintf(root, sizeof(root), "%s/root", path);
    fuzz_must(nftw(root, is_harmless, 16, FTW_PHYS) == 0, "%s", root);
    (void)close(place);
    fuzz_must(tree_remove(AT_FDCWD, path, NULL) == 0, "%s", path);
    return 0;
}
