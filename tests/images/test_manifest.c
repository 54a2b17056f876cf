/*
 * test_manifest.c: I8 and I9: which documents are images, and which image of an index is for a machine; what is not
 * understood is refused by name, in bounded memory.
 */
#include "images.h"

#include <sys/resource.h>

#include "fetch/manifest.h"

#include "base/banned.h"

#define D64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DIGEST "\"digest\":\"sha256:" D64 "\",\"size\":7"
#define OCI "application/vnd.oci.image."
#define DOCKER "application/vnd.docker.distribution."
#define OCI_CONFIG "\"config\":{\"mediaType\":\"" OCI "config.v1+json\"," DIGEST "}"
#define LAYER(type) "{\"mediaType\":\"" type "\"," DIGEST "}"

static int parse(const char *text, const char *type, struct manifest *m, struct err *err) {
    *m = (struct manifest){0};
    err_clear(err);
    return manifest_parse(text, strlen(text), type, "x", m, err);
}

static void both_families_of_images_are_taken(void **state) {
    static const struct {
        const char *text, *served, *type;
        size_t layers;
    } cases[] = {
        {"{\"schemaVersion\":2,\"mediaType\":\"" OCI "manifest.v1+json\"," OCI_CONFIG
         ",\"layers\":[" LAYER(OCI "layer.v1.tar") "," LAYER(OCI "layer.v1.tar+gzip") "," LAYER(
             OCI "layer.v1.tar+zstd") "]}",
         OCI "manifest.v1+json", OCI "manifest.v1+json", 3},
        {"{\"schemaVersion\":2,\"mediaType\":\"" DOCKER
         "manifest.v2+json\",\"config\":{\"mediaType\":"
         "\"application/vnd.docker.container.image.v1+json\"," DIGEST
         "},\"layers\":[" LAYER("application/vnd.docker.image.rootfs.diff.tar.gzip") "]}",
         DOCKER "manifest.v2+json", DOCKER "manifest.v2+json", 1},
        {"{\"schemaVersion\":2,\"config\":{\"mediaType\":\"application/octet-stream\"," DIGEST
         "},\"layers\":[]}",
         DOCKER "manifest.v2+json", DOCKER "manifest.v2+json", 0},
        /* It need not say what it is, nor the server. */
        {"{\"schemaVersion\":2," OCI_CONFIG ",\"layers\":[]}", "application/json",
         OCI "manifest.v1+json", 0},
        {"{\"schemaVersion\":2," OCI_CONFIG ",\"layers\":[]}", "", OCI "manifest.v1+json", 0},
        {"{\"schemaVersion\":2," OCI_CONFIG
         ",\"layers\":[],\"subject\":{\"x\":1},\"annotations\":{\"a\":\"b\"}}",
         OCI "manifest.v1+json", OCI "manifest.v1+json", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct manifest m;
        struct err err = {0};
        if (parse(cases[i].text, cases[i].served, &m, &err) < 0)
            fail_msg("%s: %s", cases[i].text, err.message);
        assert_false(m.is_index);
        assert_string_equal(m.media_type, cases[i].type);
        assert_int_equal(m.n_layers, cases[i].layers);
        assert_int_equal(m.config.size, 7);
        assert_string_equal(m.config.digest, "sha256:" D64);
        manifest_done(&m);
    }
}

static void what_is_no_image_is_refused_by_name(void **state) {
    static const struct {
        const char *text, *served, *words;
        int code;
    } cases[] = {
        {"{\"schemaVersion\":1}", "", "first format", -ENOTSUP},
        {"{\"a\":1}", DOCKER "manifest.v1+prettyjws", "first format", -ENOTSUP},
        {"{" OCI_CONFIG
         ",\"layers\":[" LAYER("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip") "]}",
         "", "foreign layer", -ENOTSUP},
        {"{" OCI_CONFIG ",\"layers\":[" LAYER(OCI "layer.nondistributable.v1.tar+gzip") "]}", "",
         "foreign layer", -ENOTSUP},
        {"{" OCI_CONFIG ",\"layers\":[" LAYER("application/x-rar") "]}", "", "application/x-rar",
         -ENOTSUP},
        {"{\"config\":{\"mediaType\":\"application/vnd.cncf.helm.config.v1+json\"," DIGEST
         "},\"layers\":[]}",
         "", "helm.config", -ENOTSUP},
        {"{\"mediaType\":\"application/x\"," OCI_CONFIG ",\"layers\":[]}", "", "application/x",
         -ENOTSUP},
        {"{" OCI_CONFIG ",\"layers\":[],\"manifests\":[]}", "", "both", -EBADMSG},
        {"{\"manifests\":[],\"config\":{}}", "", "both", -EBADMSG},
        {"{\"mediaType\":\"" OCI "manifest.v1+json\"," OCI_CONFIG ",\"layers\":[]}",
         OCI "index.v1+json", "is not what the registry says", -EBADMSG},
        {"{\"mediaType\":7," OCI_CONFIG ",\"layers\":[]}", "", "mediaType", -EBADMSG},
        {"{" OCI_CONFIG "}", "", "layers: are no list", -EBADMSG},
        {"{\"layers\":[]}", "", "config: has no mediaType", -EBADMSG},
        {"{" OCI_CONFIG ",\"layers\":[7]}", "", "layers[0]", -EBADMSG},
        {"{" OCI_CONFIG ",\"layers\":[{\"mediaType\":\"" OCI
         "layer.v1.tar\",\"digest\":\"sha256:../x\",\"size\":1}]}",
         "", "digest", -EBADMSG},
        {"{" OCI_CONFIG ",\"layers\":[{\"mediaType\":\"" OCI
         "layer.v1.tar\",\"digest\":\"sha256:" D64 "\",\"size\":-1}]}",
         "", "size", -EBADMSG},
        {"{" OCI_CONFIG ",\"layers\":[{\"mediaType\":\"" OCI
         "layer.v1.tar\",\"digest\":\"sha256:" D64 "\",\"size\":1.5}]}",
         "", "size", -EBADMSG},
        {"{" OCI_CONFIG ",\"layers\":[{\"mediaType\":\"" OCI
         "layer.v1.tar\",\"digest\":\"sha256:" D64
         "\",\"size\":9223372036854775807},{\"mediaType\":\"" OCI
         "layer.v1.tar\",\"digest\":\"sha256:" D64 "\",\"size\":9223372036854775807}]}",
         "", "too large", -EBADMSG},
        {"{\"config\":{\"mediaType\":\"" OCI "config.v1+json\",\"digest\":\"sha256:" D64
         "\",\"size\":99999999},\"layers\":[]}",
         "", "8 MiB", -EBADMSG},
        {"{\"config\":1,\"config\":2}", "", "duplicate", -EBADMSG},
        {"[]", "", "no JSON object", -EBADMSG},
        {"", "", "no JSON", -EBADMSG},
        {"<html>", "text/html", "no JSON", -EBADMSG},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct manifest m;
        struct err err = {0};
        int r = parse(cases[i].text, cases[i].served, &m, &err);
        if (r != cases[i].code || !strstr(err.message, cases[i].words))
            fail_msg("%s: %d, %s", cases[i].text, r, err.message);
    }
}

/* Four megabytes of the smallest parts, which would take half a gigabyte. */
static void a_document_of_too_many_parts_is_refused_before_it_grows(void **state) {
    const size_t len = 4 << 20;
    char *text = malloc(len + 1);
    struct rusage before, after;
    struct manifest m = {0};
    struct err err = {0};

    (void)state;
    assert_non_null(text);
    memcpy(text, "{\"a\":[", 6);
    for (size_t i = 6; i + 3 <= len; i += 3)
        memcpy(text + i, "{},", 3);
    text[len] = '\0';
    (void)getrusage(RUSAGE_SELF, &before);
    assert_int_equal(manifest_parse(text, len, "", "x", &m, &err), -EBADMSG);
    (void)getrusage(RUSAGE_SELF, &after);
    assert_non_null(strstr(err.message, "200000 parts"));
    assert_true(after.ru_maxrss - before.ru_maxrss < 8 << 10);
    memset(text, '[', len);
    err_clear(&err);
    assert_int_equal(manifest_parse(text, 150000, "", "x", &m, &err),
                     -EBADMSG); /* deeper than any stack */
    free(text);
}

/* ------------------------------------------------------------------ platforms */

static void platforms_are_read_in_their_usual_forms(void **state) {
    static const struct {
        const char *text, *full;
    } good[] = {
        {"linux/amd64", "linux/amd64"},     {"amd64", "linux/amd64"},
        {"x86_64", "linux/amd64"},          {"linux/x86-64", "linux/amd64"},
        {"linux/amd64/v1", "linux/amd64"},  {"linux/amd64/v3", "linux/amd64/v3"},
        {"linux/arm64/v8", "linux/arm64"},  {"aarch64", "linux/arm64"},
        {"linux/arm", "linux/arm/v7"},      {"armhf", "linux/arm/v7"},
        {"linux/arm/v6", "linux/arm/v6"},   {"LINUX/ARM64", "linux/arm64"},
        {"linux/riscv64", "linux/riscv64"},
    };
    static const char *const refused[] = {"",
                                          "/",
                                          "linux/",
                                          "/amd64",
                                          "linux//v7",
                                          "a/b/c/d",
                                          "linux/amd64/",
                                          "windows/amd64",
                                          "darwin/arm64",
                                          "linux/am d64",
                                          "linux/\xc3\xa4",
                                          "linux/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct platform p;
        struct err err = {0};
        char text[PLATFORM_TEXT_SIZE];
        assert_ok(platform_parse(good[i].text, &p, &err), err);
        assert_string_equal(platform_format(&p, text), good[i].full);
    }
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct platform p;
        struct err err = {0};
        if (platform_parse(refused[i], &p, &err) == 0)
            fail_msg("%s was taken", refused[i]);
        assert_non_null(strstr(err.message, "; "));
    }
}

