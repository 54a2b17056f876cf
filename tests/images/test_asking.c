/*
 * test_asking.c: the parts of asking a registry that are pure: challenges, waits, URLs, base64; and credentials, from
 * Docker's config.json and from helpers.
 */
#include "images.h"

#include <sys/time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/base64.h"
#include "fetch/challenge.h"
#include "fetch/credential.h"
#include "fetch/http.h"
#include "fetch/registries.h"
#include "fetch/retry.h"

#include "base/banned.h"

/* ------------------------------------------------------------------ challenges */

static const struct {
    const char *lines;
    bool basic, bearer;
    const char *realm, *service, *scope;
} challenges[] = {
    {"Bearer realm=\"https://a/t\",service=\"s\",scope=\"repository:x:pull\"", false, true,
     "https://a/t", "s", "repository:x:pull"},
    {"bearer REALM = \"r\" , Service= s", false, true, "r", "s", ""},
    {"Basic realm=\"x\"", true, false, "", "", ""},
    {"Basic", true, false, "", "", ""},
    {"Basic realm=\"a, Bearer realm=b\", Bearer realm=\"c\"", true, true, "c", "", ""},
    {"Bearer realm=\"c\", Basic realm=\"x\"", true, true, "c", "", ""},
    {"Basic realm=\"x\"\nBearer realm=\"r\"", true, true, "r", "", ""},
    {"Bearer realm=\"a\\\"b\\\\c\"", false, true, "a\"b\\c", "", ""},
    {"Negotiate, Bearer realm=r", false, true, "r", "", ""},
    {"Negotiate YWJj==, Bearer realm=r", false, true, "r", "", ""},
    {"Bearer realm=first, Bearer realm=second", false, true, "first", "", ""},
    {",, Bearer ,, realm=r ,,", false, true, "r", "", ""},
    {"Bearer realm=\"no end", false, true, "", "", ""},
    {"Bearer realm=\"no end\nBasic", true, true, "", "", ""},
    {"Bearer realm=\"x\\", false, true, "", "", ""},
    {"Bearer", false, true, "", "", ""},
    {"Bearer realm", false, true, "", "", ""},
    {"Bearer realm=", false, true, "", "", ""},
    {"Digest realm=\"x\", nonce=\"y\"", false, false, "", "", ""},
    {"\"Bearer realm=x", false, false, "", "", ""},
    {"", false, false, "", "", ""},
    {"=", false, false, "", "", ""},
    {"\xff\xfe Bearer", false, false, "", "", ""},
};

static void challenges_are_read_as_rfc_9110_has_them(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(challenges); i++) {
        struct challenges c;
        challenges_parse(challenges[i].lines, &c);
        if (c.basic != challenges[i].basic || c.bearer != challenges[i].bearer ||
            strcmp(c.realm, challenges[i].realm) != 0 ||
            strcmp(c.service, challenges[i].service) != 0 ||
            strcmp(c.scope, challenges[i].scope) != 0)
            fail_msg("%s: basic %d bearer %d realm %s service %s scope %s", challenges[i].lines,
                     c.basic, c.bearer, c.realm, c.service, c.scope);
    }
}

/* What does not fit is not said; it is never cut to something else. */
static void a_realm_that_is_too_long_is_none(void **state) {
    char text[4000] = "Bearer service=s,realm=\"";
    struct challenges c;

    (void)state;
    memset(text + strlen(text), 'a', 3000);
    memset(text + 3024, 0, sizeof(text) - 3024);
    challenges_parse(text, &c);
    assert_true(c.bearer);
    assert_string_equal(c.realm, "");
    (void)snprintf(text + 3024, sizeof(text) - 3024, "\",scope=x");
    challenges_parse(text, &c);
    assert_string_equal(c.realm, "");
}

/* ------------------------------------------------------------------ waiting */

static void waits_double_up_to_a_limit_and_are_drawn_between_half_and_whole(void **state) {
    const struct retry_options o = {.times = 10, .delay_ms = 100};
    struct retry low = {0}, high = {0};
    int64_t whole = 100;

    (void)state;
    for (int i = 0; i < 10; i++, whole = MIN(2 * whole, (int64_t)RETRY_MAX_DELAY_MS)) {
        assert_int_equal(retry_wait_ms(&low, &o, -1, 0), whole / 2);
        int64_t wait = retry_wait_ms(&high, &o, -1, (uint32_t)(whole / 2));
        assert_int_equal(wait, whole / 2 + whole / 2);
    }
    assert_int_equal(retry_wait_ms(&low, &o, -1, 0), -1);
}

