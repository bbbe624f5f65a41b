"""The Jinja renderer against transformers' apply_chat_template, with templates of three well-known styles."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from phaseguard.chat import load_renderer, unstable_by_rendering, unstable_messages
from phaseguard.chat.template import render_template
from phaseguard.errors import InputError, RenderError

FOLDER = Path(__file__).parent / "templates"
SPECIALS = {
    "llama3": ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    "chatml": ("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>"),
    "mistral": ("<s>", "</s>", "[INST]", "[/INST]"),
}
BOS = {"llama3": "<|begin_of_text|>", "chatml": "<|im_start|>", "mistral": "<s>"}
EOS = {"llama3": "<|eot_id|>", "chatml": "<|im_end|>", "mistral": "</s>"}
STYLES = tuple(SPECIALS)
TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}


def template(style):
    return (FOLDER / f"{style}.jinja").read_text(encoding="utf-8")


def tokenizer(style):
    vocabulary = {symbol: n for n, symbol in enumerate(pre_tokenizers.ByteLevel.alphabet())}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made = PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token=BOS[style], eos_token=EOS[style], chat_template=template(style)
    )
    made.add_special_tokens({"additional_special_tokens": list(SPECIALS[style])})
    return made


TOKENIZERS = {style: tokenizer(style) for style in STYLES}


@pytest.fixture(scope="module", params=STYLES)
def style(request):
    return request.param


def renderer(style):
    made = load_renderer("jinja", template=template(style), special_tokens=SPECIALS[style])
    return type(made)(made.template, made.special_tokens, bos_token=BOS[style], eos_token=EOS[style])


SPELLINGS = [spelling for specials in SPECIALS.values() for spelling in specials]
TEXT = st.lists(
    st.one_of(
        st.sampled_from(
            ["a", "user", " ", "\n", "\n\n", "  ", '"', "'", "{{ x }}", "{% y %}", "\uf8ff", "你好", "👩‍👧"]
        ),
        st.text(st.characters(exclude_categories=("Cs",)), max_size=6),
    ),
    max_size=4,
).map("".join)
SPELT = st.lists(st.one_of(TEXT, st.sampled_from(SPELLINGS)), max_size=4).map("".join)


@st.composite
def conversations(draw, text=TEXT):
    messages = [{"role": "system", "content": draw(text)}] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 4))):
        messages += [{"role": "user", "content": draw(text)}, {"role": "assistant", "content": draw(text)}]
    return messages[: len(messages) - draw(st.integers(0, 1))]


def check_pieces(messages, rendered):
    for piece in rendered.pieces:
        text = messages[piece.message]["content"]
        assert piece.content.of(text) == piece.request.of(rendered.text)
        assert text.strip() in piece.content.of(text)
        assert not any(piece.request.overlaps(special) for special in rendered.specials)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(STYLES), conversations())
def test_text_ids_and_pieces_agree_with_transformers(style, messages):
    theirs = TOKENIZERS[style]
    rendered = renderer(style).render(messages, {})
    assert rendered.text == theirs.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    check_pieces(messages, rendered)
    mapped = {piece.message for piece in rendered.pieces}
    wanted = {n for n, m in enumerate(messages) if m["content"].strip() and m["role"] != "assistant"}
    if style == "mistral" and messages[-1]["role"] == "assistant":
        wanted -= {
            n for n, m in enumerate(messages) if m["role"] == "system"
        }  # printed before the last user only
    assert mapped >= wanted
    marked = theirs(rendered.text, add_special_tokens=False, return_offsets_mapping=True)
    singles = [
        tuple(span)
        for token, span in zip(marked["input_ids"], marked["offset_mapping"], strict=True)
        if theirs.convert_ids_to_tokens(token) in SPECIALS[style]
    ]
    assert singles == [(span.start, span.end) for span in rendered.specials]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(STYLES), conversations(SPELT))
def test_special_spellings_in_messages_are_plain_text(style, messages):
    rendered = renderer(style).render(messages, {})
    check_pieces(messages, rendered)
    harmless = [{**m, "content": "x"} for m in messages]
    expected = renderer(style).render(harmless, {})
    kinds = [span.of(rendered.text) for span in rendered.specials]
    assert kinds == [span.of(expected.text) for span in expected.specials]
    spelt = any(spelling in m["content"] for m in messages for spelling in SPECIALS[style])
    assert any("spells" in note for note in rendered.notes) == spelt


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(STYLES), conversations(SPELT), st.booleans())
def test_jinja2_alone_renders_what_transformers_renders(style, messages, prompt):
    variables = {
        "bos_token": BOS[style],
        "eos_token": EOS[style],
        "add_generation_prompt": prompt,
        "tools": [TOOL],
    }
    alone = render_template(template(style), messages, variables, own=True)
    assert alone == render_template(template(style), messages, variables)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(STYLES), conversations())
def test_unstable_messages_agree_with_rendering_every_beginning(style, messages):
    r = renderer(style)
    assert unstable_messages(r, messages, {}) == unstable_by_rendering(r, messages, {})


def test_tools_and_their_results():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"q": "<|im_end|>"}'}}
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "q"},
    ]
    rendered = renderer("chatml").render(messages, {"tools": [TOOL]})
    assert [piece.message for piece in rendered.pieces] == [0, 2]
    assert [piece.request.of(rendered.text) for piece in rendered.pieces] == ["q", "q"]
    assert '{"q": "<|im_end|>"}' in rendered.text
    spelt = rendered.text.index("<|im_end|>", rendered.text.index('{"q":'))
    assert spelt not in [span.start for span in rendered.specials]
    assert "<tool_call>" in [span.of(rendered.text) for span in rendered.specials]


def test_the_last_message_can_be_continued():
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "The answer ", "prefix": True},
    ]
    rendered = renderer("chatml").render(messages, {})
    assert rendered.text.endswith("assistant\nThe answer ")
    own = {"bos_token": "", "eos_token": ""}
    assert render_template(template("chatml"), messages, own, go_on=True, own=True) == rendered.text
    plain = [{k: v for k, v in m.items() if k != "prefix"} for m in messages]
    assert rendered.text == TOKENIZERS["chatml"].apply_chat_template(
        plain, tokenize=False, continue_final_message=True
    )


def test_a_system_prompt_that_moves_is_unstable():
    moving = (
        "{% for m in messages if m.role != 'system' %}{{ m.content }};{% endfor %}{{ messages[0].content }}"
    )
    messages = [{"role": role, "content": role} for role in ("system", "user", "user")]
    r = load_renderer("jinja", template=moving)
    assert unstable_messages(r, messages, {}) == unstable_by_rendering(r, messages, {}) == (0,)
    assert unstable_messages(r, messages, {}, among=[1, 2]) == ()


def test_changed_contents():
    messages = [{"role": "user", "content": 'a "quoted" text'}, {"role": "assistant", "content": "a<b"}]
    escaped = "{% for m in messages %}{{ m.content | tojson }}{% endfor %}"
    rendered = load_renderer("jinja", template=escaped).render(messages, {})
    assert rendered.pieces == ()
    assert sum("verbatim" in note for note in rendered.notes) == 2
    other = "{% for m in messages %}{{ m.content | replace('text', 'txt') }}{% endfor %}"
    with pytest.raises(RenderError, match="message 0"):
        load_renderer("jinja", template=other).render(messages, {})
    apart = "{% for m in messages %}{{ m.content | list | join('-') }}{% endfor %}"
    with pytest.raises(RenderError, match="apart"):
        load_renderer("jinja", template=apart).render(messages, {})
    dropped = "{{ messages[0].content }}"
    rendered = load_renderer("jinja", template=dropped).render(messages, {})
    assert [piece.message for piece in rendered.pieces] == [0]
    assert any("leaves out the text of message 1" in note for note in rendered.notes)
    cut = "{% for m in messages %}[{{ m.content.split('</think>')[-1] }}]{% endfor %}"
    thought = [messages[0], {"role": "assistant", "content": "hm</think>yes"}, messages[0]]
    rendered = load_renderer("jinja", template=cut).render(thought, {})
    assert [piece.message for piece in rendered.pieces] == [0, 2]
    twice = "{% for m in messages %}{{ m.content }}|{{ m.content }}{% endfor %}"
    rendered = load_renderer("jinja", template=twice).render(messages[:1], {})
    assert [piece.request.start for piece in rendered.pieces] == [0, 16]
    assert any("more than once" in note for note in rendered.notes)


def test_the_template_may_refuse_and_options_may_be_wrong():
    messages = [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}]
    with pytest.raises(RenderError, match="alternate"):
        renderer("mistral").render(messages, {})
    for options in ({"tools": "f"}, {"tools": [3]}, {"chat_template_kwargs": 3}):
        with pytest.raises(RenderError, match="must be"):
            renderer("chatml").render([{"role": "user", "content": "a"}], options)
    with pytest.raises(RenderError, match="Message 0"):
        renderer("chatml").render([{"role": "user"}], {})
    with pytest.raises(RenderError, match="template"):
        load_renderer("jinja", template="{% for %}").render([{"role": "user", "content": "a"}], {})


def test_images_end_what_is_known():
    vision = "{% for b in messages[0].content %}{{ b.text if b.type == 'text' else '<i>' }}{% endfor %}"
    content = [{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}]
    rendered = load_renderer("jinja", template=vision).render([{"role": "user", "content": content}], {})
    assert (rendered.text, rendered.known_until) == ("a<i>b", 1)


def test_variables_of_the_template():
    template = "{{ 'think' if enable_thinking else 'no' }}{{ messages[0].content }}"
    r = load_renderer("jinja", template=template, reasoning="high")
    told = r.render([{"role": "user", "content": "a"}], {"chat_template_kwargs": {"enable_thinking": True}})
    assert (told.text, told.notes) == ("thinka", ())
    assert "chat_template_kwargs" in r.render([{"role": "user", "content": "a"}], {}).notes[0]


@pytest.mark.parametrize("form", ["saved", "config", "list", "json", "file"])
def test_templates_from_a_local_tokenizer(tmp_path, form):
    TOKENIZERS["llama3"].save_pretrained(tmp_path)
    given = str(tmp_path)
    if form == "file":
        given = str(tmp_path / "chat_template.jinja")
    elif form != "saved":
        (tmp_path / "chat_template.jinja").unlink()
        file = tmp_path / ("chat_template.json" if form == "json" else "tokenizer_config.json")
        data = json.loads(file.read_text()) if file.exists() else {}
        value = template("llama3")
        data["chat_template"] = [{"name": "default", "template": value}] if form == "list" else value
        file.write_text(json.dumps(data))
    made = load_renderer(f"jinja:{given}") if form == "saved" else load_renderer("jinja", template=given)
    assert set(SPECIALS["llama3"]) <= set(made.special_tokens)
    assert (made.template, made.bos_token) == (template("llama3"), "<|begin_of_text|>")


def test_missing_templates_are_explained(tmp_path):
    with pytest.raises(InputError, match="There is no chat template"):
        load_renderer("jinja", template=tmp_path / "missing")
    with pytest.raises(InputError, match="holds no chat template"):
        load_renderer("jinja", template=tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(RenderError, match="not JSON"):
        load_renderer("jinja", template=tmp_path)


def test_importing_renderers_loads_nothing_heavy():
    heavy = {"jinja2", "transformers", "torch", "deepseek_recipe"}
    code = f"import phaseguard.chat, sys; print(*{heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("style", STYLES)
def test_blanks_that_a_template_strips_are_told(style):
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    renderer = load_renderer("jinja", template=template(style))
    whole = renderer.render(messages, {})
    for piece in whole.pieces:
        padded = [dict(message) for message in messages]
        padded[piece.message]["content"] = " \n" + padded[piece.message]["content"]
        assert piece.strips == (renderer.render(padded, {}).text == whole.text)
