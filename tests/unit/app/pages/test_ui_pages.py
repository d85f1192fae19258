"""The pages under `/ui/` beside the other pages of a process."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

import pytest
from starlette.testclient import TestClient

from extender.api.kinds.devices import ResourceClaim
from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import PodGroup
from extender.api.kinds.storage import PersistentVolumeClaim
from extender.app.informers import Informers
from extender.app.live_cluster import LiveCluster
from extender.app.options import ServeOptions
from extender.app.pages import ui_pages
from extender.app.pages.ui_pages import (
    find_stale_time,
    list_unreadable_kinds,
    list_watch_problems,
    make_answers,
    make_live_pages,
    mount_extender_pages,
)
from extender.app.serve_backend import make_recorded_backend, replace_profiles
from extender.app.standalone import StandaloneScheduler
from extender.app.wiring import build_setup, build_setup_from_document, make_runtime
from extender.basics.clock import SystemClock
from extender.cache.cache import Cache
from extender.client.kubeconfig import CredentialSource
from extender.config.errors import ConfigError
from extender.config.feature_gates import FeatureGates
from extender.metrics.exposition import make_registry
from extender.metrics.plugin_metrics import PluginMetrics
from extender.metrics.scheduler_metrics import make_scheduler_metrics
from extender.serving.serving_options import ServingOptions
from extender.ui.live_feed import ChangeFeed
from extender.ui.page_source import PageSource
from extender.ui.what_if.question import Question
from tests.build import make_node, make_pod


def make_client(*names: str, authenticated: bool = False) -> TestClient:
    cache = Cache()
    cache.add_or_update_node(make_node("n1"))
    cache.add_or_update_pod(make_pod("other", spec={"schedulerName": "another"}))
    setup = build_setup()
    backend = make_recorded_backend(ServeOptions(setup, cache, ServingOptions()))
    app = mount_extender_pages(backend, lambda: setup, "a", names, authenticated=authenticated)
    return TestClient(app, base_url="http://127.0.0.1")


def test_pages_are_beside_the_other_paths_with_their_headers() -> None:
    client = make_client()
    page = client.get("/ui/")
    assert "1 node" in page.text
    assert page.headers["x-frame-options"] == "DENY"
    health = client.get("/livez")
    assert health.status_code == 200
    assert "content-security-policy" not in health.headers


@pytest.mark.parametrize(("authenticated", "status"), [(False, 421), (True, 200)])
def test_without_authentication_only_a_loopback_host_is_served(authenticated: bool, status: int) -> None:
    client = make_client(authenticated=authenticated)
    assert client.get("/ui/", headers={"Host": "rebound.example"}).status_code == status


@pytest.mark.parametrize(("delays_decisions", "share"), [(True, 0.01), (False, 0.5)])
def test_pages_are_read_again_more_often_where_they_delay_no_decision(
    monkeypatch: pytest.MonkeyPatch, delays_decisions: bool, share: float
) -> None:
    """A page of waiting pods of 5,000 nodes takes two seconds: every four seconds, or every 200."""
    shares: list[float] = []

    def make_feed(source: PageSource, max_share: float) -> ChangeFeed:
        shares.append(max_share)
        return ChangeFeed(source, max_share)

    monkeypatch.setattr(ui_pages, "ChangeFeed", make_feed)
    setup = build_setup()
    source = PageSource("a", Cache(), lambda: setup.profiles, make_runtime, lambda: 0.0)
    make_live_pages(source, lambda: setup, delays_decisions=delays_decisions)
    assert shares == [share]


def test_the_default_profile_explains_the_pods_of_the_other_schedulers() -> None:
    assert make_client().get("/ui/pods/default/other").status_code == 404
    assert "fits on 1 of 1 node" in make_client("another").get("/ui/pods/default/other").text


def test_replaced_profiles_apply_to_the_pages() -> None:
    cache = Cache()
    cache.add_or_update_node(make_node("n1"))
    cache.add_or_update_pod(make_pod("p"))
    setup = build_setup()
    backend = make_recorded_backend(ServeOptions(setup, cache, ServingOptions()))
    app = mount_extender_pages(backend, lambda: setup, "a", authenticated=True)
    client = TestClient(app)
    assert client.get("/ui/pods/default/p").status_code == 200
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "another"}],
    }
    replace_profiles(
        backend.extender_service,
        build_setup_from_document(document, "scheduler.yaml"),
        PluginMetrics(make_registry(), ["another"], release=setup.gates.release),
    )
    assert client.get("/ui/pods/default/p").status_code == 404


def test_lost_watches_and_missing_rights_are_shown_beside_the_verbs() -> None:
    setup, clock = build_setup(), SystemClock()

    async def make_cluster() -> LiveCluster:
        return LiveCluster(setup, CredentialSource(), clock, observe=lambda _: None)

    cluster = asyncio.run(make_cluster())
    cluster.cache.add_or_update_node(make_node("n1"))
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    cluster.cache.add_or_update_pod(make_pod("web", spec={"volumes": volumes}))
    for kind, reflector in cluster.informers.reflectors.items():
        if kind is PersistentVolumeClaim:
            reflector.last_error, reflector.forbidden = "persistentvolumeclaims: may not list", True
        else:
            reflector.synced.set()
    options = ServeOptions(setup, cluster.cache, ServingOptions())
    backend = replace(make_recorded_backend(options), informers=cluster.informers)
    client = TestClient(mount_extender_pages(backend, lambda: setup, "a", authenticated=True))
    line = "not readable: persistentvolumeclaims; grant the verbs &#34;list&#34; and &#34;watch&#34;"
    assert line in client.get("/ui/waiting").text
    assert client.get("/ui/pods/default/web").text.count(line) > 1


def test_a_process_that_also_schedules_has_the_pages_of_its_scheduler() -> None:
    setup = build_setup()

    async def make_scheduler() -> StandaloneScheduler:
        return StandaloneScheduler(
            setup,
            CredentialSource(),
            SystemClock(),
            make_scheduler_metrics(setup.profiles),
            max_in_unschedulable_pods_seconds=300.0,
        )

    scheduler = asyncio.run(make_scheduler())
    options = ServeOptions(setup, scheduler.cache, ServingOptions())
    backend = replace(make_recorded_backend(options), scheduler=scheduler)
    app = mount_extender_pages(backend, lambda: setup, "a", authenticated=True)
    client = TestClient(app)
    assert "Scheduling queue" in client.get("/ui/queue").text
    assert "no response yet" in client.get("/ui/decisions").text
    app.close()
    assert client.get("/ui/events/queue").status_code == 503
    assert make_client(authenticated=True).get("/ui/queue").status_code == 404


T = TypeVar("T")
FORBIDDEN = 'persistentvolumeclaims is forbidden: User "me" cannot list resource'


class StoppedClock:
    """A clock that stands at 12:00:30 UTC, 100 s after its start."""

    def now(self) -> float:
        return 12 * 3600 + 30.0

    def monotonic(self) -> float:
        return 100.0


def inspect(change: Callable[[Informers], None]) -> tuple[list[str], dict[str, str]]:
    """Return the lines and the unreadable kinds, if *change* is made when all kinds were read ten seconds ago."""

    def read(informers: Informers, clock: StoppedClock) -> tuple[list[str], dict[str, str]]:
        return list_watch_problems(informers, clock), list_unreadable_kinds(informers.reflectors)

    return read_after(change, read)


def read_after(change: Callable[[Informers], None], read: Callable[[Informers, StoppedClock], T]) -> T:
    """Return what *read* returns, if *change* is made when all kinds were read ten seconds ago."""

    async def main() -> T:
        clock = StoppedClock()
        setup = build_setup(gates=FeatureGates({"GenericWorkload": True}))
        cluster = LiveCluster(setup, CredentialSource(), clock, observe=lambda _: None)
        informers = cluster.informers
        for reflector in informers.reflectors.values():
            reflector.synced.set()
            reflector.counts.lists, reflector.last_contact = 1, 90.0
        change(informers)
        await cluster.close()
        return read(informers, clock)

    return asyncio.run(main())


def test_a_cluster_that_is_followed_has_no_problem() -> None:
    assert inspect(lambda _: None) == ([], {})


def test_kinds_that_are_being_read_for_the_first_time_are_named() -> None:
    """A scheduler serves its pages before it has read the cluster, and an incomplete page looks like a complete one."""

    def change(informers: Informers) -> None:
        for kind in (Pod, PersistentVolumeClaim):
            informers.reflectors[kind].synced.clear()

    assert inspect(change) == (
        ["not complete yet: pods, persistentvolumeclaims are being read"],
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


@pytest.mark.parametrize(
    ("request_text", "problem"),
    [("", "cannot connect"), ("GET {path}: ", "no response in time")],
    ids=["the connection fails", "the text of each kind's failure has its own request"],
)
def test_a_lost_server_is_one_line_for_all_kinds(request_text: str, problem: str) -> None:
    def change(informers: Informers) -> None:
        for reflector in informers.reflectors.values():
            endpoint = reflector.list_watch.endpoint
            failure = request_text.format(path=endpoint.build_path()) + problem
            reflector.last_error = f"{endpoint.plural}: {failure}"

    (line,), unreadable = inspect(change)
    assert line == (
        "the watch of nodes, pods, csidrivers, csinodes and 16 other kinds is lost, "
        f"shown as of 12:00:20 UTC: {problem}"
    )
    assert unreadable == {}


def lose_two_watches(informers: Informers) -> None:
    """The watch of pods was lost 20 seconds before the present, and that of claims 90 seconds."""
    for kind, contact in ((Pod, 80.0), (PersistentVolumeClaim, 10.0)):
        reflector = informers.reflectors[kind]
        reflector.last_error = f"{reflector.list_watch.endpoint.plural}: cannot connect"
        reflector.last_contact = contact


def test_kinds_that_were_lost_one_after_the_other_have_the_time_of_the_oldest() -> None:
    (line,), _ = inspect(lose_two_watches)
    assert line == "the watch of pods, persistentvolumeclaims is lost, shown as of 11:59:00 UTC: cannot connect"
    assert read_after(lose_two_watches, find_stale_time) == datetime(1970, 1, 1, 11, 59, tzinfo=UTC)


def test_a_watch_that_was_lost_on_another_day_has_the_date() -> None:
    def change(informers: Informers) -> None:
        reflector = informers.reflectors[Pod]
        reflector.last_error, reflector.last_contact = "pods: cannot connect", 100.0 - 13 * 3600

    (line,), _ = inspect(change)
    assert line == "the watch of pods is lost, shown as of 1969-12-31 23:00:30 UTC: cannot connect"


def test_kinds_that_are_missing_do_not_make_the_data_old() -> None:
    def change(informers: Informers) -> None:
        unread, unserved = informers.reflectors[PersistentVolumeClaim], informers.reflectors[PodGroup]
        unread.synced.clear()
        unread.last_error = "persistentvolumeclaims: may not list"
        unserved.is_optional, unserved.counts.lists, unserved.last_error = True, 0, "podgroups: not found"

    assert read_after(change, find_stale_time) is None


def test_a_kind_that_the_server_does_not_serve_is_no_problem() -> None:
    def change(informers: Informers) -> None:
        reflector = informers.reflectors[PodGroup]
        reflector.is_optional, reflector.counts.lists = True, 0
        reflector.last_error = "podgroups: the server could not find the requested resource"

    assert inspect(change) == ([], {})


def test_device_claims_that_the_server_does_not_serve_are_unreadable() -> None:
    """A pod that names a claim waits for it in vain. For other pods it is no problem."""

    def change(informers: Informers) -> None:
        informers.reflectors[ResourceClaim].counts.lists = 0

    message = "the API server does not serve resourceclaims of resource.k8s.io/v1, which Kubernetes 1.34 and later have"
    assert inspect(change) == ([], {"ResourceClaim": message})


DOCUMENT = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "another"}],
}


def make_source() -> PageSource:
    """Return a cluster with a node and a pod of the scheduler `another`."""
    cache = Cache()
    cache.add_or_update_node(make_node("n1"))
    cache.add_or_update_pod(make_pod("p", spec={"schedulerName": "another"}))
    return PageSource("a", cache, dict, make_runtime, lambda: 0.0)


def test_the_configuration_in_force_is_that_of_the_moment_of_the_question() -> None:
    setups = [build_setup()]
    answers = make_answers(make_source(), lambda: setups[-1])
    assert list(answers.make_profiles("")) == ["default-scheduler"]
    setups.append(build_setup_from_document(DOCUMENT, "scheduler.yaml"))
    assert list(answers.make_profiles("")) == ["another"]


def test_the_pods_of_other_schedulers_are_placed_with_the_first_profile() -> None:
    question = Question(add="1", like="n1")
    setup = build_setup()
    outcome = asyncio.run(make_answers(make_source(), lambda: setup).answer(question)).outcome
    assert outcome.moved == []
    answers = make_answers(make_source(), lambda: setup, ["another"])
    assert [moved.pod for moved in asyncio.run(answers.answer(question)).outcome.moved] == ["default/p"]


def test_plugins_are_not_those_of_the_scheduler() -> None:
    setup = build_setup()
    profile = make_answers(make_source(), lambda: setup).make_profiles("")["default-scheduler"]
    assert profile.plugins.keys() == setup.first_profile.plugins.keys()
    assert all(plugin is not setup.first_profile.plugins[name] for name, plugin in profile.plugins.items())


def test_an_invalid_configuration_is_an_error() -> None:
    setup = build_setup()
    with pytest.raises(ConfigError, match=r"scheduler\.yaml"):
        make_answers(make_source(), lambda: setup).make_profiles("[")
