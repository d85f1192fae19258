"""Select pods by name, workload, namespace and labels, as kubectl does."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from extender.analysis.input.workload_pods import get_cron_job_name, is_controlled_by
from extender.analysis.input.workloads import WORKLOAD_ALIASES
from extender.api.coscheduling import POD_GROUP_LABEL
from extender.api.defaults import DEFAULT_NAMESPACE
from extender.api.kinds.pod import Pod
from extender.api.kinds.workload import ReplicaSet
from extender.api.matching import Requirement
from extender.basics.edit_distance import find_nearest_names

_PODS: Final = ("pods", "po")
_POD_ALIASES: Final = ("pod", *_PODS)
_POD_GROUP: Final = "PodGroup"
_API_GROUPS: Final = ("", ".scheduling.k8s.io", ".scheduling.x-k8s.io")
_POD_GROUP_ALIASES: Final = tuple(f"{name}{group}" for name in ("podgroup", "podgroups") for group in _API_GROUPS)
_TYPE_ALIASES: Final = {**WORKLOAD_ALIASES, **dict.fromkeys(_POD_GROUP_ALIASES, _POD_GROUP)}
_TYPES: Final = ("pod", *dict.fromkeys(kind.lower() for kind in _TYPE_ALIASES.values()))
_OTHER_TYPES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("namespace", "namespaces", "ns"), "-n {} selects all pending pods of a namespace"),
    **dict.fromkeys(("node", "nodes", "no"), "--node {} shows why a pod fits or does not fit there"),
}
"""What to use in place of types of kubectl that have no explanation of their own, by their names."""

_FILE_SUFFIXES: Final = (".yaml", ".yml", ".json", ".gz")
_MAX_SUGGESTIONS: Final = 3


@dataclass(frozen=True, slots=True)
class PodSelection:
    """The pods that a command is about.

    Attributes:
        names: pods as `name`, `namespace/name` or `pod/name`, and workloads and pod groups as `deployment/name` or
            `deployment/namespace/name`. Empty: all pending pods.
        namespace: the namespace of names without one, and of all pods if there are no names. Empty: all namespaces; a
            name then means the pod in the default namespace, or else the only pod with this name.
        labels: the requirements that the labels of the pods must match.
    """

    names: tuple[str, ...] = ()
    namespace: str = ""
    labels: tuple[Requirement, ...] = ()

    def matches(self, pod: Pod) -> bool:
        """Return whether the namespace and the labels of *pod* match."""
        if self.namespace and pod.metadata.namespace != self.namespace:
            return False
        return all(requirement.matches(pod.metadata.labels.get(requirement.key)) for requirement in self.labels)


ALL_PENDING_PODS: Final = PodSelection()
"""The selection of all pending pods."""


@dataclass(frozen=True, slots=True)
class WorkloadName:
    """The name of a workload or a pod group: `deployment/shop/web`.

    Attributes:
        kind: the kind, such as `Deployment` or `PodGroup`.
        namespace: the namespace; empty if it is not known.
    """

    kind: str
    namespace: str
    name: str

    @property
    def key(self) -> str:
        """The key of the workload: `deployment/shop/web`."""
        return f"{self.kind.lower()}/{self.namespace}/{self.name}"

    @property
    def is_pod_group(self) -> bool:
        """Whether this is the name of a pod group."""
        return self.kind == _POD_GROUP


def parse_workload_name(text: str, namespace: str) -> WorkloadName | None:
    """Return the workload or pod group that *text* names in kubectl's notation; None if it names none.

    *text* is `deployment/web`, `deploy/web` or `deployment/shop/web`; *namespace* is that of a name without one.
    """
    kind, _, rest = text.partition("/")
    if kind.lower() not in _TYPE_ALIASES or not rest:
        return None
    if "/" in rest:
        namespace, _, rest = rest.partition("/")
    return WorkloadName(_TYPE_ALIASES[kind.lower()], namespace, rest)


def strip_pod_alias(text: str) -> str:
    """Return *text* without a leading `pod/`."""
    kind, _, rest = text.partition("/")
    return rest if kind.lower() in _POD_ALIASES and rest else text


def join_resource_type(names: Sequence[str]) -> tuple[str, ...]:
    """Return *names*; a type before them, as in `deployment web db`, is joined with each: `deployment/web`.

    The type `pods` alone names no pod, as in kubectl. The name `pod` alone is that of a pod.
    """
    if len(names) == 1 and names[0].lower() in _PODS:
        return ()
    if len(names) < 2 or names[0].lower() not in (*_POD_ALIASES, *_TYPE_ALIASES, *_OTHER_TYPES):
        return tuple(names)
    return tuple(f"{names[0]}/{name}" for name in names[1:])


def _describe_unknown_pod(name: str, namespace: str) -> str:
    """Return the error for an unknown pod; it names the *namespace* of a name without one."""
    scope = f' in namespace "{namespace}"' if namespace and "/" not in name else ""
    advice = "; write -f before each file" if name.endswith(_FILE_SUFFIXES) else ""
    return f"there is no such pod{scope}{advice}"


class PodFinder:
    """Finds pods of a cluster by name, or by the name of their workload.

    Args:
        replica_sets: the replica sets of the cluster, through which deployments control their pods.
        workload_pods: the keys of the pods of workloads whose manifests are known, by the workload's key.
    """

    def __init__(
        self,
        pods: Iterable[Pod],
        replica_sets: Iterable[ReplicaSet] = (),
        workload_pods: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self._pods = {pod.key: pod for pod in pods}
        self._replica_sets = {f"{obj.metadata.namespace}/{obj.metadata.name}": obj for obj in replica_sets}
        self._workload_pods = workload_pods or {}

    def find(self, text: str, namespace: str = "") -> tuple[list[Pod], str]:
        """Return the pods that *text* names, and an error message if there are none.

        The pods of a workload are its pending pods, or else all of its pods.
        """
        if text in self._pods and "/" in text:
            return [self._pods[text]], ""
        workload = parse_workload_name(text, namespace)
        if workload is None:
            name = strip_pod_alias(text)
            pods, message = self._find_pod(name, namespace)
            is_unknown = message == _describe_unknown_pod(name, namespace)
            return pods, message + self._suggest_workload(text, namespace) if is_unknown else message
        pods = self.find_workload_pods(workload)
        if pods:
            return [pod for pod in pods if not pod.spec.node_name] or pods, ""
        return [], self._make_unknown_workload_message(workload)

    def find_workload_pods(self, workload: WorkloadName) -> list[Pod]:
        """Return the pods of a workload or pod group. Without a namespace, its name is searched in all namespaces."""
        made_pods = [
            self._pods[pod_key]
            for key, pod_keys in self._workload_pods.items()
            if key == workload.key or (not workload.namespace and _has_name(key, workload))
            for pod_key in pod_keys
            if pod_key in self._pods
        ]
        if made_pods:
            return made_pods
        pods = [pod for pod in self._pods.values() if workload.namespace in {"", pod.metadata.namespace}]
        if workload.is_pod_group:
            return [pod for pod in pods if workload.name in _list_group_names(pod)]
        return [
            pod
            for pod in pods
            if is_controlled_by(pod, workload.kind, pod.metadata.namespace, workload.name, self._replica_sets)
        ]

    def _find_pod(self, name: str, namespace: str) -> tuple[list[Pod], str]:
        if "/" in name:
            pod = self._pods.get(name)
            message = "" if pod else self._make_unknown_pod_message(name, "", {key: key for key in self._pods})
            return ([pod] if pod else []), message
        pod = self._pods.get(f"{namespace or DEFAULT_NAMESPACE}/{name}")
        if pod is not None:
            return [pod], ""
        keys = [key for key in self._pods if key.partition("/")[2] == name]
        if namespace and keys:
            suggestion = f"; did you mean {', '.join(sorted(keys)[:_MAX_SUGGESTIONS])}?"
            return [], _describe_unknown_pod(name, namespace) + suggestion
        if len(keys) == 1:
            return [self._pods[keys[0]]], ""
        if keys:
            return [], f"several pods have this name; want one of {', '.join(sorted(keys))}"
        names = {key.partition("/")[2]: key for key in self._pods if not namespace or key.startswith(f"{namespace}/")}
        return [], self._make_unknown_pod_message(name, namespace, names)

    def _make_unknown_pod_message(self, name: str, namespace: str, keys_by_name: dict[str, str]) -> str:
        """Return the error message for an unknown pod, which suggests pods with an equal or similar name."""
        keys_in_other_namespaces = [
            key for key in keys_by_name if key.partition("/")[2] == name.partition("/")[2] != ""
        ]
        similar_names = find_nearest_names(name, keys_by_name, _MAX_SUGGESTIONS)
        suggestions = ", ".join(
            keys_by_name[match] for match in keys_in_other_namespaces[:_MAX_SUGGESTIONS] or similar_names
        )
        message = _describe_unknown_pod(name, namespace)
        return f"{message}; did you mean {suggestions}?" if suggestions else message

    def _suggest_workload(self, text: str, namespace: str) -> str:
        """Return a suggestion for a name without its type, or with a misspelled type; else the types, if it has one."""
        prefix, _, name = text.rpartition("/")
        namespaces = {pod.metadata.namespace for pod in self._pods.values()}
        if prefix and prefix not in namespaces:
            types = find_nearest_names(prefix, (*_TYPE_ALIASES, *_POD_ALIASES), 1)
            candidates = [f"{kind}/{name}" for kind in types]
        else:
            scope = f"{prefix}/{name}" if prefix else name
            candidates = [f"{kind.lower()}/{scope}" for kind in dict.fromkeys(_TYPE_ALIASES.values())]
        for candidate in candidates:
            workload = parse_workload_name(candidate, namespace)
            if (
                self.find_workload_pods(workload)
                if workload
                else self._find_pod(strip_pod_alias(candidate), namespace)[0]
            ):
                return f"; did you mean {candidate}?"
        if not prefix or prefix in namespaces or prefix.lower() in _POD_ALIASES:
            return ""
        if advice := _OTHER_TYPES.get(prefix.lower()):
            return f"; {advice.format(name)}"
        return f'; no pod is in namespace "{prefix}", and the types are {", ".join(_TYPES)}'

    def _make_unknown_workload_message(self, workload: WorkloadName) -> str:
        kind = workload.kind.lower()
        if workload.key in self._workload_pods:
            return f"this {kind} makes no pods: it has finished, is suspended, or its number of pods is 0"
        names = sorted({name for pod in self._pods.values() for name in _iterate_owner_names(pod, workload.kind)})
        similar_names = ", ".join(f"{kind}/{name}" for name in find_nearest_names(workload.name, names))
        if similar_names:
            return f"this {kind} has no pods; did you mean {similar_names}?"
        return f"there is no such {kind}, nor a pod of it; -f reads a recording together with manifests"


def _iterate_owner_names(pod: Pod, kind: str) -> Iterable[str]:
    """Yield the names of the workloads, or of the pod groups, that have this *kind* and the pod."""
    if kind == _POD_GROUP:
        yield from filter(None, _list_group_names(pod))
        return
    owner = pod.metadata.controller
    if owner is None:
        return
    if owner.kind == kind:
        yield owner.name
    elif kind == "Deployment" and owner.kind == "ReplicaSet":
        yield owner.name.rpartition("-")[0]
    elif kind == "CronJob" and owner.kind == "Job":
        yield from filter(None, (get_cron_job_name(owner.name),))


def _has_name(key: str, workload: WorkloadName) -> bool:
    kind, _, rest = key.partition("/")
    return kind == workload.kind.lower() and rest.partition("/")[2] == workload.name


def _list_group_names(pod: Pod) -> tuple[str | None, ...]:
    """Return the names of the pod group of *pod*, and of that of the coscheduling plugin."""
    group = pod.spec.scheduling_group
    return (group.pod_group_name if group else None, pod.metadata.labels.get(POD_GROUP_LABEL))
