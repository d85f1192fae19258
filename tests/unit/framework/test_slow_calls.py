"""A slow plugin is reported once, with the duration; all observations are forwarded."""

from extender.framework.observer import ObservedEvent
from extender.framework.slow_calls import SlowCallObserver
from extender.framework.status import Code


class RecordingObserver:
    """Records all observations."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, Code, float]] = []
        self.events: list[tuple[ObservedEvent, tuple[str, ...], float]] = []

    def observe_plugin_call(self, plugin: str, point: str, code: Code, seconds: float) -> None:
        self.calls.append((plugin, point, code, seconds))

    def observe_extension_point(self, profile: str, point: str, code: Code, seconds: float) -> None:
        self.calls.append((profile, point, code, seconds))

    def observe_event(self, event: ObservedEvent, labels: tuple[str, ...], value: float) -> None:
        self.events.append((event, labels, value))


def test_a_slow_plugin_is_reported_once() -> None:
    lines: list[str] = []
    observer = SlowCallObserver(lines.append)
    observer.observe_plugin_call("Own", "Filter", Code.SUCCESS, 0.1)
    observer.observe_plugin_call("Own", "Filter", Code.SUCCESS, 0.25)
    observer.observe_plugin_call("Own", "Score", Code.SUCCESS, 3.0)
    assert lines == ['plugin "Own" is slow: one call of Filter took 250 ms, want at most 100 ms']
    assert observer.slow_plugins == {"Own": 0.25}


def test_an_exempt_plugin_is_not_reported() -> None:
    lines: list[str] = []
    observer = SlowCallObserver(lines.append, exempt_plugins=("NodeName",), threshold=0.01)
    observer.observe_plugin_call("NodeName", "Filter", Code.SUCCESS, 1.0)
    observer.observe_plugin_call("Own", "Filter", Code.SUCCESS, 0.02)
    assert lines == ['plugin "Own" is slow: one call of Filter took 20 ms, want at most 10 ms']


def test_all_observations_are_forwarded() -> None:
    recording = RecordingObserver()
    observer = SlowCallObserver(lambda _: None, recording)
    observer.observe_plugin_call("Own", "Filter", Code.ERROR, 0.5)
    observer.observe_extension_point("default-scheduler", "Filter", Code.SUCCESS, 0.6)
    observer.observe_event(ObservedEvent.POD_GROUP_PREEMPTION, ("Success",), 1.0)
    assert recording.events == [(ObservedEvent.POD_GROUP_PREEMPTION, ("Success",), 1.0)]
    assert recording.calls == [("Own", "Filter", Code.ERROR, 0.5), ("default-scheduler", "Filter", Code.SUCCESS, 0.6)]
