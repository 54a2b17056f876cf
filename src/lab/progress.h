/*
 * progress.h: what the lab tells of itself while it works: a bar where someone looks at it, else a line now and then.
 */
#ifndef MAYFLY_LAB_PROGRESS_H
#define MAYFLY_LAB_PROGRESS_H

#include "base/defs.h"

enum progress_mode { PROGRESS_QUIET, PROGRESS_LINES, PROGRESS_BAR };

struct progress {
    enum progress_mode mode;
    uint64_t begin_ns, told_ns;
    bool bar_shown;
};

void progress_begin(struct progress *p, bool quiet);
/* Cheap: it looks at the clock and mostly returns. `what`: what is being done now; NULL: nothing. */
void progress_tick(struct progress *p, size_t done, size_t total, const char *what);
void progress_end(struct progress *p); /* nothing of it is left on the terminal */

#endif
