"""DefaultBinder binds a pod to its node through the API server.

**Rejects** no node.

**Scores** no node.

**Requeued on** no event.

**Options** none.
"""

from typing import ClassVar

from extender.cache.pod_info import PodInfo
from extender.framework.api_plan import ApiCall, ApiPlan


class DefaultBinder:
    """Binds all pods. It must be the last Bind plugin of a profile."""

    name: ClassVar[str] = "DefaultBinder"

    def bind(self, pod: PodInfo, node_name: str) -> ApiPlan:
        """Return the call that creates the Binding, with the pod's uid as a precondition.

        Source: pkg/scheduler/framework/plugins/defaultbinder/default_binder.go, DefaultBinder.Bind (1.36).
        """
        meta = pod.pod.metadata
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": meta.namespace, "name": meta.name, "uid": meta.uid},
            "target": {"kind": "Node", "name": node_name},
        }
        return ApiPlan((ApiCall("bind", "Pod", meta.namespace, meta.name, body, subresource="binding"),))
