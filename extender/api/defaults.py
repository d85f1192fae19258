"""Default values of API objects: namespace, scheduler name, system priorities, requests and host ports."""

from collections.abc import Mapping
from typing import Final, TypeVar

V = TypeVar("V")

DEFAULT_NAMESPACE: Final = "default"
"""The namespace of an object without one."""

DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"
"""The scheduler name of a pod without one."""

SYSTEM_PRIORITIES: Final[Mapping[str, int]] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
"""The priority classes that exist in every cluster, with their values."""


def fill_requests_from_limits(requests: Mapping[str, V], limits: Mapping[str, V]) -> dict[str, V]:
    """Return the requests of a container; a resource without a request gets its limit.

    Source: pkg/apis/core/v1/defaults.go, SetDefaults_Pod (1.36).
    """
    return {**limits, **requests}


def default_host_port(container_port: int, host_port: int, *, host_network: bool) -> int:
    """Return the host port, or 0 for none. With host networking, it defaults to the container port.

    Source: pkg/apis/core/v1/defaults.go, SetDefaults_Pod (1.36).
    """
    return host_port or (container_port if host_network else 0)
