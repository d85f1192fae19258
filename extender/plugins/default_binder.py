"""DefaultBinder: tells the API server which node a pod goes to.

**Refuses** none.

**Scores** none.

**Undone by** none.

**Options** none.

Source: B107.
"""

from typing import ClassVar

from extender.cluster.pods import PodQuery
from extender.framework.points import Plan, Write


class DefaultBinder:
    """Binds any pod; stands last among the bind plugins."""

    name: ClassVar[str] = "DefaultBinder"

    def bind(self, pod: PodQuery, node: str) -> Plan:
        """One Binding, for the pod of this uid only. Source: B107."""
        meta = pod.pod.metadata
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": meta.namespace, "name": meta.name, "uid": meta.uid},
            "target": {"kind": "Node", "name": node},
        }
        return Plan((Write("bind", "Pod", meta.namespace, meta.name, body, subresource="binding"),))
