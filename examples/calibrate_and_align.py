"""Calibrate an endpoint by its answers alone, then align with what was found, and see the gap close.

The endpoint is a server on this machine with a small model behind it, whose cache is compressed as that of
DeepSeek V4 is, and which puts a hidden prefix in front of every prompt; phaseguard knows of neither.

python examples/calibrate_and_align.py [MODEL]    # such as chunk4-s0
"""

import sys

from openai import OpenAI

from phaseguard import align_prompt
from phaseguard.calibrate import LabLanguage, OpenAIEndpoint, calibrate, lab_profile
from phaseguard.lab.cases import Case, draw_cases
from phaseguard.testing import LabEngine, Server

MODEL = sys.argv[1] if sys.argv[1:] else "csa4-s0"
QUESTIONS, SEED = 150, 7
language = LabLanguage.of(MODEL)
words = language.tokenizer

with Server(LabEngine(MODEL, prefix=5)) as server:
    with OpenAIEndpoint(server.url, "test-model") as endpoint:
        found = calibrate(endpoint, lab_profile(MODEL), language=language, items=30, save=False)
    profile = found.profile
    print(f"{found.judgement.verdict}: {found.judgement.reason}")
    print(f"{found.spent.calls} calls; period {profile.period}, prefix_offset {profile.prefix_offset}")
    for phase, accuracy in enumerate(found.strengths["1"]):
        strong = ", strong" if phase in found.strong else ""
        print(f"  phase {phase}: {accuracy.mean:.3f} [{accuracy.low:.3f} {accuracy.high:.3f}]{strong}")

    def aligned(case: Case) -> str:
        """The prompt with the asked record's answer on a strong phase."""
        return align_prompt(
            case.prompt,
            key_passages=[case.record],
            answer=case.answer_text,
            profile=profile,
            isolate=False,
            tokenizer=words,
        ).prompt

    def right(prompt: str, case: Case) -> bool:
        """Whether the endpoint gives the case's answer."""
        messages = [{"role": "user", "content": prompt}]
        reply = client.chat.completions.create(model="test-model", messages=messages, temperature=0)
        return reply.choices[0].message.content == case.answer_text

    cases = draw_cases(language.task, QUESTIONS, period=profile.period, window=language.window, seed=SEED)
    with OpenAI(base_url=server.url, api_key="none") as client:
        raw = sum(right(case.prompt, case) for case in cases)
        better = sum(right(aligned(case), case) for case in cases)
print(f"as they stand: {raw} of {QUESTIONS} right; aligned: {better} of {QUESTIONS} right")
