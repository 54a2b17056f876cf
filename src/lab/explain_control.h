/*
 * explain_control.h: what is known of a control without trying it. (Apart from explain.c because a control's `struct
 * probe`, which looks at a host, and the lab's, which attacks a box, do not meet in one file.)
 */
#ifndef MAYFLY_LAB_EXPLAIN_CONTROL_H
#define MAYFLY_LAB_EXPLAIN_CONTROL_H

#include "base/err.h"
#include "lab/page.h"

const char *control_title(const char *name); /* its summary; NULL: there is no such control */
/* The page, but for what is tried. 0, or -errno with err set. */
int control_print_page(const struct page *p, const char *name, struct err *err);
/* What --attest prints of it, of a box made for that. */
void control_print_evidence(const struct page *p, const char *name);
/* What its rows take of the time in which a box is built. */
void control_print_cost(const struct page *p, const char *name);
/* As what stops a probe: in a sentence or two. */
void control_print_wall(const struct page *p, const char *name);

#endif
