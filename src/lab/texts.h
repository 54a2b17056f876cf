/*
 * texts.h: what `mayfly lab explain` has to say, carried in the program: a page for each control, the source of the
 * payloads, and where each control is in the source that the program was built from.
 */
#ifndef MAYFLY_LAB_TEXTS_H
#define MAYFLY_LAB_TEXTS_H

#include "base/defs.h"

/* "net.txt", "helper.c"; NULL: there is none. */
const char *lab_text(const char *name);

/* What is in a page: `probes` are shown live. */
enum page_part { PART_KERNEL, PART_BREAKS, PART_LEAVES, PART__N };
struct page_part_of {
    const char *at;
    size_t len;
};
struct control_page {
    char probes[64], see[160]; /* ids; documents beside the control's own source */
    struct page_part_of part[PART__N];
};
extern const char *const page_part_titles[PART__N];
/* False: there is no page for it, or it lacks something. */
bool control_page(const char *control, struct control_page *ret);

struct control_source {
    const char *control, *file;
    int plan_line, verify_line;
};
const struct control_source *control_source(const char *control); /* NULL: none */

/* A payload of the static helper by its name, from HELPER to the end of the function; 0: it is not there. */
size_t helper_source(const char *name, const char **ret_at);

#endif
