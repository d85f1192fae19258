"""GpuModel: a pod that wants a GPU model goes to nodes that have it; others leave such nodes alone.

**Refuses** nodes without the model the pod's annotation names, and for good; nodes with a reserved model.

**Scores** 100 for the nodes without any GPU model if the pod wants none, else 0.

**Options** `annotation` and `label`: the keys; `reserved`: models no pod gets.
"""

import msgspec

from extender.framework.node_info import NodeInfo
from extender.framework.row_adapters import Answer
from extender.framework.rowwise import final, row_plugin
from extender.framework.setup import Setup
from extender.objects.pod import Pod


class GpuModelArgs(msgspec.Struct, frozen=True, rename="camel"):
    annotation: str = "example.com/gpu-model"
    label: str = "example.com/gpu-model"
    reserved: tuple[str, ...] = ()


@row_plugin("GpuModel", options=GpuModelArgs)
class GpuModel:
    def __init__(self, setup: Setup[GpuModelArgs]) -> None:
        self.args = setup.options

    def filter(self, pod: Pod, node: NodeInfo) -> Answer:
        model = node.labels.get(self.args.label)
        if model in self.args.reserved:
            return "node(s) have a reserved GPU model"
        wanted = pod.metadata.annotations.get(self.args.annotation)
        return final("node(s) lack the GPU model") if wanted not in {None, model} else None

    def score(self, pod: Pod, node: NodeInfo) -> int:
        wants_none = self.args.annotation not in pod.metadata.annotations
        return 100 if wants_none and self.args.label not in node.labels else 0
