"""Files that are read again: what becomes of what they hold, for clusters that are not live."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from extender.cluster.state import ClusterState
from extender.objects.codec import from_builtins
from extender.objects.node import Node
from extender.observe.reloads import ReloadMetrics
from extender.process import freshness
from extender.process.backing import recorded
from extender.process.freshness import ConfigurationFile, ReloadError, keep_fresh
from extender.wiring import from_file

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
WITHOUT_FIT = HEAD + "profiles: [{plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}}]\n"
ROOM = {"cpu": "1", "memory": "1Gi", "pods": "10"}
SMALL = {"metadata": {"name": "small"}, "status": {"capacity": ROOM, "allocatable": ROOM}}
POD = {
    "metadata": {"name": "web", "namespace": "default", "uid": "1"},
    "spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "2"}}}]},
}


@pytest.fixture(params=[{"NodeNames": ["small"]}, {"Nodes": {"items": [SMALL]}}], ids=["recorded", "none"])
def asked(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_cluster_that_is_not_live_is_judged_by_the_changed_configuration(tmp_path: Path, asked: Any) -> None:
    state = ClusterState()
    if "NodeNames" in asked:
        state.put_node(from_builtins(SMALL, Node))
    file = tmp_path / "config.yaml"
    file.write_text(HEAD)
    scheduling = from_file(HEAD.encode(), "config.yaml")
    behind = recorded(scheduling, state)
    kept, caller = ConfigurationFile(file, scheduling, behind.install), TestClient(behind.app)

    def refused() -> Any:
        return caller.post("/filter", json={"Pod": POD, **asked}).json()["FailedAndUnresolvableNodes"]

    no_room = {"small": "Insufficient cpu"}
    assert refused() == no_room
    assert asyncio.run(kept.refresh()) is False
    file.write_text(WITHOUT_FIT)
    assert asyncio.run(kept.refresh()) is True
    assert refused() == {}
    file.write_text(WITHOUT_FIT + "# the same in other words\n")
    assert asyncio.run(kept.refresh()) is False
    file.write_text(HEAD + "nonsense: 1\n")
    for _ in range(2):
        with pytest.raises(ReloadError, match="nonsense"):
            asyncio.run(kept.refresh())
    assert refused() == {}
    file.write_text(HEAD)
    assert asyncio.run(kept.refresh()) is True
    assert refused() == no_room


def test_promises_outlive_a_changed_configuration(tmp_path: Path) -> None:
    before = from_file(HEAD.encode(), "config.yaml")
    after = from_file(WITHOUT_FIT.encode(), "config.yaml", before.gates, before.registry.shared)
    assert after.registry.shared is before.registry.shared
    assert set(before.registry.shared) == {"DynamicResources", "VolumeBinding of default-scheduler"}


def test_what_nobody_foresaw_is_told_once_and_does_not_end_the_watch(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(freshness, "LOOK", 0)
    registry = CollectorRegistry()

    def answers() -> Iterator[bool | Exception]:
        yield from (False, ValueError("odd"), ValueError("odd"), False, True)

    left, done = answers(), asyncio.Event()

    async def refresh() -> bool:
        answer = next(left, None)
        if answer is None:
            done.set()
            return False
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def main() -> None:
        task = asyncio.create_task(keep_fresh("thing", refresh, ReloadMetrics(registry)))
        await asyncio.wait_for(done.wait(), 10)
        task.cancel()

    asyncio.run(main())
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert [vars(record)["err"] for record in warnings] == ["ValueError('odd')"]
    counted = [
        registry.get_sample_value("extender_reloads_total", {"what": "thing", "result": result})
        for result in ("success", "failure")
    ]
    assert counted == [2.0, 1.0]
