"""A live cluster joined, to answer questions about it: sessions, a watch a kind, the tables; no queue, no lease."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from extender.basics.clock import Clock
from extender.carrying import nobody
from extender.client.credentials import Credentials
from extender.client.errors import ApiError, NotFoundError
from extender.client.kubeconfig import Place
from extender.client.transport import Observe, Transport
from extender.client.writes import Writer
from extender.cluster.state import ClusterState
from extender.feed.handlers import Deaf, Feed
from extender.framework.changes import Change
from extender.framework.points import Write
from extender.loop.api_server import ApiServer
from extender.loop.outside import Always
from extender.objects.codec import DecodeError, decode
from extender.objects.pod import Pod
from extender.watches import Watches
from extender.web.binding import LiveError
from extender.wiring import Scheduling


class _Nominations(Deaf):
    """Hears which pods wait for room on a node; others must leave it to them. Source: D045 to D047."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def pod_waits(self, pod: Pod) -> None:
        """A pod without a node appeared."""
        if pod.status.nominated_node_name:
            self._state.nominate(pod, pod.status.nominated_node_name)

    def pod_changed(self, old: Pod, new: Pod, changes: list[Change]) -> None:  # noqa: ARG002  as listeners are told
        """Its nomination follows its status if that changed."""
        if old.status.nominated_node_name != new.status.nominated_node_name:
            self._state.nominate(new, new.status.nominated_node_name)


class Joined:
    """One cluster as it is now.

    Attributes:
        state: what is known of it.
        transport, reading: sessions; what is read before a binding must not use up the rate that bindings have.
        watches: keep the state up to date.
    """

    def __init__(
        self,
        scheduling: Scheduling,
        place: Place,
        clock: Clock,
        agent: str,
        *,
        observe: Observe,
        others: Sequence[str] = (),
    ) -> None:
        """Put it together; nothing is opened before `run`.

        Args:
            scheduling: the profiles; what they read is watched.
            place: where credentials are found.
            clock: the machine's.
            agent: how the process calls itself.
            observe: told of each request.
            others: schedulers beside those of the profiles whose pods are asked about.
        """
        self.state = ClusterState(scheduling.gates)
        self.credentials = Credentials(place, clock)
        connection = scheduling.configuration.client_connection
        self.transport, self.reading = (
            Transport(self.credentials, connection, agent, clock, observe=observe) for _ in range(2)
        )
        self._others, self._names = others, frozenset((*scheduling.profiles, *others))
        self._feed = Feed(self.state, _Nominations(self.state), self._names)
        self.watches = Watches(scheduling, self.transport, self._feed, clock)

    def take_over(self, scheduling: Scheduling) -> None:
        """From now on the profiles of *scheduling* are asked about; what they read is watched already."""
        before, self._names = self._names, frozenset((*scheduling.profiles, *self._others))
        self._feed.serve(self._names)
        for pod in list(self.state.waiting.values()):
            if pod.spec.scheduler_name in before ^ self._names:
                ours = pod.spec.scheduler_name in self._names
                self.state.nominate(pod, pod.status.nominated_node_name if ours else "")

    async def close(self) -> None:
        """End all sessions."""
        for transport in (self.transport, self.reading):
            await transport.close()


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """The API server as the verb bind needs it (a `web.binding.Live`).

    Attributes:
        writer: over the session that bindings use.
        reader: over another, or the same.
    """

    writer: Writer
    reader: Writer

    async def pod(self, namespace: str, name: str) -> Pod | None:
        """The pod as it is now; None if there is none.

        Raises:
            LiveError: it cannot be read.
        """
        try:
            return decode(await self.reader.get("Pod", namespace, name), Pod)
        except NotFoundError:
            return None
        except (ApiError, DecodeError) as fault:
            raise LiveError(f"pod {namespace}/{name} cannot be read: {fault}") from fault

    async def carry_out(self, write: Write, ask: Callable[[], None] = nobody, /) -> None:
        """Make the call; *ask* is called immediately before it is sent.

        Raises:
            ApiError: it did not succeed.
        """
        await ApiServer(self.writer, Always()).carry_out(write, ask)
