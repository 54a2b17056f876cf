/*
 * peer_explain.c: why a peer's cell is not mayfly's.
 *
 * What stops a probe in mayfly is known, and so is what a peer has of that; where it has less of every wall, that is
 * the explanation. Where it has one of them and the probe got through all the same, the table is wrong or the peer has
 * a hole: then only a reason written for that probe will do.
 */
#include "lab/peer.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"

#include "base/banned.h"

static const struct {
    const char *probes;
    bool no_init,
        own_rootfs; /* only with a peer that is so: without an init; that can be given no rootfs */
    const char *why;
} not_applicable[] = {
    {"RS8 RS8b RS9 RS9b PS11 PS12", false, false,
     "not applicable: how much output is kept, and who waits for it, is up to a peer's caller; "
     "here that is the lab"},
    {"PR7 PS1b SY6 SY6b SY6c", true, false,
     "not applicable: the code is process 1 itself, so there is no init to go for"},
    {"PS5", true, false, "not applicable: the code is process 1 itself, which cannot stop itself"},
    {"EX8", false, true, "not applicable: it takes a rootfs of its own"},
};

const char *peer_not_applicable(const struct peer *peer, const struct probe *probe) {
    bool own_rootfs = peer->image || lab_word(peer->without, "mount");

    if (probe->kind == PAYLOAD_HOST)
        return "not applicable: it is about mayfly's own supervisor, or about a host that lacks "
               "something";
    for (size_t i = 0; i < ARRAY_LEN(not_applicable); i++)
        if (lab_word(not_applicable[i].probes, probe->id) &&
            (!not_applicable[i].no_init || peer->no_init) &&
            (!not_applicable[i].own_rootfs || own_rootfs))
            return not_applicable[i].why;
    return NULL;
}

static const char *written_for(const struct peer *peer, const char *id) {
    for (const struct reason *r = peer->reasons; r->probes; r++)
        if (lab_word(r->probes, id))
            return r->words;
    return NULL;
}

static const char *trait_of(const struct peer *peer, const char *control) {
    enum trait_of others = geteuid() == 0 ? USERS : ROOTS;

    for (const struct trait *t = peer->traits; t->words; t++)
        if (strcmp(control_id_name(t->control), control) == 0 && t->whose != others)
            return t->words;
    return NULL;
}

/* "bwrap uses no Landlock; it loads no seccomp filter …": false where one of the walls is there. */
static bool by_walls(const struct peer *peer, const char *stopped_by, struct buf *out) {
    for (const char *p = stopped_by; *p;) {
        char control[24];
        size_t n = strcspn(p, " ");

        (void)snprintf(control, sizeof(control), "%.*s", (int)n, p);
        const char *words = trait_of(peer, control);
        if (!words)
            return false;
        if (!out->len || !strstr(out->data, words)) /* one deed may do for two controls */
            buf_printf(out, "%s%s", out->len ? "; it " : "", words);
        p += n + (p[n] == ' ');
    }
    return stopped_by[0];
}

char *peer_explain(const struct peer *peer, const struct probe *probe, bool stopped_here) {
    struct buf walls _cleanup_buf_ = {0}, out = {0};
    const char *written = written_for(peer, probe->id);

    if (written)
        buf_printf(&out, "%s %s.", peer->name, written);
    else if (!stopped_here && by_walls(peer, probe->stopped_by, &walls))
        buf_printf(&out, "%s %s.", peer->name, walls.data);
    else
        return NULL;
    return buf_take(&out);
}
