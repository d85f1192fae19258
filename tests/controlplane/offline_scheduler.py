"""Our scheduling cycle on lists from the API server, without watches."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from extender.analysis.explanation.explain_json import make_explanation_values
from extender.analysis.pending_pods import nominate_pending_pods
from extender.analysis.recorded_cluster import load_cache, parse_recording
from extender.app import wiring
from extender.cli.recording_options import parse_gates_of_release
from extender.cycle.explain_pod import explain_pod
from tests.controlplane.api_client import ApiClient, JsonObject
from tests.controlplane.programs import RELEASE
from tests.controlplane.resources import RESOURCES


def list_objects(api: ApiClient, kinds: Iterable[str] = RESOURCES) -> bytes:
    """Return the lists of the kinds that scheduling reads, or of *kinds*, one per line."""
    return b"\n".join(api.list(kind) for kind in kinds)


class OfflineScheduler:
    """Explains pods as the release of the control plane does, with the default profile or that of *configuration*."""

    def __init__(self, configuration: Mapping[str, Any] | None = None) -> None:
        document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
        self._gates = parse_gates_of_release([RELEASE], [])
        self._profile = wiring.build_setup_from_document(
            {**document, **(configuration or {})}, "test", self._gates
        ).first_profile
        self._runtime = wiring.make_runtime()

    def explain(self, pod: JsonObject, lists: bytes) -> dict[str, Any]:
        """Return the explanation of the new pod *pod* in the cluster of *lists*, which `list_objects` returned."""
        cache = load_cache(parse_recording(lists + b"\n" + json.dumps(pod).encode(), "API server"), self._gates)
        nominate_pending_pods(cache, self._profile, self._runtime)
        snapshot = cache.snapshot()
        pod_info = snapshot.make_pod_info(cache.pending_pods[pod["metadata"]["uid"]])
        return make_explanation_values(explain_pod(pod_info, snapshot, self._profile, self._runtime))
