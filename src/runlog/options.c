/*
 * options.c: the flags of a run log, the same for all that write one.
 */
#include <string.h>

#include "base/units.h"
#include "runlog/runlog.h"

#include "base/banned.h"

static const uint64_t least_bytes = 64 << 10, most_bytes = UINT64_C(1) << 40;

bool runlog_parse_code(const char *word, enum runlog_code *ret) {
    static const char *const words[] = {
        [RUNLOG_FULL] = "full", [RUNLOG_DIGEST] = "digest", [RUNLOG_NONE] = "none"};

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(words[i], word) == 0)
            return *ret = (enum runlog_code)i, true;
    return false;
}

const char *runlog_take_flag(struct runlog_options *o, const char *flag, size_t len,
                             const char *value) {
    uint32_t keep = 0;

#define IS(word) (len == sizeof(word) - 1 && strncmp(flag, word, len) == 0)
    if (IS("--log"))
        return o->target = *value ? value : NULL, NULL;
    if (IS("--log-code"))
        return runlog_parse_code(value, &o->code) ? NULL : "full, digest or none";
    if (IS("--log-size"))
        return parse_bytes(value, &o->file_bytes) == 0 && o->file_bytes >= least_bytes &&
                       o->file_bytes <= most_bytes
                   ? NULL
                   : "a size between 64 KiB and 1 TiB";
    if (!IS("--log-keep"))
        return "a flag of a run log";
#undef IS
    if (parse_u32(value, &keep) < 0 || keep < 1 || keep > 100000)
        return "a number from 1 to 100000";
    return o->keep = keep, NULL;
}
