"""Byte ranges over HTTP: refuses to read a file whole, and keeps a token from other hosts."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence
from http.client import HTTPException, HTTPMessage, HTTPResponse
from time import sleep
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from phaseguard.errors import InputError

_TIMEOUT = 30.0
_TRIES = 3
_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_WITHHELD = "the hub refuses (status {status}). Set HF_TOKEN in the environment, and accept the model's terms"


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


def _is_private_enough(url: str) -> bool:
    """Whether a token may go there: over TLS, or to this very machine."""
    parts = urlsplit(url)
    if parts.scheme == "https" or parts.hostname == "localhost":
        return True
    try:
        return ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False


class _SameOriginToken(HTTPRedirectHandler):
    """A redirect to another origin, such as a CDN, goes without the token."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        again = super().redirect_request(req, fp, code, msg, headers, newurl)
        if again is not None and _origin(newurl) != _origin(req.full_url):
            again.remove_header("Authorization")
        return again


class Fetcher:
    """Asks a hub for files and parts of files; three times when it is busy or the connection breaks.

    Args:
        base: the hub's URL, http or https.
        token: sent as a bearer token to the hub alone, over TLS or to this machine; never shown.

    Attributes:
        sends_token: whether the hub gets the token.

    Raises:
        InputError: for a base that is no http URL. Every method: when the hub cannot be reached, refuses,
            has no such file, ignores ranges, or sends less than was asked for.
    """

    def __init__(self, base: str, *, token: str | None = None) -> None:
        parts = urlsplit(base)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username:
            raise InputError(
                "The hub's URL must be http:// or https:// with a host and no user name, "
                "such as https://huggingface.co."
            )
        self._base = base.rstrip("/")
        self._headers = {"User-Agent": "phaseguard", "Accept-Encoding": "identity"}
        if token and _is_private_enough(base):
            self._headers["Authorization"] = f"Bearer {token}"
        self.sends_token = "Authorization" in self._headers
        self._open = build_opener(_SameOriginToken()).open

    def whole(self, place: Sequence[str], *, limit: int) -> bytes | None:
        """A small file, or None when there is none; more than ``limit`` bytes are an error."""
        found = self._ask(place, None, lambda answer: _complete(answer, limit))
        if found is not None and len(found) > limit:
            raise InputError(f"{'/'.join(place)} is larger than {limit:,} bytes: that is no index or config.")
        return found

    def part(self, place: Sequence[str], start: int, length: int) -> bytes:
        """``length`` bytes from ``start`` on; reads no byte of a file that comes whole."""
        if not length:
            return b""
        found = self._ask(place, (start, length), lambda answer: _ranged(answer, start, length))
        if found is None:
            raise InputError(f"{'/'.join(place)}: the hub has no such file (status 404). Check the name.")
        return found

    def exists(self, place: Sequence[str]) -> bool:
        """Whether there is such a file: asks for its first byte."""
        return self._ask(place, (0, 1), lambda answer: _ranged(answer, 0, 1)) is not None

    def _ask(
        self, place: Sequence[str], span: tuple[int, int] | None, read: Callable[[HTTPResponse], bytes]
    ) -> bytes | None:
        url = f"{self._base}/{'/'.join(quote(part, safe='') for part in place)}"
        headers = dict(self._headers)
        if span is not None:
            headers["Range"] = f"bytes={span[0]}-{span[0] + span[1] - 1}"
        problem = ""
        for tried in range(_TRIES):
            if tried:
                sleep(2.0 ** (tried - 1))
            try:
                with self._open(Request(url, headers=headers), timeout=_TIMEOUT) as answer:  # noqa: S310
                    return read(answer)
            except HTTPError as fault:
                with fault:
                    problem = f"status {fault.code}"
                if fault.code == 404:
                    return None
                if fault.code not in _AGAIN:
                    raise InputError(f"{'/'.join(place)}: {_refusal(fault.code)}.") from None
            except (URLError, HTTPException, OSError) as fault:
                problem = str(getattr(fault, "reason", None) or fault or type(fault).__name__)
            except _ShortError as fault:
                problem = str(fault)
        raise InputError(
            f"{'/'.join(place)} cannot be read from {self._base}: {problem}, {_TRIES} times. "
            "Check the URL and the connection, then try again."
        )


class _ShortError(Exception):
    """A body that ends early: worth another try."""


def _refusal(status: int) -> str:
    if status in {401, 403}:
        return _WITHHELD.format(status=status)
    if status == 416:
        return "the file ends before its own header says (status 416): it is truncated on the hub"
    return f"the hub answers with status {status}"


def _complete(answer: HTTPResponse, limit: int) -> bytes:
    """The body, of which one byte too many is enough."""
    found = answer.read(limit + 1)
    if len(found) <= limit and answer.length:
        raise _ShortError(f"{len(found):,} of {len(found) + answer.length:,} bytes came")
    return found


def _ranged(answer: HTTPResponse, start: int, length: int) -> bytes:
    """The asked bytes of an answer, which is not read when it is the whole file."""
    if answer.status != 206:
        raise InputError(
            f"{urlsplit(answer.url).netloc} ignores byte ranges (status {answer.status}): reading would "
            "download whole shards. Use another hub URL, or a local copy."
        )
    told = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
    if told is None or int(told[1]) != start:
        raise InputError(
            f"{urlsplit(answer.url).netloc} answers with range {answer.headers.get('Content-Range')!r} "
            f"instead of the bytes from {start} on. Use another hub URL, or a local copy."
        )
    if int(told[2]) - start + 1 < length:
        raise InputError(
            f"the file on {urlsplit(answer.url).netloc} is truncated: it ends at byte {int(told[2]) + 1:,}, "
            f"{start + length:,} were expected."
        )
    found = answer.read(length)
    if len(found) < length:
        raise _ShortError(f"{len(found):,} of {length:,} bytes came")
    return found
