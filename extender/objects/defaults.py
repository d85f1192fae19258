"""What an API server fills in, as far as several rooms need to know it: of names, priorities, requests and ports."""

from collections.abc import Mapping
from typing import Final, TypeVar

V = TypeVar("V")

DEFAULT_NAMESPACE: Final = "default"
"""Where an object lives that names no namespace."""

SYSTEM_PRIORITIES: Final[Mapping[str, int]] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
"""The priority classes every cluster has."""


def with_limits(requests: Mapping[str, V], limits: Mapping[str, V]) -> dict[str, V]:
    """What a container requests: a limit without a request is a request too. Source: SetDefaults_Pod."""
    return {**limits, **requests}


def host_port(container_port: int, declared: int, *, host_network: bool) -> int:
    """The port on the host, 0 for none; on the host's network every port is one. Source: SetDefaults_Pod."""
    return declared or (container_port if host_network else 0)
