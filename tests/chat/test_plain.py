"""The plain renderer: contents verbatim, joined without separators."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard.chat import PlainRenderer, Renderer, load_renderer, unstable_messages
from phaseguard.errors import InputError, RenderError


@given(
    st.lists(st.one_of(st.text(), st.lists(st.text(), max_size=3)), min_size=1, max_size=5), st.integers(0, 3)
)
def test_the_text_is_the_join_and_every_character_is_found(contents, prefix):
    blocks = [c if isinstance(c, str) else [{"type": "text", "text": t} for t in c] for c in contents]
    messages = [{"role": "user", "content": content} for content in blocks]
    rendered = load_renderer("plain", prefix_tokens=prefix).render(messages, {})
    assert rendered.text == "".join(c if isinstance(c, str) else "".join(c) for c in contents)
    assert (rendered.specials, rendered.prefix_tokens) == ((), prefix)
    for piece in rendered.pieces:
        content = contents[piece.message] if piece.block is None else contents[piece.message][piece.block]
        assert piece.request.of(rendered.text) == content
    assert unstable_messages(load_renderer("plain"), messages, {}) == ()


def test_a_renderer_of_ones_own_comes_back_as_it_is():
    own = PlainRenderer()
    assert isinstance(own, Renderer)
    assert load_renderer(own) is own


@pytest.mark.parametrize("options", [{"tools": [{}]}, {"response_format": {"type": "json_object"}}])
def test_plain_has_no_place_for_tools(options):
    with pytest.raises(RenderError, match="no place"):
        load_renderer("plain").render([{"role": "user", "content": "a"}], options)


def test_wrong_arguments_are_explained():
    with pytest.raises(InputError, match="not int"):
        load_renderer(3)
    with pytest.raises(InputError, match="negative"):
        load_renderer("plain", prefix_tokens=-1)
    with pytest.raises(InputError, match="for 'jinja'"):
        load_renderer("plain", template="x")
    with pytest.raises(InputError, match="template="):
        load_renderer("jinja")


def test_a_character_that_is_not_in_the_request_is_an_error():
    rendered = load_renderer("plain").render([{"role": "user", "content": "ab"}], {})
    assert rendered.locate(0, 2) == 2
    with pytest.raises(RenderError, match="Character 3 of message 0"):
        rendered.locate(0, 3)
    with pytest.raises(RenderError, match="message 0, block 1"):
        rendered.locate(0, 0, block=1)
