"""The simplified pods, nodes and clusters of the Policy oracle."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Pod:
    """A pod; cpu in milli-CPU, memory in MiB, None without a request."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    cpu: int | None = None
    memory: int | None = None
    cpu_limit: int = 0
    port: int = 0
    disk: str = ""
    read_only: bool = False
    deleting: bool = False
    selector: Mapping[str, str] = field(default_factory=dict)
    tolerated_keys: tuple[str, ...] = ()
    owner: str = ""
    preferred_labels: tuple[tuple[int, str, str], ...] = ()


@dataclass(frozen=True)
class Node:
    """A node with its pods; taints are keys and effects."""

    name: str
    labels: Mapping[str, str]
    cpu: int
    memory: int
    max_pods: int
    max_disks: int
    taints: tuple[tuple[str, str], ...] = ()
    cordoned: bool = False
    conditions: Mapping[str, str] = field(default_factory=dict)
    avoided_owner: str = ""
    pods: tuple[Pod, ...] = ()


@dataclass(frozen=True)
class Cluster:
    """Nodes, and the selectors of the services; everything is in one namespace."""

    nodes: tuple[Node, ...]
    services: tuple[Mapping[str, str], ...] = ()
