/*
 * test_report.c: the lab's page and its Markdown: they hold what the JSON says, nothing in it becomes markup, and JSON
 * that is not the lab's is refused in one line before the first byte is written.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lab/lab.h"
#include "lab/report.h"

#include "base/banned.h"

#define HOSTILE                                                                                    \
    "</script><img src=x onerror=alert(1)> | `a` & {{matrix}} <!-- \\u2028\\u202e\\u0007 www.x "   \
    "http://x"

#define CELL(result, errno_name)                                                                   \
    "{\"result\":\"" result "\",\"call\":\"connect\",\"errno\":\"" errno_name                      \
    "\",\"detail\":\"" HOSTILE "\",\"host\":\"\",\"ms\":1.5}"

static const char good[] =
    "{\"format\":\"mayfly-lab/"
    "1\",\"mayfly\":\"0.6.0\",\"kernel\":\"6.18.5\",\"machine\":\"x86_64\","
    "\"where\":\"box\","
    "\"as\":\"root\",\"cgroups\":\"v2\",\"started\":\"2026-11-30T04:00:"
    "00Z\",\"seconds\":2.5,\"attempts\":12,"
    "\"controls\":[{\"name\":\"net\",\"summary\":\"no "
    "network\",\"source\":\"network_namespaces(7)\","
    "\"without\":\"every address\",\"available\":true,\"why\":null,"
    "\"price\":{\"rowsUs\":480.14,\"runUs\":-1.21,\"rounds\":25},\"sole\":["
    "\"SO1\"],\"backs\":[],\"needed\":[],"
    "\"stopsNothing\":null},"
    "{\"name\":\"uts\",\"summary\":\"a "
    "name\",\"source\":\"uts_namespaces(7)\",\"without\":\"the host's\","
    "\"available\":false,\"why\":\"this kernel has "
    "none\",\"price\":null,\"sole\":[],\"backs\":[],\"needed\":[],"
    "\"stopsNothing\":\"" HOSTILE "\"}],"
    "\"families\":[{\"name\":\"sockets\",\"title\":\"sockets & <b>\"}],"
    "\"probes\":[{\"id\":\"SO1\",\"title\":\"reach "
    "localhost\",\"family\":\"sockets\",\"expected\":[\"net\"],"
    "\"sees\":[\"ECONNREFUSED\"],\"echo\":\"CVE-2020-15257\",\"mustPass\":"
    "false,\"verdict\":\"counts\",\"why\":null,"
    "\"minimal\":[[\"net\"],[\"caps\",\"user\"]],\"redundancy\":0,"
    "\"matrix\":{\"net\":\"stopped\",\"uts\":\"through\"},\"cells\":{"
    "\"allOn\":" CELL("stopped", "ECONNREFUSED") ",\"allOff\":" CELL(
        "through", "") ",\"without\":{\"net\":" CELL("through",
                                                     "") "},\"only\":{},\"sets\":[]}},"
                                                         "{\"id\":\"SO2\",\"title\":"
                                                         "\"" HOSTILE "\",\"family\":\"sockets\","
                                                         "\"expected\":[],\"sees\":[],"
                                                         "\"echo\":null,"
                                                         "\"mustPass\":false,"
                                                         "\"verdict\":\"void\",\"why\":"
                                                         "\"it proves "
                                                         "nothing\",\"minimal\":[],"
                                                         "\"redundancy\":0,"
                                                         "\"matrix\":{},\"cells\":{}}],"
                                                         "\"peers\":[{\"name\":"
                                                         "\"bwrap\",\"version\":\"0."
                                                         "8\",\"command\":"
                                                         "\"bwrap " HOSTILE "\","
                                                         "\"cells\":{\"SO1\":{"
                                                         "\"result\":\"through\","
                                                         "\"explain\":\"no "
                                                         "--unshare-net\"}}}],"
                                                         "\"lacks\":{\"controls\":[\"uts\",\"net\"]"
                                                         ",\"thisHost\":true,\"predicted\":["
                                                         "\"SO2\"],\"through\":[\"SO1\"]},"
                                                         "\"faults\":[\"SO2 is "
                                                         "void\"]}";

typedef int renderer(const json_t *lab, FILE *out, struct err *err);

static json_t *load(const char *text) {
    json_error_t where;
    json_t *lab = json_loads(text, 0, &where);

    if (!lab)
        fail_msg("%s at %d", where.text, where.position);
    return lab;
}

/* What a renderer wrote, as text; malloc'ed. */
static char *rendered(renderer *render, const json_t *lab) {
    struct err err = {0};
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    assert_non_null(out);
    if (render(lab, out, &err) < 0)
        fail_msg("%s", err.message);
    (void)fclose(out);
    return text;
}

static void has(const char *text, const char *part) {
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in it", part);
}

static size_t count(const char *text, const char *part) {
    size_t n = 0;

    for (const char *p = text; (p = strstr(p, part)); p++)
        n++;
    return n;
}

