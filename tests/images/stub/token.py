#!/usr/bin/env python3
"""A token server for a real registry: docker-registry believes what is signed with KEY, as it has CERT.

Anyone may pull public/…; the rest is for who says that he is user, with the password pa:ss.

Usage: token.py PORTFILE CERT KEY
"""
import base64, json, os, subprocess, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

port_file, cert, key = sys.argv[1:4]


def packed(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def certificate():
    lines = open(cert).read().split("\n")
    return "".join(lines[lines.index("-----BEGIN CERTIFICATE-----") + 1:lines.index("-----END CERTIFICATE-----")])


def signed(access):
    now = int(time.time())
    head = {"typ": "JWT", "alg": "RS256", "x5c": [certificate()]}
    claims = {"iss": "mayfly tests", "sub": "", "aud": "tests", "exp": now + 60, "nbf": now - 10, "iat": now,
              "jti": str(now), "access": access}
    text = ".".join(packed(json.dumps(part).encode()) for part in (head, claims))
    signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", key], input=text.encode(), check=True,
                               capture_output=True).stdout
    return text + "." + packed(signature)


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        query = parse_qs(urlsplit(self.path).query)
        given = self.headers.get("Authorization", "")
        who = base64.b64decode(given[6:]).decode() if given.startswith("Basic ") else None
        access = []
        for scope in query.get("scope", []):
            kind, name, actions = scope.split(":")
            if name.startswith("public/") or who == "user:pa:ss":
                access.append({"type": kind, "name": name, "actions": actions.split(",")})
        wrong = query.get("service") != ["tests"] or (who and who != "user:pa:ss")
        body = json.dumps({"details": "wrong password"} if wrong else {"token": signed(access)}).encode()
        self.send_response(401 if wrong else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(port_file + ".new", "w") as f:
    f.write(f"{server.server_address[1]}\n")
os.rename(port_file + ".new", port_file)
server.serve_forever()
