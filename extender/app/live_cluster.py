"""The cache of a live cluster for the verbs: transports, informers, nominated pods; no queue and no leader election."""

from collections.abc import Callable, Sequence

from extender.api.kinds.pod import Pod
from extender.app.informers import Informers
from extender.app.wiring import SchedulerSetup
from extender.basics.clock import Clock
from extender.cache.cache import Cache
from extender.client.connections import RecoverySignal
from extender.client.credentials import Credentials
from extender.client.kubeconfig import CredentialSource
from extender.client.transport import AttemptObserver, Transport
from extender.framework.events import ClusterEvent
from extender.scheduler.event_handlers import ClusterEventDispatcher, EventHandler


class _NominationHandler(EventHandler):
    """Updates the nominated pods of the cache from the status of pending pods.

    Source: pkg/scheduler/backend/queue/nominator.go, nominator.addNominatedPodUnlocked, nominator.UpdateNominatedPod
    (1.36).
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def on_pending_pod_add(self, pod: Pod) -> None:
        """Nominate a new pending pod if its status names a node."""
        if pod.status.nominated_node_name and not self._cache.is_assumed(pod.metadata.uid):
            self._cache.nominate(pod, pod.status.nominated_node_name)

    def on_pending_pod_update(self, old: Pod, new: Pod, events: list[ClusterEvent]) -> None:  # noqa: ARG002
        """Update the nomination if the nominated node of the status changed."""
        if old.status.nominated_node_name != new.status.nominated_node_name:
            self._cache.nominate(new, new.status.nominated_node_name)


class LiveCluster:
    """The cache of a live cluster, with the informers that update the cache.

    Attributes:
        transport: the transport for watches and bindings.
        read_transport: the transport for reads before a binding, with a separate rate limit.
    """

    def __init__(
        self,
        setup: SchedulerSetup,
        credential_source: CredentialSource,
        clock: Clock,
        *,
        observe: AttemptObserver,
        other_scheduler_names: Sequence[str] = (),
    ) -> None:
        """Create transports and informers; no connection is opened yet.

        The profiles of *setup* determine the kinds. The verb bind may bind the pods of *other_scheduler_names* too.
        """
        self.cache = Cache(setup.gates)
        self.credentials = Credentials(credential_source, clock)
        connection = setup.configuration.client_connection
        recovery = RecoverySignal()
        self.transport, self.read_transport = (
            Transport(self.credentials, connection, observe=observe, recovery=recovery) for _ in range(2)
        )
        self._other_scheduler_names = other_scheduler_names
        self._scheduler_names = frozenset((*setup.profiles, *other_scheduler_names))
        handler = _NominationHandler(self.cache)
        self._dispatcher = ClusterEventDispatcher(self.cache, handler, self._scheduler_names, setup.gates)
        self.informers = Informers(setup, self.transport, self._dispatcher, clock)

    def observe_pods(self, on_pod_change: Callable[[Pod], None], on_pod_delete: Callable[[Pod], None]) -> None:
        """Call *on_pod_change* with each new or changed pod of the watch, and *on_pod_delete* with each deleted one.

        Both are called after the cache changed.
        """
        self._dispatcher.on_pod_change, self._dispatcher.on_pod_delete = on_pod_change, on_pod_delete

    def apply_setup(self, setup: SchedulerSetup) -> None:
        """Use the profiles of *setup*; the informers must already watch the kinds that these profiles read.

        Nominations are added for pods of new schedulers and removed for pods of removed schedulers.
        """
        old_scheduler_names = self._scheduler_names
        self._scheduler_names = frozenset((*setup.profiles, *self._other_scheduler_names))
        self._dispatcher.set_scheduler_names(self._scheduler_names)
        for pod in list(self.cache.pending_pods.values()):
            if pod.spec.scheduler_name in old_scheduler_names ^ self._scheduler_names:
                is_ours = pod.spec.scheduler_name in self._scheduler_names
                self.cache.nominate(pod, pod.status.nominated_node_name if is_ours else "")

    async def close(self) -> None:
        """Close all transports."""
        for transport in (self.transport, self.read_transport):
            await transport.close()
