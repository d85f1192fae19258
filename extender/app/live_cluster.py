"""The cache of a live cluster for the verbs: transports, informers, nominated pods; no queue and no leader election."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from extender.api.codec import DecodeError, decode
from extender.api.kinds.pod import Pod
from extender.app.informers import Informers
from extender.app.wiring import Scheduling
from extender.basics.clock import Clock
from extender.cache.cache import Cache
from extender.client.credentials import Credentials
from extender.client.errors import ApiError, NotFoundError
from extender.client.kubeconfig import CredentialSource
from extender.client.transport import AttemptObserver, Transport
from extender.client.writer import Writer
from extender.extender_api.bind import PodReadError
from extender.framework.api_plan import ApiCall
from extender.framework.events import ClusterEvent
from extender.scheduler.api_writer import ApiWriter
from extender.scheduler.binder import ignore
from extender.scheduler.event_handlers import ClusterEventDispatcher, NullEventHandler
from extender.scheduler.leadership import AlwaysLeader


class _NominationHandler(NullEventHandler):
    """Updates the nominated pods of the cache from the status of pending pods.

    Source: pkg/scheduler/backend/queue/nominator.go, nominator.addNominatedPodUnlocked, nominator.UpdateNominatedPod
    (1.36).
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def on_pending_pod_add(self, pod: Pod) -> None:
        """Nominate a new pending pod if its status names a node."""
        if pod.status.nominated_node_name:
            self._cache.nominate(pod, pod.status.nominated_node_name)

    def on_pending_pod_update(self, old: Pod, new: Pod, events: list[ClusterEvent]) -> None:  # noqa: ARG002
        """Update the nomination if the nominated node of the status changed."""
        if old.status.nominated_node_name != new.status.nominated_node_name:
            self._cache.nominate(new, new.status.nominated_node_name)


class LiveCluster:
    """The cache of a live cluster, with the informers that update the cache.

    Attributes:
        cache: the cache of nodes, pods and all other watched objects.
        credentials: the credentials of all transports.
        transport: the transport for watches and bindings.
        read_transport: the transport for reads before a binding, with a separate rate limit.
        informers: the informers that update the cache.
    """

    def __init__(
        self,
        scheduling: Scheduling,
        credential_source: CredentialSource,
        clock: Clock,
        user_agent: str,
        *,
        observe: AttemptObserver,
        other_scheduler_names: Sequence[str] = (),
    ) -> None:
        """Create transports and informers; no connection is opened yet.

        Args:
            scheduling: the configuration with the profiles that determine the watched kinds.
            credential_source: the location of the credentials.
            clock: the system clock.
            user_agent: the header `User-Agent` of every request.
            observe: the observer of every request.
            other_scheduler_names: additional scheduler names; the verb bind may bind pods with these names.
        """
        self.cache = Cache(scheduling.gates)
        self.credentials = Credentials(credential_source, clock)
        connection = scheduling.configuration.client_connection
        self.transport, self.read_transport = (
            Transport(self.credentials, connection, user_agent, clock, observe=observe) for _ in range(2)
        )
        self._other_scheduler_names = other_scheduler_names
        self._scheduler_names = frozenset((*scheduling.profiles, *other_scheduler_names))
        self._dispatcher = ClusterEventDispatcher(self.cache, _NominationHandler(self.cache), self._scheduler_names)
        self.informers = Informers(scheduling, self.transport, self._dispatcher, clock)

    def set_scheduling(self, scheduling: Scheduling) -> None:
        """Use the profiles of *scheduling*; the informers must already watch the kinds that these profiles read.

        Nominations are added for pods of new schedulers and removed for pods of removed schedulers.
        """
        old_scheduler_names = self._scheduler_names
        self._scheduler_names = frozenset((*scheduling.profiles, *self._other_scheduler_names))
        self._dispatcher.set_schedulers(self._scheduler_names)
        for pod in list(self.cache.pending_pods.values()):
            if pod.spec.scheduler_name in old_scheduler_names ^ self._scheduler_names:
                is_ours = pod.spec.scheduler_name in self._scheduler_names
                self.cache.nominate(pod, pod.status.nominated_node_name if is_ours else "")

    async def close(self) -> None:
        """Close all transports."""
        for transport in (self.transport, self.read_transport):
            await transport.close()


@dataclass(frozen=True, slots=True)
class LiveBindApi:
    """The API calls of the verb bind (implements `extender_api.bind.BindApi`).

    Attributes:
        writer: the client for bindings.
        reader: the client for reads; may be the same as *writer*.
    """

    writer: Writer
    reader: Writer

    async def pod(self, namespace: str, name: str) -> Pod | None:
        """Return the current pod; None if it does not exist.

        Raises:
            PodReadError: the pod cannot be read.
        """
        try:
            return decode(await self.reader.get("Pod", namespace, name), Pod)
        except NotFoundError:
            return None
        except (ApiError, DecodeError) as error:
            raise PodReadError(f"pod {namespace}/{name} cannot be read: {error}") from error

    async def call(self, api_call: ApiCall, check_before_send: Callable[[], None] = ignore, /) -> None:
        """Make the call; *check_before_send* is called immediately before the request is sent.

        Raises:
            ApiError: the call failed.
        """
        await ApiWriter(self.writer, AlwaysLeader()).call(api_call, check_before_send)
