/*
 * cmd_agent.c: `mayfly agent`. As `mayfly mcp`, it reads the command line, finds or pulls the image, and becomes a
 * program of its own, mayfly-agent.
 */
#include <stdio.h>

#include "cli/cli.h"

#include "base/banned.h"

static const struct front_flag flags[] = {
    {"--model", "NAME", "the model that is asked (OPENAI_MODEL)"},
    {"--system", "TEXT", "what the model is told first, in place of mayfly's own words"},
    {"--max-steps", "N", "how often the model may be asked (6)"},
    {"--max-tokens", "N", "tokens of one answer (the endpoint's own limit)"},
    {"--allow-run", NULL, "offer the tool run_command, too: any program of the image"},
    LOG_FLAGS,
    {"--retries", "N", "how often a request that fails for the moment is made again (5)"},
    {"--request-timeout", "TIME", "the longest that one answer of the model may take (10m)"},
    {"--no-stream", NULL, "ask for whole answers: some endpoints cannot stream the calls of tools"},
    {"--plain-http", NULL, "allow http:// to other machines: key and all can be read on the way"},
    {"--quiet", NULL, "print the answer and errors only"},
    {"--json", NULL, "print one JSON object: the answer, the whole conversation, tokens"},
    {FRONT_WORD, "QUESTION", "what is asked; - is standard input"},
    {NULL, NULL, NULL},
};

void help_agent(const struct command *self) {
    front_help(self, flags);
    (void)printf(
        "\nEnvironment: OPENAI_API_KEY, OPENAI_BASE_URL (https://api.openai.com/v1), "
        "OPENAI_MODEL.\n"
        "Exit status: 0 answered, 3 an answer that is not whole, 4 no answer within --max-steps,\n"
        "125 an error, 128+N ended by signal N.\n");
}

int cmd_agent(const struct command *self, int argc, char **argv) {
    return front_command(self, argc, argv, flags, "mayfly-agent");
}
