"""Make a scenario from the values of its flags, such as `--lose` and `--taint`, and read the files that they name."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import typer
from msgspec.structs import replace

from extender.analysis.input.input_errors import make_input_error
from extender.analysis.input.workloads import WORKLOAD_ALIASES
from extender.analysis.recorded_cluster import check_nodes, read_recording
from extender.api.defaults import DEFAULT_NAMESPACE
from extender.api.kinds.node import Node, Taint
from extender.api.kinds.pod import Pod
from extender.api.label_syntax import validate_label_value, validate_qualified_name
from extender.cli.planning.cluster_input import read_pods
from extender.cli.recording_options import Cluster
from extender.planning.fits import make_copy
from extender.planning.scaling import SCALABLE_KINDS
from extender.planning.scenario import AddedNodes, LabelChange, Scale, Scenario, TaintChange

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SCALE: Final = re.compile(r"(?P<kind>[A-Za-z.]+)/(?P<name>[^/=]+)=(?P<replicas>[0-9]{1,7})")
_MAX_ADDED_NODES: Final = 100_000

MAX_NEW_PODS: Final = 1_000_000
"""Limit of the copies of pods, and of the pods of all scaled workloads: about a kilobyte each."""


def make_flag_error(flag: str, value: str, wanted: str) -> typer.BadParameter:
    """Return the error for an invalid value of a flag."""
    return typer.BadParameter(f"{value!r}; want {wanted}", param_hint=flag)


def parse_lost_labels(values: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Parse the values of `--lose`: `KEY=VALUE`.

    Raises:
        BadParameter: a value is invalid.
    """
    labels: list[tuple[str, str]] = []
    for value in values:
        key, separator, label_value = value.partition("=")
        if not key or not separator:
            raise make_flag_error("--lose", value, "KEY=VALUE, such as topology.kubernetes.io/zone=a")
        labels.append((key, label_value))
    return tuple(labels)


def parse_added_nodes(counts: Sequence[int], likes: Sequence[str]) -> tuple[AddedNodes, ...]:
    """Pair the values of `--add` and `--like` in their order.

    Raises:
        BadParameter: a number is out of range, or the numbers of values differ.
    """
    for count in counts:
        if not 1 <= count <= _MAX_ADDED_NODES:
            raise make_flag_error("--add", str(count), f"1 to {_MAX_ADDED_NODES} nodes")
    if len(counts) != len(likes):
        problem = f"{len(counts)} times --add and {len(likes)} times --like"
        raise typer.BadParameter(f"{problem}; each --add N needs one --like NODE", param_hint="--add")
    return tuple(AddedNodes(count, like) for count, like in zip(counts, likes, strict=True))


def parse_taint_changes(values: Sequence[str]) -> tuple[TaintChange, ...]:
    """Parse the values of `--taint`: `NODE=KEY[=VALUE]:EFFECT`, or with a final `-` to remove the taint.

    Raises:
        BadParameter: a value is invalid.
    """
    return tuple(map(_parse_taint_change, values))


def _parse_taint_change(value: str) -> TaintChange:
    wanted = f"NODE=KEY[=VALUE]:EFFECT with an effect of {', '.join(_EFFECTS)}, or NODE=KEY[:EFFECT]- to remove a taint"
    node, _, taint_text = value.partition("=")
    remove = taint_text.endswith("-")
    key_and_value, separator, effect = taint_text.removesuffix("-").partition(":")
    key, _, taint_value = key_and_value.partition("=")
    effect_is_valid = effect in _EFFECTS or (remove and not separator)
    if not node or not key or not effect_is_valid:
        raise make_flag_error("--taint", value, wanted)
    if not remove:
        _check_syntax("--taint", key, taint_value)
    return TaintChange(node, Taint(key=key, value=taint_value, effect=effect), remove)


def parse_label_changes(values: Sequence[str]) -> tuple[LabelChange, ...]:
    """Parse the values of `--label`: `NODE=KEY=VALUE`, or `NODE=KEY-` to remove the label.

    Raises:
        BadParameter: a value is invalid.
    """
    changes: list[LabelChange] = []
    for value in values:
        node, _, label = value.partition("=")
        key, separator, label_value = label.partition("=")
        if not separator and key.endswith("-"):
            key = key.removesuffix("-")
        elif not separator:
            key = ""
        if not node or not key:
            raise make_flag_error("--label", value, "NODE=KEY=VALUE, or NODE=KEY- to remove the label")
        if separator:
            _check_syntax("--label", key, label_value)
        changes.append(LabelChange(node, key, label_value if separator else None))
    return tuple(changes)


