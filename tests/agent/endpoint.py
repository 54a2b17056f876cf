#!/usr/bin/env python3
"""An OpenAI-compatible endpoint that plays a script, for tests/agent/agent.sh.

The URL says which: /SCRIPT/NAME/v1/chat/completions; each NAME is a conversation of its own. What it is sent is held to
the protocol before the script has its turn, and the key to its one place; a fault is answered with 418 and its words.

Usage: endpoint.py PORTFILE KEY
"""
import email.utils, json, os, socket, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORTFILE, KEY = sys.argv[1:]
turns = {}  # of each conversation, how often it was asked
seen = {}  # and when last


# ------------------------------------------------------------------ what may be sent


def need(condition, words):
    if not condition:
        raise AssertionError(words)


def check_messages(messages):
    """The order of roles, and that each call has one answer, by its id."""
    need(messages[0]["role"] in ("system", "user"), "the first message")
    need([m["role"] for m in messages[:2]].count("user") == 1, "the question comes first")
    waiting = []
    for m in messages:
        need(set(m) <= {"role", "content", "tool_calls", "tool_call_id"}, f"a message's fields: {list(m)}")
        if m["role"] == "tool":
            need(waiting and m["tool_call_id"] == waiting.pop(0), "an answer to another call")
            need(isinstance(m["content"], str) and m["content"], "an answer without text")
            continue
        need(not waiting, "a call without an answer")
        need(m["content"] is None or isinstance(m["content"], str), "content")
        for call in m.get("tool_calls", []):
            need(m["role"] == "assistant", "a call of somebody else")
            need(set(call) == {"id", "type", "function"} and call["type"] == "function", "a call's fields")
            need(set(call["function"]) == {"name", "arguments"}, "a function's fields")
            need(isinstance(call["function"]["arguments"], str), "arguments are text")
            waiting.append(call["id"])
    need(not waiting and messages[-1]["role"] in ("user", "tool"), "nothing to be answered")


def check_tools(tools):
    need(tools, "no tools")
    for tool in tools:
        need(set(tool) == {"type", "function"} and tool["type"] == "function", "a tool's fields")
        f = tool["function"]
        need(set(f) == {"name", "description", "parameters"}, "a function's fields")
        p = f["parameters"]
        need(p["type"] == "object" and p["additionalProperties"] is False and p["required"], "parameters")
        need(all(name in p["properties"] for name in p["required"]), "what is required is described")
        need("sandbox" in f["description"], "the description says what it is")


def check(handler, text):
    need(handler.headers["Content-Type"] == "application/json", "Content-Type")
    need(handler.headers["Authorization"] == f"Bearer {KEY}", "Authorization")
    others = [v for k, v in handler.headers.items() if k.lower() != "authorization"]
    need(KEY not in " ".join([text, handler.path, *others]), "the key is where it should not be")
    body = json.loads(text)
    check_messages(body["messages"])
    check_tools(body["tools"])
    need(body["model"] == "test-model", "model")
    return body


# ------------------------------------------------------------------ what is answered


