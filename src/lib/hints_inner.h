/*
 * hints_inner.h: what the parts of hints.c share: how a hint is worded, and what
 * may be repeated in one.
 */
#ifndef MAYFLY_LIB_HINTS_INNER_H
#define MAYFLY_LIB_HINTS_INNER_H

#include "lib/hints.h"
#include "lib/last_words.h"

/* "WHAT (control: NAME); INSTEAD", once. `fmt` is WHAT. */
void hint_add(struct hints *h, enum control_id control, const char *instead, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

/* True where the run ended by itself, and not well: only then have its last words a meaning. */
bool hint_failed(const struct hint_source *s);

/* The system calls that the seccomp filter refused. */
void hints_of_calls(const struct hint_source *s, struct hints *h);
/* What a Python program's traceback says, and what a shell or a tool says. */
void hints_of_python(const struct hint_source *s, const struct traceback *t, struct hints *h);
void hints_of_shell(const struct hint_source *s, struct hints *h);

/* Walls that both can run into. A path that may not be repeated, or is not known, is an empty span. */
void hint_read_only(const struct hint_source *s, struct span path, struct hints *h);
void hint_no_access(const struct hint_source *s, struct span path, struct hints *h);
void hint_noexec(struct hints *h);
void hint_no_memory(const struct hint_source *s, struct hints *h);
void hint_full(const struct hint_source *s, struct span path, bool no_inode, struct hints *h);
void hint_no_network(bool name, struct hints *h);
void hint_no_command(const struct hint_source *s, struct span name, struct hints *h);
void hint_no_process(const struct hint_source *s, struct hints *h);
void hint_open_files(const struct hint_source *s, struct hints *h);
void hint_file_size(const struct hint_source *s, struct hints *h);

/* Where a path lies in the box. */
enum place {
    PLACE_ROOT, /* the read-only root, or what is hidden */
    PLACE_PROC,
    PLACE_DEV,
    PLACE_TMPFS,  /* writable and noexec */
    PLACE_VOLUME, /* handed in; writable or not */
    PLACE_UNKNOWN /* a relative path: who knows where the program was */
};
enum place hint_place(const struct plan *plan, struct span path);
/* A file in a place where nothing can be executed, not the place itself. */
bool hint_noexec_place(const struct plan *plan, struct span path);

#endif
