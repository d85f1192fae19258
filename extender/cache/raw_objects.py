"""Cache nodes and pods as raw JSON for HTTP extenders; our types have only the fields that scheduling reads.

Source: kube-scheduler/extender/v1/types.go, ExtenderArgs, ExtenderPreemptionArgs; pkg/scheduler/scheduler.go,
newPodInformer (1.36).
"""

from collections.abc import Sequence

import msgspec

from extender.api.kinds.meta import KubernetesObject
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.config.model import Extender


class RawObjectCache:
    """The newest JSON of each object that may be sent to an extender, by uid."""

    def __init__(self, extenders: Sequence[Extender] = ()) -> None:
        """Cache the kinds of objects that are sent to *extenders*; nothing without extenders."""
        filter_or_prioritize_extenders = [
            extender for extender in extenders if extender.filter_verb or extender.prioritize_verb
        ]
        preempting_extenders = [extender for extender in extenders if extender.preempt_verb]
        self._caches_nodes = any(not extender.node_cache_capable for extender in filter_or_prioritize_extenders)
        self._caches_pending_pods = bool(filter_or_prioritize_extenders or preempting_extenders)
        # Unless an extender is node_cache_capable, a request to its preempt verb contains the victims as whole pods.
        self._caches_assigned_pods = any(not extender.node_cache_capable for extender in preempting_extenders)
        self._raw_by_uid: dict[str, msgspec.Raw] = {}

    def __len__(self) -> int:
        return len(self._raw_by_uid)

    def is_cached_kind(self, kind: type[KubernetesObject]) -> bool:
        """Return whether objects of *kind* are cached."""
        return self._caches_nodes if kind is Node else self._caches_pending_pods if kind is Pod else False

    def put(self, item: KubernetesObject, raw: bytes) -> None:
        """Set the JSON of *item*, a node or a pod, to *raw*."""
        if isinstance(item, Pod) and item.spec.node_name and not self._caches_assigned_pods:
            self._raw_by_uid.pop(item.metadata.uid, None)
        else:
            self._raw_by_uid[item.metadata.uid] = _strip_fields(raw, keep_managed_fields=isinstance(item, Node))

    def remove(self, item: KubernetesObject) -> None:
        """Remove *item*."""
        self._raw_by_uid.pop(item.metadata.uid, None)

    def get(self, item: KubernetesObject) -> msgspec.Raw:
        """Return the newest JSON of *item*. If none is cached, encode the fields that scheduling reads."""
        raw = self._raw_by_uid.get(item.metadata.uid)
        return raw if raw is not None else msgspec.Raw(msgspec.json.encode(item))


def _strip_fields(raw: bytes, *, keep_managed_fields: bool) -> msgspec.Raw:
    """Remove kind and apiVersion, as kube-scheduler does. Also remove managedFields if not *keep_managed_fields*."""
    fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    fields.pop("kind", None)
    fields.pop("apiVersion", None)
    if not keep_managed_fields:
        meta = msgspec.json.decode(fields.get("metadata", b"{}"), type=dict[str, msgspec.Raw])
        meta.pop("managedFields", None)
        fields["metadata"] = msgspec.Raw(msgspec.json.encode(meta))
    return msgspec.Raw(msgspec.json.encode(fields))
