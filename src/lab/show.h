/*
 * show.h: what the lab found, shown. Each reads the JSON of mayfly-lab(5) and nothing else, so what was saved shows as
 * what was just found.
 */
#ifndef MAYFLY_LAB_SHOW_H
#define MAYFLY_LAB_SHOW_H

#include <jansson.h>
#include <stdio.h>

#include "base/err.h"

/* Reads it, and looks whether it is what it says it is. */
int lab_load(const char *path, json_t **ret, struct err *err);
int lab_parse(const char *text, size_t len, const char *what, json_t **ret, struct err *err);

/* For people: the matrix where there is room for it, words where not. */
int lab_screen(const json_t *lab, FILE *out, struct err *err);
/* The faults, a line each, on standard error; their number. */
size_t lab_faults(const json_t *lab);

#endif
