"""Run the built-in plugins on the cases of tests/cases: one file per plugin, one sentence per case.

A case describes a small cluster and the expected results of the plugin. Keys, all optional but `want`:

    release:  the emulated release; default: 1.36
    gates:    feature gates that differ from their defaults
    options:  the plugin's arguments, as in `pluginConfig`
    nodes:    arguments of `build.make_node` by node name
    assigned_pods: by node name, a list of arguments of `build.make_pod` for pods on it
    objects:  raw objects of other kinds
    pod:      arguments of `build.make_pod` for the incoming pod
    event:    a cluster event: `resource`, `action`, and `old` and `new` as arguments of the builder or raw objects
    queue:    queued pods by name, with `priority` and `timestamp`
    disabled: a list of extension points of the plugin that are not called (PreFilter, Filter, PreScore)
    want:     the expected results, checked by one function below for each key
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from extender.cache.snapshot import NodeView, Snapshot
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASES
from extender.config.strict_decoding import decode_strict
from extender.framework.events import ActionType, ClusterEvent, EventResource
from extender.framework.extension_points import PreFilterResult, PreScoreResult, QueueSortEntry
from extender.framework.plugin_args import DefaultedOptions, PluginArgs, ValidatedOptions
from extender.framework.status import find_most_severe_code
from extender.plugins.registry import BUILT_IN_PLUGINS
from tests.build import make_cluster, make_node, make_object, make_pod, make_pod_info

BY_NAME = {plugin.name: plugin for plugin in BUILT_IN_PLUGINS}
CASES = Path(__file__).resolve().parents[2] / "cases"


def _cases() -> Iterator[Any]:
    for path in sorted(CASES.glob("*.yaml")):
        document = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
        if "plugin" not in document:
            continue
        plugin_class = BY_NAME[document["plugin"]]
        for sentence, case in document["cases"].items():
            yield pytest.param(plugin_class, case, id=f"{document['plugin']}: {sentence}")


class CaseRunner:
    """Builds the plugin, the cluster and the pod of one case, and runs the plugin's extension points."""

    def __init__(self, plugin_class: type[Any], case: Mapping[str, Any]) -> None:
        unknown = case.keys() - {
            "release", "gates", "options", "nodes", "assigned_pods", "objects", "pod", "event", "queue", "disabled",
            "want",
        }  # fmt: skip
        assert not unknown
        self.case = case
        self.gates = FeatureGates(case.get("gates"), RELEASES[case.get("release", RELEASE_1_36.version)])
        self.plugin_class = plugin_class
        self.options, self.errors = self._decode_options(case.get("options") or {})
        nodes = [make_node(name, **(args or {})) for name, args in (case.get("nodes") or {}).items()]
        assigned_pods = [
            make_pod(**{"name": f"pod-{name}-{index}", **args}, node=name)
            for name, pods in (case.get("assigned_pods") or {}).items()
            for index, args in enumerate(pods)
        ]
        self.cache = make_cluster(
            *nodes, *assigned_pods, *map(make_object, case.get("objects") or ()), gates=self.gates
        )
        self.pod = make_pod_info(make_pod(**(case.get("pod") or {})), self.cache)

    def _decode_options(self, raw: Mapping[str, Any]) -> tuple[Any, list[str]]:
        options_class = getattr(self.plugin_class, "options", None)
        if options_class is None:
            return None, []
        body = options_class.apply_defaults(raw, self.gates) if issubclass(options_class, DefaultedOptions) else raw
        options, errors = decode_strict(body, options_class, "args")
        all_errors = [*errors, *(options.validate("args", self.gates) if isinstance(options, ValidatedOptions) else ())]
        return options, [str(error) for error in all_errors]

    @property
    def plugin(self) -> Any:
        takes_args = bool(inspect.signature(self.plugin_class).parameters)
        return self.plugin_class(PluginArgs(self.options, self.gates)) if takes_args else self.plugin_class()

    @property
    def snapshot(self) -> Snapshot:
        return self.cache.snapshot()

    def pre_filter(self, plugin: Any) -> PreFilterResult:
        if not hasattr(plugin, "pre_filter") or "PreFilter" in (self.case.get("disabled") or ()):
            return PreFilterResult()
        result = plugin.pre_filter(self.pod, self.snapshot)
        assert isinstance(result, PreFilterResult)
        return result

    def pre_score(self, plugin: Any, nodes: NodeView) -> PreScoreResult:
        if not hasattr(plugin, "pre_score") or "PreScore" in (self.case.get("disabled") or ()):
            return PreScoreResult()
        result = plugin.pre_score(self.pod, nodes)
        assert isinstance(result, PreScoreResult)
        return result

    def rejections(self, view: NodeView) -> dict[str, dict[str, Any]]:
        """Return the reasons and the most severe code by node."""
        plugin = self.plugin
        pre_filter_result = self.pre_filter(plugin)
        assert not pre_filter_result.skip, "PreFilter skips the pod"
        reasons_by_node: dict[str, Any] = {}
        for mask, reason in plugin.filter(self.pod, view, pre_filter_result.state):
            assert (mask.dtype, mask.shape) == (np.bool_, (len(view),))
            for name in np.array(view.names)[mask].tolist():
                reasons_by_node.setdefault(name, []).append(reason)
        return {
            name: {"reasons": [r.text for r in reasons], "code": find_most_severe_code([r.code for r in reasons]).label}
            for name, reasons in reasons_by_node.items()
        }

    def state_after_filter(self, plugin: Any, view: NodeView) -> Any:
        """Return the PreFilter state after all nodes were filtered: the state of a plugin without PreScore."""
        pre_filter_result = self.pre_filter(plugin)
        is_filter_disabled = "Filter" in (self.case.get("disabled") or ())
        if not pre_filter_result.skip and pre_filter_result.state is not None and not is_filter_disabled:
            plugin.filter(self.pod, view, pre_filter_result.state)
        return pre_filter_result.state

    def scores(self, view: NodeView) -> tuple[dict[str, int], dict[str, int]]:
        """Return raw and normalized scores by node."""
        plugin = self.plugin
        pre_score_result = self.pre_score(plugin, view)
        assert not pre_score_result.skip, "PreScore skips the pod"
        assert pre_score_result.status is None
        has_own_state = hasattr(plugin, "pre_score") and not getattr(plugin, "scores_from_pre_filter", False)
        state = pre_score_result.state if has_own_state else self.state_after_filter(plugin, view)
        raw = plugin.score(self.pod, view, state)
        normalized = plugin.normalize_score(self.pod, raw, view, state) if hasattr(plugin, "normalize_score") else raw
        assert raw.dtype == normalized.dtype == np.int64
        return dict(zip(view.names, raw.tolist(), strict=True)), dict(zip(view.names, normalized.tolist(), strict=True))

    def views(self) -> Iterator[NodeView]:
        """Yield a view of all nodes, one in reverse order, and one of each single node."""
        yield self.snapshot.view()
        rows = np.arange(len(self.snapshot), dtype=np.int64)
        yield self.snapshot.view(rows[::-1])
        for row in rows:
            yield self.snapshot.view(rows[row : row + 1])


