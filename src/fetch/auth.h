/*
 * auth.h: how a registry is told who we are: nothing at first, then what it asks for by its 401. A token is got from
 * where the challenge says, with the credentials there are or without any; basic authentication needs some.
 *
 * Sources: distribution, "Token Authentication Specification" and "OAuth2 Token Authentication"; RFC 7617.
 */
#ifndef MAYFLY_FETCH_AUTH_H
#define MAYFLY_FETCH_AUTH_H

#include "base/arena.h"
#include "fetch/credential.h"
#include "fetch/exchange.h"

struct auth {
    /* Borrowed. */
    struct exchanger *exchanger;
    const char *domain; /* whose credentials */
    const char *path;   /* of the repository */
    bool tls, skip_verify;
    void (*note)(void *arg,
                 const char *line); /* what the user should know, though it is no error */
    void *arg;

    const char *
        header; /* Authorization, once there is one; kept until auth_done, so an older one can be told from it */
    struct arena arena;
    bool looked;
    struct credential credential;
};

/* Answers a challenge to an exchange that used `header` as it was then: 1 if `header` is another now. */
int auth_challenged(struct auth *a, const struct exchange *e, const struct http_reply *reply,
                    struct err *err);
void auth_done(struct auth *a);

#endif
