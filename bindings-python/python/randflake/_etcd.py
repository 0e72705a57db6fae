"""Posts to the JSON gateway of an etcd."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl

from randflake import _urls
from randflake._adapter import Rows, Unavailable

_LONGEST = 1 << 20
"""The longest answer, in bytes: twice that of a thousand node ids."""


def _context(options: dict[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=options.get("sslrootcert"))
    if "sslcert" in options:
        context.load_cert_chain(options["sslcert"], options["sslkey"], password=_no_password)
    return context


def _no_password() -> str:
    # Without this, OpenSSL asks at the terminal.
    raise ValueError("the key of sslkey has a password")


class Etcd:
    """The JSON gateway of an etcd, with a connection for each request."""

    server = "etcd"

    def __init__(self, address: _urls.Address) -> None:
        self._context = _context(address.options) if address.tls else None
        self._login = {"name": address.user, "password": address.password}
        self._has_login = address.user is not None
        self._token: str | None = None
        self._members = address.hosts

    def run(self, text: str, parameters: list[str]) -> Rows:
        (body,) = parameters
        if self._has_login and self._token is None:
            self._log_in()
        status, *cells = self._post(text, body)
        if self._has_login and status == 401:  # a token expires after a while
            self._log_in()
            status, *cells = self._post(text, body)
        return [cells]

    def _log_in(self) -> None:
        self._token = None
        _, answer, _ = self._post("/v3/auth/authenticate", json.dumps(self._login))
        with contextlib.suppress(ValueError, AttributeError):
            self._token = json.loads(answer).get("token")
        if self._token is None:
            raise Unavailable("it does not accept the user and the password")

    def _post(self, path: str, body: str) -> tuple[int, str, str | None]:
        """Returns status, body and Date of the first member that answers.

        Any operation may be repeated.
        """
        last = ""
        for turn, (host, port) in enumerate(self._members):
            connection = (
                http.client.HTTPSConnection(
                    host, port, timeout=_urls.TIMEOUT, context=self._context
                )
                if self._context
                else http.client.HTTPConnection(host, port, timeout=_urls.TIMEOUT)
            )
            try:
                headers = {"Content-Type": "application/json"}
                if self._token is not None:
                    headers["Authorization"] = self._token
                connection.request("POST", path, body.encode(), headers)
                answer = connection.getresponse()
                content = answer.read(_LONGEST).decode()
            except (OSError, http.client.HTTPException, ValueError) as error:
                last = f"{type(error).__name__}: {error}"
            else:
                self._members = self._members[turn:] + self._members[:turn]
                return answer.status, content, answer.getheader("Date")
            finally:
                connection.close()
        raise Unavailable(last)
