/*
 * lab.h: the commands of `mayfly lab`. main.c picks one; each parses its own words.
 */
#ifndef MAYFLY_LAB_LAB_H
#define MAYFLY_LAB_LAB_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"

enum { EXIT_LAB_FAULT = 1, EXIT_LAB_USAGE = 125, EXIT_LAB_TROUBLE = 125 };

int lab_matrix_command(int argc, char **argv);  /* `mayfly lab [FLAGS]`: argv[0] is "lab" */
int lab_explain_command(int argc, char **argv); /* argv[0] is "explain" */
int lab_trace_command(int argc, char **argv);   /* argv[0] is "trace" */

/* What the lab found (docs of the fields: mayfly-lab(5)), for readers. 0, or -errno with err set. */
int lab_html(const json_t *lab, FILE *out, struct err *err);
int lab_markdown(const json_t *lab, FILE *out, struct err *err);

/* SIGINT, SIGTERM and SIGHUP are kept for a signalfd of `set`; `old` is what is put back. */
void lab_catch_signals(sigset_t *set, sigset_t *old);

#endif
