"""Nodes and pods as the API server wrote them, for HTTP extenders that are to be sent all there is to them.

Our types hold what scheduling reads and no more. Source: F017, F018, F021.
"""

from collections.abc import Sequence

import msgspec

from extender.config.model import Extender
from extender.objects.meta import KubernetesObject
from extender.objects.node import Node
from extender.objects.pod import Pod


class Texts:
    """The newest text of each object that an extender can be sent, by the object's uid."""

    __slots__ = ("_known", "_nodes", "_placed", "_waiting")

    def __init__(self, extenders: Sequence[Extender] = ()) -> None:
        """Keep what *extenders* are sent, so nothing if there are none."""
        asked = [each for each in extenders if each.filter_verb or each.prioritize_verb]
        preempting = [each for each in extenders if each.preempt_verb]
        self._nodes = any(not each.node_cache_capable for each in asked)
        self._waiting = bool(asked or preempting)
        self._placed = any(not each.node_cache_capable for each in preempting)  # they are sent victims as a whole
        self._known: dict[str, msgspec.Raw] = {}

    def __len__(self) -> int:
        return len(self._known)

    def concerns(self, kind: type[KubernetesObject]) -> bool:
        """Whether objects of *kind* are kept at all."""
        return self._nodes if kind is Node else self._waiting if kind is Pod else False

    def heard(self, item: KubernetesObject, text: bytes) -> None:
        """*item*, a node or a pod, is now what *text* says."""
        if isinstance(item, Pod) and item.spec.node_name and not self._placed:
            self._known.pop(item.metadata.uid, None)
        else:
            self._known[item.metadata.uid] = _trimmed(text, signed=isinstance(item, Node))

    def forget(self, item: KubernetesObject) -> None:
        """*item* is gone."""
        self._known.pop(item.metadata.uid, None)

    def of(self, item: KubernetesObject) -> msgspec.Raw:
        """The newest text of *item*; of what was never heard of, what our types hold."""
        known = self._known.get(item.metadata.uid)
        return known if known is not None else msgspec.Raw(msgspec.json.encode(item))


def _trimmed(text: bytes, *, signed: bool) -> msgspec.Raw:
    """*text* as kube-scheduler keeps it: without kind and apiVersion, and unless *signed* without managedFields."""
    fields = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    fields.pop("kind", None)
    fields.pop("apiVersion", None)
    if not signed:
        meta = msgspec.json.decode(fields.get("metadata", b"{}"), type=dict[str, msgspec.Raw])
        meta.pop("managedFields", None)
        fields["metadata"] = msgspec.Raw(msgspec.json.encode(meta))
    return msgspec.Raw(msgspec.json.encode(fields))