def _status(status: Any) -> Any:
    return status and {"reasons": list(status.reasons), "code": status.code.label}


def _check_pre_enqueue(runner: CaseRunner, expected: Any) -> None:
    assert _status(runner.plugin.pre_enqueue(runner.pod, runner.snapshot)) == expected


def _check_pre_filter(runner: CaseRunner, expected: Any) -> None:
    result = runner.pre_filter(runner.plugin)
    if isinstance(expected, str):
        assert (result.skip, result.status, result.node_names) == (expected == "skip", None, None)
    elif "nodes" in expected:
        assert sorted(result.node_names or ()) == expected["nodes"]
    else:
        assert _status(result.status) == expected


def _check_rejections(runner: CaseRunner, expected: Mapping[str, Any]) -> None:
    for view in runner.views():
        assert runner.rejections(view) == {name: expected[name] for name in view.names if name in expected}


def _check_raw_scores(runner: CaseRunner, expected: Mapping[str, int]) -> None:
    for view in runner.views():
        assert runner.scores(view)[0] == {name: expected[name] for name in view.names}


def _check_scores(runner: CaseRunner, expected: Mapping[str, int]) -> None:
    assert runner.scores(runner.snapshot.view())[1] == expected


def _check_pre_score(runner: CaseRunner, expected: Any) -> None:
    result = runner.pre_score(runner.plugin, runner.snapshot.view())
    if isinstance(expected, str):
        assert (result.skip, result.status) == (expected == "skip", None)
    else:
        assert _status(result.status) == expected


