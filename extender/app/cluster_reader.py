"""Read a live cluster once, as a recording. Lists are read in pages.

Nodes and pods are listed first. The selected pods determine which other kinds are listed.
"""

import asyncio
import contextlib
import dataclasses
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from extender.analysis.input.input_errors import UnreadableError
from extender.analysis.input.workload_pods import make_workload_pods
from extender.analysis.input.workloads import WORKLOAD_VERSIONS, Workload, WorkloadStatus, expand_cron_job
from extender.analysis.pod_selection import PodFinder, PodSelection, WorkloadName, parse_workload_name
from extender.analysis.recorded_cluster import Recording
from extender.analysis.required_kinds import GROUP_KINDS, get_plural, has_namespace_selector, list_required_kinds
from extender.api.codec import DecodeError, decode
from extender.api.coscheduling import POD_GROUP_LABEL
from extender.api.defaulting import set_priority
from extender.api.kinds.devices import ResourceSlice
from extender.api.kinds.disruption import PriorityClass
from extender.api.kinds.meta import KubernetesObject, find_condition
from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import PodGroup
from extender.api.kinds.workload import ReplicaSet
from extender.api.scheme import KINDS, guess_plural
from extender.app.server_release import parse_server_version
from extender.basics.clock import SystemClock
from extender.client.credentials import Credentials
from extender.client.errors import (
    ApiError,
    CredentialsError,
    ForbiddenError,
    NotFoundError,
    UnauthorizedError,
    UnreachableError,
)
from extender.client.kubeconfig import CredentialSource
from extender.client.listwatch import UNFINISHED_PODS, ListWatch, list_all
from extender.client.rest_mapping import ENDPOINTS, MISSING_KIND_HINTS, Endpoint, get_endpoint
from extender.client.transport import Request, Transport
from extender.config.model import ClientConnection
from extender.config.releases import DEFAULT_RELEASE, find_release
from extender.framework.profiles import Profile

_Result = TypeVar("_Result")

ReadProgress = Callable[[int, int], None]
"""A function that is called with the number of listed kinds and the number of kinds to list."""

_NAMESPACED_KINDS: Final = frozenset(("Service", "ReplicationController", "ReplicaSet", "StatefulSet", *GROUP_KINDS))
"""Kinds of which only the objects in the namespace of a pod matter for that pod."""

_ALWAYS_SERVED_KINDS: Final = frozenset(("Node", "Pod"))
"""Without these kinds, the server is no API server, or not one that has pods to schedule."""

_ANONYMOUS: Final = 'User "system:anonymous"'

_FILE_HINT: Final = ", or use a recording with -f"

_KINDS: Final[Mapping[str, type[KubernetesObject]]] = {
    kind.__name__: kind for kind in KINDS.values() if kind.__name__ in ENDPOINTS
}


