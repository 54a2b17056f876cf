/*
 * result_json.h: the library's results as JSON, for all front ends: one object,
 * the field names that agent code expects, fields added but never renamed.
 */
#ifndef MAYFLY_JSON_RESULT_JSON_H
#define MAYFLY_JSON_RESULT_JSON_H

#include <stdio.h>

#include "mayfly.h"

/* One line, without its end. 0; -ENOMEM with nothing printed; -EIO. What it takes besides the result is bounded. */
int result_print_json(const mayfly_result *result, FILE *to);
/* Malloc'ed, one line; NULL when memory is out. */
char *result_to_json(const mayfly_result *result);
/* The result of a run that mayfly could not make: outcome setup_failed, and the error. */
/* All but what the code printed and left. Malloc'ed; NULL when memory is out. */
char *result_facts_json(const mayfly_result *result);
char *error_to_json(const struct mayfly_error *error);
char *report_to_json(const struct mayfly_report *report); /* of mayfly_doctor() */

#endif
