"""Nodes and pods with GPUs for the tests of GpuShare."""

from typing import Any

from extender.plugins.gpu_share.device_table import DeviceTable, NodeDevices
from extender.plugins.gpu_share.gpu_request import GPU_COUNT, GPU_INDEX, GPU_MILLI, GPU_MODEL
from extender.testing import make_cluster, make_node, make_pod


def gpu_node(name: str, gpus: int = 2, cpu: str = "16", model: str = "T4", **fields: Any) -> Any:
    """Return a node with GPUs."""
    requests: dict[str, Any] = {GPU_COUNT: str(gpus), GPU_MILLI: str(1000 * gpus)}
    return make_node(name, cpu=cpu, labels={GPU_MODEL: model}, **requests)


def shared_pod(name: str, milli: int, node: str = "", index: str = "", cpu: str = "1", **fields: Any) -> Any:
    """Return a pod with a part of one GPU."""
    annotations = {GPU_INDEX: index} if index else {}
    return make_pod(name, node=node, annotations=annotations, cpu=cpu, **{GPU_MILLI: str(milli), **fields})


def whole_pod(name: str, count: int, node: str = "", index: str = "", cpu: str = "1") -> Any:
    """Return a pod with whole GPUs."""
    annotations = {GPU_INDEX: index} if index else {}
    requests: dict[str, Any] = {GPU_MILLI: str(1000 * count), GPU_COUNT: str(count)}
    return make_pod(name, node=node, annotations=annotations, cpu=cpu, **requests)


def read_devices(*objects: Any) -> tuple[DeviceTable, NodeDevices]:
    """Return the device table of a cluster, and the GPUs of all its nodes."""
    table = DeviceTable()
    return table, table.get(make_cluster(*objects).cache.snapshot().view())
