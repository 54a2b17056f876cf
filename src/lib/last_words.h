/*
 * last_words.h: what a runtime says when its program fails, read where the
 * runtime puts it: the last line of standard error, and, for Python, the
 * traceback that ends there.
 *
 * The traceback shows the line that raised. A program that raises an OSError
 * itself prints the very words of the kernel's, and only that line tells the two
 * apart.
 */
#ifndef MAYFLY_LIB_LAST_WORDS_H
#define MAYFLY_LIB_LAST_WORDS_H

#include "lib/hints.h"

struct traceback {
    struct span type, message; /* "OSError", "[Errno 30] Read-only file system: '/x'" */
    int number;                /* 30; 0: the message does not begin with an errno */
    struct span path;          /* "/x"; empty: none, or two */
    bool two_paths;
    struct span file, source; /* of the innermost frame; source empty: not shown */
    struct span caller;       /* source of the innermost frame that is not subprocess.py's */
    struct span before;       /* what was printed before it */
};

/* Takes the traceback that `text` ends with. False: it does not end with one. */
bool last_traceback(struct span text, struct traceback *ret);
/* That which was the direct cause of `t`, as Python says ("raise … from …"). */
bool last_cause(const struct traceback *t, struct traceback *ret);

/* Without what is printed below or around the last traceback: unittest's summary, and the frame of the last
 * exception in an ExceptionGroup (a TaskGroup's), whose lines are put together in `room`. */
struct span bare_words(struct span text, char *room, size_t size);

/* Takes the last line that is not empty off *text. Empty: there is none. */
struct span last_line(struct span *text);

/* Spans. */
struct span span_of(const char *s);
struct span span_slice(struct span s, size_t from, size_t to);
bool span_is(struct span s, const char *word);
bool span_begins(struct span s, const char *prefix);
bool span_ends(struct span s, const char *suffix);
bool span_holds(struct span s, const char *words);
/* As a word of its own: "raise" in "else: raise X", not in "raised". */
bool span_word(struct span s, const char *word);
/* Cuts the prefix or suffix off; false, and untouched, where it is not there. */
bool span_skip(struct span *s, const char *prefix);
bool span_chop(struct span *s, const char *suffix);
/* What stands before the first `words`; false where they do not stand there. */
bool span_before(struct span s, const char *words, struct span *ret);

#endif
