"""Write a recording as a JSON List that the commands read, with only those fields that scheduling reads.

Environment variables, commands, secrets and config maps are no such fields. Of the annotations, only those of
Kubernetes itself are written, without the copy of the manifest that `kubectl apply` stores.
"""

import gzip
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import msgspec
from msgspec.structs import replace

from extender.analysis.recorded_cluster import Recording
from extender.answers.schema_version import SCHEMA_VERSION
from extender.api.codec import encode
from extender.api.kinds.meta import KubernetesObject
from extender.api.scheme import get_kind_name
from extender.client.rest_mapping import ENDPOINTS

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_KUBERNETES_DOMAINS: Final = ("kubernetes.io", "k8s.io")


def write_recording(
    recording: Recording, file: BinaryIO, *, compress: bool, annotation_prefixes: tuple[str, ...] = ()
) -> int:
    """Write *recording* and return the number of objects.

    Of other annotations, those that begin with one of *annotation_prefixes* are written, for plugins that read them.
    """
    if compress:
        with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as gzip_file:
            return _write_chunks(recording, gzip_file, annotation_prefixes)
    return _write_chunks(recording, file, annotation_prefixes)


def _write_chunks(recording: Recording, file: Any, annotation_prefixes: tuple[str, ...]) -> int:
    head: dict[str, Any] = {
        "schemaVersion": SCHEMA_VERSION,
        "recordedKinds": sorted(recording.recorded_kinds),
        "unreadableKinds": dict(sorted(recording.unreadable_kinds.items())),
    }
    if recording.kubernetes_version:
        head["kubernetesVersion"] = recording.kubernetes_version
    file.write(b'{"kind":"List","apiVersion":"v1",' + msgspec.json.encode(head)[1:-1] + b',"items":[\n')
    separator = b""
    for item in _iterate_items(recording, annotation_prefixes):
        file.write(separator + item)
        separator = b",\n"
    file.write(b"\n]}\n")
    return len(recording.objects)


def _iterate_items(recording: Recording, annotation_prefixes: tuple[str, ...]) -> Iterator[bytes]:
    for obj in recording.objects:
        api_version = ENDPOINTS[type(obj).__name__].api_version
        head = msgspec.json.encode({"apiVersion": api_version, "kind": get_kind_name(type(obj))})
        yield head[:-1] + b"," + encode(_strip_annotations(obj, annotation_prefixes))[1:]


def _strip_annotations(obj: KubernetesObject, prefixes: tuple[str, ...]) -> KubernetesObject:
    annotations = {
        key: value
        for key, value in obj.metadata.annotations.items()
        if key != _LAST_APPLIED and (_is_of_kubernetes(key) or key.startswith(prefixes))
    }
    if len(annotations) == len(obj.metadata.annotations):
        return obj
    return replace(obj, metadata=replace(obj.metadata, annotations=annotations))


def _is_of_kubernetes(key: str) -> bool:
    domain = key.partition("/")[0]
    return any(domain == known_domain or domain.endswith(f".{known_domain}") for known_domain in _KUBERNETES_DOMAINS)
