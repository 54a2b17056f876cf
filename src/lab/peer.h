/*
 * peer.h: the same probes inside other programs of mayfly's kind.
 *
 * A peer gets the flags that its own documentation recommends for code that one does not trust, and of what a probe
 * asks of mayfly's policy (user, limits, what is handed in) whatever it has a flag for. What then differs from mayfly
 * is explained by what the peer has of each control, which peer_table.c says and the attempts hold it to: a cell that
 * differs and that the table does not explain is a fault.
 */
#ifndef MAYFLY_LAB_PEER_H
#define MAYFLY_LAB_PEER_H

#include <jansson.h>

#include "base/arena.h"
#include "base/err.h"
#include "lab/probe.h"
#include "policy/policy.h"

/* ------------------------------------------------------------------ for the engine */

/* What the probes find inside each of the peers named ("bwrap,runc"), as an array for "peers" of the lab's JSON.
 * `mayfly_cells`: by a probe's id, what it found in mayfly with everything on ({"result", "call", …}); one that is
 * missing, or NULL, is found out here. `progress` (NULL: none) is told what is being tried, of `n` probes for each
 * peer. 0; or -EINVAL for a name that is none, -ENOENT for a peer that is not installed, another -errno, with err
 * set. */
typedef void peers_progress(void *data, const char *peer, const char *probe, size_t done, size_t n);
int lab_peers(const struct probe *const *probes, size_t n, const char *names,
              const json_t *mayfly_cells, peers_progress *progress, void *data, json_t **ret,
              struct err *err);
int lab_peers_check(const char *names, struct err *err); /* of the names alone: before a long run */

/* ------------------------------------------------------------------ one peer */

/* What a peer has of a control. No entry: the same in effect as mayfly's. */
enum trait_of {
    ANYBODYS,
    ROOTS,
    USERS
}; /* it is so where root runs the peer, or an ordinary user */
struct trait {
    enum control_id control;
    const char *words; /* what it has instead, or that it has none; reads on after "PEER " */
    enum trait_of whose;
};

/* Why a cell differs where the controls do not say it. */
struct reason {
    const char *probes; /* ids, space-separated */
    const char *words;  /* after "PEER " */
};

/* Words of a command line. */
struct words {
    struct arena arena;
    const char *argv[256];
    int n;
    bool failed;
};
void words_add(struct words *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
enum { WORDS_COMMAND = 4096 };
void words_print(const struct words *w, char out[WORDS_COMMAND]); /* as one would type it */
void words_done(struct words *w);

/* One run, as the maker of its command line needs it. */
struct job {
    const struct policy *policy;
    const char *rootfs; /* absolute */
    const char *dir;    /* the attempt's directory on the host, box/ in it */
    const char *state;  /* a directory for the peer's own files */
    const char *id;     /* a name for a container, and of the cgroup it may make */
    const char
        *cgroups; /* where it may make it, from the root of the tree; "": where the caller is */
    bool root;    /* it is run by root */
};

struct peer {
    const char *name;    /* as --with has it */
    const char *program; /* in PATH */
    const char *package; /* what to install */
    const char *note;    /* what it is, and what the lab leaves at its default */
    const char
        *without; /* controls whose place the attempt has to know empty: see lab_attempt_by() */
    bool no_init; /* the code is process 1 itself */
    const char *
        needs_host; /* why it can be tried in the first pid namespace only; NULL: it can anywhere */
    bool image;     /* wants the rootfs as an image of its own: PEER_IMAGE */
    int late_code;  /* its exit code where its own time limit ended the run; 0: it has none */
    void (*command)(struct words *w, const struct job *job);
    void (*clean_up)(struct words *w,
                     const struct job *job); /* after a run that was cut off; NULL: not needed */
    const struct trait *traits;              /* ends with words of NULL */
    const struct reason *reasons;
};
#define PEER_IMAGE "mayfly-lab-peer"
extern const struct peer lab_peer_table[];
extern const size_t lab_n_peers;
const struct peer *peer_find(const char *name);

/* An OCI bundle, job->state/bundle, for the runtimes that want one: what `runc spec` writes, with no
 * capabilities and with the policy's limits. 0 or -errno. */
int peer_bundle(const struct job *job);

/* ------------------------------------------------------------------ inside peer*.c */

/* A launcher whose run() starts the peer. */
struct peer_launcher {
    struct launcher launcher; /* first: one pointer serves both */
    const struct peer *peer;
    bool cut_off; /* a run lasted until the lab ended it */
};
void peer_launcher_init(struct peer_launcher *ret, const struct peer *peer);
/* Gives it the rootfs as an image, and takes it away again: peer->image. 0, or -errno and err. */
int peer_image_make(const struct peer *peer, const char *rootfs, struct err *err);
void peer_image_remove(const struct peer *peer);
/* Its command line for the policy, with COMMAND for the code's own, as one would type it. */
int peer_command_line(const struct peer *peer, char ret[WORDS_COMMAND], struct err *err);
/* What it says of its version: 0, or -ENOENT where it is not installed, with err set. */
int peer_version(const struct peer *peer, char *ret, size_t size, struct err *err);

/* Why `probe` is nothing to try in a peer; NULL: it can be tried. */
const char *peer_not_applicable(const struct peer *peer, const struct probe *probe);
/* One sentence: why the peer's cell is not mayfly's. NULL: nothing is known that would explain it. */
char *peer_explain(const struct peer *peer, const struct probe *probe, bool stopped_here);

#endif
