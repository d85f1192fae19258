"""A question of the page What if: its form, its scenario, and the command line that answers the same."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final
from urllib.parse import urlencode

import msgspec

from extender.planning.scaling import SCALABLE_KINDS
from extender.planning.scenario import AddedNodes, Scale, Scenario, ScenarioError

STRATEGIES: Final = {"LeastAllocated": "spread", "MostAllocated": "pack"}
"""The scoring strategies of NodeResourcesFit that the form offers as configurations."""

CONFIG_FILE: Final = "scheduler.yaml"
"""The name of the file with the configuration in the command line."""

OWN_CONFIGURATION: Final = "own"
_MAX_NAMES: Final = 200
_MAX_TEXT: Final = 20_000
_MAX_ADDED_NODES: Final = 200
_MAX_REPLICAS: Final = 10_000
_NAME_SEPARATORS: Final = re.compile(r"[\s,]+")


@dataclass(frozen=True, slots=True)
class Question:
    """The fields of the form, as texts.

    Attributes:
        drain: nodes to drain, separated by spaces or commas.
        remove: nodes that fail.
        lose: labels `KEY=VALUE` whose nodes fail.
        add, like: the number of new nodes, and the node that they are like.
        workload, replicas: the workload to scale, `KIND/NAMESPACE/NAME`, and its new number of pods.
        strategy: empty for the configuration in force; else one of `STRATEGIES`, or `own`.
        config: the KubeSchedulerConfiguration for `own`, as YAML.
        preempt: `on` if pods may evict pods of lower priority.
    """

    drain: str = ""
    remove: str = ""
    lose: str = ""
    add: str = ""
    like: str = ""
    workload: str = ""
    replicas: str = ""
    strategy: str = ""
    config: str = ""
    preempt: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        changes = self.drain, self.remove, self.lose, self.add, self.like, self.workload, self.replicas
        return not any((*changes, self.strategy, self.config, self.preempt))

    def format_query(self) -> str:
        """Return the question as the query of an address."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return urlencode({name: value for name, value in values.items() if value})


def read_question(query: Mapping[str, str]) -> Question:
    """Return the question in the parameters of an address. Unknown parameters are ignored."""
    return Question(**{field.name: query.get(field.name, "").strip() for field in fields(Question)})


def make_scenario(question: Question) -> Scenario:
    """Return the changes of a question.

    Raises:
        ScenarioError: a field is invalid; contains all errors.
    """
    errors: list[str] = []
    scenario = Scenario(
        add=_parse_added_nodes(question, errors),
        remove=_split_names("Lose nodes", question.remove, errors),
        lose=_parse_lost_labels(question.lose, errors),
        drain=_split_names("Drain nodes", question.drain, errors),
        scale=_parse_scale(question, errors),
        preempt=bool(question.preempt),
    )
    if question.strategy and question.strategy not in (*STRATEGIES, OWN_CONFIGURATION):
        errors.append(f"Configuration: {question.strategy!r} is unknown; choose one from the list")
    if question.strategy == OWN_CONFIGURATION and not question.config:
        errors.append("Configuration: enter a KubeSchedulerConfiguration, or choose another one from the list")
    if question.strategy != OWN_CONFIGURATION and question.config:
        errors.append('Configuration: choose "the configuration below" to schedule with the entered one, or clear it')
    if len(question.config) > _MAX_TEXT:
        errors.append(f"Configuration: has {len(question.config)} characters; at most {_MAX_TEXT} are allowed here")
    if errors:
        raise ScenarioError(errors)
    return scenario


def _split_names(label: str, text: str, errors: list[str]) -> tuple[str, ...]:
    names = tuple(filter(None, _NAME_SEPARATORS.split(text)))
    if len(names) > _MAX_NAMES:
        errors.append(f"{label}: has {len(names)} entries; at most {_MAX_NAMES} are allowed here")
        return ()
    return names


def _parse_lost_labels(text: str, errors: list[str]) -> tuple[tuple[str, str], ...]:
    labels = []
    for entry in _split_names("Lose all nodes with the label", text, errors):
        key, separator, value = entry.partition("=")
        if not key or not separator:
            wanted = "KEY=VALUE, such as topology.kubernetes.io/zone=a"
            errors.append(f"Lose all nodes with the label: {entry!r}; want {wanted}")
        labels.append((key, value))
    return tuple(labels)


