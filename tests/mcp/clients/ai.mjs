// The `ai` package: a model, which is a script here, gets the tools of the server's, calls one with code that fails, reads
// the traceback, and mends it.
// Usage: node ai.mjs PROGRAM FLAG...
import assert from "node:assert/strict";
import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioMCPTransport } from "@ai-sdk/mcp/mcp-stdio";
import { generateText, stepCountIs } from "ai";
import * as testing from "ai/test";

const [command, ...args] = process.argv.slice(2);
const client = await createMCPClient({ transport: new StdioMCPTransport({ command, args }) });
const tools = await client.tools();
assert.deepEqual(Object.keys(tools), ["run_python"]);

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const call = (id, code) => ({
    content: [{ type: "tool-call", toolCallId: id, toolName: "run_python", input: JSON.stringify({ code }) }],
    finishReason: { unified: "tool-calls" }, usage, warnings: [],
});
const prompts = [];
const Model = testing.MockLanguageModelV4 ?? testing.MockLanguageModelV3;
const model = new Model({
    doGenerate: async ({ prompt, tools: offered }) => {
        assert.match(offered[0].description, /no network/);
        prompts.push(JSON.stringify(prompt));
        if (prompts.length === 1) return call("1", "print(sum([1, 2, '3']))");
        if (prompts.length === 2) return call("2", "print(sum([1, 2, int('3')]))");
        return { content: [{ type: "text", text: "It is 6." }], finishReason: { unified: "stop" }, usage, warnings: [] };
    },
});
const { text, steps } = await generateText({ model, tools, prompt: "Add them.", stopWhen: stepCountIs(6) });
assert.equal(text, "It is 6.");
assert.equal(steps.length, 3);
assert.match(prompts[1], /TypeError: unsupported operand/); // the model has read the traceback
assert.match(prompts[2], /stdout:\\+n6\\+n/);
await client.close();
console.log("all is well");
