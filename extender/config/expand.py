"""From plugin sets to the plugins of each extension point, in order, with their weights. Source: G028-G033, A067."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from extender.config.defaults import BUILT_IN
from extender.config.faults import Fault
from extender.config.model import Plugin, PluginSet, Profile
from extender.config.nearest import hint
from extender.config.paths import child
from extender.config.points import POINTS, Point

PointsOf = Callable[[str], frozenset[str] | None]
Expanded = Mapping[str, tuple[Plugin, ...]]

MAX_SCORE: Final = 100
MAX_TOTAL_SCORE: Final = 2**63 - 1
_WEIGHED: Final = {"score": "score plugins", "placementScore": "placement score plugins"}


def expand(profile: Profile, points_of: PointsOf, known: Iterable[str] = BUILT_IN) -> tuple[Expanded, list[Fault]]:
    """The plugins of each extension point of *profile*, and what is wrong with it.

    Args:
        profile: as loaded, that is merged with the default sets.
        points_of: the keys of the extension points (`preFilter`, ...) a plugin implements; None for an unknown plugin.
        known: names to suggest for an unknown one.

    Returns:
        By the key of each point the plugins in the order they run. A weight is set at `score` and `placementScore`,
        never 0 there, and 0 everywhere else. Faults in kube-scheduler's words (Source: A080, A081, G030).
    """
    expansion = _Expansion(profile, points_of, tuple(known))
    expansion.check_multi_point()
    found = {point.key: expansion.order(point) for point in POINTS}
    if not expansion.faults:  # else the counts would only repeat that something is unknown
        expansion.check_counts(found)
    for key, prefix in _WEIGHED.items():
        weights = expansion.weights(key, prefix)
        found[key] = [Plugin(plugin.name, weights[plugin.name]) for plugin in found[key]]
    return {key: tuple(plugins) for key, plugins in found.items()}, expansion.faults


def expand_all(
    profiles: Sequence[Profile], points_of: PointsOf, known: Iterable[str] = BUILT_IN
) -> tuple[Mapping[str, Expanded], list[Fault]]:
    """Every profile expanded, by scheduler name; the faults include those between profiles. Source: A084, G024."""
    names = tuple(known)
    found: dict[str, Expanded] = {}
    faults = [] if profiles else [Fault("profiles", "at least one profile is required")]
    first: tuple[str, object] | None = None
    for profile in profiles:
        expanded, wrong = expand(profile, points_of, names)
        faults += wrong
        name, where = profile.scheduler_name, child(profile.path, "schedulerName")
        if not name:
            faults.append(Fault(where, "scheduler name is needed"))
        elif name in found:
            faults.append(Fault(where, f'duplicate profile with scheduler name "{name}"'))
        else:
            found[name] = expanded
        if not expanded["queueSort"]:
            continue
        queue_sort = expanded["queueSort"][0].name
        args = profile.plugin_config.get(queue_sort)
        where = child(profile.path, "plugins.queueSort")
        if first is None:
            first = queue_sort, args
        elif first[0] != queue_sort:
            message = f'different queue sort plugins for profile "{name}": "{queue_sort}", first: "{first[0]}"'
            faults.append(Fault(where, message))
        elif first[1] != args:
            faults.append(Fault(where, f'different queue sort plugin args for profile "{name}"'))
    return found, faults


class _Expansion:
    """One profile being expanded; collects faults."""

    def __init__(self, profile: Profile, points_of: PointsOf, known: tuple[str, ...]) -> None:
        self.profile = profile
        self.faults: list[Fault] = []
        self._known = known
        self._multi_point = profile.plugins.multi_point.enabled
        listed = {plugin.name for point in POINTS for plugin in point.of(profile.plugins).enabled}
        listed.update(plugin.name for plugin in self._multi_point)
        self._points = {name: points_of(name) for name in listed}

    def check_multi_point(self) -> None:
        """Every multiPoint plugin exists; the first point that is expanded at all says so. Source: A081."""
        first = next((point for point in POINTS if not _all_disabled(point.of(self.profile.plugins))), None)
        if first is None:
            return
        for name in dict.fromkeys(plugin.name for plugin in self._multi_point):
            if self._points[name] is None:
                self._unknown(first, name, "plugins.multiPoint.enabled")

    def order(self, point: Point) -> list[Plugin]:
        """The plugins of one point in order: re-listed, then from multiPoint, then the other explicit ones."""
        own = point.of(self.profile.plugins)
        explicit = self._explicit(point, own)
        if _all_disabled(own):
            return [Plugin(name) for name in explicit]
        listed = {plugin.name for plugin in own.enabled}
        disabled = {plugin.name for plugin in own.disabled}
        overrides: set[str] = set()
        expanded: dict[str, None] = {}
        for plugin in self._multi_point:
            name = plugin.name
            if point.key not in (self._points[name] or ()) or name in disabled:
                continue
            if name in listed:
                overrides.add(name)
            elif name in expanded:
                self._twice(point, name, "plugins.multiPoint.enabled")
            else:
                expanded[name] = None
        before = [name for name in explicit if name in overrides]
        after = [name for name in explicit if name not in overrides]
        return [Plugin(name) for name in (*before, *expanded, *after)]

    def _explicit(self, point: Point, own: PluginSet) -> dict[str, None]:
        """The names listed at the point itself that can stand there. Source: A081."""
        found: dict[str, None] = {}
        where = f"plugins.{point.key}.enabled"
        for plugin in own.enabled:
            points = self._points[plugin.name]
            if points is None:
                self._unknown(point, plugin.name, where)
            elif point.key not in points:
                self._fault(where, f'plugin "{plugin.name}" does not extend {point.interface} plugin')
            elif plugin.name in found:
                self._twice(point, plugin.name, where)
            else:
                found[plugin.name] = None
        return found

    def check_counts(self, found: Mapping[str, Sequence[Plugin]]) -> None:
        """One queue sort plugin, a bind plugin, at most one placement generator. Source: A080."""
        name = self.profile.scheduler_name
        count = len(found["queueSort"])
        if count != 1:
            message = f'only one queue sort plugin required for profile with scheduler name "{name}", but got {count}'
            self._fault("plugins.queueSort", message)
        if not found["bind"]:
            self._fault("plugins.bind", f'at least one bind plugin is needed for profile with scheduler name "{name}"')
        if len(found["placementGenerate"]) > 1:
            message = f'at most one placement generate plugin is allowed for profile with scheduler name "{name}"'
            self._fault("plugins.placementGenerate", message)

    def weights(self, key: str, prefix: str) -> dict[str, int]:
        """Weights by plugin name: the point's own entry counts before multiPoint's, 0 counts as 1. Source: G031, A067.

        As in kube-scheduler the guard against overflow includes plugins that are disabled at the point.
        """
        point = next(point for point in POINTS if point.key == key)
        weights: dict[str, int] = {}
        total = 0
        for plugin in (*point.of(self.profile.plugins).enabled, *self._multi_point):
            if plugin.name in weights or key not in (self._points[plugin.name] or ()):
                continue
            weights[plugin.name] = plugin.weight or 1
            total += weights[plugin.name] * MAX_SCORE
            if total > MAX_TOTAL_SCORE:
                self._fault(f"plugins.{key}.enabled", f"{prefix}: total score of Score plugins could overflow")
                total = 0
        return weights

    def _unknown(self, point: Point, name: str, where: str) -> None:
        advice = hint(name, self._known) or "; is its package installed?"
        self._fault(where, f'{point.interface} "{name}" does not exist{advice}')

    def _twice(self, point: Point, name: str, where: str) -> None:
        self._fault(where, f'plugin "{name}" already registered as "{point.interface}"')

    def _fault(self, where: str, message: str) -> None:
        self.faults.append(Fault(child(self.profile.path, where), message))


def _all_disabled(own: PluginSet) -> bool:
    return any(plugin.name == "*" for plugin in own.disabled)
