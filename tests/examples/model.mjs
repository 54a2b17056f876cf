// A language model with the `ai` package, whose tool is `mayfly mcp`. The model is a script here, so that no key is needed
// to try it: it adds up badly, reads the traceback and mends its code. For a real one put in its place
//
//     import { createOpenAI } from "@ai-sdk/openai";
//     const model = createOpenAI()("NAME");
//
// Usage: cd tests/examples && npm install && MAYFLY=../../build/mayfly node model.mjs [FLAG...]    flags of `mayfly mcp`
import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioMCPTransport } from "@ai-sdk/mcp/mcp-stdio";
import { generateText, stepCountIs } from "ai";
import { MockLanguageModelV4 } from "ai/test";

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const says = (content, unified) => ({ content: [content], finishReason: { unified }, usage, warnings: [] });
const runs = (id, code) =>
    says({ type: "tool-call", toolCallId: id, toolName: "run_python", input: JSON.stringify({ code }) }, "tool-calls");

const model = new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
        const read = JSON.stringify(prompt.at(-1).content);
        if (prompt.at(-1).role === "user") return runs("1", "print(sum(['20', '1', '21']))");
        if (read.includes("TypeError: unsupported operand")) return runs("2", "print(sum(map(int, ['20', '1', '21'])))");
        return says({ type: "text", text: `It is ${read.match(/stdout:\\+n(\d+)/)[1]}.` }, "stop");
    },
});

const client = await createMCPClient({
    transport: new StdioMCPTransport({ command: process.env.MAYFLY ?? "mayfly", args: ["mcp", ...process.argv.slice(2)] }),
});
try {
    const { text, steps } = await generateText({
        model,
        tools: await client.tools(),
        prompt: "What is the sum of 20, 1 and 21?",
        stopWhen: stepCountIs(6),
    });
    for (const { toolResults } of steps)
        for (const { input, output } of toolResults) console.log(`${input.code}\n    ${output.content[0].text.split("\n")[0]}`);
    console.log(text);
} finally {
    await client.close();
}