class ClusterReader:
    """Reads kinds of objects from an API server.

    Args:
        progress: the callback after each kind.
    """

    def __init__(self, transport: Transport, progress: ReadProgress | None = None) -> None:
        self._transport, self._progress = transport, progress
        self._done_count = self._total_count = 0
        self._objects: list[KubernetesObject] = []  # in the order in which their kinds were read
        self._recorded_kinds: set[str] = set()
        self._unreadable_kinds: dict[str, str] = {}
        self._unserved_kinds: set[str] = set()
        self._workload_pods: dict[str, tuple[str, ...]] = {}
        self._notes: list[str] = []
        self._release = DEFAULT_RELEASE

    async def read_kinds(self, kinds: Iterable[str], server: str) -> Recording:
        """Read all objects of *kinds*. Kinds that the API server does not have are recorded without objects.

        If a pod belongs to a pod group, the pod groups are read too, and if there are devices, their taint rules. Not
        every API server has these kinds.

        Raises:
            ApiError: nodes or pods may not be listed, or the API server cannot be reached.
        """
        version = await self.read_version()
        self._release = find_release(version) or DEFAULT_RELEASE
        await self._list_concurrently([self._list_kind(kind) for kind in kinds])
        pods = [obj for obj in self._objects if isinstance(obj, Pod)]
        further_kinds = {
            "PodGroup": any(pod.spec.scheduling_group is not None for pod in pods),
            "CoschedulingPodGroup": any(POD_GROUP_LABEL in pod.metadata.labels for pod in pods),
            "DeviceTaintRule": any(isinstance(obj, ResourceSlice) for obj in self._objects),
        }
        await self._list_concurrently([self._list_kind(kind) for kind, is_used in further_kinds.items() if is_used])
        groups = [obj for obj in self._objects if isinstance(obj, PodGroup)]
        if any(group.spec.parent_composite_pod_group_name is not None for group in groups):
            await self._list_concurrently([self._list_kind("CompositePodGroup")])
        return dataclasses.replace(self._make_recording(server), kubernetes_version=version)

    async def read_version(self) -> str:
        """Return the version of the API server, such as `v1.37.2`; empty if the user may not read it."""
        try:
            return parse_server_version(await self._transport.call(Request("GET", "/version")))
        except (ForbiddenError, NotFoundError):
            return ""

    async def read_for_pods(self, selection: PodSelection, profiles: Mapping[str, Profile], server: str) -> Recording:
        """Read nodes, pods, and the other kinds on which the scheduling of the selected pods depends.

        A workload without pods is read, and the pods that it would make are among the objects.

        Raises:
            ApiError: nodes or pods may not be listed, or the API server cannot be reached.
        """
        self._release = next((profile.release for profile in profiles.values()), DEFAULT_RELEASE)
        await self._list_concurrently([self._list_kind("Node"), self._list_kind("Pod")])
        pods = [obj for obj in self._objects if isinstance(obj, Pod)]
        selected_pods = await self._select_pods(pods, selection, profiles)
        kinds = {
            kind: None
            for pod in selected_pods
            for kind in list_required_kinds(pod, profiles[pod.spec.scheduler_name])
            if _may_matter(kind, selected_pods, pods)
        }
        scopes = [_get_scope(kind, selected_pods) for kind in kinds]
        await self._list_concurrently(
            [self._list_kind(kind, *scope) for kind, scope in zip(kinds, scopes, strict=True) if kind in _KINDS]
        )
        return self._make_recording(server)

    def _make_recording(self, server: str) -> Recording:
        priority_classes = {obj.metadata.name: obj for obj in self._objects if isinstance(obj, PriorityClass)}
        pods = [obj for obj in self._objects if isinstance(obj, Pod)]
        missing_kinds = {kind for kind in self._unserved_kinds if _is_missed(kind, pods)}
        return Recording(
            tuple(set_priority(obj, priority_classes) if isinstance(obj, Pod) else obj for obj in self._objects),
            sources=(server,),
            recorded_kinds=frozenset(self._recorded_kinds | self._unserved_kinds - missing_kinds),
            unreadable_kinds=self._unreadable_kinds | {kind: MISSING_KIND_HINTS[kind] for kind in missing_kinds},
            workload_pods=self._workload_pods,
            notes=tuple(self._notes),
        )

    async def _list_concurrently(self, lists: Sequence[Awaitable[None]]) -> None:
        self._total_count += len(lists)
        self._report_progress()
        tasks = [asyncio.ensure_future(kind_list) for kind_list in lists]
        try:
            for task in asyncio.as_completed(tasks):
                await task
                self._done_count += 1
                self._report_progress()
        finally:
            for task in tasks:
                task.cancel()

    def _report_progress(self) -> None:
        if self._progress is not None:
            self._progress(self._done_count, self._total_count)

    async def _list_kind(self, kind: str, namespace: str = "", name: str = "") -> None:
        """List a kind, or its objects of one namespace or name.

        Raises:
            ApiError: the list failed. Only nodes and pods have to be served and readable.
        """
        selector = f"metadata.name={name}" if name else UNFINISHED_PODS if kind == "Pod" else ""
        list_watch: ListWatch[Any] = ListWatch(_KINDS[kind], get_endpoint(kind, self._release), namespace, selector)
        try:
            object_list = await list_all(self._transport, list_watch)
        except NotFoundError:  # the API server does not serve this kind
            if kind in _ALWAYS_SERVED_KINDS:
                raise
            self._unserved_kinds.add(kind)
        except ForbiddenError as error:
            if kind in _ALWAYS_SERVED_KINDS:
                raise
            self._unreadable_kinds[kind] = f'grant the verb "list" on {get_plural(kind)} ({error})'
        else:
            self._recorded_kinds.add(kind)
            self._objects += object_list.items.values()

    async def _select_pods(
        self, pods: Sequence[Pod], selection: PodSelection, profiles: Mapping[str, Profile]
    ) -> list[Pod]:
        """Return the pods that decide which kinds are read. Names without a pod are ignored here."""
        if not selection.names:
            pending_pods = (pod for pod in pods if not pod.spec.node_name and selection.matches(pod))
            return [pod for pod in pending_pods if pod.spec.scheduler_name in profiles]
        finder = PodFinder(pods)
        selected_pods: list[Pod] = []
        for name in selection.names:
            workload = parse_workload_name(name, selection.namespace)
            found_pods, _ = finder.find(name, selection.namespace)
            if workload is not None and workload.namespace and not found_pods and not workload.is_pod_group:
                found_pods = await self._make_pods_of(workload)
            elif workload is not None and workload.kind == "Deployment":
                await self._list_kind("ReplicaSet", workload.namespace)
                replica_sets = [obj for obj in self._objects if isinstance(obj, ReplicaSet)]
                found_pods, _ = PodFinder(pods, replica_sets).find(name, selection.namespace)
            selected_pods += found_pods
        return [pod for pod in selected_pods if pod.spec.scheduler_name in profiles]

    async def _make_pods_of(self, name: WorkloadName) -> list[Pod]:
        """Read a workload without pods, and add the pods that it would make; at least one.

        Raises:
            ApiError: the workload may not be read.
        """
        endpoint = Endpoint(WORKLOAD_VERSIONS[name.kind], guess_plural(name.kind))
        try:
            body = await self._transport.call(Request("GET", endpoint.build_path(name.namespace, name.name)))
            workload = expand_cron_job(replace(decode(body, Workload), kind=name.kind))
        except (NotFoundError, DecodeError):
            return []
        except ForbiddenError as error:
            raise ApiError(f'{error}; grant the verb "get" on {endpoint.plural}') from error
        failure = find_condition(workload.status.conditions, "ReplicaFailure")
        if failure is not None and failure.status == "True":
            self._notes.append(f"{name.key}: its controller cannot create pods: {failure.message}")
        if workload.spec.suspend:
            self._notes.append(f"{name.key} is suspended: it has pods after spec.suspend is set to false")
        replicas = max(1, workload.spec.replicas or 0)
        parallelism = max(1, workload.spec.parallelism or 0)
        spec = replace(workload.spec, replicas=replicas, parallelism=parallelism, suspend=False)
        workload = replace(workload, spec=spec, status=WorkloadStatus())  # also of a finished Job
        workload_pods = make_workload_pods(workload, self._objects)
        self._objects += [*workload_pods.other_objects, *workload_pods.pods]
        self._workload_pods[name.key] = tuple(pod.key for pod in workload_pods.pods)
        return list(workload_pods.pods)


