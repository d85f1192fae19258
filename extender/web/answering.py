"""One request to a verb, from its first byte to the last of the answer.

An ASGI application of its own: a scheduler waits for each answer, so nothing that is there for parameters, cookies or
forms stands before it. The rest (server, document of the interface, faults nobody foresaw) is the framework's.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, Final, Protocol

import msgspec
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from extender.web import access
from extender.web.bodies import Bodies, header
from extender.web.priorities import Priorities
from extender.web.probes import line
from extender.web.turns import Turns
from extender.web.wire import RequestError

_GONE: Final = 499
"""Counted for a caller that hangs up before its request is read; nobody sees it."""

_encoder: Final = msgspec.json.Encoder()


class Traffic(Protocol):
    """Hears of requests (`observe.verbs.VerbMetrics`)."""

    def started(self, verb: str) -> None:
        """A request came in."""

    def ended(self, verb: str, code: int, seconds: float) -> None:
        """It was answered with the HTTP status *code*."""

    def sizes(self, verb: str, request: int, response: int) -> None:
        """How big the bodies were, in bytes."""

    def lagged(self, seconds: float) -> None:
        """The event loop came back so much later than it was asked to."""


@dataclass(frozen=True, slots=True)
class Answering:
    """Answers the requests of one verb, on the event loop itself: a decision takes milliseconds.

    Attributes:
        name: what the verb is called in metrics.
        decode: reads a request's body.
        current: what answers now, perhaps after a wait; another may take its place between two requests.
        bodies: reads requests, and bounds them.
        sign: what shows that a request carries whole objects; None: none does.
        turns: whose turn it is.
        traffic: hears of requests.
    """

    name: str
    decode: Callable[[bytearray], Any]
    current: Callable[[], Callable[[Any], Any]]
    bodies: Bodies
    sign: re.Pattern[bytes] | None
    turns: Turns
    traffic: Traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; its method and path are the verb's."""
        started = time.perf_counter()
        self.traffic.started(self.name)
        code = 500
        facts: dict[str, Any] = {}
        try:
            encoded = await self._encoded(scope, receive, facts)
            code = 200
            await _send(send, encoded)
        except RequestError as fault:
            code, facts["err"] = fault.status, fault.message
            await line(fault.message, code)(scope, receive, send)
        except ClientDisconnect:
            code = _GONE
        finally:
            seconds = time.perf_counter() - started
            self.traffic.ended(self.name, code, seconds)
            access.told(scope, self.name, code, seconds, facts)

    async def _encoded(self, scope: Scope, receive: Receive, facts: dict[str, Any]) -> bytes:
        """The answer in JSON; *facts* get what the log shall tell.

        Raises:
            RequestError: there is none.
            ClientDisconnect: the caller hung up before all of the request was there.
        """
        _refuse_encoded(scope)
        async with self.bodies.of(scope, receive, self.sign) as body, self.turns:
            asked = self.decode(body)
            facts["pod"] = asked.key
            answered = self.current()(asked)
            if isawaitable(answered):
                answered = await answered
            if wrong := getattr(answered, "error", ""):
                facts["err"] = wrong
            encoded = answered.written() if isinstance(answered, Priorities) else _encoder.encode(answered)
            self.traffic.sizes(self.name, len(body), len(encoded))
            facts["requestBytes"], facts["responseBytes"] = len(body), len(encoded)
            return encoded


async def _send(send: Send, encoded: bytes) -> None:
    headers = [(b"content-length", b"%d" % len(encoded)), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": encoded})


def _refuse_encoded(scope: Scope) -> None:
    encoding = header(scope, b"content-encoding")
    if encoding.strip().lower() not in {b"", b"identity"}:
        said = encoding.decode("latin-1")
        raise RequestError(415, f'Content-Encoding "{said}" is not understood; send the body as it is')
