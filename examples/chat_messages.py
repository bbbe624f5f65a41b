"""Align a conversation with tools turn by turn: what was sent before stays byte-identical, so caches hit.

python examples/chat_messages.py
"""

from phaseguard import align_prompt

tools = [
    {
        "type": "function",
        "function": {
            "name": "read_log",
            "description": "Read the last lines of a service's log.",
            "parameters": {"type": "object", "properties": {"service": {"type": "string"}}},
        },
    }
]
log = "11:02 leader-2 fenced\n\n11:07 incident INC-20817 opened\n\n11:09 phrase PROVOCATIVE-8417 issued\n"
call = {"id": "1", "type": "function", "function": {"name": "read_log", "arguments": '{"service": "cache"}'}}
question = (
    "Ticket OPS-5512 is about the cache.\n\nThe pager code is LANTERN-3071.\n\nWhat belongs to OPS-5512?"
)
turns = [
    [{"role": "system", "content": "Quote identifiers exactly."}, {"role": "user", "content": question}],
    [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": log},
    ],
    [
        {"role": "assistant", "content": "OPS-5512 belongs to incident INC-20817."},
        {"role": "user", "content": "The storage lead is at desk D-4471.\n\nWhere is the storage lead?"},
    ],
]

conversation: list[dict] = []
sent: list[dict] = []
for turn in turns:
    conversation += turn
    payload = {"messages": conversation, "tools": tools}
    out = align_prompt(payload, profile="deepseek-v4-flash", strong={2, 3})
    messages = out.prompt["messages"]

    assert out.report.verified
    assert messages[: len(sent)] == sent, "an earlier message changed: the prompt cache would miss"
    print(f"{len(messages)} messages, {out.report.tokens_added} tokens of padding,", end=" ")
    print(f"{len(sent)} earlier messages unchanged")
    sent = messages
