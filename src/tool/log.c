/*
 * log.c: see log.h. The log is opened anew for each call, since what could be written when the program started may be
 * full, rotated away or somebody else's by now. Threads and other programs write beside each other, as the log allows.
 */
#include "tool/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "json/result_json.h"

#include "base/banned.h"

static int told(int code, const struct err *err, struct mayfly_error *error) {
    *error = (struct mayfly_error){.code = code,
                                   .kind = code == -ENOMEM ? MAYFLY_E_INTERNAL : MAYFLY_E_SETUP};
    (void)str_copy(error->message, sizeof(error->message), err->message);
    return code;
}

/* For the operator, who is not the one that reads the answers. */
static void note_down(const char *note) {
    _cleanup_buf_ struct buf line = {0};

    buf_printf(&line, "mayfly: %s\n", note);
    if (!line.failed)
        (void)fd_write_full(STDERR_FILENO, line.data, line.len);
}

int call_log_begin(struct call_log *l, const struct runlog_options *options,
                   struct witness *witness, const struct runlog_run *run,
                   const mayfly_policy *policy, struct mayfly_error *error) {
    struct err err = {0};

    *l = (struct call_log){.run = *run, .witness = witness};
    if (!options)
        return 0;
    int r = mayfly_policy_print(policy, &l->policy, error);
    if (r < 0)
        return r;
    r = runlog_open(options, &l->log, &err);
    l->run.policy = l->policy;
    (void)clock_gettime(CLOCK_REALTIME, &l->run.start);
    if (r == 0) {
        r = witness_begin(witness, &l->run, &l->ticket);
        if (r < 0)
            (void)err_errno(&err, ERR_SETUP, r, "", "start this program again",
                            "the process that logs what is lost if this one is killed");
    }
    if (r == 0)
        return 0;
    free(TAKE_PTR(l->policy));
    runlog_close(TAKE_PTR(l->log));
    return told(r, &err, error);
}

int call_log_end(struct call_log *l, const mayfly_result *result,
                 const struct mayfly_error *failure, struct mayfly_error *error) {
    char note[256] = "";
    struct err err = {0};

    if (!l->log)
        return 0;
    char *facts _cleanup_free_ = result ? result_facts_json(result) : error_to_json(failure);
    l->run.facts = facts;
    int r = facts ? runlog_write(l->log, &l->run, note, &err) : err_oom(&err);
    witness_end(l->witness, l->ticket);
    if (note[0])
        note_down(note);
    free(TAKE_PTR(l->policy));
    runlog_close(TAKE_PTR(l->log));
    return r < 0 ? told(r, &err, error) : 0;
}
