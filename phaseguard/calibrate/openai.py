"""Any OpenAI-compatible endpoint, asked with the ``openai`` client (extra ``openai``)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from types import TracebackType
from typing import Any, Self

from phaseguard.access import NAMES, Access
from phaseguard.calibrate.endpoint import Outcome, Question, Reply, TokenChoice
from phaseguard.errors import EndpointError, InputError, MissingExtraError, did_you_mean

_TOP = 20  # the most that OpenAI gives
_FIRST_RETRIES = 2


class OpenAIEndpoint:
    """Asks chat completions, or legacy completions, at temperature 0.

    Retries with backoff are the client's own: of timeouts, lost connections, and status 408, 409, 429 and
    500 up. The key is read from the environment, and no error shows it.

    Args:
        base_url: such as ``https://api.deepseek.com/v1``.
        model: as the endpoint calls it.
        completions: continue the prompt by legacy completions instead of chatting.
        key_env: environment variable that holds the key; the first of PHASEGUARD_API_KEY and OPENAI_API_KEY
            that is set by default. A server without keys needs none.
        concurrency: requests under way at once.
        timeout: seconds for one request; ``retries``: tries after the first.
        provider: who serves the model; the host of the URL, with its port if it names one, by default.

    Raises:
        InputError: for a URL, a key or numbers that cannot be used.
        MissingExtraError: when ``openai`` is not installed.

    >>> from phaseguard.testing import ScriptedEngine, Server
    >>> with Server(ScriptedEngine("A-17")) as server, OpenAIEndpoint(server.url, "test-model") as endpoint:
    ...     [outcome.reply.text for outcome in endpoint.ask([Question(0, "Which code?", 8)])]
    ['A-17']
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        completions: bool = False,
        key_env: str | None = None,
        concurrency: int = 8,
        timeout: float = 120.0,
        retries: int = 8,
        provider: str | None = None,
    ) -> None:
        self._access = Access.read(base_url, key_env)
        if concurrency < 1 or timeout <= 0 or retries < 0:
            raise InputError(
                f"concurrency={concurrency}, timeout={timeout}, retries={retries}: give 1 or more."
            )
        self.model, self.completions, self.provider = model, completions, provider or self._access.host
        self._concurrency = concurrency
        self._logprobs = True  # until the endpoint refuses them
        self._reached = False
        self._lock = threading.Lock()
        self._first_retries = min(retries, _FIRST_RETRIES)
        self._client = _client(self._access, timeout, retries)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the client's connections."""
        self._client.close()

    def ask(self, questions: Iterable[Question]) -> Iterator[Outcome]:
        """Ask ``concurrency`` at once; outcomes come as they end.

        When the caller is interrupted, requests under way are still given: they are paid for.
        """
        rest = iter(questions)
        with ThreadPoolExecutor(self._concurrency, "phaseguard-calibrate") as pool:
            running: set[Future[Outcome]] = set()
            try:
                while True:
                    for question in islice(rest, self._concurrency - len(running)):
                        running.add(pool.submit(self._one, question))
                    if not running:
                        return
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        outcome = future.result()
                        running.remove(future)
                        yield outcome
                        if outcome.fatal:
                            rest = iter(())
            except KeyboardInterrupt:
                for future in running:
                    yield future.result()
                raise

    def _one(self, question: Question) -> Outcome:
        start = time.perf_counter()
        try:
            reply = self._reply(question)
        except Exception as error:  # noqa: BLE001 - whatever the client raises is a call without an answer
            fault = self._explain(error)
            seconds = time.perf_counter() - start
            return Outcome(question.number, None, fault.message, fault.fatal, seconds)
        return Outcome(question.number, reply, seconds=time.perf_counter() - start)

    def _reply(self, question: Question) -> Reply:
        import openai  # noqa: PLC0415

        if not self._logprobs:
            return self._send(question, logprobs=False)
        try:
            return self._send(question, logprobs=True)
        except (openai.BadRequestError, openai.UnprocessableEntityError):
            reply = self._send(question, logprobs=False)  # refused again when they were not the reason
            with self._lock:
                self._logprobs = False
            return reply

    def _send(self, question: Question, *, logprobs: bool) -> Reply:
        shared = {"model": self.model, "temperature": 0, "max_tokens": question.max_tokens}
        extra = dict(question.extra) or None
        # an endpoint that never answered is not waited for as one that is busy
        client = self._client if self._reached else self._client.with_options(max_retries=self._first_retries)
        if self.completions:
            asked = {"logprobs": _TOP} if logprobs else {}
            done = client.completions.create(prompt=question.prompt, extra_body=extra, **shared, **asked)
        else:
            asked = {"logprobs": True, "top_logprobs": _TOP} if logprobs else {}
            messages = [{"role": "user", "content": question.prompt}]
            done = client.chat.completions.create(messages=messages, extra_body=extra, **shared, **asked)
        self._reached = True
        return read_reply(done)

    def _explain(self, error: Exception) -> _Fault:
        """What went wrong, without secrets, and whether it goes wrong for every request."""
        import openai  # noqa: PLC0415

        said = self._scrub(_words(error))
        if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
            source = self._access.source
            state = f"{source} is refused" if source else f"{' or '.join(NAMES)} is not set"
            return _Fault(f"The endpoint wants a key, and {state}: {said}", fatal=True)
        if isinstance(error, openai.NotFoundError):
            return _Fault(f"{said} {self._known_models()}", fatal=True)
        if isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError):
            hint = " Give a smaller --context." if "context" in said.lower() else ""
            return _Fault(f"The endpoint refuses the request: {said}{hint}", fatal=True)
        if isinstance(error, EndpointError):
            return _Fault(said, fatal=False)
        if isinstance(error, openai.APITimeoutError):
            return _Fault("No answer came in time.", fatal=False)
        if isinstance(error, openai.APIConnectionError):
            return _Fault(
                f"The endpoint cannot be reached: {self._scrub(str(error.__cause__ or error))}", fatal=False
            )
        return _Fault(f"{type(error).__name__}: {said}", fatal=False)

    def _known_models(self) -> str:
        try:
            known = [model.id for model in islice(self._client.models.list(), 200)]
        except Exception:  # noqa: BLE001 - a hint that is not to be had
            return "Check the model's name and the base URL, which mostly ends with /v1."
        return did_you_mean(self.model, known) if known else "The endpoint lists no models."

    def _scrub(self, text: str) -> str:
        hidden: str = self._access.hide(text)
        return " ".join(hidden.split())[:500]


