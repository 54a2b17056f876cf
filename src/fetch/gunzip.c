/*
 * gunzip.c: see gunzip.h.
 */
#include "fetch/gunzip.h"

#ifdef HAVE_ISAL

#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

enum { INPUT = 256 << 10 };

struct gunzip {
    int fd;
    bool begun, ended; /* in a member; all of them are over */
    struct inflate_state state;
    uint8_t input[INPUT];
};

bool gunzip_open(int fd, struct gunzip **ret) {
    unsigned char magic[3];

    if (pread(fd, magic, sizeof(magic), 0) != (ssize_t)sizeof(magic) ||
        lseek(fd, 0, SEEK_CUR) != 0 || memcmp(magic, "\x1f\x8b\x08", sizeof(magic)) != 0)
        return false;
    struct gunzip *g = calloc(1, sizeof(*g));
    if (!g)
        return false;
    g->fd = fd;
    isal_inflate_init(&g->state);
    g->state.next_in = g->input;
    *ret = g;
    return true;
}

void gunzip_close(struct gunzip *g) { free(g); }

/* At least `least` bytes of input, if the file has them. */
static int fill(struct gunzip *g, uint32_t least) {
    struct inflate_state *s = &g->state;

    if (s->avail_in >= least)
        return 0;
    if (s->avail_in)
        memmove(g->input, s->next_in, s->avail_in);
    ssize_t n = fd_read_full(g->fd, g->input + s->avail_in, INPUT - s->avail_in);
    if (n < 0)
        return (int)n;
    s->next_in = g->input;
    s->avail_in += (uint32_t)n;
    return 0;
}

/* A member begins, or there is none any more. */
static int begin(struct gunzip *g) {
    struct inflate_state *s = &g->state;
    int r = s->next_in < g->input ? -EBADMSG : fill(g, 2);

    if (r < 0)
        return r;
    g->ended = s->avail_in < 2 || s->next_in[0] != 0x1f || s->next_in[1] != 0x8b;
    if (g->ended)
        return 0;
    uint8_t *in = s->next_in;
    uint32_t len = s->avail_in;
    isal_inflate_reset(s);
    s->next_in = in;
    s->avail_in = len;
    s->crc_flag = ISAL_GZIP; /* its header is read, and its sum verified */
    g->begun = true;
    return 0;
}

ssize_t gunzip_read(struct gunzip *g, void *to, size_t size) {
    struct inflate_state *s = &g->state;

    s->next_out = to;
    s->avail_out = (uint32_t)size;
    while (s->avail_out == size) {
        int r = g->ended ? 0 : g->begun ? fill(g, 1) : begin(g);
        if (r < 0 || g->ended)
            return r;
        uint32_t had = s->avail_in;
        r = isal_inflate(s);
        if (r != ISAL_DECOMP_OK && r != ISAL_END_INPUT)
            return -EBADMSG;
        g->begun = s->block_state != ISAL_BLOCK_FINISH;
        if (g->begun && had == 0 && s->avail_out == size)
            return -EBADMSG; /* cut off */
    }
    return (ssize_t)(size - s->avail_out);
}

#else

#include "base/banned.h"

bool gunzip_open(int fd UNUSED, struct gunzip **ret UNUSED) { return false; }
ssize_t gunzip_read(struct gunzip *g UNUSED, void *to UNUSED, size_t size UNUSED) { return 0; }
void gunzip_close(struct gunzip *g UNUSED) {}

#endif
