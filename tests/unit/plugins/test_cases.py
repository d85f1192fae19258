"""Runs the plugins on the cases of tests/cases: one file a plugin, one sentence a case.

A case describes a small cluster and what the plugin says about it. Keys, all optional but `want`:

    gates:    feature gates that differ from their defaults
    options:  the plugin's arguments, as in `pluginConfig`
    nodes:    arguments of `build.a_node` by node name
    placed:   by node name, a list of arguments of `build.a_pod` for pods on it
    objects:  raw objects of other kinds
    pod:      arguments of `build.a_pod` for the pod that asks
    change:   an event: `resource`, `action`, and `old` and `new` as arguments of the builder or raw objects
    queued:   waiting pods by name, with `priority` and `since`
    switched_off: a list of points of the plugin that are not called (PreFilter, PreScore)
    want:     what is checked, one function below for each of its keys
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from extender.catalogue import BUILT_IN
from extender.cluster.snapshot import NodeView, Snapshot
from extender.config.gates import FeatureGates
from extender.config.strict import decode_strict
from extender.framework.changes import Action, Change, Resource
from extender.framework.points import PreFiltered, PreScored, Queued
from extender.framework.setup import CheckedOptions, DefaultedOptions, Setup
from extender.framework.verdict import gravest
from tests.build import a_cluster, a_node, a_pod, a_query, an_object

BY_NAME = {plugin.name: plugin for plugin in BUILT_IN}
CASES = Path(__file__).resolve().parents[2] / "cases"


def _cases() -> Iterator[Any]:
    for path in sorted(CASES.glob("*.yaml")):
        document = yaml.safe_load(path.read_text())
        if "plugin" not in document:
            continue
        kind = BY_NAME[document["plugin"]]
        for sentence, case in document["cases"].items():
            yield pytest.param(kind, case, id=f"{document['plugin']}: {sentence}")


class Bench:
    """One case set up: the plugin built, the cluster filled, the pod ready to ask."""

    def __init__(self, kind: type[Any], case: Mapping[str, Any]) -> None:
        unknown = case.keys() - {
            "gates", "options", "nodes", "placed", "objects", "pod", "change", "queued", "switched_off", "want"
        }  # fmt: skip
        assert not unknown
        self.case = case
        self.gates = FeatureGates(case.get("gates"))
        self.kind = kind
        self.options, self.faults = self._options(case.get("options") or {})
        nodes = [a_node(name, **(args or {})) for name, args in (case.get("nodes") or {}).items()]
        placed = [
            a_pod(**{"name": f"pod-{name}-{index}", **args}, node=name)
            for name, pods in (case.get("placed") or {}).items()
            for index, args in enumerate(pods)
        ]
        self.state = a_cluster(*nodes, *placed, *map(an_object, case.get("objects") or ()), gates=self.gates)
        self.pod = a_query(a_pod(**(case.get("pod") or {})), self.state)

    def _options(self, raw: Mapping[str, Any]) -> tuple[Any, list[str]]:
        kind = getattr(self.kind, "options", None)
        if kind is None:
            return None, []
        body = kind.defaulted(raw, self.gates) if issubclass(kind, DefaultedOptions) else raw
        options, faults = decode_strict(body, kind, "args")
        found = [*faults, *(options.faults("args", self.gates) if isinstance(options, CheckedOptions) else ())]
        return options, [str(fault) for fault in found]

    @property
    def plugin(self) -> Any:
        takes_setup = bool(inspect.signature(self.kind).parameters)
        return self.kind(Setup(self.options, self.gates)) if takes_setup else self.kind()

    @property
    def snapshot(self) -> Snapshot:
        return self.state.snapshot()

    def pre_filtered(self, plugin: Any) -> PreFiltered:
        if not hasattr(plugin, "pre_filter") or "PreFilter" in (self.case.get("switched_off") or ()):
            return PreFiltered()
        answer = plugin.pre_filter(self.pod, self.snapshot)
        assert isinstance(answer, PreFiltered)
        return answer

    def pre_scored(self, plugin: Any, nodes: NodeView) -> PreScored:
        if not hasattr(plugin, "pre_score") or "PreScore" in (self.case.get("switched_off") or ()):
            return PreScored()
        answer = plugin.pre_score(self.pod, nodes)
        assert isinstance(answer, PreScored)
        return answer

    def refused(self, view: NodeView) -> dict[str, dict[str, Any]]:
        """Texts and gravest code by node."""
        plugin = self.plugin
        before = self.pre_filtered(plugin)
        assert not before.skip, "PreFilter skips the pod"
        found: dict[str, Any] = {}
        for mask, reason in plugin.filter(self.pod, view, before.notes):
            assert (mask.dtype, mask.shape) == (np.bool_, (len(view),))
            for name in np.array(view.names)[mask].tolist():
                found.setdefault(name, []).append(reason)
        return {
            name: {"reasons": [r.text for r in reasons], "code": gravest([r.code for r in reasons]).label}
            for name, reasons in found.items()
        }

    def noted(self, plugin: Any, view: NodeView) -> Any:
        """The notes of a plugin without PreScore: those of PreFilter, after all nodes were filtered."""
        before = self.pre_filtered(plugin)
        if not before.skip and before.notes is not None:
            plugin.filter(self.pod, view, before.notes)
        return before.notes

    def scores(self, view: NodeView) -> tuple[dict[str, int], dict[str, int]]:
        """Raw and normalized scores by node."""
        plugin = self.plugin
        before = self.pre_scored(plugin, view)
        assert not before.skip, "PreScore skips the pod"
        assert before.status is None
        notes = before.notes if hasattr(plugin, "pre_score") else self.noted(plugin, view)
        raw = plugin.score(self.pod, view, notes)
        normalized = plugin.normalize(self.pod, raw, view, notes) if hasattr(plugin, "normalize") else raw
        assert raw.dtype == normalized.dtype == np.int64
        return dict(zip(view.names, raw.tolist(), strict=True)), dict(zip(view.names, normalized.tolist(), strict=True))

    def views(self) -> Iterator[NodeView]:
        """All nodes as they are, all in reverse, and each alone."""
        yield self.snapshot.view()
        rows = np.arange(len(self.snapshot), dtype=np.int64)
        yield self.snapshot.view(rows[::-1])
        for row in rows:
            yield self.snapshot.view(rows[row : row + 1])


def _status(status: Any) -> Any:
    return status and {"reasons": list(status.reasons), "code": status.code.label}


def _want_enqueue(bench: Bench, wanted: Any) -> None:
    assert _status(bench.plugin.pre_enqueue(bench.pod, bench.snapshot)) == wanted


def _want_prefilter(bench: Bench, wanted: Any) -> None:
    answer = bench.pre_filtered(bench.plugin)
    if isinstance(wanted, str):
        assert (answer.skip, answer.status, answer.nodes) == (wanted == "skip", None, None)
    elif "nodes" in wanted:
        assert sorted(answer.nodes or ()) == wanted["nodes"]
    else:
        assert _status(answer.status) == wanted


def _want_refused(bench: Bench, wanted: Mapping[str, Any]) -> None:
    for view in bench.views():
        assert bench.refused(view) == {name: wanted[name] for name in view.names if name in wanted}


def _want_raw(bench: Bench, wanted: Mapping[str, int]) -> None:
    for view in bench.views():
        assert bench.scores(view)[0] == {name: wanted[name] for name in view.names}


def _want_scores(bench: Bench, wanted: Mapping[str, int]) -> None:
    assert bench.scores(bench.snapshot.view())[1] == wanted


def _want_prescore(bench: Bench, wanted: Any) -> None:
    answer = bench.pre_scored(bench.plugin, bench.snapshot.view())
    if isinstance(wanted, str):
        assert (answer.skip, answer.status) == (wanted == "skip", None)
    else:
        assert _status(answer.status) == wanted


def _want_score_fails(bench: Bench, wanted: str) -> None:
    with pytest.raises((ValueError, LookupError), match=wanted):
        bench.scores(bench.snapshot.view())


def _want_hint(bench: Bench, wanted: str | None) -> None:
    """None: the plugin does not register for such events."""
    raw = bench.case["change"]
    resource = Resource[raw["resource"]]
    make = {Resource.POD: a_pod, Resource.NODE: a_node}.get(resource)
    old, new = (
        None if raw.get(side) is None else make(**raw[side]) if make else an_object(raw[side])
        for side in ("old", "new")
    )
    change = Change(resource, Action[raw["action"]], old, new)
    heard = [each for each in bench.plugin.events() if each.concerns(change)]
    hints = [each.hint(bench.pod, change).value if each.hint else "Queue" for each in heard]
    assert hints == ([] if wanted is None else [wanted])


def _want_faults(bench: Bench, wanted: list[str]) -> None:
    assert bench.faults == wanted


def _want_order(bench: Bench, wanted: list[str]) -> None:
    queued = {
        name: Queued(a_query(a_pod(name, priority=args.get("priority")), bench.state), args["since"])
        for name, args in bench.case["queued"].items()
    }
    assert sorted(queued, key=lambda name: bench.plugin.sort_key(queued[name])) == wanted


def _want_bind(bench: Bench, wanted: Mapping[str, Any]) -> None:
    plan = bench.plugin.bind(bench.pod, wanted["node"])
    assert [asdict(write) for write in plan.writes] == wanted["writes"]
    assert plan.wait_for is None


WANTS: Mapping[str, Callable[[Bench, Any], None]] = {
    "enqueue": _want_enqueue,
    "prefilter": _want_prefilter,
    "refused": _want_refused,
    "prescore": _want_prescore,
    "raw": _want_raw,
    "scores": _want_scores,
    "score_fails": _want_score_fails,
    "hint": _want_hint,
    "faults": _want_faults,
    "order": _want_order,
    "bind": _want_bind,
}


@pytest.mark.parametrize(("kind", "case"), list(_cases()))
def test_a_plugin_decides_as_its_cases_say(kind: type[Any], case: Mapping[str, Any]) -> None:
    wanted = case["want"]
    assert wanted, "a case that wants nothing proves nothing"
    bench = Bench(kind, case)
    for key, value in wanted.items():
        WANTS[key](bench, value)
