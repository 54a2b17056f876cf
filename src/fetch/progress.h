/*
 * progress.h: what a pull tells of itself while it goes on: a bar on a terminal, plain lines elsewhere, both on standard
 * error; or an event a line, in JSON, on standard output.
 */
#ifndef MAYFLY_FETCH_PROGRESS_H
#define MAYFLY_FETCH_PROGRESS_H

#include "base/err.h"
#include "fetch/manifest.h"
#include "fetch/unpack.h"

enum progress_mode { PROGRESS_PLAIN, PROGRESS_BAR, PROGRESS_JSON, PROGRESS_QUIET };

struct progress {
    enum progress_mode mode;
    const char *name;     /* of the image, as people write it; borrowed */
    uint64_t bytes, here; /* of all blobs that are to come; and of these what is there */
    uint64_t begin_ns, begin_here, told_ns, told_here;
    bool ticked, bar_shown;
};

/* A bar only where there is someone to look at it. */
enum progress_mode progress_mode_of_terminal(void);

void progress_resolved(struct progress *p, const char *full_name, const char *digest,
                       const char *platform, size_t layers, uint64_t missing_bytes);
/* Cheap: it looks at the clock and mostly returns. */
void progress_tick(struct progress *p, uint64_t here);
void progress_blob(struct progress *p, const struct descriptor *d, bool was_here);
void progress_waiting(struct progress *p, const char *what, int64_t ms, const char *why);
void progress_note(struct progress *p, const char *line);
void progress_unpacking(struct progress *p);
void progress_done(struct progress *p, const char *full_name, const char *digest, bool was_here,
                   const struct unpack_summary *s);
void progress_failed(struct progress *p, const struct err *err);

#endif
