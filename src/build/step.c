/*
 * step.c: a step that changes files: taken from the cache, or carried out and made a layer.
 *
 * COPY and the like work in the tree itself, and what has changed is told by two looks at all of it. A RUN writes to an
 * upper directory where it can, which is the change by itself; else to a tree of copies, in place.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "build/build.h"

#include "base/banned.h"

/* Raised when the same instruction comes to make other files than it did: what is cached is of the old kind. */
enum { STEP_FORMAT = 2 };

static void time_text(const struct build *b, char ret[static CACHE_TIME_SIZE]) {
    time_t now = b->epoch >= 0 ? (time_t)b->epoch : time(NULL);
    struct tm tm = {0};

    (void)gmtime_r(&now, &tm);
    if (!strftime(ret, CACHE_TIME_SIZE, "%Y-%m-%dT%H:%M:%SZ", &tm))
        ret[0] = '\0';
}

json_t *stage_content(const struct stage *s) {
    return json_object_get(json_object_get(s->image.whole, "rootfs"), "diff_ids");
}

static const struct pack_options *pack_as(const struct stage *s, struct pack_options *ret) {
    *ret = (struct pack_options){.epoch = s->build->epoch, .owners = s->owners};
    return ret;
}

/* In the tree, in place. */
static int carry_inside(struct stage *s, struct step *step, struct packed *ret, struct err *err) {
    const struct timespec tick = {.tv_nsec = 20000000};
    struct snapshot after = {0};
    struct pack_options options;
    int r = stage_tree(s, err);

    if (r == 0 && s->snapshot.n == 0)
        r = snapshot_take(&s->tree, &s->snapshot, err);
    /* The kernel's file times are as coarse as its tick: what is changed in the same one would look unchanged. */
    (void)nanosleep(&tick, NULL);
    r = r < 0 ? r : step->carry_out(s, step->context, err);
    r = r < 0 ? r : snapshot_take(&s->tree, &after, err);
    if (r == 0)
        r = pack_changes(s->build->store, s->tree.root, &s->snapshot, &after, pack_as(s, &options),
                         ret, err);
    snapshot_done(&s->snapshot);
    s->snapshot = after;
    if (r == 0)
        s->applied += ret->digest[0] != '\0';
    return r;
}

/* Into an upper directory. The layer is put into the tree like any other, when the tree is next wanted. */
static int carry_over(struct stage *s, struct step *step, struct packed *ret, struct err *err) {
    struct snapshot before = {0}, after = {0};
    char lower[WORKTREE_PATH_SIZE];
    struct pack_options options;
    _cleanup_fd_ int under = -1;
    int r = stage_lower(s, lower, err);

    r = r < 0 ? r : upper_make(s->build->store, &s->upper, err);
    r = r < 0 ? r : step->carry_out(s, step->context, err);
    if (r == 0)
        under = open(lower, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r == 0 && under < 0)
        r = err_errno(err, ERR_SETUP, -errno, "", NULL, "%.200s", lower);
    r = r < 0 ? r : upper_changes(&s->upper, under, &before, &after, err);
    if (r == 0)
        r = pack_changes(s->build->store, s->upper.root, &before, &after, pack_as(s, &options), ret,
                         err);
    snapshot_done(&before);
    snapshot_done(&after);
    upper_drop(&s->upper);
    return r;
}

/* Copies in the place of links, so that a RUN can write to them. */
static int unshare_tree(struct stage *s, struct err *err) {
    struct worktree linked = s->tree;
    int r =
        linked.entry.fd < 0 || !linked.shared ? 0 : worktree_make(s->build->store, &s->tree, err);

    if (s->tree.entry.fd == linked.entry.fd)
        return r;
    r = r < 0 ? r : worktree_fill(&s->tree, linked.root, false, err);
    worktree_drop(&linked);
    snapshot_done(&s->snapshot);
    return r;
}

static int carry_out(struct stage *s, struct step *step, struct packed *ret, struct err *err) {
    struct build *b = s->build;
    struct err inner = {0};
    int r;

    if (!step->boxed)
        return carry_inside(s, step, ret, err);
    if (b->storage != BUILD_STORAGE_COPY) {
        r = carry_over(s, step, ret, &inner);
        /* Only a box that could not be built is tried in another way: its command never ran. */
        bool unable = r < 0 && strcmp(inner.control, "mount") == 0 && !b->overlay_works;
        if (!unable || b->storage == BUILD_STORAGE_OVERLAY)
            return r < 0 ? err_set(err, inner.kind, r, inner.control, NULL, "%s", inner.message)
                         : r;
        build_say(b,
                  "mayfly: RUN writes to a copy of all files, since overlayfs cannot be had: %s\n",
                  inner.message);
        b->storage = BUILD_STORAGE_COPY;
    }
    r = unshare_tree(s, err);
    return r < 0 ? r : carry_inside(s, step, ret, err);
}

int stage_step(struct stage *s, struct step *step, struct err *err) {
    struct build *b = s->build;
    char key[CACHE_KEY_SIZE], created[CACHE_TIME_SIZE];
    struct packed layer = {0};
    struct err inner = {0};

    (void)json_object_set(step->depends, "after", stage_content(s));
    (void)json_object_set_new(step->depends, "format", json_integer(STEP_FORMAT));
    if (b->epoch >= 0)
        (void)json_object_set_new(step->depends, "epoch", json_integer((json_int_t)b->epoch));
    int r = cache_key(step->depends, key, err);
    json_decref(TAKE_PTR(step->depends));
    if (r < 0)
        return r;
    bool cached = !b->no_cache && cache_get(b->store, key, &layer, created);
    build_say(b, "%s:%d: %s%s\n", b->file.name, step->line->line, step->created_by,
              cached ? " (cached)" : "");
    b->steps++;
    b->cached += cached;
    if (!cached) {
        r = carry_out(s, step, &layer, &inner);
        if (r < 0)
            return build_at(b, step->line, &inner, err);
        time_text(b, created);
        cache_put(b->store, key, &layer, created);
    }
    return built_step(&s->image, step->created_by, created, &layer, err);
}
