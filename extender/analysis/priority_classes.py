"""Check the PriorityClasses that the pods and pod groups of manifests name."""

from collections.abc import Iterator

from extender.analysis.input.input_errors import InputErrorLine, SourceLocation
from extender.analysis.recorded_cluster import Recording
from extender.analysis.text_table import join_first
from extender.api.kinds.disruption import PriorityClass
from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import CompositePodGroup, PodGroup
from extender.config.did_you_mean import did_you_mean


def find_unknown_priority_classes(manifests: Recording, cluster: Recording) -> Iterator[InputErrorLine]:
    """Yield an error for each class that *cluster* does not have, with the first of the objects that name it.

    The API server refuses such a pod or pod group. Nothing is known if the classes of the cluster are not recorded. An
    object with a uid was accepted, perhaps before its class was deleted.

    Source: plugin/pkg/admission/priority/admission.go, Plugin.admitPod, Plugin.admitPodGroup,
    Plugin.admitCompositePodGroup (1.37).
    """
    if PriorityClass.__name__ not in cluster.recorded_kinds:
        return
    known_names = [obj.metadata.name for obj in cluster.objects if isinstance(obj, PriorityClass)]
    object_names: dict[str, str] = {}
    for obj in manifests.objects:
        if isinstance(obj, Pod | PodGroup | CompositePodGroup) and obj.spec.priority is None and not obj.metadata.uid:
            object_names.setdefault(obj.spec.priority_class_name, f"{type(obj).__name__} {obj.metadata.key}")
    object_names.pop("", None)
    location = SourceLocation(join_first(manifests.sources))
    for name, object_name in object_names.items():
        message = f"no PriorityClass with name {name} was found{did_you_mean(name, known_names)}"
        yield InputErrorLine(location, message, object_name, "spec.priorityClassName")
