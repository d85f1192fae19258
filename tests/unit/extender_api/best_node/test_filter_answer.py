"""The verbs with the answer `best`: one node, the pod is assumed on it, and every later request counts it."""

import asyncio
import json
from collections.abc import Coroutine
from random import Random
from typing import Any, TypeVar, cast

import pytest
from starlette.testclient import TestClient

from extender.api.extender_v1 import BindingArgs, FilterResult
from extender.app import wiring
from extender.cache.cache import Cache
from extender.cycle.plugin_runtime import PluginRuntime
from extender.extender_api.best_node.assumptions import Assumptions
from extender.extender_api.bind import BindVerb
from extender.extender_api.node_names import NodeNames
from extender.extender_api.payloads import ExtenderArgs, PreemptionArgs, decode_args
from extender.extender_api.routes import ExtenderService, new_app
from extender.extender_api.verbs import Verbs
from extender.framework.profiles import Profile
from extender.framework.result_cache import ResultCache
from extender.framework.status import Reason
from extender.metrics.exposition import make_registry, render_metrics
from extender.metrics.verb_metrics import VerbMetrics
from extender.serving.health import Health
from tests.build import make_cluster, make_node, make_pod
from tests.fake_plugins import FixedScore, OccupiedNodeFilter, RaisingPlugin, RejectingFilter, make_profile
from tests.unit.client.virtual_time import run
from tests.unit.extender_api.test_bind import FakeApiServer

T = TypeVar("T")
WEB, DB = make_pod("web", requests={"cpu": "3"}), make_pod("db", requests={"cpu": "3"})
UID = "uid-default-web"


class UnreadCache(Cache):
    """A cache that fails if a pod is assumed in a read scope, which copies the tables."""

    def assume(self, pod: Any, node_name: str) -> Any:
        assert self._tables.reader_count == 0
        return super().assume(pod, node_name)


def make_verbs(*plugins: Any, cluster: Cache | None = None, profile: Profile | None = None) -> Verbs:
    profile = profile or make_profile(*plugins)
    cache = make_cluster(make_node("n1"), make_node("n2")) if cluster is None else cluster
    return Verbs(
        cache,
        {profile.scheduler_name: profile},
        profile,
        PluginRuntime(),
        PluginRuntime(result_cache=ResultCache(enabled=False)),
        assumptions=Assumptions(cache),
        rng=Random(1),
    )


def args(pod: Any = WEB, *names: str) -> ExtenderArgs:
    return ExtenderArgs(pod, names=NodeNames(list(names or ("n1", "n2"))))


def run_all(*requests: Coroutine[Any, Any, T]) -> list[T]:
    async def main() -> list[T]:
        return [await request for request in requests]

    return run(main())


def test_filter_answers_the_best_node_and_assumes_the_pod_there() -> None:
    verbs = make_verbs(FixedScore({"n2": 50}))
    assert run_all(verbs.filter(args())) == [FilterResult(node_names=["n2"])]
    assert verbs.cache.assigned_pods[UID].node_name == "n2"
    assert verbs.cache.is_assumed(UID)


def test_the_next_choice_counts_the_assumed_pod() -> None:
    verbs = make_verbs(FixedScore({"n2": 50}), OccupiedNodeFilter())
    first, second, third = run_all(verbs.filter(args()), verbs.filter(args(DB)), verbs.filter(args(make_pod("late"))))
    assert (first.node_names, second.node_names, third.node_names) == (["n2"], ["n1"], [])
    assert third.failed_nodes == {"n1": "has pods", "n2": "has pods"}


def test_a_repeated_request_does_not_count_its_own_pod() -> None:
    verbs = make_verbs(FixedScore({"n2": 50}), OccupiedNodeFilter())
    answers = run_all(*[verbs.filter(args()) for _ in range(3)])
    assert [answer.node_names for answer in answers] == [["n2"]] * 3
    assert verbs.cache.snapshot().view().pod_count.tolist() == [0, 1]


def test_if_no_node_fits_every_node_has_its_reason_and_no_pod_is_assumed() -> None:
    verbs = make_verbs(RejectingFilter({Reason("no room"): ["n1"], Reason("wrong zone"): ["n2"]}))
    assert run_all(verbs.filter(args(WEB, "n1", "n2", "new"))) == [
        FilterResult(
            node_names=[],
            failed_nodes={"n1": "no room", "n2": "wrong zone", "new": "node is not known to the extender (yet)"},
        )
    ]
    assert dict(verbs.cache.assigned_pods) == {}


def test_an_error_of_a_plugin_assumes_no_pod() -> None:
    verbs = make_verbs(RaisingPlugin())
    assert run_all(verbs.filter(args())) == [
        FilterResult(error='running "RaisingPlugin" filter plugin: ZeroDivisionError: a bug')
    ]
    assert dict(verbs.cache.assigned_pods) == {}


