/*
 * log_json.h: what the program mayfly-log is told of a run that is about to be made.
 */
#ifndef MAYFLY_JSON_LOG_JSON_H
#define MAYFLY_JSON_LOG_JSON_H

#include <stddef.h>

/* One line with its end, malloc'ed; NULL when memory is out. `command` NULL: there is none; `has_code`: code_len bytes of
 * code come behind it. */
char *log_header_json(const char *source, const char *policy, const char *const *command,
                      int has_code, size_t code_len);

#endif
