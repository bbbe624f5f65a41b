"""The HTTP side, on aiohttp; nothing imports this file before a server starts."""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from phaseguard.errors import InputError, MissingExtraError, PhaseGuardError
from phaseguard.testing.calls import Call, CallLog
from phaseguard.testing.checks import Rules, check_body, check_chat, check_context, check_legacy
from phaseguard.testing.completion import CHAT, LEGACY, Completion, Engine
from phaseguard.testing.faults import Fault
from phaseguard.testing.stream import DONE, chat_events, event, legacy_events
from phaseguard.testing.wire import Head, Json, Refusal, chat, legacy, models

try:
    from aiohttp import web
except ImportError as error:
    raise MissingExtraError("The server needs aiohttp: pip install 'phaseguard[testing]'.") from error

_MOST_BYTES = 1 << 30
_BACKLOG = 4096  # a thousand clients may connect at once
_THREADS = 8
_PATIENCE = 0.01  # seconds that closing waits for answers; aiohttp takes 0 for ever
MODELS = "/v1/models"


@dataclass
class Service:
    """Answers requests.

    Attributes:
        engine: makes the answers; ``rules``: what requests have to fulfil; ``faults``: what goes wrong.
        log: records calls.
    """

    engine: Engine
    rules: Rules
    faults: Callable[[Call], Fault | None] | None
    log: CallLog
    threads: ThreadPoolExecutor = field(init=False)
    closing: bool = field(default=False, init=False)

    async def run(self, started: Callable[[int], None], stop: asyncio.Event) -> None:
        """Serve on a free port of the loopback interface until ``stop`` is set."""
        app = web.Application(client_max_size=_MOST_BYTES)
        app.router.add_route("*", "/{path:.*}", self.handle)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=_PATIENCE)
        self.threads = ThreadPoolExecutor(_THREADS, "phaseguard-testing")
        try:
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0, backlog=_BACKLOG).start()
            started(runner.addresses[0][1])
            await stop.wait()
        finally:
            self.closing = True
            await runner.cleanup()
            self.threads.shutdown(cancel_futures=True)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Record a request and answer it."""
        raw = await request.read()
        body = _parsed(raw)
        call = self.log.add(request.path, body if isinstance(body, dict) else {}, request.headers)
        async with self._answering(call):
            try:
                return await self._respond(request, call, body)
            except Refusal as refusal:
                said = refusal
            except ConnectionError:
                raise
            except Exception as error:  # noqa: BLE001 - a fault of this server's is told as an API tells it
                said = Refusal(500, f"{type(error).__name__}: {error}", kind="server_error")
            return web.json_response(said.body, status=said.status, headers=said.headers)

    async def _respond(self, request: web.Request, call: Call, body: object) -> web.StreamResponse:
        self.rules.check_key(request.headers.get("Authorization"))
        if request.path not in {CHAT, LEGACY}:
            return web.json_response(self._listed(request.path))
        if request.method != "POST":
            raise Refusal(405, f"Not allowed to {request.method} on {request.path}: use POST.")
        fault = self.faults(call) if self.faults else None
        if not isinstance(fault, Fault | None):
            raise InputError(f"faults gave a {type(fault).__name__}: let it give a Fault or None.")
        check_body(body)
        return await self._answer(request, call, fault)

    @asynccontextmanager
    async def _answering(self, call: Call) -> AsyncIterator[None]:
        with self.log.answering():
            try:
                yield
            except (asyncio.CancelledError, ConnectionError):
                if not self.closing:
                    self.log.drop(call)
                raise

    def _listed(self, path: str) -> Json:
        """The models, or one of them."""
        if path == MODELS:
            return models(self.rules.models)
        name = path.removeprefix(f"{MODELS}/")
        if name == path:
            raise Refusal(404, f"Unknown request URL: {path}.", "unknown_url")
        self.rules.check_model(name)
        (listed,) = models([name])["data"]
        made: Json = listed
        return made

    async def _answer(self, request: web.Request, call: Call, fault: Fault | None) -> web.StreamResponse:
        if fault is not None and fault.kind == "delay":
            await asyncio.sleep(fault.seconds)
        if fault is not None and fault.kind == "status":
            raise fault.refusal
        if fault is not None and fault.kind == "disconnect":
            return _cut(request)
        body = call.body
        self.rules.check_model(body.get("model"))
        head = Head(call.number, body["model"], int(time.time()))
        if request.path == CHAT:
            check_chat(body)
            completions = [await self._completion(body, CHAT)]
        else:
            prompts = check_legacy(body)
            completions = [await self._completion({**body, "prompt": prompt}, LEGACY) for prompt in prompts]
        check_context(completions, body, self.rules.context)
        if fault is not None:
            completions = [fault.spoil(completion) for completion in completions]
        if body.get("stream"):
            make = chat_events if request.path == CHAT else legacy_events
            return await _stream(request, list(make(head, completions[0], body)), fault)
        made = chat(head, completions[0], body) if request.path == CHAT else legacy(head, completions, body)
        return await _send(request, made, fault)

    async def _completion(self, body: Mapping[str, Any], path: str) -> Completion:
        """What the engine answers.

        Raises:
            Refusal: 400 with the message of an error of phaseguard, 500 with that of any other.
        """
        try:
            given: Completion | Awaitable[Completion]
            if inspect.iscoroutinefunction(self.engine.reply):
                given = self.engine.reply(body, path)
            else:
                loop = asyncio.get_running_loop()
                given = await loop.run_in_executor(self.threads, self.engine.reply, body, path)
            completion = await given if inspect.isawaitable(given) else given
            if not isinstance(completion, Completion):
                raise TypeError(f"reply gave a {type(completion).__name__}, no Completion")  # noqa: TRY301
        except PhaseGuardError as error:
            raise Refusal(400, str(error)) from error
        except Exception as error:
            said = f"The engine raised {type(error).__name__}: {error}"
            raise Refusal(500, said, kind="server_error") from error
        return completion


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw) if raw else None
    except ValueError:
        return None


async def _send(request: web.Request, body: Json, fault: Fault | None) -> web.StreamResponse:
    kind = fault and fault.kind
    if kind == "empty-choices":
        body = {**body, "choices": []}
    payload = json.dumps(body, ensure_ascii=False).encode()
    half = payload[: len(payload) // 2]
    if kind != "truncate":
        sent = half if kind == "not-json" else payload
        return web.Response(body=sent, content_type="application/json")
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.content_length = len(payload)
    await response.prepare(request)
    await response.write(half)
    return _cut(request, response)


async def _stream(request: web.Request, bodies: list[Json], fault: Fault | None) -> web.StreamResponse:
    kind = fault and fault.kind
    if kind == "empty-choices":
        bodies = [{**body, "choices": []} for body in bodies]
    events = [event(body) for body in bodies]
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    await response.prepare(request)
    if kind in {"truncate", "not-json"}:
        events = events[: len(events) // 2]
    for one in events:
        await response.write(one)
    if kind == "truncate":
        return _cut(request, response)
    if kind == "not-json":
        await response.write(b'data: {"choices": [\n\n')
    await response.write(DONE)
    return response


def _cut(request: web.Request, response: web.StreamResponse | None = None) -> web.StreamResponse:
    """Close the connection once what was written is sent."""
    if request.transport is not None:
        request.transport.close()
    return response or web.Response()
