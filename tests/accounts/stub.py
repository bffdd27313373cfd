"""An identity provider that lies on command: its keys, its tokens and its answers are what a test sets."""

import base64
import hashlib
import hmac
import json
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

CLIENT = "halftide-client"


def new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


KEY, OTHER_KEY = new_key(), new_key()


def public_pem(key: rsa.RSAPrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def packed(part: bytes) -> bytes:
    return base64.urlsafe_b64encode(part).rstrip(b"=")


def by_hand(header: dict[str, Any], claims: dict[str, Any], secret: bytes | None) -> str:
    """A token that no library would make: HMAC over the provider's public key, or no signature at all."""
    body = packed(json.dumps(header).encode()) + b"." + packed(json.dumps(claims).encode())
    mark = packed(hmac.new(secret, body, hashlib.sha256).digest()) if secret is not None else b""
    return (body + b"." + mark).decode()


@dataclass
class Stub:
    issuer: str = ""
    keys: dict[str, rsa.RSAPrivateKey] = field(default_factory=lambda: {"one": KEY})
    id_token: str = ""
    userinfo: dict[str, Any] = field(default_factory=lambda: {"sub": "kim"})
    token_answer: tuple[int, dict[str, Any]] | None = None
    discovery: dict[str, Any] = field(default_factory=dict)
    hits: Counter[str] = field(default_factory=Counter)
    forms: list[str] = field(default_factory=list)
    graph: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)  # Microsoft Graph's answers, by path and query

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Good ones, but for what is changed; a value of None leaves the claim out."""
        now = int(time.time())
        good = {"iss": self.issuer, "aud": CLIENT, "sub": "kim", "iat": now, "exp": now + 300, "groups": ["ml"]}
        return {name: value for name, value in {**good, **changes}.items() if value is not None}

    def sign(self, claims: dict[str, Any], key: rsa.RSAPrivateKey = KEY, **header: Any) -> str:
        return jwt.encode(claims, key, algorithm="RS256", headers={"kid": "one", **header})

    def answer(self, path: str) -> tuple[int, dict[str, Any]]:
        self.hits[path] += 1
        if path == "/.well-known/openid-configuration":
            endpoints = {
                name: f"{self.issuer}/{name}"
                for name in ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri")
            }
            return 200, {"issuer": self.issuer, **endpoints, **self.discovery}
        if path == "/jwks_uri":
            listed = [
                {**RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig", "alg": "RS256"}
                for kid, key in self.keys.items()
            ]
            return 200, {"keys": listed}
        if path == "/token_endpoint":
            good = {"access_token": "opaque", "token_type": "Bearer", "id_token": self.id_token, "refresh_token": "next"}
            return self.token_answer or (200, good)
        return (200, self.userinfo) if path == "/userinfo_endpoint" else self.graph.get(path, (404, {}))

    def serve(self) -> ThreadingHTTPServer:
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body = stub.answer(self.path)
                said = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def do_POST(self) -> None:
                stub.forms.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self.do_GET()

            def log_message(self, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server
