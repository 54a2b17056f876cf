/*
 * test_attacks.c: what the doctor says gets through is what the lab's probes show to get through.
 *
 * The lab's table is the home of the probes; of it the installed library has src/lib/attacks.inc, a line
 * for each probe of the list (not for its variants, whose ids end in a letter). Where the two differ
 * MAYFLY_UPDATE_GOLDEN=1 makes the file anew from the lab's table.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lab/probe.h"
#include "lib/attacks.h"
#include "policy/policy.h"

#include "base/banned.h"

#pragma weak probe_find
#pragma weak probe_families /* a checkout may be without the lab's probes */

static const char path[] = "src/lib/attacks.inc";

static bool is_listed(const struct probe *p) {
    char last = p->id[strlen(p->id) - 1];

    return p->stopped_by && p->stopped_by[0] && !p->must_pass && last >= '0' && last <= '9';
}

static const struct attack *find(const char *id) {
    for (size_t i = 0; i < n_attacks; i++)
        if (strcmp(attacks[i].id, id) == 0)
            return &attacks[i];
    return NULL;
}

/* A family that this checkout's lab is without is believed. */
static bool is_of_a_family_that_is_there(const struct attack *a) {
    for (const struct probe *const *family = probe_families; *family; family++)
        for (const struct probe *p = *family; p->id; p++)
            if (strncmp(p->id, a->id, 2) == 0)
                return true;
    return false;
}

static void write_anew(void) {
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    fprintf(f, "/* Made from the lab's table (src/lab); tests/golden/test_attacks.c compares, and "
               "makes it anew "
               "with\n * MAYFLY_UPDATE_GOLDEN=1. */\n");
    for (const struct probe *const *family = probe_families; *family; family++)
        for (const struct probe *p = *family; p->id; p++)
            if (is_listed(p))
                fprintf(f, "{\"%s\", \"%s\", \"%s\"},\n", p->id, p->title, p->stopped_by);
    for (size_t i = 0; i < n_attacks; i++)
        if (!is_of_a_family_that_is_there(&attacks[i]))
            fprintf(f, "{\"%s\", \"%s\", \"%s\"},\n", attacks[i].id, attacks[i].title,
                    attacks[i].stopped_by);
    assert_int_equal(fclose(f), 0);
}

static void the_doctors_list_is_the_labs(void **state) {
    (void)state;
    size_t n = 0, differ = 0;

    if (!&probe_families) {
        print_message("SKIPPED: this checkout is without the lab's probes\n");
        skip();
    }
    for (const struct probe *const *family = probe_families; *family; family++)
        for (const struct probe *p = *family; p->id; p++) {
            if (!is_listed(p))
                continue;
            const struct attack *a = find(p->id);
            n++;
            if (a && strcmp(a->title, p->title) == 0 && strcmp(a->stopped_by, p->stopped_by) == 0)
                continue;
            differ++;
            print_message("%s: the lab has \"%s\", stopped by %s\n", p->id, p->title,
                          p->stopped_by);
        }
    for (size_t i = 0; i < n_attacks; i++) {
        const struct probe *p = probe_find(attacks[i].id);
        if (is_of_a_family_that_is_there(&attacks[i]) && (!p || !is_listed(p))) {
            differ++;
            print_message("%s: the lab has no such probe\n", attacks[i].id);
        }
    }
    if (!differ)
        return;
    if (getenv("MAYFLY_UPDATE_GOLDEN"))
        write_anew();
    else
        fail_msg(
            "%zu of %zu differ from %s, which has %zu: run this with MAYFLY_UPDATE_GOLDEN=1 and "
            "read the difference",
            differ, n, path, n_attacks);
}

static void every_attack_is_stopped_by_controls_that_there_are(void **state) {
    (void)state;
    for (size_t i = 0; i < n_attacks; i++) {
        bool thinner = false;
        if (!attack_gets_through(&attacks[i], ~UINT64_C(0), &thinner))
            fail_msg("%s gets through nowhere", attacks[i].id);
        assert_false(attack_gets_through(&attacks[i], 0, &thinner));
        for (const char *p = attacks[i].stopped_by; *p; p += strspn(p, " ")) {
            char name[32] = "";
            size_t len = strcspn(p, " ");
            bool known = false;
            assert_true(len < sizeof(name));
            memcpy(name, p, len);
            for (int c = 0; c < CTL__N; c++)
                known |= strcmp(control_id_name((enum control_id)c), name) == 0;
            if (!known)
                fail_msg("%s: no control is called %s", attacks[i].id, name);
            p += len;
        }
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(attacks[i].id, attacks[k].id);
    }
}

static void with_some_walls_down_it_is_held_by_the_rest(void **state) {
    (void)state;
    const struct attack a = {"X", "x", "mount user"};
    bool thinner = false;

    assert_false(attack_gets_through(&a, BIT(CTL_MOUNT) | BIT(CTL_NET), &thinner));
    assert_true(thinner);
    assert_true(attack_gets_through(&a, BIT(CTL_MOUNT) | BIT(CTL_USER), &thinner));
    assert_false(thinner);
    assert_false(attack_gets_through(&a, BIT(CTL_NET), &thinner));
    assert_false(thinner);
    assert_false(attack_is_stopped_by(&a, "use"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_doctors_list_is_the_labs),
        cmocka_unit_test(every_attack_is_stopped_by_controls_that_there_are),
        cmocka_unit_test(with_some_walls_down_it_is_held_by_the_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