def _check_score_error(runner: CaseRunner, expected: str) -> None:
    with pytest.raises((ValueError, LookupError), match=expected):
        runner.scores(runner.snapshot.view())


def _check_hint(runner: CaseRunner, expected: str | None) -> None:
    """Check the hint. *expected* is None if the plugin does not register for such events."""
    raw = runner.case["event"]
    resource = EventResource[raw["resource"]]
    pod_resources = (EventResource.POD, EventResource.ASSIGNED_POD, EventResource.TARGET_POD)
    make: Any = {**dict.fromkeys(pod_resources, make_pod), EventResource.NODE: make_node}.get(resource)
    old, new = (
        None if raw.get(side) is None else make(**raw[side]) if make else make_object(raw[side])
        for side in ("old", "new")
    )
    event = ClusterEvent(resource, ActionType[raw["action"]], old, new)
    registered = [entry for entry in runner.plugin.events_to_register() if entry.matches(event)]
    hints = [entry.hint(runner.pod, event).value if entry.hint else "Queue" for entry in registered]
    assert hints == ([] if expected is None else [expected])


def _check_errors(runner: CaseRunner, expected: list[str]) -> None:
    assert runner.errors == expected


def _check_queue_order(runner: CaseRunner, expected: list[str]) -> None:
    entries = {
        name: QueueSortEntry(
            make_pod_info(make_pod(name, priority=args.get("priority")), runner.cache),
            args["timestamp"],
            args.get("priority") or 0,
        )
        for name, args in runner.case["queue"].items()
    }
    assert sorted(entries, key=lambda name: runner.plugin.sort_key(entries[name])) == expected


def _check_bind(runner: CaseRunner, expected: Mapping[str, Any]) -> None:
    plan = runner.plugin.bind(runner.pod, expected["node"])
    calls = [asdict(call) for call in plan.calls]
    for call in calls:
        del call["on_written"], call["is_resent"], call["on_conflict"], call["purpose"]
    assert calls == expected["calls"]
    assert plan.wait_condition is None


CHECKS: Mapping[str, Callable[[CaseRunner, Any], None]] = {
    "pre_enqueue": _check_pre_enqueue,
    "pre_filter": _check_pre_filter,
    "rejected": _check_rejections,
    "pre_score": _check_pre_score,
    "raw_scores": _check_raw_scores,
    "scores": _check_scores,
    "score_error": _check_score_error,
    "hint": _check_hint,
    "errors": _check_errors,
    "queue_order": _check_queue_order,
    "bind": _check_bind,
}


@pytest.mark.parametrize(("plugin_class", "case"), list(_cases()))
def test_plugin_case(plugin_class: type[Any], case: Mapping[str, Any]) -> None:
    expected = case["want"]
    assert expected, "a case needs expected results"
    runner = CaseRunner(plugin_class, case)
    for key, value in expected.items():
        CHECKS[key](runner, value)
