/*
 * image_use.h: a policy that names an image, as one that names a root file system.
 *
 * What the image's config says of the command, the environment, the directory and the user is put under what was asked
 * for; the rest of the library knows no images.
 */
#ifndef MAYFLY_LIB_IMAGE_USE_H
#define MAYFLY_LIB_IMAGE_USE_H

#include "image/lease.h"
#include "policy/policy.h"

struct image_use {
    const struct policy *policy; /* to plan with: the one that was asked for, or `own` */
    struct policy own;
    struct image_lease lease;
    struct arena arena;
    const char *login[3]; /* "USER=…": what passwd says of an image's user */
    size_t n_login;
};

/* `asked` is borrowed until image_use_done(), which is due also after an error. *ret may not be moved after. */
int image_use(const struct policy *asked, struct image_use *ret, struct err *err);
void image_use_done(struct image_use *u); /* accepts a zeroed one */

/* "name", "name:group", "1000:staff" by the texts of /etc/passwd and /etc/group (NULL: there is none). As Docker has it:
 * a number that is in passwd brings its group, one that is not the group 0. 0 or -EINVAL with words. */
int user_lookup(const char *user, const char *passwd, const char *group, uint32_t *ret_uid,
                uint32_t *ret_gid, struct err *err);

struct user_login {
    char name[256], home[512];
};
/* The same user's name and home, as far as passwd knows them; else what was asked for, and "/". */
void user_login(const char *user, const char *passwd, struct user_login *ret);

#endif
