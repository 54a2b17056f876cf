/*
 * challenge.h: what a registry asks for when it answers 401: the WWW-Authenticate header, parsed.
 *
 * Source: RFC 9110, 11.6.1 and 11.2 (one header may hold several challenges, each with parameters, all of them
 * separated by commas); distribution, "Token Authentication Specification".
 */
#ifndef MAYFLY_FETCH_CHALLENGE_H
#define MAYFLY_FETCH_CHALLENGE_H

#include "base/defs.h"

struct challenges {
    bool basic, bearer; /* the registry takes it */
    /* Of the first Bearer: where tokens are given, to whom they are for, and for what. "" where it does not say. */
    char realm[1024], service[512], scope[1024];
};

/* The values of all WWW-Authenticate headers, one a line. What is malformed counts as not said. */
void challenges_parse(const char *lines, struct challenges *ret);

#endif
