"""A registry of npm that has the packages of one folder, each in the version that it has."""

import base64
import hashlib
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote


@contextmanager
def registry(tarballs: list[Path]) -> Iterator[str]:
    """Serves the packages, and yields the URL."""
    files = {f"/{file.name}": file.read_bytes() for file in tarballs}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(self.path)
            body = files.get(path)
            if body is None and (document := documents.get(path.removeprefix("/"))):
                body = json.dumps(document).encode()
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        documents = dict(package_document(file, url) for file in tarballs)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield url
        finally:
            server.shutdown()


def package_document(tarball: Path, url: str) -> tuple[str, Any]:
    """Returns the name of a package, and what a registry says of it."""
    with tarfile.open(tarball) as archive:
        file = archive.extractfile("package/package.json")
        assert file is not None
        manifest = json.load(file)
    content = tarball.read_bytes()
    manifest["dist"] = {
        "tarball": f"{url}/{tarball.name}",
        "shasum": hashlib.sha1(content, usedforsecurity=False).hexdigest(),
        "integrity": f"sha512-{base64.b64encode(hashlib.sha512(content).digest()).decode()}",
    }
    name, version = manifest["name"], manifest["version"]
    return name, {
        "name": name,
        "dist-tags": {"latest": version},
        "versions": {version: manifest},
    }
