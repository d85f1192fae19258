"""What the server fills in for a pod that is created: defaults of fields, priority, tolerations, quality of service.

Source: pkg/apis/core/v1/defaults.go; the admission plugins Priority and DefaultTolerationSeconds.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from extender.config.defaults import DEFAULT_SCHEDULER_NAME
from extender.objects.defaults import SYSTEM_PRIORITIES, host_port, with_limits
from extender.objects.quantity import milli_value
from extender.sandbox.refusals import forbidden
from extender.sandbox.served import PODS, Object

_GRACE_SECONDS: Final = 30
_EVICTED_AFTER_SECONDS: Final = 300
_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_COUNTED: Final = ("cpu", "memory")


def with_defaults(spec: Object, *, template: bool = False) -> Object:
    """The spec of a pod with the defaults of its fields; that of a template gets fewer."""
    host_network = bool(spec.get("hostNetwork")) and not template
    filled: Object = {} if template else {"enableServiceLinks": True}
    filled |= {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": DEFAULT_SCHEDULER_NAME,
        **{name: value for name, value in spec.items() if value not in (None, "")},
    }
    for field in ("initContainers", "containers"):
        if field in spec:
            filled[field] = [_container(each, template, host_network) for each in spec[field]]
    return filled


def _container(container: Object, template: bool, host_network: bool) -> Object:
    image = str(container.get("image", ""))
    tag = image.rsplit("/", 1)[-1].partition("@")[0].partition(":")[2]
    latest = tag in {"", "latest"} and "@" not in image
    resources = dict(container.get("resources") or {})
    limits = resources.get("limits")
    if limits and not template:
        resources["requests"] = with_limits(resources.get("requests") or {}, limits)
    filled: Object = {
        "imagePullPolicy": "Always" if latest else "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        **container,
        "resources": resources,
    }
    if ports := container.get("ports"):
        filled["ports"] = [_port(each, host_network=host_network) for each in ports]
    return filled


def _port(port: Object, *, host_network: bool) -> Object:
    filled = {"protocol": "TCP", **port}
    on_host = host_port(int(port.get("containerPort", 0)), int(port.get("hostPort", 0)), host_network=host_network)
    return {**filled, "hostPort": on_host} if on_host else filled


def admitted(spec: Object, name: str, classes: Mapping[str, Object]) -> Object:
    """The spec with its priority and with tolerations of nodes that are briefly away.

    Args:
        spec: with defaults.
        name: of the pod, for messages.
        classes: the priority classes by name.

    Raises:
        RefusedError: 403, the class is unknown, or a priority is given that is not the class's.
    """
    return {**spec, **_priority(spec, name, classes), "tolerations": _tolerations(spec.get("tolerations") or [])}


def _priority(spec: Object, name: str, classes: Mapping[str, Object]) -> Object:
    wanted = spec.get("priorityClassName", "")
    policy = "PreemptLowerPriority"
    priority = 0
    if wanted in classes:
        found: Object | None = classes[wanted]
    elif wanted in SYSTEM_PRIORITIES:
        found, priority = None, SYSTEM_PRIORITIES[wanted]
    elif wanted:
        raise forbidden(PODS, name, f"no PriorityClass with name {wanted} was found")
    else:
        everyones = [each for each in classes.values() if each.get("globalDefault")]
        found = min(everyones, key=lambda each: int(each.get("value", 0)), default=None)
    if found is not None:
        wanted = found["metadata"]["name"]
        priority, policy = int(found.get("value", 0)), found.get("preemptionPolicy") or policy
    given = spec.get("priority")
    if given is not None and given != priority:
        why = f"the integer value of priority ({given}) must not be provided in pod spec; priority admission controller"
        raise forbidden(PODS, name, f"{why} computed {priority} from the given PriorityClass name")
    own = spec.get("preemptionPolicy")
    if own is not None and own != policy:
        why = f"the string value of PreemptionPolicy ({own}) must not be provided in pod spec; priority admission"
        raise forbidden(PODS, name, f"{why} controller computed {policy} from the given PriorityClass name")
    filled: Object = {"priority": priority, "preemptionPolicy": policy}
    return {**filled, "priorityClassName": wanted} if wanted else filled


def _tolerations(given: Sequence[Object]) -> list[Object]:
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _EVICTED_AFTER_SECONDS}
        for key in _TAINTS
        if not any(
            each.get("key", key) in {key, ""} and each.get("effect", "NoExecute") in {"NoExecute", ""} for each in given
        )
    ]
    return [*given, *added]


def quality(spec: Object) -> str:
    """The quality of service class: Guaranteed, Burstable or BestEffort. Source: GetPodQOS."""
    containers = [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]
    asked = [_positive(each, "requests") for each in containers]
    capped = [_positive(each, "limits") for each in containers]
    if not any(asked) and not any(capped):
        return "BestEffort"
    whole = all(len(limits) == len(_COUNTED) for limits in capped)
    return "Guaranteed" if whole and asked == capped else "Burstable"


def _positive(container: Object, field: str) -> dict[str, int]:
    amounts = (container.get("resources") or {}).get(field) or {}
    found = {name: milli_value(amounts[name]) for name in _COUNTED if name in amounts}
    return {name: amount for name, amount in found.items() if amount > 0}
