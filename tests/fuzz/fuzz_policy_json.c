/*
 * fuzz_policy_json.c: a policy as JSON. What is accepted can be written down and read again; of what
 * is refused nothing is taken, and the message says where the fault is.
 */
#include "fuzz/target.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "fuzz/settings.h"
#include "policy/policy_json.h"

#include "base/banned.h"

/* "policy: PLACE: WHY" */
static void must_name_a_place(const char *message) {
    static const char begin[] = "policy: ";
    const char *place = message + strlen(begin), *end = strstr(place, ": ");

    fuzz_must(end && end > place && end[2], "%s", message);
}

static void must_be_checked(const struct policy *p) {
    _cleanup_buf_ struct buf warn = {0};
    struct err err = {0};
    int r = policy_check(p, &warn, &err);

    if (r < 0)
        fuzz_refusal(&err, r, "");
    for (char *line = warn.data, *end; line && *line; line = end + 1) {
        end = strchr(line, '\n');
        fuzz_must(end, "a warning without an end: %s", line);
        *end = '\0';
        fuzz_one_line(line);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct policy *p = policy_new();
    struct err err = {0};

    if (!p)
        abort();
    char *before _cleanup_free_ = settings_text(p);
    int r = policy_from_json(p, (const char *)data, size, &err);
    if (r == 0) {
        fuzz_must(err.code == 0 && !err.message[0], "taken, and yet: %s", err.message);
        settings_must_survive(p);
        must_be_checked(p);
    } else {
        char *after _cleanup_free_ = settings_text(p);
        fuzz_must(r == -EINVAL, "%d: %s", r, err.message);
        fuzz_refusal(&err, r, "policy: ");
        must_name_a_place(err.message);
        fuzz_must(strcmp(before, after) == 0, "was refused, and yet taken:\n%s", after);
    }
    policy_free(p);
    return 0;
}
