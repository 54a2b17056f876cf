/*
 * credential.h: who we are to a registry: what `docker login` left in Docker's own config.json, or gives to the
 * credential helpers that are named there.
 *
 * Sources: docker login(1), "Credential stores" and "Credential helper protocol".
 */
#ifndef MAYFLY_FETCH_CREDENTIAL_H
#define MAYFLY_FETCH_CREDENTIAL_H

#include "base/err.h"

/* All NULL: none is known, and what is public can be pulled. */
struct credential {
    char *user, *secret;
    char *identity; /* to be exchanged for a token, in place of user and secret */
    char *bearer;   /* a token that the registry takes as it is */
};

/* `domain`: as a reference has it. What cannot be read is an error; a helper that fails is not, since what is public
 * needs none: then *note tells of it. */
int credential_find(const char *domain, struct credential *ret, struct err *note, struct err *err);
void credential_done(struct credential *c);

#endif
