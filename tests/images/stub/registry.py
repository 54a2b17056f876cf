#!/usr/bin/env python3
"""A registry that does wrong on purpose, for tests/images/pull.sh.

The repository's name says what is wrong with it: /v2/cut/blobs/... cuts connections, and so on; the table at the end of
this file has them all. Each request is a line in LOG: method, path, who asked (Authorization), the range.

Usage: registry.py LOG PORTFILE [CERT KEY]     two listeners, on 127.0.0.1 and as "another host" on 127.0.0.2
"""
import base64, gzip, hashlib, io, json, random, socketserver, ssl, sys, tarfile, threading, time
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

OCI = "application/vnd.oci.image."
DOCKER = "application/vnd.docker.distribution."
ROOTFS = "application/vnd.docker.image.rootfs."
LARGE = 2 << 20


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def tar(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.mode = 0o755
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


BLOBS = {}


def blob(data):
    BLOBS[digest(data)] = data
    return data


def described(data, kind, **more):
    return {"mediaType": kind, "digest": digest(data), "size": len(data), **more}


class Image:
    """Two layers, a large one and a small one, and a configuration."""

    def __init__(self, name, arch="amd64", variant=None, layer_type=OCI + "layer.v1.tar+gzip", docker=False, pack=True, large=100):
        noise = random.Random(name).randbytes(large)  # so that packing does not make it small
        tars = [tar({"etc/name": name.encode(), "usr/noise": noise}), tar({"hello": b"hello " + name.encode()})]
        self.layers = [blob(gzip.compress(t, 1, mtime=0) if pack else t) for t in tars]
        config = {"architecture": arch, "os": "linux", "config": {"Env": ["PATH=/bin"], "Cmd": ["/hello"]},
                  "rootfs": {"type": "layers", "diff_ids": [digest(t) for t in tars]}}
        if variant:
            config["variant"] = variant
        self.config = blob(json.dumps(config).encode())
        kinds = (DOCKER + "manifest.v2+json", "application/vnd.docker.container.image.v1+json") if docker else (
            OCI + "manifest.v1+json", OCI + "config.v1+json")
        self.type = kinds[0]
        self.document = {"schemaVersion": 2, "mediaType": kinds[0], "config": described(self.config, kinds[1]),
                         "layers": [described(l, layer_type) for l in self.layers]}

    def text(self, change=None):
        document = json.loads(json.dumps(self.document))
        if change:
            change(document)
        return blob(json.dumps(document).encode())


class Outside(Image):
    """Its layer has a name that leads out of it."""

    def __init__(self, layer=1):
        super().__init__("outside")
        text = tar({"../outside": b"x"})
        self.layers[layer] = blob(gzip.compress(text, 1, mtime=0))
        config = json.loads(self.config)
        config["rootfs"]["diff_ids"][layer] = digest(text)
        self.config = blob(json.dumps(config).encode())
        self.document["config"].update(described(self.config, OCI + "config.v1+json"))
        self.document["layers"][layer] = described(self.layers[layer], OCI + "layer.v1.tar+gzip")


GOOD = Image("good", large=LARGE)
LAYER = digest(GOOD.layers[0])


def index(entries, **more):
    return json.dumps({"schemaVersion": 2, "mediaType": OCI + "index.v1+json", "manifests": entries, **more}).encode()


def entry(image, **platform):
    text = image.text()
    return described(text, image.type, **({"platform": platform} if platform else {}))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def note(self):
        line = {"host": self.server.server_address[0], "method": self.command, "path": self.path,
                "auth": self.headers.get("Authorization"), "range": self.headers.get("Range")}
        with self.server.lock, open(self.server.log, "a") as f:
            f.write(json.dumps(line) + "\n")

    def reply(self, status, body=b"", kind="application/json", length=True, **headers):
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if length:
            self.send_header("Content-Length", str(len(body)))
        else:
            self.send_header("Connection", "close")
            self.close_connection = True
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def error(self, status, code="DENIED", message="no", **headers):
        self.reply(status, {"errors": [{"code": code, "message": message}]}, **headers)

    def times(self, key):
        """How often this has been asked for, this one included."""
        with self.server.lock:
            self.server.count[key] = self.server.count.get(key, 0) + 1
            return self.server.count[key]

    def url(self, path, other=False):
        port = self.server.ports[1 if other else 0]
        scheme = "https" if self.server.tls else "http"
        return f"{scheme}://127.0.0.{2 if other else 1}:{port}{path}"

    # ---------------------------------------------------------------- blobs

    def blob_data(self, name):
        return BLOBS.get(name)

    def send_range(self, data, stop=None, honour=True):
        """From where it was asked; `stop`: the connection is cut after so many bytes."""
        wanted = self.headers.get("Range")
        begin = int(wanted[6:].split("-")[0]) if wanted and honour else 0
        if begin >= len(data) and begin:
            return self.error(416, "RANGE", "no such range")
        part = data[begin:]
        self.send_response(206 if wanted and honour else 200)
        self.send_header("Content-Length", str(len(part)))
        if wanted and honour:
            self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        self.wfile.write(part[:stop] if stop else part)
        if stop and stop < len(part):
            self.wfile.flush()
            self.close_connection = True

    # ---------------------------------------------------------------- who may

    def challenge(self, what, scheme="Bearer", realm=None):
        realm = realm or self.url("/token/" + what)
        value = (f'{scheme} realm="{realm}",service="stub",scope="repository:{what}:pull"' if scheme == "Bearer"
                 else 'Basic realm="stub"')
        self.error(401, "UNAUTHORIZED", "authentication required", WWW_Authenticate=value)

    def basic(self):
        value = self.headers.get("Authorization") or ""
        return base64.b64decode(value[6:]).decode() if value.startswith("Basic ") else None

    def token(self, repository, query):
        if repository == "token-creds" and self.basic() != "user:pa:ss":
            return self.error(401, "UNAUTHORIZED", "incorrect username or password")
        if repository == "token-none":
            return self.reply(200, {"hello": "world"})
        if repository == "token-inject":
            return self.reply(200, {"token": "x\r\nX-Injected: yes"})
        if repository == "token-500" and self.times("token-500") < 3:
            return self.error(503, "UNAVAILABLE", "later")
        if self.command == "POST":
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            if form.get("refresh_token") != ["my/identity+token"] or form.get("grant_type") != ["refresh_token"]:
                return self.error(401, "UNAUTHORIZED", "no such identity")
        elif query.get("service") != ["stub"] or query.get("scope") != [f"repository:{repository}:pull"]:
            return self.error(400, "UNKNOWN", f"asked for {query}")
        return self.reply(200, {"access_token" if self.command == "POST" else "token":
                                f"tok{self.times('tokens')}-{repository}", "expires_in": 60})

    def may(self, repository):
        """False once it has answered itself."""
        auth = self.headers.get("Authorization") or ""
        if repository in ("basic", "basic-slow", "redirect"):
            if self.basic() != "user:pa:ss":
                self.challenge(repository, "Basic")
                return False
        elif repository == "token-expires":  # each is good for two requests
            if not auth.startswith("Bearer tok") or self.times(auth) > 2:
                self.challenge(repository)
                return False
        elif repository.startswith("token"):
            if auth != "Bearer registry-token" and not (auth.startswith("Bearer tok") and auth.endswith(repository)):
                self.challenge(repository, realm="http://127.0.0.1:1/t" if repository == "token-plain" else None)
                return False
        elif repository == "refused":
            self.challenge(repository)
            return False
        return True

    # ---------------------------------------------------------------- requests

    def do_POST(self):
        self.do_GET()

    def do_GET(self):
        self.note()
        try:
            url = urlsplit(self.path)
            parts = url.path.strip("/").split("/")
            if parts[0] == "token":
                self.token(parts[1], parse_qs(url.query))
            elif parts[0] == "elsewhere":  # where redirects lead
                self.send_range(BLOBS[parts[1]])
            elif parts[0] == "v2" and len(parts) >= 4:
                repository = parts[1]  # of a mirror with a path, the path
                if self.may(repository):
                    answer = BLOB_WRONGS if parts[-2] == "blobs" else MANIFEST_WRONGS
                    answer.get(repository, default_blob if parts[-2] == "blobs" else default_manifest)(self, parts[-1])
            else:
                self.reply(200, {})
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True


# -------------------------------------------------------------------- manifests

def send_manifest(h, text, kind=OCI + "manifest.v1+json", **headers):
    h.reply(200, text, kind, Docker_Content_Digest=digest(text), **headers)


def default_manifest(h, by):
    if by in BLOBS:
        return send_manifest(h, BLOBS[by], json.loads(BLOBS[by])["mediaType"])
    return send_manifest(h, GOOD.text())


def changed(change):
    return lambda h, by: send_manifest(h, GOOD.text(change))


def layer_type(kind):
    def change(d):
        d["layers"][0]["mediaType"] = kind
    return changed(change)


def layer_size(size):
    def change(d):
        d["layers"][0]["size"] = size(d["layers"][0]["size"])
    return changed(change)


def of(image):
    return lambda h, by: send_manifest(h, image.text(), image.type)


def multi(*entries):
    def answer(h, by):
        return default_manifest(h, by) if by in BLOBS else send_manifest(h, index(list(entries)), OCI + "index.v1+json")
    return answer


def endless(length):
    def answer(h, by):
        h.send_response(200)
        h.send_header("Content-Type", OCI + "manifest.v1+json")
        if length:
            h.send_header("Content-Length", str(100 << 20))
        h.send_header("Connection", "close")
        h.close_connection = True
        h.end_headers()
        for _ in range(1600):
            h.wfile.write(b" " * (64 << 10))
    return answer


def headers_without_end(h, by):
    h.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for i in range(100000):
        h.wfile.write(b"X-More-%d: %s\r\n" % (i, b"x" * 1000))
    h.close_connection = True


def after_times(n, *error, **headers):
    """The error n times, then what it should be."""
    def answer(h, by):
        return h.error(*error, **headers) if h.times(h.path) <= n else default_manifest(h, by)
    return answer


def raw(text, kind=OCI + "manifest.v1+json"):
    return lambda h, by: h.reply(200, text, kind)


def redirected(to):
    return lambda h, by: h.reply(307, b"", Location=to(h, by))


ARM6, ARM7 = Image("arm6", "arm", "v6"), Image("arm7", "arm", "v7")
ATTESTATION = described(b"x", OCI + "manifest.v1+json", platform={"os": "unknown", "architecture": "unknown"},
                        annotations={"vnd.docker.reference.type": "attestation-manifest"})
OUTSIDE_BELOW = Outside(0)
MANIFEST_WRONGS = {
    "docker": of(Image("docker", docker=True, layer_type=ROOTFS + "diff.tar.gzip")),
    "plain": of(Image("plain", layer_type=OCI + "layer.v1.tar", pack=False)),
    "outside": of(Outside()),
    "outside-slow": of(OUTSIDE_BELOW),
    "other-arch": of(Image("other", "s390x")),
    "manifest-lie": lambda h, by: h.reply(200, GOOD.text(), OCI + "manifest.v1+json", Docker_Content_Digest=digest(b"")),
    "by-digest-lie": lambda h, by: h.reply(200, GOOD.text() + b" ", OCI + "manifest.v1+json"),
    "no-type": lambda h, by: h.reply(200, GOOD.text(lambda d: d.pop("mediaType")), "text/plain"),
    "wrong-size": layer_size(lambda n: n + 1),
    "too-long": layer_size(lambda n: n - 5),
    "petabyte": layer_size(lambda n: 10 ** 15),
    "foreign": layer_type(ROOTFS + "foreign.diff.tar.gzip"),
    "unknown-layer": layer_type("application/vnd.example.layer+rar"),
    "artifact": changed(lambda d: d["config"].update(mediaType="application/vnd.cncf.helm.config.v1+json")),
    "both": changed(lambda d: d.update(manifests=[])),
    "no-digest": changed(lambda d: d["config"].update(digest="sha256:../../../etc/passwd")),
    "schema1": raw({"schemaVersion": 1, "fsLayers": []}, DOCKER + "manifest.v1+prettyjws"),
    "variants": multi(ATTESTATION, entry(ARM7, os="linux", architecture="arm", variant="v7"),
                      entry(ARM6, os="linux", architecture="arm", variant="v6"),
                      entry(GOOD, os="linux", architecture="amd64")),
    "windows": multi(ATTESTATION, entry(GOOD, os="windows", architecture="amd64"),
                     entry(ARM7, os="linux", architecture="arm", variant="v7")),
    "only": multi(ATTESTATION, entry(GOOD)),
    "nested": multi(described(blob(index([entry(GOOD, os="linux", architecture="amd64")])), OCI + "index.v1+json",
                              platform={"os": "linux", "architecture": "amd64"})),
    "index-size": multi({**entry(GOOD, os="linux", architecture="amd64"), "size": 5}),
    "huge": endless(False),
    "huge-said": endless(True),
    "deep": raw(b"[" * (1 << 20)),
    "parts": raw(b'{"a":[' + b"[],".join([b""] * 1000000) + b"[]]}"),
    "twice": raw(b'{"schemaVersion":2,"config":{},"config":{},"layers":[]}'),
    "html": raw(b"<html>log in</html>", "text/html"),
    "empty": raw(b""),
    "headers": headers_without_end,
    "403": lambda h, by: h.error(403, "DENIED", "requested access to the resource is denied"),
    "404": lambda h, by: h.error(404, "MANIFEST_UNKNOWN", "manifest unknown"),
    "404-html": lambda h, by: h.reply(404, b"<html>", "text/html"),
    "429": after_times(1, 429, "TOOMANYREQUESTS", "slow down", Retry_After="1"),
    "429-long": after_times(99, 429, "TOOMANYREQUESTS", "slow down", Retry_After="3600"),
    "429-always": after_times(99, 429, "TOOMANYREQUESTS", "you have reached\x1b[2J your\npull rate limit"),
    "500": after_times(2, 500, "UNKNOWN", "oops"),
    "500-always": after_times(99, 500, "UNKNOWN", "oops"),
    "loop": redirected(lambda h, by: h.path),
    "redirect-file": redirected(lambda h, by: "file:///etc/passwd"),
    "redirect-plain": redirected(lambda h, by: "http://127.0.0.1:1/x"),
    "silent": lambda h, by: time.sleep(4),
}


# -------------------------------------------------------------------- blobs

def default_blob(h, name):
    data = BLOBS.get(name)
    return h.send_range(data) if data is not None else h.error(404, "BLOB_UNKNOWN", "blob unknown to registry")


def large_only(answer):
    """The configuration and the small layer come as they should."""
    return lambda h, name: answer(h, BLOBS[name]) if name == LAYER else default_blob(h, name)


def no_length(h, data):
    h.send_response(200)
    h.send_header("Connection", "close")
    h.close_connection = True
    h.end_headers()
    h.wfile.write(data)


def slowly(h, data):
    wanted = h.headers.get("Range")
    begin = int(wanted[6:].split("-")[0]) if wanted else 0
    h.send_response(206 if wanted else 200)
    h.send_header("Content-Length", str(len(data) - begin))
    if wanted:
        h.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
    h.end_headers()
    for at in range(begin, len(data), 64 << 10):
        h.wfile.write(data[at:at + (64 << 10)])
        time.sleep(0 if begin else 0.025)


def drip(h, data):
    h.send_response(200)
    h.send_header("Content-Length", str(len(data)))
    h.end_headers()
    for byte in data[:200]:
        h.wfile.write(bytes([byte]))
        time.sleep(0.02)


def wrong_range(h, data):
    if not h.headers.get("Range"):
        return h.send_range(data, stop=1 << 20)
    h.send_response(206)
    h.send_header("Content-Length", str(len(data) - 5))
    h.send_header("Content-Range", f"bytes 5-{len(data) - 1}/{len(data)}")
    h.end_headers()
    h.wfile.write(data[5:])


def last_late(image, seconds):
    def answer(h, name):
        time.sleep(seconds if name == digest(image.layers[1]) else 0)
        default_blob(h, name)
    return answer


def cut_once(**how):
    def answer(h, data):
        first = h.times(h.path) == 1
        h.send_range(data, stop=len(data) // 2 if first else None, **how)
    return answer


BLOB_WRONGS = {
    "wrong-digest": large_only(lambda h, d: h.send_range(d[:1000] + b"\0" + d[1001:])),
    "too-long": large_only(no_length),
    "short": large_only(lambda h, d: no_length(h, d[:1 << 20]) if h.times(h.path) == 1 else h.send_range(d)),
    "truncated": large_only(lambda h, d: h.send_range(d, stop=1000, honour=False)),
    "cut": large_only(lambda h, d: h.send_range(d, stop=600 << 10)),
    "cut-norange": large_only(cut_once(honour=False)),
    "wrong-range": large_only(wrong_range),
    "redirect": lambda h, name: h.reply(307, b"", Location=h.url("/elsewhere/" + name, other=True)),
    "redirect-relative": lambda h, name: h.reply(307, b"", Location="/elsewhere/" + name + "?secret=1"),
    "blob-404": large_only(lambda h, d: h.error(404, "BLOB_UNKNOWN", "blob unknown to registry")),
    "slow": large_only(slowly),
    "basic-slow": large_only(slowly),
    "last-slow": last_late(GOOD, 1),
    "outside-slow": last_late(OUTSIDE_BELOW, 3),
    "drip": large_only(drip),
    "stall": large_only(lambda h, d: (h.send_response(200), h.send_header("Content-Length", str(len(d))),
                                      h.end_headers(), h.wfile.write(d[:5000]), h.wfile.flush(), time.sleep(4))),
}


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass  # a client that does not trust us, or has had enough


def main():
    log, port_file, tls = sys.argv[1], sys.argv[2], sys.argv[3:5]
    servers = [Server((host, 0), Handler) for host in ("127.0.0.1", "127.0.0.2")]
    shared = {"log": log, "lock": threading.Lock(), "count": {}, "tls": bool(tls),
              "ports": [s.server_address[1] for s in servers]}
    for server in servers:
        vars(server).update(shared)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    with open(port_file + ".new", "w") as f:
        f.write(f"{shared['ports'][0]} {shared['ports'][1]}\n")
    __import__("os").rename(port_file + ".new", port_file)
    threading.Event().wait()


main()
