"""An observer that records events, such as searches for victims."""

from dataclasses import dataclass, field

from extender.framework.observer import ObservedEvent, PluginObserver


@dataclass
class EventRecorder(PluginObserver):
    """Records each event with its labels and, if it is not a duration, its value."""

    events: list[tuple[ObservedEvent, tuple[str, ...], float | None]] = field(default_factory=list)

    def observe_event(self, event: ObservedEvent, labels: tuple[str, ...], value: float) -> None:
        """Record *event*."""
        is_count = event in {ObservedEvent.POD_GROUP_PREEMPTION, ObservedEvent.PLACEMENTS_GENERATED}
        assert value >= 0
        self.events.append((event, labels, value if is_count else None))
