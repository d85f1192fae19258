"""What our core says about a pod, fed by plain lists from the API server."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from extender import wiring
from extender.decide.examine import examine
from extender.offline.answers import answer
from extender.offline.capture import load_state, parse_capture
from extender.offline.waiting import nominate_waiting
from tests.controlplane.api import Api, Thing
from tests.controlplane.resources import RESOURCES


def lists(api: Api, kinds: Iterable[str] = RESOURCES) -> bytes:
    """All objects of the kinds that scheduling reads, or of some of them, as the API server has them now."""
    return b"\n".join(api.list(kind) for kind in kinds)


class Ours:
    """The core with the default configuration, or another."""

    def __init__(self, configuration: Mapping[str, Any] | None = None) -> None:
        document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
        self._profile = wiring.from_builtins({**document, **(configuration or {})}, "test").first
        self._engine = wiring.engine()

    def about(self, pod: Thing, cluster: bytes) -> dict[str, Any]:
        """The long answer about *pod* as it was when it was created, in the cluster of some `lists`."""
        state = load_state(parse_capture(cluster + b"\n" + json.dumps(pod).encode(), "API server"))
        nominate_waiting(state, self._profile, self._engine)
        snapshot = state.snapshot()
        query = snapshot.query(state.waiting[pod["metadata"]["uid"]])
        return answer(examine(query, snapshot, self._profile, self._engine))
