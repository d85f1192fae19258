"""More requests than can be answered: some wait, the others are told at once, and probes are answered in between."""

import socket
import threading
from collections import Counter
from contextlib import ExitStack
from time import perf_counter
from typing import Any

from extender.web.app import new_app
from extender.web.turns import Turns
from tests.fake_plugins import a_profile
from tests.unit.web.served import SECONDS, a_site, ask, served

CALLERS = 12
BODY = b'{"Pod":{"metadata":{"name":"web"}},"NodeNames":["n1"]}'
REQUEST = b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY


class TakesLong:
    """Holds the event loop in its first answer until it is let go, and for some seconds in each."""

    name = "TakesLong"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.begun, self.let_go = threading.Event(), threading.Event()

    def filter(self, *_: Any) -> tuple[()]:
        self.begun.set()
        self.let_go.wait(SECONDS)
        threading.Event().wait(self.seconds)
        return ()


def answers(plugin: TakesLong, turns: Turns) -> tuple[Counter[int], float]:
    """How many callers get which status when all ask at once; and how long a probe among them takes."""
    with served(new_app(a_site(a_profile(plugin), deciding=turns))) as port, ExitStack() as stack:
        callers = [stack.enter_context(socket.create_connection(("127.0.0.1", port), SECONDS)) for _ in range(CALLERS)]
        callers[0].sendall(REQUEST)
        assert plugin.begun.wait(SECONDS)
        for caller in callers[1:]:
            caller.sendall(REQUEST)
        plugin.let_go.set()
        began = perf_counter()
        assert ask(port, "GET", "/livez") == (200, "ok")
        probe = perf_counter() - began
        return Counter(int(caller.recv(100).split()[1]) for caller in callers), probe


def test_who_finds_a_long_line_is_told_at_once() -> None:
    found, _ = answers(TakesLong(0.0), Turns(waiting=3))
    assert found[200] >= 4
    assert found[503] == CALLERS - found[200] > 0


def test_who_waits_too_long_is_told() -> None:
    found, _ = answers(TakesLong(0.2), Turns(seconds=0.5))
    assert found[200] >= 1
    assert found[503] == CALLERS - found[200] > 0


def test_a_probe_is_answered_between_two_turns() -> None:
    found, probe = answers(TakesLong(0.1), Turns())
    assert found == {200: CALLERS}
    assert probe < (CALLERS - 2) * 0.1
