/*
 * report.h: what the readers of the lab's JSON share. The shape is checked once, before the first byte is written; from
 * then on a reader may take each field for what mayfly-lab(5) says it is. Texts stay untrusted: they come out of boxes.
 */
#ifndef MAYFLY_LAB_REPORT_H
#define MAYFLY_LAB_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "base/defs.h"
#include "base/err.h"

/* A word of the matrix: what one control is to one probe. */
struct report_word {
    const char *name;                /* in the JSON */
    const char *reads, *mark, *says; /* for readers */
};

/* A verdict on a probe. */
struct report_verdict {
    const char *name, *title, *says;
};

extern const struct report_word report_words[];       /* ends with a name of NULL */
extern const struct report_verdict report_verdicts[]; /* likewise; "counts" is the first */

/* One line of what the lab ran on. */
struct report_fact {
    const char *name;
    char text[160];
};
enum { REPORT_FACTS = 8 };

/* Sums that open a report. */
struct report_sums {
    size_t probes, counts, single; /* `single`: of those that count, what has no wall to spare */
};

int report_check(const json_t *lab, struct err *err);
const char *report_text(const json_t *object, const char *key); /* "": absent or null */
size_t report_size(const json_t *object, const char *key);      /* elements of a list; 0: absent */
const struct report_word *report_word(const json_t *probe,
                                      const char *control);    /* NULL: not tried */
const json_t *report_probe(const json_t *lab, const char *id); /* NULL: there is none */
/* A family's title as it heads a table: its first letter, a capital, and the rest. */
const char *report_heading(const json_t *family, char first[2]);
bool report_counts(const json_t *probe);
const json_t *
report_redundancy(const json_t *probe); /* a number; NULL: it does not count, or it is not known */
void report_facts(const json_t *lab, struct report_fact facts[REPORT_FACTS]);
void report_sums(const json_t *lab, struct report_sums *ret);

/* The next character of a text, and its length; U+FFFD for one that would steer the reader's screen: controls, and
 * marks that turn the direction of writing. NULL at the end. */
const char *report_next(const char **at, size_t *ret_len);

/* 0, or -errno where not all could be written. */
int report_written(FILE *out, struct err *err);

#endif
