"""The page `/metrics/resources`: what each pod asks for and may use at most. Source: H039."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

from extender.objects import quantity
from extender.objects.pod import Pod, ResourceRequirements
from extender.objects.quantity import Quantity
from extender.objects.requests import is_attachable_volumes, is_hugepages, is_pod_level

Which = Literal["requests", "limits"]

_BYTES: Final = frozenset(("memory", "storage", "ephemeral-storage"))
_FINISHED: Final = frozenset(("Succeeded", "Failed"))
_HEADS: Final[tuple[tuple[str, Which, str], ...]] = (
    ("kube_pod_resource_limit", "limits", "What a pod may use at most, by resource; unit cores, bytes or integer."),
    ("kube_pod_resource_request", "requests", "What a pod asks for, by resource; unit cores, bytes or integer."),
)


def resource_usage(pods: Iterable[tuple[Pod, str]], batch: int = 1000) -> Iterator[str]:
    """The page in pieces: the lines of about *batch* pods each, so that the writer can let others have their turn.

    Args:
        pods: each with the name of its node, which is empty if it has none.
        batch: pods a piece.

    Pods that have ended on a node are left out, and so is an amount of zero.
    """
    counted = [(pod, node) for pod, node in pods if not (node and pod.status.phase in _FINISHED)]
    if not counted:
        return
    for name, which, text in _HEADS:
        yield f"# HELP {name} [STABLE] {text}\n# TYPE {name} gauge\n"
        for start in range(0, len(counted), batch):
            yield "".join(
                _line(name, pod, node, resource, amount)
                for pod, node in counted[start : start + batch]
                for resource, amount in sorted(amounts(pod, which).items())
                if amount.unscaled
            )


def amounts(pod: Pod, which: Which) -> dict[str, Quantity]:
    """The requests or limits of a pod for every resource: what its containers ask for at most at one time.

    Source: A111, A112, without what a status reports.
    """
    total: dict[str, Quantity] = {}
    for container in pod.spec.containers:
        _add(total, _of(container.resources, which))
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in pod.spec.init_containers:
        now = _of(container.resources, which)
        if container.is_sidecar:
            _add(total, now)
            _add(sidecars, now)
            now = sidecars
        else:
            _add(now, sidecars)
        _raise(peak, now)
    _raise(total, peak)
    if pod.spec.resources is not None:
        whole = _of(pod.spec.resources, which)
        total.update((name, amount) for name, amount in whole.items() if is_pod_level(name))
    overhead = {name: quantity.parse(raw) for name, raw in pod.spec.overhead.items()}
    if which == "limits":  # where there is no limit, overhead does not make one
        overhead = {name: more for name, more in overhead.items() if name in total and total[name].unscaled}
    _add(total, overhead)
    return total


def _of(resources: ResourceRequirements, which: Which) -> dict[str, Quantity]:
    listed = resources.requests if which == "requests" else resources.limits
    return {name: quantity.parse(raw) for name, raw in listed.items()}


def _add(total: dict[str, Quantity], more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        total[name] = total[name].plus(amount) if name in total else amount


def _raise(total: dict[str, Quantity], other: Mapping[str, Quantity]) -> None:
    for name, amount in other.items():
        if name not in total or amount.exceeds(total[name]):
            total[name] = amount


def _line(metric: str, pod: Pod, node: str, resource: str, amount: Quantity) -> str:
    priority = "" if pod.spec.priority is None else str(pod.spec.priority)
    labels = {
        "namespace": pod.metadata.namespace,
        "node": node,
        "pod": pod.metadata.name,
        "priority": priority,
        "resource": resource,
        "scheduler": pod.spec.scheduler_name,
        "unit": unit_of(resource),
    }
    written = ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items())
    return f"{metric}{{{written}}} {amount.unscaled * 10.0**amount.scale!r}\n"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def unit_of(resource: str) -> str:
    """What a resource is counted in; empty for extended ones."""
    if resource == "cpu":
        return "cores"
    if resource in _BYTES or is_hugepages(resource):
        return "bytes"
    return "integer" if is_attachable_volumes(resource) else ""