def _get_scope(kind: str, pods: Collection[Pod]) -> tuple[str, str]:
    """Return the namespace and the name of the objects of *kind* that matter for *pods*; empty for all objects."""
    namespaces = {pod.metadata.namespace for pod in pods}
    if kind not in _NAMESPACED_KINDS or len(namespaces) != 1:
        return "", ""
    owners = {owner.name for pod in pods for owner in pod.metadata.owner_references if owner.kind == kind}
    return namespaces.pop(), owners.pop() if len(owners) == 1 else ""


def _is_missed(kind: str, pods: Iterable[Pod]) -> bool:
    """Return whether *pods* refer to objects of *kind*, which the API server does not serve.

    Pod groups of coscheduling are read only for pods that refer to them.
    """
    return kind in MISSING_KIND_HINTS and (
        kind == "CoschedulingPodGroup" or any(pod.spec.resource_claims for pod in pods)
    )


def _may_matter(kind: str, selected_pods: Sequence[Pod], pods: Sequence[Pod]) -> bool:
    """Return False if no object of *kind* can change the result of a selected pod in a cluster with *pods*."""
    if kind == "Namespace":
        return any(has_namespace_selector(pod) for pod in (*selected_pods, *pods))
    if kind == "PodDisruptionBudget":
        # The PriorityClass of a pod without priority is not read yet.
        priorities = (math.inf if pod.spec.priority is None else pod.spec.priority for pod in selected_pods)
        highest_priority = max(priorities, default=0)
        return any(pod.spec.node_name and (pod.spec.priority or 0) < highest_priority for pod in pods)
    return True


