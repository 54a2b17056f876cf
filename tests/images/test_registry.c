/*
 * test_registry.c: pulling from Debian's docker-registry what skopeo and umoci have made: plain, with TLS and passwords,
 * and with tokens of a server of these tests' own. One storage is behind all three. Each test is a function of
 * registry.sh.
 */
#include "images/servers.h"

#include "base/banned.h"

#define SCRIPT "tests/images/registry.sh"

PACKAGE_TEST(what_others_push_is_pulled_in_every_form)
PACKAGE_TEST(an_image_of_an_index_is_chosen_by_its_platform)
PACKAGE_TEST(an_image_is_pulled_by_its_digest_and_by_that_of_its_index)
PACKAGE_TEST(a_login_of_anothers_opens_a_registry_with_passwords)
PACKAGE_TEST(tokens_are_got_with_a_login_and_without)
PACKAGE_TEST(what_was_cut_is_resumed_from_a_real_registry)
PACKAGE_TEST(a_tag_that_moved_is_followed)
PACKAGE_TEST(twenty_cold_runs_at_once_are_all_right)

/* Its configuration is `more` beside what all have. */
static void start_registry(const char *name, const char *more, const char *variable) {
    char config[2048], file[64], log[64];

    (void)snprintf(file, sizeof(file), "%s.yml", name);
    (void)snprintf(log, sizeof(log), "%s.log", name);
    int n = snprintf(config, sizeof(config),
                     "version: 0.1\nlog: {level: info, accesslog: {disabled: false}}\n"
                     "storage: {filesystem: {rootdirectory: %s}, delete: {enabled: true}}\n%s",
                     in_dir("storage"), more);
    assert_true(n > 0 && n < (int)sizeof(config));
    int fd = open(in_dir(file), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, config, (size_t)n), n);
    (void)close(fd);
    start_server((const char *const[]){"docker-registry", "serve", in_dir(file), NULL}, log);
    await_in_file(log,
                  "match($0, /listening on 127.0.0.1:[0-9]+/) "
                  "{print substr($0, RSTART + 13, RLENGTH - 13); exit}",
                  variable);
}

static bool is_in_path(const char *program) {
    char file[4096];

    for (const char *at = getenv("PATH"), *end; at && *at; at = *end ? end + 1 : end) {
        end = strchrnul(at, ':');
        if (snprintf(file, sizeof(file), "%.*s/%s", (int)(end - at), at, program) <
                (int)sizeof(file) &&
            access(file, X_OK) == 0)
            return true;
    }
    return false;
}

static int begin(void **state) {
    char more[1024], realm[64];

    (void)state;
    if (!is_in_path("docker-registry"))
        return 0; /* each test says so */
    servers_begin();
    package_sh(SCRIPT, "make_keys");
    start_registry("plain", "http: {addr: '127.0.0.1:0'}\n", "PLAIN");
    (void)snprintf(more, sizeof(more),
                   "http: {addr: '127.0.0.1:0', tls: {certificate: %s, key: %s}}\n"
                   "auth: {htpasswd: {realm: tests, path: %s}}\n",
                   in_dir("ca.pem"), in_dir("key.pem"), in_dir("htpasswd"));
    start_registry("tls", more, "TLS");
    start_server((const char *const[]){"/usr/bin/python3", "tests/images/stub/token.py",
                                       in_dir("token-port"), in_dir("ca.pem"), in_dir("key.pem"),
                                       NULL},
                 "token.log");
    await_in_file("token-port", "{print \"http://127.0.0.1:\" $1 \"/token\"}", "REALM");
    (void)snprintf(realm, sizeof(realm), "%s", getenv("REALM"));
    (void)snprintf(
        more, sizeof(more),
        "http: {addr: '127.0.0.1:0'}\n"
        "auth: {token: {realm: '%s', service: tests, issuer: mayfly tests, rootcertbundle: %s}}\n",
        realm, in_dir("ca.pem"));
    start_registry("token", more, "TOKEN");
    package_sh(SCRIPT, "push_images");
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_others_push_is_pulled_in_every_form),
        cmocka_unit_test(an_image_of_an_index_is_chosen_by_its_platform),
        cmocka_unit_test(an_image_is_pulled_by_its_digest_and_by_that_of_its_index),
        cmocka_unit_test(a_login_of_anothers_opens_a_registry_with_passwords),
        cmocka_unit_test(tokens_are_got_with_a_login_and_without),
        cmocka_unit_test(what_was_cut_is_resumed_from_a_real_registry),
        cmocka_unit_test(a_tag_that_moved_is_followed),
        cmocka_unit_test(twenty_cold_runs_at_once_are_all_right),
    };

    return cmocka_run_group_tests(tests, begin, servers_end);
}