def chunk(delta, finish=None):
    return {"object": "chat.completion.chunk", "model": "test-model-1",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


USAGE = {"object": "chat.completion.chunk", "choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 7}}


def said(text, finish="stop"):
    """A text as chunks, cut in the middle of words."""
    return [chunk({"role": "assistant", "content": ""})] + [
        chunk({"content": text[i:i + 3]}) for i in range(0, len(text), 3)] + [chunk({}, finish), USAGE]


def called(*calls, text=None):
    """Calls as chunks, their arguments in pieces, those of one among those of another."""
    pieces = [chunk({"role": "assistant", "content": text})]
    texts = []
    for i, (name, arguments) in enumerate(calls):
        texts.append(arguments if isinstance(arguments, str) else json.dumps(arguments))
        pieces.append(chunk({"tool_calls": [{"index": i, "id": f"call-{name}-{i}", "type": "function",
                                             "function": {"name": name, "arguments": ""}}]}))
    for at in range(0, max(map(len, texts)), 5):
        for i, arguments in enumerate(texts):
            if arguments[at:at + 5]:
                pieces.append(chunk({"tool_calls": [{"index": i, "function": {"arguments": arguments[at:at + 5]}}]}))
    return pieces + [chunk({}, "tool_calls"), USAGE]


def python(code, **more):
    return called(("run_python", {"code": code, **more}))


def whole(message, finish="stop"):
    return {"object": "chat.completion", "model": "test-model-1", "usage": USAGE["usage"],
            "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self, status, text, kind="application/json", **headers):
        data = text.encode() if isinstance(text, str) else json.dumps(text).encode()
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": len(data), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def error(self, status, words, **more):
        headers = {k: v for k, v in more.items() if k[0].isupper()}
        self.body(status, {"error": {"message": words, **{k: v for k, v in more.items() if k[0].islower()}}}, **headers)

    def piece(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def open_stream(self, kind="text/event-stream"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def stream(self, chunks, end="\n"):
        self.open_stream()
        self.piece(f": a comment{end}{end}")
        for c in chunks:
            self.piece(f"data: {json.dumps(c)}{end}{end}")
        self.piece(f"data: [DONE]{end}{end}")
        self.piece("")

    def cut(self):
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def do_GET(self):
        self.error(418, f"GET {self.path}")

    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        _, script, name, *rest = self.path.split("/")
        now, before = time.monotonic(), seen.get(self.path, 0)
        turns[self.path] = turn = turns.get(self.path, 0) + 1
        try:
            need(rest == ["v1", "chat", "completions"], f"path {self.path}")
            asked = check(self, text)
            self.since, self.last = now - before, asked["messages"][-1]["content"]
            answer = getattr(self, "play_" + script)(turn, asked)
            if answer:
                self.stream(answer)
        except AssertionError as e:
            self.error(418, f"{script}, turn {turn}: {e}")
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        seen[self.path] = time.monotonic()

    # -------------------------------------------------------------- scripts: chunks to be streamed, or None

    def play_corrects(self, turn, asked):
        if turn == 1:
            need(asked["messages"][-1] == {"role": "user", "content": "What is 1 + … + 10, and over 0?"}, "the question")
            need(asked["stream"] is True and asked["stream_options"] == {"include_usage": True}, "streaming")
            return called(("run_python", {"code": "total = sum(range(11))\nprint(total / 0)"}), text="Let me compute. ")
        if turn == 2:
            for words in ("exit code: 1\n", "stderr:\nTraceback (most recent call last):\n", "line 2, in <module>\n",
                          "ZeroDivisionError: division by zero\n"):
                need(words in self.last, f"no {words!r} in {self.last!r}")
            return python("print(sum(range(11)))")
        need(self.last == "exit code: 0\n\nstdout:\n55\n", self.last)
        need([m["role"] for m in asked["messages"]] == ["system", "user", "assistant", "tool", "assistant", "tool"], "roles")
        need(asked["messages"][2]["content"] == "Let me compute. ", "what was said with the call stays")
        return said("The sum is 55; over 0 it is nothing.\n")

    def play_files(self, turn, asked, first="", second=""):
        if turn == 1:
            return python("text = open('/in/data.csv').read()\nopen('/out/sum.txt', 'w').write(str(sum(map(int, text.split(',')))))")
        if turn == 2:
            need(f"files left in /out{first}:\nsum.txt (2 B)\n" in self.last, self.last)
            return python("open('/out/sum.txt', 'w').write(open('/in/more').read())",
                          files=[{"name": "more", "text": "corrected"}])
        if turn == 3:
            need(f"files left in /out{second}:\nsum.txt (9 B)\n" in self.last, self.last)
            return python("print('nothing left')")
        need(self.last == "exit code: 0\n\nstdout:\nnothing left\n", self.last)
        return said("It is in sum.txt.")

    def play_kept(self, turn, asked):
        where = ", kept for the user in the directory "
        return self.play_files(turn, asked, where + "1", where + "3")

    def play_whole(self, turn, asked):
        if turn == 1:
            call = {"id": "a", "type": "function", "function": {"name": "run_python", "arguments": '{"code": "print(6*7)"}'}}
            return self.body(200, whole({"content": None, "tool_calls": [call]}, "tool_calls"))
        need(self.last == "exit code: 0\n\nstdout:\n42\n", self.last)
        return self.body(200, whole({"content": [{"type": "text", "text": "It is "}, {"type": "text", "text": "42."}]}))

    def play_old(self, turn, asked):
        for name in ("stream_options", "stream"):
            if name in asked:
                return self.error(400, f"Unrecognized request argument supplied: {name}")
        return self.play_whole(turn - 2, asked)

    def play_tokens(self, turn, asked):
        if "max_tokens" in asked:
            return self.error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        need(asked["max_completion_tokens"] == 77, "--max-tokens")
        return said("Short.")

    def play_two(self, turn, asked):
        if turn == 1:
            return called(("run_python", {"code": "import time\ntime.sleep(1)\nprint('first')"}),
                          ("run_python", {"code": "import time\ntime.sleep(1)\nprint('second')"}))
        need("first" in asked["messages"][-2]["content"] and "second" in self.last, "in the order of the calls")
        need(self.since < 1.9, f"beside each other, not in {self.since} s")
        return said("Both ran.")

    def play_strange(self, turn, asked):
        """Nothing that the protocol leaves open: no ids, no index; then one index for two; CRs; no blank line at the end."""
        if turn == 1:
            function = {"name": "run_python", "arguments": {"code": "print('object')"}}
            return self.stream([chunk({"tool_calls": [{"function": function}]}), chunk({}, "tool_calls")], end="\r\n")
        if turn == 2:
            need("object" in self.last and asked["messages"][-1]["tool_call_id"], self.last)
            calls = [{"index": 0, "id": i, "function": {"name": "run_python", "arguments": json.dumps({"code": f"print('{i}')"})}}
                     for i in ("x", "y")]
            return self.stream([chunk({"tool_calls": calls}), chunk({}, "tool_calls")], end="\r")
        if turn == 3:
            need([m["tool_call_id"] for m in asked["messages"][-2:]] == ["x", "y"], "two calls of one index")
            self.open_stream("text/plain")
            self.piece("data: " + json.dumps(chunk({"content": "Under"})) + "\n\ndata:" + json.dumps(chunk({"content": "stood."}, "stop"))
                       + "\ndata\n")
            self.piece("")

    def play_unknown(self, turn, asked):
        if turn == 1:
            return called(("browse", {"url": "http://x"}))
        need(self.last == 'There is no tool "browse". There is: run_python.', self.last)
        return said("I cannot browse.")

    def play_malformed(self, turn, asked):
        if turn == 1:
            return called(("run_python", '{"code": "print(1)'), ("run_python", "[1]"), ("run_python", {"program": "x"}),
                          ("run_python", {"code": "1", "timeout": 1000}))
        if turn == 2:
            for m, words in zip(asked["messages"][-4:], ("line 1", "no object", "has no argument", "has to be a number of seconds")):
                need(words in m["content"] and "Traceback" not in m["content"], m["content"])
            return python("print('mended')")
        need("mended" in self.last, self.last)
        return said("Mended.")

    def play_denied(self, turn, asked):
        return self.error(401, f"Incorrect API key provided: {KEY}. Find yours at https://example.org.")

    def play_nomodel(self, turn, asked):
        return self.error(404, "The model `test-model` does not exist")

    def play_seconds(self, turn, asked):
        if turn == 1:
            return self.error(429, "Rate limit reached", Retry_After="1")
        need(0.9 < self.since < 8, f"after a second, not {self.since}")
        return said("Patience.")

    def play_date(self, turn, asked):
        if turn == 1:
            return self.error(429, "Rate limit reached", Retry_After=email.utils.formatdate(time.time() + 2, usegmt=True))
        need(0.9 < self.since < 8, f"after one to two seconds, not {self.since}")
        return said("Patience.")

    def play_never(self, turn, asked):
        return self.error(429, "Rate limit reached", Retry_After="86400")

    def play_quota(self, turn, asked):
        need(turn == 1, "asked again")
        return self.error(429, "You exceeded your current quota", code="insufficient_quota")

    def play_trouble(self, turn, asked):
        if turn <= 2:
            return self.body((500, 502)[turn - 1], "<html>oh</html>", "text/html")
        return said("Well again.")

    def play_down(self, turn, asked):
        need(turn <= 2, "asked too often")
        return self.error(503, "The server is\noverloaded\x1b[2J")

    def half(self, text):
        self.open_stream()
        self.piece("data: " + json.dumps(chunk({"content": text})) + "\n\n")
        self.piece('data: {"choices":[{"del')

    def play_cut(self, turn, asked):
        if turn == 1:
            self.half("What is cut off")
            return self.cut()
        if turn == 2:  # it ends well, but for its end
            self.open_stream()
            self.piece("data: " + json.dumps(chunk({"content": "too early"})) + "\n\n")
            return self.piece("")
        return said("Whole.")

    def play_cutalways(self, turn, asked):
        need(turn <= 2, "asked too often")
        self.half("never whole")
        return self.cut()

    def play_inside(self, turn, asked):
        if turn == 1:
            return self.stream([chunk({"content": "Hm"}), {"error": {"message": "overloaded", "type": "server_error"}}])
        return said("Then it went well.")

    def play_drips(self, turn, asked):
        self.open_stream()
        while True:
            self.piece(": \n")
            time.sleep(0.05)

    def play_open(self, turn, asked):
        """All is said, and the connection stays as it is."""
        self.open_stream()
        for c in said("All."):
            self.piece("data: " + json.dumps(c) + "\n\n")
        self.piece("data: [DONE]\n\n")
        time.sleep(30)

    def play_longline(self, turn, asked):
        self.open_stream()
        self.piece("data: ")
        while True:
            self.piece("x" * 65536)

    def play_flood(self, turn, asked):
        self.open_stream()
        while True:
            self.piece(("data: " + json.dumps(chunk({"content": "y" * 60000})) + "\n\n"))

    def play_html(self, turn, asked):
        return self.body(200, "<html>Please log in</html>", "text/html")

    def play_nojson(self, turn, asked):
        self.open_stream()
        self.piece("data: {oops\n\n")
        self.piece("")

    def play_other(self, turn, asked):
        return self.body(200, {"object": "list", "data": []})

    def play_empty(self, turn, asked):
        return self.body(200, "")

    def play_deep(self, turn, asked):
        return self.body(200, "[" * 1000000)

    def play_moved(self, turn, asked):
        port = self.server.server_address[1]
        return self.body(307, "", Location=f"http://127.0.0.2:{port}/corrects/elsewhere/v1/chat/completions?a=secret")

    def play_length(self, turn, asked):
        return said("The first half of", "length")

    def play_mute(self, turn, asked):
        return said("")

    def play_again(self, turn, asked):
        need(turn <= 2, "asked too often")
        return python(f"print({turn})")

    def play_sleeps(self, turn, asked):
        if turn == 1:
            return python("import ctypes, time\nctypes.CDLL(None).prctl(15, b'nap-" + self.path.split("/")[2] + "')\ntime.sleep(60)")
        return said("It slept.")

    def play_thinks(self, turn, asked):
        time.sleep(20)

    def play_spy(self, turn, asked):
        if turn == 1:
            return python("import glob, os\nprint(sorted(os.environ))\n"
                          "for f in glob.glob('/proc/*/environ') + glob.glob('/proc/*/cmdline') + glob.glob('/proc/*/mem'):\n"
                          "    try: print(f, open(f, 'rb').read())\n"
                          "    except OSError as e: print(e)")
        need("'HOME'" in self.last and "API" not in self.last, self.last)
        return said("Nothing found.")

    def play_long(self, turn, asked):
        if turn == 1:
            return python("print('begin' + 'é' * 400000 + 'end')")
        need("begin" in self.last and "bytes are left out here" in self.last and "end\n" in self.last, self.last[:300])
        need(len(self.last.encode()) < 50000, f"{len(self.last)}")
        return said("Long.")

    def play_rude(self, turn, asked):
        if turn == 1:
            return called(("run_python", {"code": "print('\\x1b[31mred')  # \x1b]0;title\x07"}))
        return said("plain\x1b[2J\x1b]0;owned\x07 text\n")

    def play_echo(self, turn, asked):
        asked["tools"] = [t["function"]["name"] for t in asked["tools"]]
        return said(json.dumps(asked))


class Elsewhere(Handler):
    """Where nobody has been sent by the operator."""

    def do_POST(self):
        with open(PORTFILE + ".visited", "a") as f:
            print(self.path, self.headers, file=f)
        self.error(418, "a redirect was followed")


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


server = Server(("127.0.0.1", 0), Handler)
try:
    other = Server(("127.0.0.2", server.server_address[1]), Elsewhere)
    threading.Thread(target=other.serve_forever, daemon=True).start()
except OSError:
    sys.exit("no second address on the loopback")
with open(PORTFILE + ".new", "w") as f:
    print(server.server_address[1], file=f)
os.rename(PORTFILE + ".new", PORTFILE)
server.serve_forever()
