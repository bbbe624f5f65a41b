"""Keys: where they come from, and that nothing shows them."""

from __future__ import annotations

import pytest

from phaseguard.access import Access
from phaseguard.errors import InputError

URL = "http://user:pass-word@127.0.0.1/v1"
KNOWN = {"PHASEGUARD_API_KEY": " sk-one-0123456789\n", "OPENAI_API_KEY": "two"}


def test_a_key_is_read_from_the_first_variable_and_hides_itself() -> None:
    access = Access.read(URL, None, KNOWN)
    assert (access.key, access.source, access.host) == (
        "sk-one-0123456789",
        "PHASEGUARD_API_KEY",
        "127.0.0.1",
    )
    assert Access.read("http://user:pass-word@[::1]:8000/v1", None, KNOWN).host == "[::1]:8000"
    assert "sk-one" not in repr(access)
    assert "pass-word" not in repr(access)
    given = [{"a": "pass-word"}, 1, None, "xsk-one-0123456789x", ("sk-o*****6789",)]
    assert access.hide(given) == [{"a": "(hidden)"}, 1, None, "x(hidden)x", ["(hidden)"]]
    assert Access.read(URL, "OPENAI_API_KEY", KNOWN).key == "two"
    assert Access.read(URL, None, {}).source is None
    stars = "Rated *** and a***b."
    assert access.hide(stars) == stars


def test_a_short_key_is_hidden_where_it_is_a_word_and_names_of_fields_stay() -> None:
    access = Access.read("http://127.0.0.1/v1", None, {"OPENAI_API_KEY": "tie"})
    given = {"tie": "The key tie is wrong: untied, ties."}
    assert access.hide(given) == {"tie": "The key (hidden) is wrong: untied, ties."}


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://tok-en-17@host/v1", "tok-en-17"),
        ("https://me:p%40ss-word@host/v1", "p%40ss-word or p@ss-word"),
    ],
)
def test_what_is_secret_in_a_url_is_hidden_as_it_is_written_and_as_it_is_meant(url, said) -> None:
    hidden = Access.read(url, None, {}).hide(said)
    assert set(hidden.split(" or ")) == {"(hidden)"}


@pytest.mark.parametrize("wrong", ["on e", "one\x00", "schl\u00fcssel"])
def test_a_key_that_cannot_be_sent_is_refused_unseen(wrong) -> None:
    with pytest.raises(InputError, match="PHASEGUARD_API_KEY: a key holds no blanks") as caught:
        Access.read(URL, None, {"PHASEGUARD_API_KEY": wrong})
    assert wrong not in str(caught.value)


def test_a_variable_that_is_named_and_not_set_is_told() -> None:
    with pytest.raises(InputError, match=r"^OTHER_KEY: the environment has no key"):
        Access.read(URL, "OTHER_KEY", KNOWN)
