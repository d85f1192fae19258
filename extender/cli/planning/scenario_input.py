"""Make a scenario from the values of its flags, and read the files that they name."""

from collections.abc import Sequence
from dataclasses import dataclass

import typer
from msgspec.structs import replace

from extender.analysis.input.input_errors import make_input_error
from extender.analysis.recorded_cluster import check_nodes, read_recording
from extender.api.defaults import DEFAULT_NAMESPACE
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.cli.planning.cluster_input import read_pods
from extender.cli.planning.scenario_flags import (
    MAX_NEW_PODS,
    parse_added_nodes,
    parse_label_changes,
    parse_lost_labels,
    parse_scales,
    parse_taint_changes,
)
from extender.cli.recording_options import Cluster
from extender.planning.fits import make_copy
from extender.planning.scenario import Scenario


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
