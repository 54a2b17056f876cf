/*
 * hints.h: what the box forbade, in words that the writer of the code can act on.
 *
 * Pure: from the plan, the facts of the run and what it printed to a short list.
 * A fact of the kernel's is enough by itself. Words count only where the kernel
 * leaves no fact behind, only when the program failed, and only where the
 * runtime puts its own last words, never wherever they may stand in the output.
 *
 * A hint is mayfly's voice, and may be read by a program that trusts it. So it
 * repeats nothing of the output but names and paths of plain characters.
 */
#ifndef MAYFLY_LIB_HINTS_H
#define MAYFLY_LIB_HINTS_H

#include "box/result.h"
#include "plan/plan.h"

enum { HINTS_MAX = 8, HINT_SIZE = 480 };

struct hint {
    enum control_id control; /* named in the sentence too: "(control: mount)" */
    char sentence[HINT_SIZE];
};

struct hints {
    struct hint list[HINTS_MAX];
    size_t n;
};

/* Where the command's fd 0 came from. */
enum hint_stdin {
    STDIN_NONE,   /* /dev/null: at its end at once */
    STDIN_DATA,   /* bytes, then the end */
    STDIN_STREAM, /* whatever the caller's descriptor gives, perhaps without an end */
};

struct span {
    const char *at;
    size_t len;
};

/* Of what the run was given, which is the caller's again once it has started. */
struct hint_given {
    enum hint_stdin stdin_kind;
    bool
        own_limits; /* the code sets limits of its own, so what runs into one may be its own doing */
    bool own_signals; /* it sends signals, so the one that it died of may be its own */
    bool
        makes_programs; /* it gives files modes, copies or builds: what it executes may have its x bit */
};

struct hint_source {
    const struct plan *plan;
    const struct box_facts *facts;
    enum outcome outcome;
    int exit_code, signal;
    bool not_found; /* the command itself was not there */
    struct hint_given given;
    struct span out, err; /* as kept */
    bool out_cut, err_cut;
};

void hints_find(const struct hint_source *s, struct hints *ret);

#endif