static void a_server_that_says_when_is_believed_within_reason(void **state) {
    const struct retry_options o = {.times = 3, .delay_ms = 100};
    struct retry r = {0};

    (void)state;
    assert_int_equal(retry_wait_ms(&r, &o, 7000, 0), 7000);
    assert_true(retry_wait_ms(&r, &o, 0, 0) >= 50); /* "at once", said by one that is overloaded */
    assert_int_equal(retry_wait_ms(&r, &o, RETRY_MAX_ASKED_MS + 1, 0), -1);
    assert_int_equal(http_parse_retry_after("120", 0), 120000);
    assert_int_equal(http_parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", 784111777 - 90),
                     90000);
    assert_int_equal(http_parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", 784111777 + 90), 0);
    assert_int_equal(http_parse_retry_after("soon", 0), -1);
    assert_int_equal(http_parse_retry_after("", 0), -1);
    assert_int_equal(http_parse_retry_after("99999999999999999999", 0), INT64_MAX);
    assert_int_equal(http_parse_retry_after("-1", 0), -1);
    assert_true(http_parse_retry_after("9223372036854775807", 0) > RETRY_MAX_ASKED_MS);
}

/* ------------------------------------------------------------------ URLs and base64 */

static void credentials_go_to_one_origin_only(void **state) {
    static const struct {
        const char *a, *b;
        bool same;
    } pairs[] = {
        {"https://h/x", "https://h/y?z", true},
        {"https://h/x", "https://H:443/", true},
        {"https://h/x", "http://h/x", false},
        {"https://h/x", "https://h:444/x", false},
        {"https://h/x", "https://h.evil/x", false},
        {"https://h/x", "https://evil/h", false},
        {"https://h/x", "https://h@evil/x", false},
        {"http://h:80/", "http://h/", true},
        {"https://h/x", "nonsense", false},
        {"", "", false},
        {"http://[::1]:5000/", "http://[::1]:5000/x", true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
        if (http_same_origin(pairs[i].a, pairs[i].b) != pairs[i].same)
            fail_msg("%s and %s", pairs[i].a, pairs[i].b);
}

static void a_url_is_shown_without_what_may_be_secret(void **state) {
    char out[100], small[12];
    struct buf b _cleanup_buf_ = {0};

    (void)state;
    assert_string_equal(http_show_url("https://u:p@h:1/a?sig=s#f", out, sizeof(out)),
                        "https://h:1/a");
    assert_string_equal(http_show_url("https://h/abcdef", small, sizeof(small)), "https://h/a");
    http_escape(&b, "repository:a/b c&=+%\xff");
    assert_string_equal(b.data, "repository%3Aa%2Fb%20c%26%3D%2B%25%FF");
}

static void base64_is_read_with_and_without_padding_and_nothing_else_is(void **state) {
    static const char *const refused[] = {
        "A", "AAAAA", "A===", "AA=A", "AAAA====", "AA AA", "AA\nAA", "A-_A", "="};
    static const struct {
        const char *text, *plain;
    } good[] = {{"dTpw", "u:p"},
                {"dTpwdw==", "u:pw"},
                {"dTpwdw", "u:pw"},
                {"dTpwd2Q=", "u:pwd"},
                {"dTpwd2Q", "u:pwd"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct buf plain _cleanup_buf_ = {0}, text _cleanup_buf_ = {0};
        assert_int_equal(base64_decode(&plain, good[i].text), 0);
        assert_string_equal(plain.data, good[i].plain);
        base64_encode(&text, plain.data, plain.len);
        assert_int_equal(strncmp(text.data, good[i].text, strlen(good[i].text)), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct buf plain _cleanup_buf_ = {0};
        if (base64_decode(&plain, refused[i]) == 0)
            fail_msg("%s was taken", refused[i]);
    }
}

/* ------------------------------------------------------------------ credentials */

static void write_text(const char *dir, const char *name, const char *text, mode_t mode) {
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
    assert_int_equal(fchmod(fd, mode), 0);
    (void)close(fd);
}

static int find(const struct place *p, const char *config, const char *domain, struct credential *c,
                struct err *note, struct err *err) {
    *note = *err = (struct err){0};
    *c = (struct credential){0};
    if (config)
        write_text(p->dir, "config.json", config, 0600);
    (void)setenv("DOCKER_CONFIG", p->dir, 1);
    return credential_find(domain, c, note, err);
}

static void logins_are_found_by_their_registry(void **state) {
    static const struct {
        const char *config, *domain, *user, *secret;
    } cases[] = {
        {"{\"auths\":{\"h:5000\":{\"auth\":\"dTpw\"}}}", "h:5000", "u", "p"},
        {"{\"auths\":{\"h:5000\":{\"auth\":\"dTpw\"}}}", "h", NULL, NULL},
        {"{\"auths\":{\"https://h:5000/v1/\":{\"auth\":\"dTpw\"}}}", "h:5000", "u", "p"},
        {"{\"auths\":{\"https://index.docker.io/v1/\":{\"auth\":\"dTpw\"}}}", "docker.io", "u",
         "p"},
        {"{\"auths\":{\"h\":{\"username\":\"a\",\"password\":\"b:c\"}}}", "h", "a", "b:c"},
        {"{\"auths\":{\"h\":{\"auth\":\"dTpwOnA=\"}}}", "h", "u", "p:p"},
        {"{\"auths\":{\"h\":{}}}", "h", NULL, NULL},
        {"{\"auths\":[]}", "h", NULL, NULL},
        {"{}", "h", NULL, NULL},
        {"", "h", NULL, NULL},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct credential c;
        struct err note, err;
        if (find(*state, cases[i].config, cases[i].domain, &c, &note, &err) < 0)
            fail_msg("%s: %s", cases[i].config, err.message);
        if (!c.user != !cases[i].user || (c.user && strcmp(c.user, cases[i].user) != 0) ||
            (c.secret && strcmp(c.secret, cases[i].secret) != 0))
            fail_msg("%s: user %s, secret %s", cases[i].config, c.user ? c.user : "(none)",
                     c.secret ? c.secret : "");
        credential_done(&c);
    }
}

static void a_login_that_cannot_be_read_is_an_error(void **state) {
    static const char *const broken[] = {"{",
                                         "[]",
                                         "{\"auths\":{\"h\":{\"auth\":\"!\"}}}",
                                         "{\"auths\":{\"h\":{\"auth\":\"AAAA\"}}}",
                                         "{\"auths\":{\"h\":{\"auth\":\"YWJj\"}}}",
                                         "{\"credsStore\":\"../../evil\"}"};

    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        struct credential c;
        struct err note, err;
        if (find(*state, broken[i], "h", &c, &note, &err) == 0)
            fail_msg("%s was taken", broken[i]);
        assert_true(err.message[0]);
    }
}

static void helper(const struct place *p, const char *body) {
    char text[1000], path[4096];

    (void)snprintf(text, sizeof(text), "#!/bin/sh\necho \"$@\" > '%s/args'\ncat > '%s/asked'\n%s\n",
                   p->dir, p->dir, body);
    write_text(p->dir, "docker-credential-test", text, 0755);
    if (strncmp(getenv("PATH"), p->dir, strlen(p->dir)) == 0)
        return;
    (void)snprintf(path, sizeof(path), "%s:%s", p->dir, getenv("PATH"));
    (void)setenv("PATH", path, 1);
}

static void slurp(const struct place *p, const char *name, char *out, size_t size) {
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", p->dir, name);
    assert_true(file_read_at(AT_FDCWD, path, out, size) >= 0);
}

static void helpers_are_asked_as_docker_asks_them(void **state) {
    const struct place *p = *state;
    struct credential c;
    struct err note, err;
    char text[100];

    helper(p, "echo '{\"ServerURL\":\"x\",\"Username\":\"me\",\"Secret\":\"s\"}'");
    assert_ok(find(p, "{\"credHelpers\":{\"h\":\"test\"}}", "h", &c, &note, &err), err);
    assert_string_equal(c.user, "me");
    assert_string_equal(c.secret, "s");
    slurp(p, "args", text, sizeof(text));
    assert_string_equal(text, "get");
    slurp(p, "asked", text, sizeof(text));
    assert_string_equal(text, "h");
    credential_done(&c);

    assert_ok(find(p, "{\"credHelpers\":{\"h\":\"test\"}}", "other", &c, &note, &err), err);
    assert_null(c.user);

    helper(p, "echo '{\"Username\":\"<token>\",\"Secret\":\"id\"}'");
    assert_ok(find(p, "{\"credsStore\":\"test\"}", "docker.io", &c, &note, &err), err);
    assert_null(c.user);
    assert_string_equal(c.identity, "id");
    slurp(p, "asked", text, sizeof(text));
    assert_string_equal(text, "https://index.docker.io/v1/");
    credential_done(&c);
}

/* What is public needs no credentials; so it is said, and gone on without. */
static void a_helper_that_fails_is_no_error(void **state) {
    static const struct {
        const char *body, *note;
    } cases[] = {
        {"echo 'credentials not found in native keychain'; exit 1", NULL},
        {"echo 'the key ring is locked'; exit 1", "the key ring is locked"},
        {"exit 3", "it failed"},
        {"echo nonsense", "is no JSON"},
        {"echo '{}'", "no Username"},
        {"kill -9 $$", "it failed"},
        {"head -c 1000000 /dev/zero; exit 0", "has no end"},
        /* The pipe stays open, in a child that outlives it. */
        {"sleep 3 & echo '{\"Username\":\"\",\"Secret\":\"\"}'", NULL},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct credential c;
        struct err note, err;
        uint64_t begin = now_ns();
        helper(*state, cases[i].body);
        assert_ok(find(*state, "{\"credsStore\":\"test\"}", "h", &c, &note, &err), err);
        assert_null(c.user);
        if (!cases[i].note != (note.kind == ERR_NONE) ||
            (cases[i].note && !strstr(note.message, cases[i].note)))
            fail_msg("%s: %s", cases[i].body, note.message);
        assert_true(now_ns() - begin < UINT64_C(2000000000));
    }
    struct credential c;
    struct err note, err;
    assert_ok(find(*state, "{\"credsStore\":\"not-there\"}", "h", &c, &note, &err), err);
    assert_non_null(
        strstr(note.message, "docker-credential-not-there cannot be started: No such file"));
}

/* ------------------------------------------------------------------ configuration */

static void mirrors_and_settings_are_read_and_nothing_is_passed_over(void **state) {
    const struct place *p = *state;
    static const char *const refused[] = {
        "{\"registries\":{\"h\":{\"miror\":[]}}}",
        "{\"registries\":{\"h\":{\"mirrors\":\"https://x\"}}}",
        "{\"registries\":{\"h\":{\"mirrors\":[\"x.example\"]}}}",
        "{\"registries\":{\"h\":{\"mirrors\":[\"ftp://x\"]}}}",
        "{\"registries\":{\"h\":{\"mirrors\":[\"https://u:p@x\"]}}}",
        "{\"registries\":{\"h\":{\"mirrors\":[\"https://\"]}}}",
        "{\"registries\":{\"h\":{\"mirrors\":[\"https:///x\"]}}}",
        "{\"registries\":{\"h\":{\"plainHttp\":\"yes\"}}}",
        "{\"registries\":{\"h\":[]}}",
        "{\"registries\":[]}",
        "{",
    };
    struct registry_settings s;
    struct err err = {0};
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/mayfly.json", p->dir);
    write_text(
        p->dir, "mayfly.json",
        "{\"image\":\"x\",\"registries\":{\"h\":{\"mirrors\":[\"https://a/b//\",\"http://c:1\"],"
        "\"plainHttp\":true,\"tlsVerify\":false}}}",
        0600);
    assert_ok(registry_settings_load(path, "h", &s, &err), err);
    assert_int_equal(s.n_mirrors, 2);
    assert_string_equal(s.mirrors[0], "https://a/b");
    assert_string_equal(s.mirrors[1], "http://c:1");
    assert_true(s.plain_http && s.skip_verify);
    registry_settings_done(&s);
    assert_ok(registry_settings_load(path, "other", &s, &err), err);
    assert_false(s.n_mirrors || s.plain_http || s.skip_verify);
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        write_text(p->dir, "mayfly.json", refused[i], 0600);
        err_clear(&err);
        if (registry_settings_load(path, "h", &s, &err) == 0)
            fail_msg("%s was taken", refused[i]);
        assert_non_null(strstr(err.message, path));
    }
    (void)unlink(path);
    err_clear(&err);
    assert_int_equal(registry_settings_load(path, "h", &s, &err), -ENOENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(challenges_are_read_as_rfc_9110_has_them),
        cmocka_unit_test(a_realm_that_is_too_long_is_none),
        cmocka_unit_test(waits_double_up_to_a_limit_and_are_drawn_between_half_and_whole),
        cmocka_unit_test(a_server_that_says_when_is_believed_within_reason),
        cmocka_unit_test(credentials_go_to_one_origin_only),
        cmocka_unit_test(a_url_is_shown_without_what_may_be_secret),
        cmocka_unit_test(base64_is_read_with_and_without_padding_and_nothing_else_is),
        cmocka_unit_test_setup_teardown(logins_are_found_by_their_registry, set_place, drop_place),
        cmocka_unit_test_setup_teardown(a_login_that_cannot_be_read_is_an_error, set_place,
                                        drop_place),
        cmocka_unit_test_setup_teardown(helpers_are_asked_as_docker_asks_them, set_place,
                                        drop_place),
        cmocka_unit_test_setup_teardown(a_helper_that_fails_is_no_error, set_place, drop_place),
        cmocka_unit_test_setup_teardown(mirrors_and_settings_are_read_and_nothing_is_passed_over,
                                        set_place, drop_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