class _Fault:
    __slots__ = ("fatal", "message")

    def __init__(self, message: str, *, fatal: bool) -> None:
        self.message, self.fatal = message, fatal


def _client(access: Access, timeout: float, retries: int) -> Any:
    try:
        from openai import OpenAI  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "Asking an endpoint needs openai: pip install 'phaseguard[openai]'."
        ) from error
    return OpenAI(base_url=access.url, api_key=access.key, timeout=timeout, max_retries=retries)


def _words(error: Exception) -> str:
    body = getattr(error, "body", None)
    said = body.get("message") if isinstance(body, Mapping) else None
    return said if isinstance(said, str) and said else str(error)


def read_reply(done: Any) -> Reply:
    """The first choice of a completion, chat or legacy.

    Raises:
        EndpointError: when it says nothing that can be used.

    >>> from types import SimpleNamespace as S
    >>> read_reply(S(choices=[S(text=" 8417", logprobs=None)], usage=None)).text
    ' 8417'
    """
    choices = getattr(done, "choices", None)
    if not choices:
        raise EndpointError("The answer has no choices.")
    choice = choices[0]
    message = getattr(choice, "message", None)
    text = getattr(choice, "text", None) if message is None else message.content
    if not isinstance(text, str) or not text.strip():
        reason = getattr(choice, "finish_reason", None)
        hint = " Reasoning used up its tokens: allow more." if reason == "length" else ""
        raise EndpointError(f"The answer has no text (finish_reason {reason!r}).{hint}")
    usage = getattr(done, "usage", None)
    details = getattr(usage, "prompt_tokens_details", None)
    cached = getattr(details, "cached_tokens", None)
    return Reply(
        text,
        _choices(getattr(choice, "logprobs", None)),
        getattr(usage, "prompt_tokens", None),
        getattr(usage, "prompt_cache_hit_tokens", None) if cached is None else cached,
        getattr(usage, "completion_tokens", None),
    )


def _choices(logprobs: Any) -> tuple[TokenChoice, ...]:
    """Alternatives at each place, of a chat completion's ``content`` or a legacy completion's lists."""
    content = getattr(logprobs, "content", None)
    if content:
        return tuple(
            TokenChoice(place.token, {one.token: one.logprob for one in place.top_logprobs})
            for place in content
        )
    tokens, top = getattr(logprobs, "tokens", None), getattr(logprobs, "top_logprobs", None)
    if not tokens or not top:
        return ()
    return tuple(TokenChoice(token, dict(ranked or {})) for token, ranked in zip(tokens, top, strict=False))


def reasoning_fields(chat: str, reasoning: str) -> dict[str, Any]:
    """How a request says the reasoning mode that a profile's chat encoding renders.

    >>> reasoning_fields("deepseek-v4", "high")
    {'thinking': {'type': 'enabled'}, 'reasoning_effort': 'high'}
    >>> reasoning_fields("plain", "off")
    {}
    """
    if chat.startswith("deepseek"):
        if reasoning == "off":
            return {"thinking": {"type": "disabled"}}
        return {"thinking": {"type": "enabled"}, "reasoning_effort": reasoning}
    return {} if reasoning == "off" else {"reasoning_effort": reasoning}