static void the_page_holds_the_facts(void **state) {
    static const char *const facts[] = {
        "<td class=\"m stopped\" data-c=\"net\">stopped</td>",
        "<td class=\"m through lacking\" data-c=\"uts\">through</td>",
        "<th scope=row><b>SO1</b> <span>reach localhost</span></th>",
        "<th scope=col class=\"c lacking\" data-c=\"uts\">",
        "<i class=tag>void</i>",
        "<th colspan=4 scope=rowgroup><span>Sockets &amp; &lt;b&gt;</span></th>",
        "<span class=set><b>net</b></span> or <span class=set><b>caps</b> + <b>user</b></span>",
        "480.1",
        "-1.2",
        "<b>Not available here:</b> this kernel has none",
        "As in CVE-2020-15257",
        "<code>ECONNREFUSED</code>",
        "class=differs><span class=\"r through\">through</span>",
        "no --unshare-net",
        "0 stopped, 1 through; 1 differ from mayfly",
        "<small>it proves nothing</small>",
        "<li>SO2 is void</li>",
        "It lacks <b>uts</b>, <b>net</b>; so 1 of the probes tried get through, where <code>mayfly "
        "doctor</code> says 1: "
        "<b>SO2</b>.",
        "<li><b>SO1</b> reach localhost</li>",
        "<dd>Linux 6.18.5</dd>",
        "<dd>2026-11-30 04:00:00 UTC</dd>",
        "1 of 2 probes count",
    };
    json_t *lab = load(good);
    char *page = rendered(lab_html, lab);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(facts); i++)
        has(page, facts[i]);
    free(page);
    json_decref(lab);
}

static void no_text_becomes_markup(void **state) {
    json_t *lab = load(good);
    char *page = rendered(lab_html, lab);

    (void)state;
    assert_null(strstr(page, "<img"));
    assert_null(strstr(page, "\xe2\x80\xae")); /* what turns the direction of writing */
    assert_null(strchr(page, 7));
    assert_int_equal(count(page, "<script"), 2);
    assert_int_equal(count(page, "</script"), 2);
    assert_int_equal(count(page, "<table id=\"matrix\""), 1);
    has(page, "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt; | `a` &amp; {{matrix}} &lt;!-- ");
    free(page);
    json_decref(lab);
}

/* What the page's script reads is what the lab wrote. */
static void the_page_carries_its_data_whole(void **state) {
    static const char open[] = "<script type=\"application/json\" id=\"lab\">";
    json_t *lab = load(good);
    char *page = rendered(lab_html, lab), *data = strstr(page, open);

    (void)state;
    assert_non_null(data);
    data += strlen(open);
    *strstr(data, "</script>") = '\0';
    json_t *again = load(data);
    assert_true(json_equal(lab, again));
    json_decref(again);
    free(page);
    json_decref(lab);
}

/* Without the hash of just these bytes a browser would run neither. */
static void the_policy_names_the_style_and_the_script(void **state) {
    json_t *lab = load(good);
    char *page = rendered(lab_html, lab),
         *policy = strstr(page, "default-src 'none'; style-src 'sha256-");

    (void)state;
    assert_non_null(policy);
    assert_null(strstr(page, "unsafe-inline"));
    assert_int_equal(count(page, "'sha256-"), 2);
    for (const char *p = page; (p = strstr(p, "'sha256-")); p++)
        assert_int_equal(strcspn(p + 8, "'"), 44);
    free(page);
    json_decref(lab);
}

static void markdown_holds_the_facts_and_escapes(void **state) {
    static const char *const facts[] = {
        "\n### Sockets \\& \\<b\\>\n",
        "\n| SO1 | reach localhost (CVE-2020-15257) | ■ net | net; caps + user | 0 | through: "
        "connect | stopped: connect "
        "ECONNREFUSED |\n",
        "\n| net | 480.1 | -1.2 | 1 | 0 | 0 |  |\n",
        "\n| SO1 | stopped | through | no --unshare-net |\n",
        "\n- SO2 is void\n",
        "\nWithout uts, net: 1 of the probes tried get through; mayfly doctor says 1: SO2.\n",
        "\n- SO1, reach localhost\n",
        "\\</script\\>\\<img src=x onerror=alert(1)\\> \\| \\`a\\` \\& {{matrix}} \\<!-- ",
        " www\\.x http\\://x",
        "not available: this kernel has none; stops nothing here: ",
    };
    json_t *lab = load(good);
    char *text = rendered(lab_markdown, lab);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(facts); i++)
        has(text, facts[i]);
    assert_null(strstr(text, "\xe2\x80\xae"));
    /* no text broke a row: all rows of a table have as many bars */
    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        size_t bars = count(line, "|") - count(line, "\\|");
        if (strncmp(line, "| SO", 4) == 0)
            assert_true(bars == 8 || bars == 5);
        if (strncmp(line, "| uts", 5) == 0)
            assert_int_equal(bars, 8);
    }
    free(text);
    json_decref(lab);
}

/* Where `from` stood there is `to`. */
static json_t *changed(const char *from, const char *to) {
    char text[sizeof(good) + 256];
    const char *at = strstr(good, from);

    assert_non_null(at);
    (void)snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
    return load(text);
}