def _check_syntax(flag: str, key: str, value: str) -> None:
    """Check the key and the value of a new label or taint; the API server checks both in the same way.

    Source: pkg/apis/core/validation/validation.go, validateNodeTaints, ValidateNode (1.36).
    """
    for part, text, errors in (
        ("key", key, validate_qualified_name(key)),
        ("value", value, validate_label_value(value)),
    ):
        if errors:
            raise typer.BadParameter(f"{part} {text!r}: {'; '.join(errors)}", param_hint=flag)


def parse_scales(values: Sequence[str], namespace: str) -> tuple[Scale, ...]:
    """Parse the values of `--scale`: `KIND/NAME=N`.

    Raises:
        BadParameter: a value is invalid.
    """
    scales: list[Scale] = []
    for value in values:
        match = _SCALE.fullmatch(value)
        kind = WORKLOAD_ALIASES.get(match["kind"].lower(), "").lower() if match else ""
        if match is None or kind not in SCALABLE_KINDS:
            raise make_flag_error("--scale", value, f"KIND/NAME=N with a kind of {', '.join(SCALABLE_KINDS)}")
        scales.append(Scale(kind, namespace, match["name"], int(match["replicas"])))
        if sum(scale.replicas for scale in scales) > MAX_NEW_PODS:
            raise make_flag_error("--scale", value, f"at most {MAX_NEW_PODS} pods of all workloads")
    return tuple(scales)


@dataclass(frozen=True, slots=True)
class ScenarioFlags:
    """The values of the flags of `extender what-if`, by the flags' names."""

    drain: list[str] | None = None
    cordon: list[str] | None = None
    remove: list[str] | None = None
    lose: list[str] | None = None
    add: list[int] | None = None
    like: list[str] | None = None
    nodes: list[str] | None = None
    pods: list[str] | None = None
    replicas: int = 1
    scale: list[str] | None = None
    namespace: str = ""
    taint: list[str] | None = None
    label: list[str] | None = None
    preempt: bool = False


def read_scenario(flags: ScenarioFlags, cluster: Cluster) -> Scenario:
    """Return the scenario that *flags* describe.

    Raises:
        BadParameter: a value is invalid.
        InputError: a file is invalid.
    """
    return Scenario(
        add=parse_added_nodes(flags.add or (), flags.like or ()),
        nodes=_read_nodes(flags.nodes or []),
        remove=tuple(flags.remove or ()),
        lose=parse_lost_labels(flags.lose or ()),
        labels=parse_label_changes(flags.label or ()),
        taints=parse_taint_changes(flags.taint or ()),
        cordon=tuple(flags.cordon or ()),
        drain=tuple(flags.drain or ()),
        scale=parse_scales(flags.scale or (), flags.namespace or DEFAULT_NAMESPACE),
        pods=_read_new_pods(flags.pods or [], flags.replicas, cluster),
        preempt=flags.preempt,
    )


def _read_nodes(files: list[str]) -> tuple[Node, ...]:
    all_nodes: list[Node] = []
    for file in files:
        recording = read_recording([file])
        nodes = [obj for obj in recording.objects if isinstance(obj, Node)]
        if not nodes:
            raise make_input_error(file, "holds no Node; name a file with a Node")
        check_nodes(recording)
        all_nodes += nodes
    return tuple(all_nodes)


def _read_new_pods(files: list[str], replicas: int, cluster: Cluster) -> tuple[Pod, ...]:
    """Return *replicas* copies of each pod in *files*. Each copy has a new uid, and a new name if there are several.

    Raises:
        BadParameter: the number is out of range, or there is no file.
        InputError: a file is invalid or holds no pod.
    """
    if not 1 <= replicas <= MAX_NEW_PODS:
        raise typer.BadParameter(f"{replicas}; want 1 to {MAX_NEW_PODS} copies", param_hint="--replicas")
    if replicas > 1 and not files:
        raise typer.BadParameter("needs --pods FILE with the pod to copy", param_hint="--replicas")
    return copy_new_pods(read_pods(files, cluster), replicas)


def copy_new_pods(templates: Sequence[Pod], replicas: int) -> tuple[Pod, ...]:
    """Return *replicas* copies of each pod, without a node.

    Raises:
        BadParameter: there are too many copies.
    """
    if len(templates) * replicas > MAX_NEW_PODS:
        raise typer.BadParameter(f"more than {MAX_NEW_PODS} new pods", param_hint="--replicas")
    if replicas > 1:
        return tuple(make_copy(pod, number) for pod in templates for number in range(replicas))
    return tuple(
        replace(copy, metadata=replace(copy.metadata, name=pod.metadata.name))
        for copy, pod in ((make_copy(pod, 0), pod) for pod in templates)
    )
