/*
 * build.h: a Dockerfile carried out.
 *
 * Stages are made when one is asked for: the target, and what it copies or begins from. A step that changes files is
 * looked up by the digest of all it depends on; only one that is not found makes the work tree, which is the base's
 * files with the layers so far on top, and is carried out there. Steps that change only the config need no tree.
 */
#ifndef MAYFLY_BUILD_BUILD_H
#define MAYFLY_BUILD_BUILD_H

#include "build/cache.h"
#include "build/dockerfile.h"
#include "build/expand.h"
#include "build/image.h"
#include "build/source.h"
#include "build/upper.h"
#include "build/worktree.h"
#include "image/lease.h"

enum { BUILD_ARGS = 200, BUILD_STAGES = 100, BUILD_LIMITS = 16 };

struct build_limit {
    const char *field, *value; /* of the policy of RUN's boxes */
};

/* What a RUN writes to: the upper directory of an overlay, or a copy of all files. */
enum build_storage { BUILD_STORAGE_AUTO, BUILD_STORAGE_OVERLAY, BUILD_STORAGE_COPY };

enum build_pull { BUILD_PULL_MISSING, BUILD_PULL_ALWAYS, BUILD_PULL_NEVER };

struct stage {
    struct build *build;
    const struct docker_line *from, *end; /* its lines */
    const char *name;                     /* AS; "" */
    int number;
    bool made;
    struct built image;
    struct image_lease base;  /* fd -1: scratch, or another stage */
    struct stage *base_stage; /* or NULL */
    size_t base_layers;       /* of the image's layers, those that are the base's */
    struct worktree tree;     /* entry.fd -1: not needed yet */
    struct upper
        upper; /* of the RUN under way; entry.fd -1: there is none, or it writes to the tree in place */
    size_t applied;           /* layers that are in it */
    struct snapshot snapshot; /* of it as it is; n 0: to be taken */
    json_t *args;             /* ARG's names and values, as they are declared */
    const char *const *shell;
    json_t *owners; /* path: [uid, gid], where they could not be given in the tree */
    bool cmd_set;
};

struct build {
    struct store *store;
    struct dockerfile file;
    struct arena arena;
    struct source context;
    struct platform platform;
    /* asked for */
    const char *target; /* NULL: the last stage */
    json_t *build_args; /* --build-arg's */
    json_t *used_args;  /* those of them that an ARG took up */
    struct build_limit limits[BUILD_LIMITS];
    int n_limits;
    bool no_cache, quiet;
    bool network;                   /* RUN has the host's */
    uint64_t disk_limit, disk_used; /* bytes that RUNs may write, have written */
    enum build_pull pull;
    enum build_storage storage; /* AUTO until it has been tried */
    int64_t epoch;              /* SOURCE_DATE_EPOCH; -1: there is none */
    /* how far */
    json_t *global_args, *platform_args;
    struct stage stages[BUILD_STAGES];
    int n_stages;
    unsigned steps, cached; /* that change files */
    int run_status;         /* of the RUN that failed; 0: none has */
    int signal;             /* that came during a RUN; 0: none */
    bool warned;            /* of what the host cannot do */
    bool overlay_works;     /* a RUN has had one */
};

/* `b` is filled in up to `epoch`. *ret_stage is the target's, made. */
int build_make(struct build *b, struct stage **ret_stage, struct err *err);
void build_done(struct build *b);

/* ------------------------------------------------------------------ between its files */

/* A stage by name or number, made; NULL with no error where there is none before `before`. */
int build_stage(struct build *b, const char *name, int before, struct stage **ret, struct err *err);
/* Sees to it that the stage's files are there, with all layers so far. */
int stage_tree(struct stage *s, struct err *err);
/* Where a RUN's box finds its root: the work tree, or where no step has changed a file yet, the base's own files, which
 * only an overlay leaves as they are. */
int stage_lower(struct stage *s, char ret[static WORKTREE_PATH_SIZE], struct err *err);
/* A small file of the image as it is; NULL where there is none. Malloc'ed. */
char *stage_text(struct stage *s, const char *path);
/* What the files of the stage are, in one value: the digests of its layers. Borrowed. */
json_t *stage_content(const struct stage *s);
/* The variables of the instruction's words. */
void stage_expand(const struct stage *s, struct expand *ret);
/* Carries out a step that changes files, or takes it from the cache. */
struct step {
    const struct docker_line *line;
    const char *created_by;
    json_t *depends; /* taken */
    int (*carry_out)(struct stage *s, void *context, struct err *err);
    void *context;
    bool boxed; /* a RUN: what it writes may be kept apart */
};
int stage_step(struct stage *s, struct step *step, struct err *err);

/* The instructions of a kind; each refuses by line. */
int step_config(struct stage *s, const struct docker_line *l, struct err *err);
int step_workdir(struct stage *s, const struct docker_line *l, struct err *err);
int step_run(struct stage *s, const struct docker_line *l, struct err *err);
int step_copy(struct stage *s, const struct docker_line *l, struct err *err);
/* -ENOTDIR if a directory on the way to `path` (plain, relative), or with `last` it itself, is there and is none: a layer
 * would replace it without a word. */
int stage_need_dirs(const struct stage *s, const char *path, bool last, struct err *err);
/* ARG, in a stage or (NULL) before the first. */
int step_arg(struct build *b, struct stage *s, const struct docker_line *l, struct err *err);
/* An absolute path for one that may be relative to WORKDIR, written plainly. NULL when it is too long. */
const char *stage_path(const struct stage *s, const char *path);
/* An image to begin or copy from: leased; pulled first where that is wanted. */
int build_lease(struct build *b, const char *name, struct image_lease *ret, struct err *err);
/* An inner error, with the line in front. */
int build_at(const struct build *b, const struct docker_line *l, const struct err *inner,
             struct err *err);
void build_say(const struct build *b, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
