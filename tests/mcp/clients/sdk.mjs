// The official TypeScript SDK's client, by either transport: all that a host does with a server of tools.
// Usage: node sdk.mjs PROGRAM FLAG... | node sdk.mjs URL
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { LoggingMessageNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

const [target, ...args] = process.argv.slice(2);
const transport = target.startsWith("http")
    ? new StreamableHTTPClientTransport(new URL(target))
    : new StdioClientTransport({ command: target, args });
const client = new Client({ name: "mayfly-test", version: "1" });
const logged = [];
client.setNotificationHandler(LoggingMessageNotificationSchema, (n) => void logged.push(n.params));
await client.connect(transport);
assert.equal(client.getServerVersion().name, "mayfly");

await client.ping();
const { tools } = await client.listTools(); // from now on it holds results to the output schema
assert.deepEqual(tools.map((tool) => tool.name), ["run_python"]);

const call = (code, options, more) =>
    client.callTool({ name: "run_python", arguments: { code, ...more } }, undefined, options);

let result = await call("import sys\nprint(sum(map(int, sys.stdin)))", {}, { stdin: "40\n2\n" });
assert.equal(result.isError, false);
assert.equal(result.structuredContent.stdout, "42\n");
assert.match(result.content[0].text, /^exit code: 0\n\nstdout:\n42\n$/);

result = await call("1/0");
assert.equal(result.isError, false);
assert.match(result.structuredContent.stderr, /ZeroDivisionError/);

result = await call("print('\\0\\ud83d\\ude00'.encode('utf-16', 'surrogatepass').decode('utf-16'))");
assert.equal(result.structuredContent.stdout, "\0\u{1f600}\n");

result = await client.callTool({ name: "run_python", arguments: { script: "1" } });
assert.equal(result.isError, true);
await assert.rejects(client.callTool({ name: "no_such_tool", arguments: {} }), /-32602/);
await assert.rejects(client.listResources(), /-32601/);

// At once, and each its own.
const many = await Promise.all(Array.from({ length: 12 }, (_, i) => call(`print(${i})`)));
many.forEach((one, i) => assert.equal(one.structuredContent.stdout, `${i}\n`));

// What takes longer tells so; what is no longer wanted is killed, and the next is served.
const told = [];
await call("import time; time.sleep(1.3)", { onprogress: (p) => told.push(p.progress) });
assert.ok(told.length >= 1 && told[0] >= 1);
const cancel = new AbortController();
setTimeout(() => cancel.abort(), 200);
await assert.rejects(call("import time; time.sleep(9)", { signal: cancel.signal }));
await client.setLoggingLevel("info");
assert.equal((await call("print('on')")).structuredContent.stdout, "on\n");
assert.ok(logged.some((one) => one.level === "info"));

if (transport.terminateSession) await transport.terminateSession();
await client.close();
console.log("all is well");
