"""GpuModel: a pod that wants a GPU model goes to nodes that have it; other pods avoid nodes with GPUs.

**Rejects** nodes without the model in the pod's annotation (unresolvable), and nodes with a reserved model.

**Scores** nodes without a GPU model 100 if the pod wants none; all others 0.

**Options** `annotation` and `label`: the keys of the model; `reserved`: models that no pod may use.
"""

import msgspec

from extender.plugin import FilterReasons, NodeInfo, PluginArgs, Pod, per_node_plugin, unresolvable_reason


class GpuModelArgs(msgspec.Struct, frozen=True, rename="camel"):
    annotation: str = "example.com/gpu-model"
    label: str = "example.com/gpu-model"
    reserved: tuple[str, ...] = ()


@per_node_plugin("GpuModel", options=GpuModelArgs)
class GpuModel:
    def __init__(self, args: PluginArgs[GpuModelArgs]) -> None:
        self.args = args.options

    def filter(self, pod: Pod, node: NodeInfo) -> FilterReasons:
        model = node.labels.get(self.args.label)
        if model in self.args.reserved:
            return "node(s) have a reserved GPU model"
        wanted = pod.metadata.annotations.get(self.args.annotation)
        return unresolvable_reason("node(s) lack the GPU model") if wanted not in {None, model} else None

    def score(self, pod: Pod, node: NodeInfo) -> int:
        wants_none = self.args.annotation not in pod.metadata.annotations
        return 100 if wants_none and self.args.label not in node.labels else 0
