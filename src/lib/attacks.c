/*
 * attacks.c: see attacks.h.
 */
#include "lib/attacks.h"

#include <string.h>

#include "policy/policy.h"

#include "base/banned.h"

const struct attack attacks[] = {
#include "lib/attacks.inc"
};
const size_t n_attacks = ARRAY_LEN(attacks);

bool attack_is_stopped_by(const struct attack *a, const char *control) {
    size_t len = strlen(control);

    for (const char *p = a->stopped_by; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        if (n == len && memcmp(p, control, n) == 0)
            return true;
        p += n;
    }
    return false;
}

bool attack_gets_through(const struct attack *a, uint64_t missing, bool *ret_thinner) {
    bool all = true, some = false;

    for (int i = 0; i < CTL__N; i++)
        if (attack_is_stopped_by(a, control_id_name((enum control_id)i))) {
            bool gone = (missing & BIT(i)) != 0;
            all = all && gone;
            some = some || gone;
        }
    *ret_thinner = some && !all;
    return some && all;
}