def read_cluster_for_pods(
    source: CredentialSource,
    selection: PodSelection,
    profiles: Mapping[str, Profile],
    progress: ReadProgress | None = None,
) -> Recording:
    """Connect to a cluster and read what the scheduling of the selected pods depends on.

    Raises:
        UnreadableError: the cluster cannot be read; the message names the server and the reason.
    """
    return _read(source, lambda reader, server: reader.read_for_pods(selection, profiles, server), progress)


def read_cluster_kinds(
    source: CredentialSource, kinds: Iterable[str], progress: ReadProgress | None = None, *, file_hint: str = _FILE_HINT
) -> Recording:
    """Connect to a cluster and read all objects of *kinds*; *file_hint* is empty for a command that reads no files.

    Raises:
        UnreadableError: the cluster cannot be read; the message names the server and the reason.
    """
    return _read(source, lambda reader, server: reader.read_kinds(kinds, server), progress, file_hint)


def make_credentials_error(error: CredentialsError, file_hint: str = _FILE_HINT) -> UnreadableError:
    """Return the error of a command without credentials; *file_hint* is as for `read_cluster_kinds`."""
    return UnreadableError("the cluster", f"{error}; pass --kubeconfig{file_hint}")


def read_kubernetes_version(source: CredentialSource) -> str:
    """Connect to a cluster and return its version, such as `v1.37.2`; empty if the user may not read it.

    Raises:
        UnreadableError: the cluster cannot be read; the message names the server and the reason.
    """
    return _read(source, lambda reader, _: reader.read_version())


@contextlib.asynccontextmanager
async def open_transport(source: CredentialSource) -> AsyncIterator[tuple[Transport, str]]:
    """Yield a transport to a cluster, and the address of its API server.

    Raises:
        ApiError: no credentials can be used.
    """
    credentials = Credentials(source, SystemClock())
    transport = Transport(credentials, ClientConnection(qps=50.0, burst=100))
    try:
        yield transport, await credentials.get_server()
    finally:
        await transport.close()


def _read(
    source: CredentialSource,
    read: Callable[[ClusterReader, str], Awaitable[_Result]],
    progress: ReadProgress | None = None,
    file_hint: str = _FILE_HINT,
) -> _Result:
    server = "the cluster"
    results: list[_Result] = []

    async def connect_and_read() -> None:
        nonlocal server
        async with open_transport(source) as (transport, server):
            results.append(await read(ClusterReader(transport, progress), server))

    try:
        # Not as the result of the task: asyncio.run formats that as text when it restores the handler of SIGINT.
        asyncio.run(connect_and_read())
        return results[0]
    except ForbiddenError as error:
        hint = f'grant the verb "list" on nodes and pods in all namespaces{file_hint}'
        if _ANONYMOUS in str(error):
            hint = "the user of the kubeconfig's context does not exist or has no credentials"
        raise UnreadableError(server, f"{error}; {hint}") from error
    except UnauthorizedError as error:
        message = f"the credentials of the kubeconfig are not accepted ({error}); log in again"
        raise UnreadableError(server, message) from error
    except NotFoundError as error:
        raise UnreadableError(server, f"{error}; is this the address of a Kubernetes API server?") from error
    except CredentialsError as error:
        raise make_credentials_error(error, file_hint) from error
    except UnreachableError as error:
        hint = f"check the server and the certificate-authority of the cluster in the kubeconfig{file_hint}"
        message = f"cannot connect: {error.connect_error}" if error.connect_error else error.message
        raise UnreadableError(server, f"{message}; {hint}") from error
    except ApiError as error:
        raise UnreadableError(server, str(error)) from error
