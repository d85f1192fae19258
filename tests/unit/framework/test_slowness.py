"""A slow plugin is named once, with how long it took; the observer behind hears everything."""

from extender.framework.slowness import SlowCalls
from extender.framework.verdict import Code


class Heard:
    """An observer that writes down what it hears."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, Code, float]] = []

    def called(self, plugin: str, point: str, code: Code, seconds: float) -> None:
        self.calls.append((plugin, point, code, seconds))

    def passed(self, profile: str, point: str, code: Code, seconds: float) -> None:
        self.calls.append((profile, point, code, seconds))


def test_a_slow_plugin_is_told_of_once() -> None:
    lines: list[str] = []
    slow = SlowCalls(lines.append)
    slow.called("Mine", "Filter", Code.SUCCESS, 0.1)
    slow.called("Mine", "Filter", Code.SUCCESS, 0.25)
    slow.called("Mine", "Score", Code.SUCCESS, 3.0)
    assert lines == ['plugin "Mine" is slow: one call of Filter took 250 ms, want at most 100 ms']
    assert slow.slow == {"Mine": 0.25}


def test_an_exempt_plugin_is_not_told_of() -> None:
    lines: list[str] = []
    slow = SlowCalls(lines.append, exempt=("NodeName",), most=0.01)
    slow.called("NodeName", "Filter", Code.SUCCESS, 1.0)
    slow.called("Mine", "Filter", Code.SUCCESS, 0.02)
    assert lines == ['plugin "Mine" is slow: one call of Filter took 20 ms, want at most 10 ms']


def test_the_observer_behind_hears_everything() -> None:
    heard = Heard()
    slow = SlowCalls(lambda _: None, heard)
    slow.called("Mine", "Filter", Code.ERROR, 0.5)
    slow.passed("default-scheduler", "Filter", Code.SUCCESS, 0.6)
    assert heard.calls == [("Mine", "Filter", Code.ERROR, 0.5), ("default-scheduler", "Filter", Code.SUCCESS, 0.6)]