static void an_older_variant_runs_on_a_newer_machine_and_not_the_other_way(void **state) {
    static const struct {
        const char *wanted, *offered;
        int distance;
    } cases[] = {
        {"linux/amd64", "linux/amd64", 0},         {"linux/amd64", "linux/amd64/v2", -1},
        {"linux/amd64/v3", "linux/amd64/v2", 100}, {"linux/amd64/v3", "linux/amd64", 300},
        {"linux/arm/v7", "linux/arm/v6", 100},     {"linux/arm/v6", "linux/arm/v7", -1},
        {"linux/arm64", "linux/arm64/v8", 0},      {"linux/arm64", "linux/amd64", -1},
        {"linux/arm64", "linux/arm/v7", -1},       {"linux/arm64/v8.2", "linux/arm64/v8.1", 1},
        {"linux/arm/odd", "linux/arm/v7", -1},     {"linux/arm/odd", "linux/arm/odd", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct platform wanted, offered;
        struct err err = {0};
        assert_ok(platform_parse(cases[i].wanted, &wanted, &err), err);
        assert_ok(platform_parse(cases[i].offered, &offered, &err), err);
        int got = platform_distance(&wanted, &offered);
        if (got != cases[i].distance)
            fail_msg("%s on %s: %d", cases[i].offered, cases[i].wanted, got);
    }
}

#define ITEM(n, rest)                                                                              \
    "{\"mediaType\":\"" OCI "manifest.v1+json\",\"digest\":\"sha256:" D64 "\",\"size\":" n rest "}"
#define FOR(os, arch, variant)                                                                     \
    ",\"platform\":{\"os\":\"" os "\",\"architecture\":\"" arch "\"" variant "}"
#define INDEX(items) "{\"schemaVersion\":2,\"manifests\":[" items "]}"
#define ATTESTATION                                                                                \
    ITEM("1", FOR("unknown", "unknown",                                                            \
                  "") ",\"annotations\":{\"vnd.docker.reference.type\":\"attestation-manifest\"}")

/* The item that was chosen is told by its size. */
static void the_best_item_of_an_index_is_chosen(void **state) {
    static const struct {
        const char *items, *platform;
        int64_t size;
        const char *words;
    } cases[] = {
        {ATTESTATION "," ITEM("2", FOR("linux", "amd64", "")) "," ITEM(
             "3", FOR("linux", "arm64", ",\"variant\":\"v8\"")),
         "linux/arm64", 3, NULL},
        {ITEM("2", FOR("linux", "arm", ",\"variant\":\"v5\"")) "," ITEM(
             "3", FOR("linux", "arm", ",\"variant\":\"v6\"")) "," ITEM("4",
                                                                       FOR("linux", "arm",
                                                                           ",\"variant\":\"v7\"")),
         "linux/arm/v6", 3, NULL},
        {ITEM("2", FOR("linux", "arm", ",\"variant\":\"v5\"")) "," ITEM(
             "4", FOR("linux", "arm", ",\"variant\":\"v7\"")),
         "linux/arm/v6", 2, NULL},
        {ITEM("2", FOR("linux", "amd64", ",\"variant\":\"v3\"")) "," ITEM(
             "3", FOR("linux", "amd64", "")),
         "linux/amd64", 3, NULL},
        {ITEM("2", FOR("linux", "amd64", "")) "," ITEM("3", FOR("linux", "amd64", "")),
         "linux/amd64", 2, NULL},
        {ATTESTATION "," ITEM("2", ""), "linux/amd64", 2, NULL},
        {ITEM("2", "") "," ITEM("3", ""), "linux/amd64", 0, "nothing in it"},
        {ITEM("2", FOR("windows", "amd64", "")) "," ITEM(
             "3", FOR("linux", "arm", ",\"variant\":\"v7\"")) "," ATTESTATION,
         "linux/amd64", 0, "there is windows/amd64, linux/arm/v7; choose one with --platform"},
        {ATTESTATION, "linux/amd64", 0, "nothing in it"},
        {"", "linux/amd64", 0, "nothing in it"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct manifest m;
        struct platform wanted;
        struct err err = {0};
        char text[2000];
        (void)snprintf(text, sizeof(text), INDEX("%s"), cases[i].items);
        if (parse(text, i % 2 ? DOCKER "manifest.list.v2+json" : OCI "index.v1+json", &m, &err) < 0)
            fail_msg("%s", err.message);
        assert_true(m.is_index);
        assert_ok(platform_parse(cases[i].platform, &wanted, &err), err);
        const struct index_item *item = manifest_choose(&m, &wanted, "x", &err);
        if ((item ? item->manifest.size : 0) != cases[i].size ||
            (cases[i].words && !strstr(err.message, cases[i].words)))
            fail_msg("case %zu: size %lld, %s", i, item ? (long long)item->manifest.size : 0,
                     err.message);
        manifest_done(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_families_of_images_are_taken),
        cmocka_unit_test(what_is_no_image_is_refused_by_name),
        cmocka_unit_test(a_document_of_too_many_parts_is_refused_before_it_grows),
        cmocka_unit_test(platforms_are_read_in_their_usual_forms),
        cmocka_unit_test(an_older_variant_runs_on_a_newer_machine_and_not_the_other_way),
        cmocka_unit_test(the_best_item_of_an_index_is_chosen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
