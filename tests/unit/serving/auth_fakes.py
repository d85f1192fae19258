"""Fakes of metrics and of the reviewing API server."""

import json
from collections.abc import Mapping
from typing import Any

from extender.metrics.client_metrics import ClientMetrics
from extender.serving.authentication import ReviewError


class NullAuthMetrics(ClientMetrics):
    """Discards metrics."""

    def __init__(self) -> None:
        """Use no registry."""

    def observe_review(self, *_: object) -> None:
        """Do nothing."""

    def count_token_fetch(self, *_: object) -> None:
        """Do nothing."""

    def observe_token_lookup(self, *_: object) -> None:
        """Do nothing."""

    def observe_authentication(self, *_: object) -> None:
        """Do nothing."""

    def observe_authorization(self, *_: object) -> None:
        """Do nothing."""


class FakeReviewer:
    """Returns prepared statuses and records the specs; an empty status is an unreachable API server."""

    def __init__(self, *answers: Mapping[str, Any]) -> None:
        self.answers = list(answers)
        self.specs: list[Any] = []

    async def review(self, kind: str, body: Mapping[str, Any]) -> bytes:
        assert body["kind"] == kind
        self.specs.append(body["spec"])
        answer = self.answers.pop(0)
        if not answer:
            raise ReviewError("away")
        return json.dumps({"status": answer}).encode()


ANN = {"authenticated": True, "user": {"username": "ann", "uid": "7", "groups": ["g"], "extra": {"k": ["v"]}}}


UNREADABLE_ANSWERS = (b"{", b'{"status": 1}', b'{"status": {"reason": "\xff"}}', b'{"x": ' + b"[" * 100_000)
"""Responses of a faulty API server or proxy: syntax, type, no UTF-8, depth."""


class FaultyReviewer:
    """Returns the same response to each review."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer

    async def review(self, _kind: str, _body: Mapping[str, Any]) -> bytes:
        return self.answer