def _parse_added_nodes(question: Question, errors: list[str]) -> tuple[AddedNodes, ...]:
    if not question.add and not question.like:
        return ()
    count = _parse_count("Add nodes", question.add, range(1, _MAX_ADDED_NODES + 1), errors)
    if not question.like:
        errors.append("Add nodes: name the node that the new nodes are like")
    return () if count is None else (AddedNodes(count, question.like),)


def _parse_scale(question: Question, errors: list[str]) -> tuple[Scale, ...]:
    if not question.workload and not question.replicas:
        return ()
    kind, _, rest = question.workload.partition("/")
    namespace, _, name = rest.partition("/")
    if kind.lower() not in SCALABLE_KINDS or not namespace or not name or "/" in name:
        wanted = f"KIND/NAMESPACE/NAME with a kind of {', '.join(SCALABLE_KINDS)}"
        errors.append(f"Scale: {question.workload!r}; want {wanted}")
        return ()
    count = _parse_count("Scale", question.replicas, range(_MAX_REPLICAS + 1), errors)
    return () if count is None else (Scale(kind.lower(), namespace, name, count),)


def _parse_count(label: str, text: str, allowed: range, errors: list[str]) -> int | None:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
    if number in allowed:
        return number
    errors.append(f"{label}: {text!r}; want a number from {allowed[0]} to {allowed[-1]}")
    return None


def make_configuration(question: Question, scheduler_names: Iterable[str]) -> str:
    """Return the configuration of a question as YAML; empty for the configuration in force.

    *scheduler_names* are the profiles that a strategy is for.
    """
    if question.strategy == OWN_CONFIGURATION:
        return question.config
    if question.strategy not in STRATEGIES:
        return ""
    lines = ["apiVersion: kubescheduler.config.k8s.io/v1", "kind: KubeSchedulerConfiguration", "profiles:"]
    for name in scheduler_names:
        resources = "[{name: cpu, weight: 1}, {name: memory, weight: 1}]"
        strategy = f"{{type: {question.strategy}, resources: {resources}}}"
        lines.append(f"- schedulerName: {msgspec.json.encode(name).decode()}")
        lines.append("  pluginConfig:")
        lines.append(f"  - {{name: NodeResourcesFit, args: {{scoringStrategy: {strategy}}}}}")
    return "\n".join(lines) + "\n"


def format_command(question: Question, command_options: str) -> str:
    """Return the command line that answers a valid question, for a shell.

    *command_options* select the cluster, quoted for a shell.
    """
    scenario = make_scenario(question)
    options: list[str] = []
    for name in scenario.drain:
        options += ["--drain", name]
    for name in scenario.remove:
        options += ["--remove", name]
    for key, value in scenario.lose:
        options += ["--lose", f"{key}={value}"]
    for added in scenario.add:
        options += ["--add", str(added.count), "--like", added.like]
    for scale in scenario.scale:
        options += ["--scale", f"{scale}={scale.replicas}", "--namespace", scale.namespace]
    if question.strategy:
        options += ["--config", CONFIG_FILE]
    if scenario.preempt:
        options.append("--preempt")
    return " ".join(filter(None, ("extender what-if", command_options, shlex.join(options))))


def list_workloads(owners: Iterable[tuple[str, str, str]], deployments: Mapping[str, str], limit: int) -> Sequence[str]:
    """Return the workloads of pods as the form names them, sorted.

    *owners* are the kind, the namespace and the name of the controller of each pod. *deployments* are the names of the
    Deployments by their ReplicaSets, `namespace/name`.
    """
    names = set()
    for kind, namespace, name in owners:
        deployment = deployments.get(f"{namespace}/{name}") if kind == "ReplicaSet" else None
        if deployment is not None:
            names.add(f"deployment/{namespace}/{deployment}")
        elif kind.lower() in SCALABLE_KINDS:
            names.add(f"{kind.lower()}/{namespace}/{name}")
    return sorted(names)[:limit]
