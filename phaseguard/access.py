"""How an endpoint is reached: its key is read from the environment, and hidden in all that is shown."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from phaseguard.errors import InputError

NAMES = ("PHASEGUARD_API_KEY", "OPENAI_API_KEY")
HIDDEN = "(hidden)"
_NO_KEY = "none"  # clients want one where a local server does not
_SHORT = 8  # characters; what is shorter, such as "test", is hidden where it is a word of its own
# providers repeat the key that they refuse in part
_MASKED = re.compile(r"(?:[\w.-]*[\w-])?\*{3,}(?:[\w.*-]*[\w*-])?")


@dataclass(frozen=True, slots=True)
class Access:
    """How an endpoint is reached; what is secret in it is not shown.

    Attributes:
        url: its base URL.
        key: that is sent, ``none`` where the environment has none.
        source: the variable that it came from, or None.
    """

    url: str = field(repr=False)
    key: str = field(repr=False)
    source: str | None

    @classmethod
    def read(cls, url: str, name: str | None, environ: Mapping[str, str] = os.environ) -> Access:
        """Read the key from the variable of that name, else from the first of the usual ones that is set.

        Args:
            url: the base URL.
            name: of the variable, or None.
            environ: the environment.

        Raises:
            InputError: when the URL is none, the named variable is not set, or a key cannot be sent.

        >>> Access.read("http://127.0.0.1:8000/v1", None, {"OPENAI_API_KEY": "sk-1"})
        Access(source='OPENAI_API_KEY')
        """
        if not _names_a_host(url):
            raise InputError("base_url: give one that starts with http:// or https:// and names a host.")
        names = NAMES if name is None else (name,)
        found = next((one for one in names if environ.get(one, "").strip()), None)
        if found is None:
            if name is not None:
                raise InputError(
                    f"{name}: the environment has no key of that name; set it, or name another variable."
                )
            return cls(url, _NO_KEY, None)
        key = environ[found].strip()
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise InputError(f"{found}: a key holds no blanks and only ASCII characters; set it again.")
        return cls(url, key, found)

    @property
    def host(self) -> str:
        """The host of the URL, with its port where it names one: two engines may share a machine."""
        return urlsplit(self.url).netloc.rpartition("@")[2].lower()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown: the key, and a password or token in the URL."""
        parts = urlsplit(self.url)
        inside = parts.password or parts.username or ""
        found = (self.key if self.source else "", inside, unquote(inside))
        return tuple(dict.fromkeys(filter(None, found)))

    def hide(self, value: Any) -> Any:
        """The same, texts at any depth without the secrets; the names in dicts are kept.

        >>> Access("http://127.0.0.1/v1", "sk-17", "X").hide({"error": ["sk-17 and sk-1****17 are wrong"]})
        {'error': ['(hidden) and (hidden) are wrong']}
        """
        if isinstance(value, str):
            for secret in self.secrets:
                value = _spelling(secret).sub(HIDDEN, value)
            return _MASKED.sub(self._unmasked, value)
        if isinstance(value, Mapping):
            return {name: self.hide(one) for name, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.hide(one) for one in value]
        return value

    def _unmasked(self, found: re.Match[str]) -> str:
        """Hide what is a key with its middle masked; a row of asterisks in an answer stays."""
        head, _, tail = found[0].partition("***")
        tail = tail.lstrip("*")
        parts = [secret for secret in self.secrets if secret.startswith(head) and secret.endswith(tail)]
        return HIDDEN if parts and (head or tail) else found[0]


def _names_a_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, or brackets without an address
        return False


def _spelling(secret: str) -> re.Pattern[str]:
    spelled = re.escape(secret)
    return re.compile(spelled if len(secret) >= _SHORT else rf"(?<!\w){spelled}(?!\w)")
