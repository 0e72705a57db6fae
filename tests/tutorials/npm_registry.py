"""A registry of npm packages that has those of this repository, and passes on all others.

Nothing of this project is published yet, so `npm install randflake` finds it here.
"""

import hashlib
import json
import subprocess
import tarfile
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import unquote


@contextmanager
def registry(tarballs: list[Path], published: str) -> Iterator[str]:
    """Serves while it is open; the value is its URL.

    tarballs: what `npm pack` has made.
    published: the time at which they were, as far as npm knows.
    """
    config = ["npm", "config", "get", "registry"]
    upstream = subprocess.run(config, check=True, capture_output=True, text=True).stdout.strip()
    packages = {}
    for tarball in tarballs:
        with tarfile.open(tarball) as archive:
            manifest = archive.extractfile("package/package.json")
            assert manifest is not None
            package = json.load(manifest)
        packages[package["name"]] = (package, tarball)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = unquote(self.path).lstrip("/")
            host = f"http://{self.headers['Host']}"
            if path in packages:
                self._answer(json.dumps(_document(*packages[path], host, published)).encode())
            elif path.startswith("-/tarballs/"):
                name = path.removeprefix("-/tarballs/")
                (found,) = (it for _, it in packages.values() if it.name == name)
                self._answer(found.read_bytes())
            else:
                self.send_response(302)
                self.send_header("Location", f"{upstream.rstrip('/')}{self.path}")
                self.send_header("Content-Length", "0")
                self.end_headers()

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _document(package: dict[str, Any], tarball: Path, host: str, published: str) -> dict[str, Any]:
    version = package["version"]
    integrity = b64encode(hashlib.sha512(tarball.read_bytes()).digest()).decode()
    dist = {"tarball": f"{host}/-/tarballs/{tarball.name}", "integrity": f"sha512-{integrity}"}
    return {
        "name": package["name"],
        "dist-tags": {"latest": version},
        "versions": {version: {**package, "dist": dist}},
        "time": {version: published, "created": published, "modified": published},
    }
