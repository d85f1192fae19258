"""What a caller may ask: some paths are open to all, about others the API server decides (SubjectAccessReview).

Source: I030 to I032, G048.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from extender.web.callers import Caller, Heard, Kept, Reviewer, ReviewError
from extender.web.settings import Authorization

_MASTERS: Final = "system:masters"


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a caller may, and why; the reason may be empty."""

    allowed: bool
    reason: str = ""


class _Status(msgspec.Struct, frozen=True):
    allowed: bool = False
    reason: str = ""


class _Review(msgspec.Struct, frozen=True):
    status: _Status = _Status()


@dataclass(slots=True)
class Authorizer:
    """Says what callers may ask.

    Attributes:
        settings: which paths are open, how long answers hold.
        reviewer: None: nobody can be asked, so whatever is not open is closed.
        heard: hears of questions put to the API server.
    """

    settings: Authorization
    reviewer: Reviewer | None
    heard: Heard
    now: Callable[[], float] = time.monotonic
    _kept: Kept[Answer] = field(init=False)

    def __post_init__(self) -> None:
        self._kept = Kept(self.now)

    async def may(self, caller: Caller, verb: str, path: str) -> Answer:
        """Whether *caller* may *verb* (a method in lower case) *path*.

        Raises:
            ReviewError: that could not be learnt.
        """
        if self._is_open(path) or _MASTERS in caller.groups:
            return Answer(allowed=True)
        if self.reviewer is None:
            return Answer(allowed=False)
        extra = tuple(sorted(caller.extra.items()))
        key = (caller.name, caller.uid, caller.groups, extra, verb, path)
        answer = self._kept.get(key)
        if answer is None:
            answer = await self._ask(caller, verb, path, self.reviewer)
            seconds = self.settings.allowed_seconds if answer.allowed else self.settings.denied_seconds
            self._kept.put(key, answer, seconds)
        return answer

    def _is_open(self, path: str) -> bool:
        for allowed in self.settings.always_allowed:
            if allowed.endswith("*"):
                if path.lstrip("/").startswith(allowed[:-1].lstrip("/")):
                    return True
            elif path.lstrip("/") == allowed.lstrip("/"):
                return True
        return False

    async def _ask(self, caller: Caller, verb: str, path: str, reviewer: Reviewer) -> Answer:
        spec: dict[str, Any] = {"user": caller.name, "nonResourceAttributes": {"path": path, "verb": verb}}
        if caller.groups:
            spec["groups"] = list(caller.groups)
        if caller.uid:
            spec["uid"] = caller.uid
        if caller.extra:
            spec["extra"] = {key: list(values) for key, values in caller.extra.items()}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        began = self.now()
        try:
            told = msgspec.json.decode(await reviewer.review("SubjectAccessReview", body), type=_Review).status
        except msgspec.MsgspecError as fault:
            raise ReviewError(f"the answer about rights cannot be read: {fault}") from fault
        except ReviewError:
            self.heard.reviewed("authz", "<error>", self.now() - began)
            raise
        self.heard.reviewed("authz", "201", self.now() - began)
        return Answer(told.allowed, told.reason)
