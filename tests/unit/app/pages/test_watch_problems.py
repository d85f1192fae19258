"""The lines about missing rights and lost watches."""

import asyncio
from collections.abc import Callable

from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import PodGroup
from extender.api.kinds.storage import PersistentVolumeClaim
from extender.app.informers import Informers
from extender.app.live_cluster import LiveCluster
from extender.app.pages.watch_problems import list_unreadable_kinds, list_watch_problems
from extender.app.wiring import build_setup
from extender.client.kubeconfig import CredentialSource
from extender.config.feature_gates import FeatureGates

FORBIDDEN = 'persistentvolumeclaims is forbidden: User "me" cannot list resource'


class StoppedClock:
    """A clock that stands at 12:00:30 UTC, 100 s after its start."""

    def now(self) -> float:
        return 12 * 3600 + 30.0

    def monotonic(self) -> float:
        return 100.0


def inspect(change: Callable[[Informers], None]) -> tuple[list[str], dict[str, str]]:
    """Return the lines and the unreadable kinds, if *change* is made when all kinds were read ten seconds ago."""

    async def main() -> tuple[list[str], dict[str, str]]:
        clock = StoppedClock()
        setup = build_setup(gates=FeatureGates({"GenericWorkload": True}))
        cluster = LiveCluster(setup, CredentialSource(), clock, observe=lambda _: None)
        informers = cluster.informers
        for reflector in informers.reflectors.values():
            reflector.synced.set()
            reflector.counts.lists, reflector.last_contact = 1, 90.0
        change(informers)
        await cluster.close()
        return list_watch_problems(informers, clock), list_unreadable_kinds(informers.reflectors)

    return asyncio.run(main())


def test_a_cluster_that_is_followed_has_no_problem() -> None:
    assert inspect(lambda _: None) == ([], {})


def test_kinds_that_are_being_read_for_the_first_time_are_named() -> None:
    """A scheduler serves its pages before it has read the cluster, and an incomplete page looks like a complete one."""

    def change(informers: Informers) -> None:
        for kind in (Pod, PersistentVolumeClaim):
            informers.reflectors[kind].synced.clear()

    assert inspect(change) == (
        ["not complete yet: persistentvolumeclaims, pods are being read"],
        {"Pod": "not read yet", "PersistentVolumeClaim": "not read yet"},
    )


def test_a_kind_that_may_not_be_listed_names_the_verbs() -> None:
    def change(informers: Informers) -> None:
        reflector = informers.reflectors[PersistentVolumeClaim]
        reflector.synced.clear()
        reflector.last_error, reflector.forbidden = f"persistentvolumeclaims: {FORBIDDEN}", True

    reason = f'grant the verbs "list" and "watch" on persistentvolumeclaims ({FORBIDDEN})'
    assert inspect(change) == (
        [f"not readable: persistentvolumeclaims; {reason}"],
        {"PersistentVolumeClaim": reason},
    )


def test_a_kind_that_may_be_listed_but_not_watched_has_the_time_of_its_state() -> None:
    def change(informers: Informers) -> None:
        reflector = informers.reflectors[Pod]
        reflector.last_error, reflector.forbidden = "pods: may not watch", True

    assert inspect(change) == (
        ['pods are shown as of 12:00:20 UTC; grant the verb "watch" on pods (may not watch)'],
        {},
    )


def test_a_lost_server_is_one_line_for_all_kinds() -> None:
    def change(informers: Informers) -> None:
        for reflector in informers.reflectors.values():
            reflector.last_error = f"{reflector.list_watch.endpoint.plural}: cannot connect"

    (line,), unreadable = inspect(change)
    assert line == (
        "the watch of csidrivers, csinodes, csistoragecapacities, deviceclasses and 16 other kinds is lost, "
        "shown as of 12:00:20 UTC: cannot connect"
    )
    assert unreadable == {}


def test_a_kind_that_the_server_does_not_serve_is_no_problem() -> None:
    def change(informers: Informers) -> None:
        reflector = informers.reflectors[PodGroup]
        reflector.is_optional, reflector.counts.lists = True, 0
        reflector.last_error = "podgroups: the server could not find the requested resource"

    assert inspect(change) == ([], {})