static void refused(renderer *render, const json_t *lab, const char *words) {
    struct err err = {0};
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    assert_non_null(out);
    assert_int_equal(render(lab, out, &err), -EINVAL);
    (void)fclose(out);
    assert_int_equal(len, 0);
    has(err.message, words);
    assert_null(strchr(err.message, '\n'));
    free(text);
}

static void what_is_not_the_labs_is_refused(void **state) {
    static const struct {
        const char *from, *to, *words;
    } bad[] = {
        {"mayfly-lab/1", "mayfly-lab/2",
         "format is \"mayfly-lab/2\" and not one of: mayfly-lab/1;"},
        {"\"kernel\"", "\"colonel\"", "kernel is missing"},
        {"\"attempts\":12", "\"attempts\":\"12\"", "attempts is not a number"},
        {"\"counts\"", "\"counted\"",
         "probes[0].verdict is \"counted\" and not one of: counts void"},
        {"\"counts\"", "\"counts void\"", "probes[0].verdict"},
        {"\"counts\"", "\"\"", "probes[0].verdict"},
        {"\"net\":\"stopped\"", "\"net\":7", "probes[0].matrix.net is not a text"},
        {"\"net\":\"stopped\"", "\"n\\net\":\"stoped\"", "probes[0].matrix.n"},
        {"[[\"net\"]", "[\"net\"", "probes[0].minimal[0] is not a list"},
        {"[[\"net\"]", "[[null]", "probes[0].minimal[0][0] is missing"},
        {"\"allOn\":{\"result\":\"stopped\"", "\"allOn\":{\"result\":null",
         "probes[0].cells.allOn.result is missing"},
        {"\"price\":{", "\"price\":[],\"x\":{", "controls[0].price is not an object"},
        {"\"name\":\"sockets\"", "\"name\":\"pockets\"",
         "families has no \"sockets\", which probe SO1 is of"},
        {"\"peers\":[{", "\"peers\":[1,{", "peers[0] is not an object"},
        {"[\"SO2 is void\"]", "[[]]", "faults[0] is not a text"},
    };
    json_t *list = load("[]");

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        json_t *lab = changed(bad[i].from, bad[i].to);

        refused(lab_html, lab, bad[i].words);
        refused(lab_markdown, lab, bad[i].words);
        json_decref(lab);
    }
    refused(lab_html, list, "it is not an object");
    json_decref(list);
}

/* Whatever is taken away of what may be absent, both can be written; of what may not, neither is. */
static void any_field_may_be_gone(void **state) {
    renderer *const renderers[] = {lab_html, lab_markdown};
    size_t written = 0, not_written = 0;

    (void)state;
    for (const char *p = good; (p = strstr(p, "\":")); p++) {
        char text[sizeof(good)];
        (void)memcpy(text, good, sizeof(text));
        text[p - good - 1] ^= 1; /* another name: the field is gone */
        json_t *lab = json_loads(text, 0, NULL);
        for (size_t i = 0; lab && i < ARRAY_LEN(renderers); i++) {
            struct err err = {0};
            char *out = NULL;
            size_t len = 0;
            FILE *file = open_memstream(&out, &len);

            assert_non_null(file);
            int r = renderers[i](lab, file, &err);
            (void)fclose(file);
            assert_true(r == 0 ? len > 500 : len == 0 && *err.message);
            *(r == 0 ? &written : &not_written) += 1;
            free(out);
        }
        json_decref(lab);
    }
    assert_true(written > 20 && not_written > 60);
}

static void a_full_disk_is_an_error(void **state) {
    json_t *lab = load(good);
    renderer *const renderers[] = {lab_html, lab_markdown};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(renderers); i++) {
        struct err err = {0};
        FILE *out = fopen("/dev/full", "w");

        assert_non_null(out);
        assert_true(renderers[i](lab, out, &err) < 0);
        has(err.message, "cannot write the lab's report");
        (void)fclose(out);
    }
    json_decref(lab);
}

/* A text cut in the middle of a character, as a fixed-size field may be. */
static void what_would_steer_a_screen_is_replaced(void **state) {
    const char *text = "a\x1b\x7f\xc2\x85\xe2\x80\x8f\xe2\x81\xa6\xc3\xa9\n\xe2\x82";
    char out[64];
    size_t n = 0, len = 0;

    (void)state;
    for (const char *c; (c = report_next(&text, &len)); n += len) {
        assert_true(n + len < sizeof(out));
        (void)memcpy(out + n, c, len);
    }
    out[n] = '\0';
#define R "\xef\xbf\xbd"
    assert_string_equal(out, "a" R R R R R "\xc3\xa9\n" R);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_holds_the_facts),
        cmocka_unit_test(no_text_becomes_markup),
        cmocka_unit_test(the_page_carries_its_data_whole),
        cmocka_unit_test(the_policy_names_the_style_and_the_script),
        cmocka_unit_test(markdown_holds_the_facts_and_escapes),
        cmocka_unit_test(what_is_not_the_labs_is_refused),
        cmocka_unit_test(any_field_may_be_gone),
        cmocka_unit_test(a_full_disk_is_an_error),
        cmocka_unit_test(what_would_steer_a_screen_is_replaced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
