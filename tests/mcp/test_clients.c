/*
 * test_clients.c: others' programs call `mayfly mcp`: the official SDK's client, the `ai` package's, the official
 * inspector, and the conformance suite. The suite calls tools by names of its own; this program serves them, by the same
 * transport and protocol as mayfly-mcp does its own, so that it is these which are looked at.
 */
#include "package/package.h"

#include <sys/prctl.h>
#include <sys/signalfd.h>

#include "mcp/mcp.h"
#include "mcp/transport.h"

#include "base/banned.h"

#define SCRIPT "tests/mcp/clients.sh"

PACKAGE_TEST(the_conformance_suite_passes_with_its_own_tools)
PACKAGE_TEST(the_program_passes_what_of_the_suite_needs_no_tool_of_its_own)
PACKAGE_TEST(the_official_sdks_client_calls_it_down_a_pipe)
PACKAGE_TEST(the_official_sdks_client_calls_it_by_http)
PACKAGE_TEST(a_model_of_the_ai_package_reads_a_traceback_and_mends_its_code)
PACKAGE_TEST(the_official_inspector_lists_and_calls)

/* ------------------------------------------------------------------ the suite's tools */

/* A PNG of one pixel. */
#define PIXEL                                                                                      \
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJg" \
    "gg=="
#define RESOURCE                                                                                   \
    "{\"type\":\"resource\",\"resource\":{\"uri\":\"test://x\",\"mimeType\":\"text/plain\","       \
    "\"text\":\"hello\"}}"
#define IMAGE "{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"" PIXEL "\"}"

static const struct {
    const char *name, *more; /* content after the text */
    const char *schema;
} suite[] = {
    {"test_simple_text", NULL, NULL},
    {"test_error_handling", NULL, NULL},
    {"test_tool_with_logging", NULL, NULL},
    {"test_tool_with_progress", NULL, NULL},
    {"test_image_content", "[" IMAGE "]", NULL},
    {"test_audio_content",
     "[{\"type\":\"audio\",\"mimeType\":\"audio/wav\",\"data\":\"UklGRiQAAABXQVZF\"}]", NULL},
    {"test_embedded_resource", "[" RESOURCE "]", NULL},
    {"test_multiple_content_types", "[" IMAGE "," RESOURCE "]", NULL},
    {"json_schema_2020_12_tool", NULL,
     "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\",\"$defs\":{"
     "\"address\":{\"type\":\"object\"}},\"properties\":{\"address\":{\"$ref\":\"#/$defs/"
     "address\"}},"
     "\"additionalProperties\":false}"},
};
enum { N_SUITE = sizeof(suite) / sizeof(suite[0]) };

static void finish(const char *more, bool is_error, struct tool_answer *ret) {
    static const char text[] = "This is a simple text response for testing.";

    *ret = (struct tool_answer){.is_error = is_error,
                                .text = strdup(text),
                                .len = strlen(text),
                                .more = more ? json_loads(more, 0, NULL) : NULL};
}

static void answer(void *owner, const json_t *arguments, const struct tool_run *run,
                   struct tool_answer *ret) {
    (void)owner, (void)arguments, (void)run;
    finish(NULL, false, ret);
}

static void answer_error(void *owner, const json_t *arguments, const struct tool_run *run,
                         struct tool_answer *ret) {
    (void)owner, (void)arguments, (void)run;
    finish(NULL, true, ret);
}

static void answer_slowly(void *owner, const json_t *arguments, const struct tool_run *run,
                          struct tool_answer *ret) {
    (void)owner, (void)arguments;
    for (int i = 0; i <= 100; i += 50) {
        run->progress(run, i, 100, "goes on");
        run->log(run, TOOL_INFO, "Tool processing data");
        live_sleep_ms(50);
    }
    finish(NULL, false, ret);
}

#define WITH_CONTENT(n)                                                                            \
    static void answer_with_##n(void *owner, const json_t *arguments, const struct tool_run *run,  \
                                struct tool_answer *ret) {                                         \
        (void)owner, (void)arguments, (void)run;                                                   \
        finish(suite[n].more, false, ret);                                                         \
    }
WITH_CONTENT(4)
WITH_CONTENT(5)
WITH_CONTENT(6)
WITH_CONTENT(7)

static void serve_suite(int url) {
    static void (*const functions[N_SUITE])(void *, const json_t *, const struct tool_run *,
                                            struct tool_answer *) = {
        answer,        answer_error,  answer_slowly, answer_slowly, answer_with_4,
        answer_with_5, answer_with_6, answer_with_7, answer};
    const struct http_options options = {.address = "0"};
    struct tool list[N_SUITE];
    const struct tool_set set = {.list = list, .n = N_SUITE};
    struct mayfly_error error = {0};
    sigset_t signals;

    for (size_t i = 0; i < N_SUITE; i++)
        list[i] = (struct tool){
            .name = suite[i].name,
            .call = functions[i],
            .definition = json_pack(
                "{s:s,s:s,s:o}", "name", suite[i].name, "description", "of the suite",
                "inputSchema",
                json_loads(suite[i].schema ? suite[i].schema : "{\"type\":\"object\"}", 0, NULL))};
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    (void)dup2(url, STDOUT_FILENO);
    _exit(serve_http(&set, 4, signalfd(-1, &signals, SFD_CLOEXEC), &options, &error) ==
                  128 + SIGTERM
              ? 0
              : 1);
}

static pid_t server;

static int begin(void **state) {
    char url[128] = "";
    int ends[2];

    (void)state;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    server = fork();
    if (server == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        serve_suite(ends[1]);
    }
    (void)close(ends[1]);
    ssize_t n = read(ends[0], url, sizeof(url) - 1);
    if (server < 0 || n < 1)
        return -1;
    url[strcspn(url, "\n")] = '\0';
    (void)close(ends[0]);
    (void)setenv("URL", url, 1);
    if (!live_has_cgroups())
        (void)setenv("BEST_EFFORT", "1", 1);
    return 0;
}

static int end(void **state) {
    int status = -1;

    (void)state;
    (void)kill(server, SIGTERM);
    (void)waitpid(server, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_conformance_suite_passes_with_its_own_tools),
        cmocka_unit_test(the_program_passes_what_of_the_suite_needs_no_tool_of_its_own),
        cmocka_unit_test(the_official_sdks_client_calls_it_down_a_pipe),
        cmocka_unit_test(the_official_sdks_client_calls_it_by_http),
        cmocka_unit_test(a_model_of_the_ai_package_reads_a_traceback_and_mends_its_code),
        cmocka_unit_test(the_official_inspector_lists_and_calls),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
