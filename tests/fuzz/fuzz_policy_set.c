/*
 * fuzz_policy_set.c: lines of NAME=VALUE, each set as a flag or the library would. A refusal names
 * the flag and changes nothing; all that was taken can be written down and set again.
 */
#include "fuzz/target.h"

#include <errno.h>
#include <string.h>

#include "fuzz/settings.h"

#include "base/banned.h"

static void must_be_refused_well(const char *name, int r, const struct err *err) {
    const struct policy_field *f = policy_find(name);

    fuzz_must(r < 0, "%d", r);
    fuzz_refusal(err, r, f ? f->flag : "");
    fuzz_must(f || strstr(err->message, "is not a field of a policy") || strlen(name) > 400, "%s",
              err->message);
}

/* `take_before` is the policy's text; the new one is handed out. */
static char *set_line(struct policy *p, char *line, char *take_before) {
    char *before _cleanup_free_ = take_before, *eq = strchr(line, '=');
    struct err err = {0};

    if (eq)
        *eq = '\0';
    int r = policy_set(p, line, eq ? eq + 1 : "", &err);
    char *after = settings_text(p);
    if (r == 0) {
        fuzz_must(err.code == 0, "taken, and yet: %s", err.message);
        return after;
    }
    must_be_refused_well(line, r, &err);
    fuzz_must(strcmp(before, after) == 0, "%s was refused, and yet taken:\n%s", line, after);
    return after;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input in = {data, size};
    struct policy *p = policy_new();

    if (!p)
        abort();
    char *text = settings_text(p);
    for (int lines = 0; in.left && lines < 12; lines++) {
        char *line _cleanup_free_ = fuzz_text(&in, '\n');
        text = set_line(p, line, text);
    }
    free(text);
    settings_must_survive(p);
    policy_free(p);
    return 0;
}
