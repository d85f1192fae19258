"""Which events may make room for a pod that NodeResourcesFit refused. Source: B044."""

from collections.abc import Mapping, Sequence
from typing import Final

from extender.cluster.device_classes import IMPLICIT_PREFIX
from extender.cluster.pods import PodQuery
from extender.config.gates import FeatureGates
from extender.framework.changes import Action, Change, Hint, Registration, Resource
from extender.objects.devices import DeviceClass
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.objects.quantity import base_units
from extender.objects.requests import Counting, is_dra_extended, is_scalar, pod_requests

_PLAIN: Final = ("cpu", "memory", "ephemeral-storage")


class FitEvents:
    """The events of NodeResourcesFit under some feature gates. Options do not matter here, as upstream."""

    def __init__(self, gates: FeatureGates) -> None:
        self._pod_level = "PodLevelResources" in gates
        self._resize = "InPlacePodVerticalScaling" in gates
        self._pod_level_resize = "InPlacePodLevelResourcesVerticalScaling" in gates
        self._devices = "DRAExtendedResource" in gates
        self._hints = "SchedulerQueueingHints" in gates

    def registrations(self) -> Sequence[Registration]:
        """The events with their hints."""
        pods = Action.DELETE | Action.UPDATE_POD_SCALE_DOWN if self._resize else Action.DELETE
        nodes = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE
        if not self._hints:
            nodes |= Action.UPDATE_NODE_TAINT | Action.UPDATE_NODE_LABEL
        found = [Registration(Resource.POD, pods, self.after_pod), Registration(Resource.NODE, nodes, self.after_node)]
        if self._devices:
            found.append(Registration(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE, self.after_device_class))
        return found

    # -- pods

    def after_pod(self, pod: PodQuery, change: Change) -> Hint:
        """A pod is gone that took or was promised room, or takes less of what *pod* asks for."""
        old, new = change.old, change.new
        if new is None:
            held = old.spec.node_name or old.status.nominated_node_name
            return Hint.QUEUE if held else Hint.SKIP
        if not self._resize:
            return Hint.SKIP
        return Hint.QUEUE if self._frees(pod, old, new) else Hint.SKIP

    def _frees(self, pod: PodQuery, old: Pod, new: Pod) -> bool:
        if new.metadata.uid == pod.pod.metadata.uid:
            return True
        if not new.spec.node_name:
            return False
        before, after = self._in_effect(old), self._in_effect(new)
        wanted = self._in_effect(pod.pod)
        return any(amount and before.get(name, 0) > after.get(name, 0) for name, amount in wanted.items())

    def _in_effect(self, pod: Pod) -> dict[str, int]:
        return pod_requests(pod, Counting(status=self._resize, pod_level_resize=self._pod_level_resize))

    # -- nodes

    def after_node(self, pod: PodQuery, change: Change) -> Hint:
        """A node came that could take *pod* if it were empty, or such a node offers more of what the pod asks for."""
        if change.new is None:
            return Hint.SKIP
        offered = _offered(change.new)
        asked = {
            name: amount
            for name, amount in pod_requests(pod.pod, Counting(status=False, pod_level=self._pod_level)).items()
            if amount
        }
        if not self._fits(asked, offered):
            return Hint.SKIP
        if change.old is None or self._offers_more(asked, _offered(change.old), offered):
            return Hint.QUEUE
        return Hint.SKIP

    def _fits(self, asked: Mapping[str, int], offered: Mapping[str, int]) -> bool:
        if offered.get("pods", 0) < 1:
            return False
        return all(
            amount <= offered.get(name, 0) or self._left_to_devices(name, offered) for name, amount in asked.items()
        )

    def _offers_more(self, asked: Mapping[str, int], before: Mapping[str, int], after: Mapping[str, int]) -> bool:
        if after.get("pods", 0) > before.get("pods", 0):
            return True
        return any(after.get(name, 0) > before.get(name, 0) or self._left_to_devices(name, after) for name in asked)

    def _left_to_devices(self, name: str, offered: Mapping[str, int]) -> bool:
        """Whether devices may serve *name* on a node; a hint cannot look, so it takes the device class to be there."""
        return self._devices and is_dra_extended(name) and offered.get(name, 0) <= 0

    # -- device classes

    def after_device_class(self, pod: PodQuery, change: Change) -> Hint:
        """A device class now serves a resource that *pod* asks for."""
        old: DeviceClass | None = change.old
        new: DeviceClass = change.new
        asked = pod_requests(pod.pod, Counting(status=False))
        explicit = new.spec.extended_resource_name
        if old is not None:
            if (old.spec.extended_resource_name or "") == (explicit or ""):
                return Hint.SKIP
        elif IMPLICIT_PREFIX + new.metadata.name in asked:
            return Hint.QUEUE
        return Hint.QUEUE if explicit is not None and explicit in asked else Hint.SKIP


def _offered(node: Node) -> dict[str, int]:
    """What *node* offers of all that is counted, pods included; base units."""
    return {
        name: base_units(name, amount)
        for name, amount in node.status.allocatable.items()
        if name == "pods" or name in _PLAIN or is_scalar(name)
    }