def test_prioritize_and_preempt_do_not_count_the_pod_itself() -> None:
    async def main() -> None:
        verbs = make_verbs(FixedScore({"n2": 50}), OccupiedNodeFilter())
        await verbs.filter(args())
        assert [(item.host, item.score) for item in await verbs.prioritize(args())] == [("n2", 10), ("n1", 0)]
        await verbs.filter(args())
        await verbs.preempt(PreemptionArgs(WEB, {}))
        assert dict(verbs.cache.assigned_pods) == {}

    run(main())


def test_a_whole_node_is_answered_as_it_was_sent() -> None:
    nodes = [{"metadata": {"name": name}, "extra": name} for name in ("n1", "n2")]
    body = json.dumps({"Pod": {"metadata": {"name": "web"}}, "Nodes": {"items": nodes}}).encode()

    async def main() -> None:
        verbs = make_verbs(FixedScore({"n2": 50}), OccupiedNodeFilter())
        first = await verbs.filter(await decode_args(body))
        assert first.nodes is not None
        assert [bytes(item) for item in first.nodes["items"]] == [b'{"metadata": {"name": "n2"}, "extra": "n2"}']
        assert first.node_names is None
        second = await verbs.filter(await decode_args(body.replace(b"web", b"db")))
        assert second.nodes is not None
        assert b"n1" in bytes(second.nodes["items"][0])

    run(main())


@pytest.mark.parametrize("name", ["default", "fixed"])
def test_the_tables_of_the_cache_are_not_copied(name: str) -> None:
    cache = UnreadCache()
    for node_name in ("n1", "n2"):
        cache.add_or_update_node(make_node(node_name))
    default = wiring.build_setup().first_profile
    verbs = make_verbs(FixedScore({"n2": 5}), cluster=cache, profile=default if name == "default" else None)
    run_all(*[verbs.filter(args(make_pod(f"pod-{number}"))) for number in range(5)])
    assert len(cache.assigned_pods) == 5


def test_the_default_plugins_never_overcommit_a_node() -> None:
    verbs = make_verbs(profile=wiring.build_setup().first_profile)
    answers = run_all(*[verbs.filter(args(make_pod(f"pod-{n}", requests={"cpu": "1500m"}))) for n in range(5)])
    assert sorted(name for answer in answers for name in answer.node_names or ()) == ["n1", "n1", "n2", "n2"]
    assert answers[-1].failed_nodes == {"n1": "Insufficient cpu", "n2": "Insufficient cpu"}


def test_the_log_of_decisions_has_the_chosen_node_with_its_scores() -> None:
    verbs = make_verbs(FixedScore({"n2": 50}))
    run_all(verbs.filter(args()))
    [decision] = verbs.decision_log.get_decisions("default/web")
    del decision["time"]
    assert decision == {
        "verb": "filter",
        "profile": "default-scheduler",
        "nodes": 2,
        "feasible": 2,
        "best": 1,
        "chosen": {"node": "n2", "total": 50, "plugins": {"FixedScore": {"raw": 50, "normalized": 50, "weight": 1}}},
    }


def test_bind_replaces_the_assumption_of_filter() -> None:
    async def main() -> None:
        profile = wiring.build_setup().first_profile
        verbs = make_verbs(cluster=make_cluster(make_node("n1"), make_node("n2"), WEB), profile=profile)
        assumptions = verbs.assumptions
        assert assumptions is not None
        server = FakeApiServer(WEB)
        bind_verb = BindVerb(
            verbs.cache,
            verbs.profiles,
            profile,
            verbs.runtime,
            cast("Any", server),
            end_assumption=assumptions.supersede,
        )
        [node_name] = (await verbs.filter(args())).node_names or [""]
        result = await bind_verb.bind(BindingArgs("web", "default", UID, node_name))
        assert result.error == ""
        assert server.bound == [("default", "web", UID, node_name)]
        assert len(assumptions) == 0
        await asyncio.sleep(100)
        assert verbs.cache.is_assumed(UID)  # by bind, until the watch shows the pod

    run(main())


def test_a_web_page_cannot_assume_pods() -> None:
    registry = make_registry()
    metrics = VerbMetrics(registry)
    verbs = make_verbs(FixedScore({}))
    app = new_app(ExtenderService(verbs, Health(), metrics, lambda: render_metrics(registry)))
    body = json.dumps({"Pod": {"metadata": {"name": "web"}}, "NodeNames": ["n1"]})
    with TestClient(app) as client:
        assert client.post("/filter", content=body, headers={"Content-Type": "text/plain"}).status_code == 415
        headers = {"Content-Type": "application/json", "Origin": "https://page.example"}
        assert client.post("/filter", content=body, headers=headers).status_code == 403
        del headers["Origin"]
        assert client.post("/filter", content=body, headers=headers).json()["NodeNames"] == ["n1"]
    assert len(verbs.cache.assigned_pods) == 1
