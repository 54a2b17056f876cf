/*
 * cmd_pull.c: the command line of `mayfly pull`, and its exit status.
 */
#include <errno.h>
#include <stdio.h>

#include "base/units.h"
#include "fetch/commands.h"
#include "fetch/options.h"
#include "fetch/pull.h"

#include "base/banned.h"

/* What is to be read further; NULL: not given. */
struct texts {
    const char *platform, *retry, *retry_delay, *stall_timeout, *speed_limit;
};

static int bad_value(const char *name, const char *value, const char *should, struct err *err) {
    return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "pull: %s: \"%.60s\" is not %s", name, value,
                   should);
}

static int take_time(const char *name, const char *value, uint32_t *ret_ms, struct err *err) {
    uint64_t ms = 0;

    if (!value)
        return 0;
    if (parse_duration_ms(value, &ms) < 0 || ms == 0 || ms > 3600 * 1000)
        return bad_value(name, value, "a time up to an hour, like 30s", err);
    *ret_ms = (uint32_t)ms;
    return 0;
}

static int take_speed(const char *value, uint32_t *ret_bytes_s, struct err *err) {
    uint64_t n = 0;

    if (!value)
        return 0;
    if (parse_bytes(value, &n) < 0 || n == 0 || n > 1 << 30)
        return bad_value("--speed-limit", value, "a size from 1 to 1g, a second", err);
    *ret_bytes_s = (uint32_t)n;
    return 0;
}

static int take_texts(const struct texts *t, struct pull_options *o, struct err *err) {
    struct registry_options *registry = &o->registry;
    int r = 0;

    o->platform_given = t->platform;
    if (t->platform)
        r = platform_parse(t->platform, &o->platform, err);
    if (r == 0 && t->retry &&
        (parse_u32(t->retry, &registry->retry.times) < 0 || registry->retry.times > 100))
        r = bad_value("--retry", t->retry, "a number up to 100", err);
    r = r < 0 ? r : take_time("--retry-delay", t->retry_delay, &registry->retry.delay_ms, err);
    r = r < 0 ? r : take_time("--stall-timeout", t->stall_timeout, &registry->http.stall_ms, err);
    return r < 0 ? r : take_speed(t->speed_limit, &registry->http.slow_bytes_s, err);
}

static int parse(int argc, char **argv, struct pull_options *o, struct err *err) {
    bool json = false, quiet = false, no_bytecode = false, verify = true;
    struct texts t = {0};
    const struct option_row rows[] = {
        {.name = "--store", .value = &o->store},
        {.name = "--config", .value = &o->registry.config_file},
        {.name = "--platform", .value = &t.platform},
        {.name = "--retry", .value = &t.retry},
        {.name = "--retry-delay", .value = &t.retry_delay},
        {.name = "--stall-timeout", .value = &t.stall_timeout},
        {.name = "--speed-limit", .value = &t.speed_limit},
        {.name = "--plain-http", .is_set = &o->registry.plain_http},
        {.name = "--tls-verify", .is_set = &verify},
        {.name = "--missing", .is_set = &o->only_missing},
        {.name = "--no-bytecode", .is_set = &no_bytecode},
        {.name = "--quiet", .letter = 'q', .is_set = &quiet},
        {.name = "--json", .is_set = &json},
        {.name = NULL},
    };
    int words = options_take(argc, argv, rows, err);

    if (words < 0)
        return words;
    if (words != 1)
        return err_set(err, ERR_USAGE, -EINVAL, "", "like python:3.12-slim", "pull: %s",
                       words ? "one image at a time" : "no image is named");
    o->image = argv[0];
    o->registry.skip_verify = !verify;
    o->mode = json ? PROGRESS_JSON : quiet ? PROGRESS_QUIET : progress_mode_of_terminal();
    o->unpack_flags = no_bytecode ? UNPACK_NO_BYTECODE : 0;
    return take_texts(&t, o, err);
}

int fetch_pull(int argc, char **argv) {
    struct pull_options o = {.registry.retry = retry_default};
    struct err err = {0};

    platform_host(&o.platform);
    if (parse(argc, argv, &o, &err) < 0)
        return complain_of(&err);
    int r = pull(&o, &err); /* which says itself what went wrong */
    return r == 0 ? 0 : r == -EHOSTUNREACH ? EXIT_UNREACHABLE : EXIT_FETCH;
}
