"""Reloaded configurations, for recorded clusters and without a cluster, and the reload loop."""

import asyncio
import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from extender.api.codec import from_builtins
from extender.api.kinds.node import Node, Taint
from extender.api.kinds.pod import Pod
from extender.app import reload
from extender.app.options import ServeOptions
from extender.app.reload import ConfigurationFile, ReloadError, reload_periodically
from extender.app.serve_backend import make_recorded_backend
from extender.app.wiring import SchedulerSetup, load_setup
from extender.cache.cache import Cache
from extender.metrics.process_families import ReloadMetrics
from extender.serving.serving_options import ServingOptions

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
WITHOUT_FIT = HEAD + "profiles: [{plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}}]\n"
WITH_COSCHEDULING = HEAD + "profiles: [{plugins: {multiPoint: {enabled: [{name: Coscheduling}]}}}]\n"
RESOURCES = {"cpu": "1", "memory": "1Gi", "pods": "10"}
SMALL = {"metadata": {"name": "small"}, "status": {"capacity": RESOURCES, "allocatable": RESOURCES}}
POD = {
    "metadata": {"name": "web", "namespace": "default", "uid": "1"},
    "spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "2"}}}]},
}


@pytest.fixture(params=[{"NodeNames": ["small"]}, {"Nodes": {"items": [SMALL]}}], ids=["recorded", "none"])
def requested_nodes(request: pytest.FixtureRequest) -> Any:
    return request.param


async def fail_to_apply(_setup: SchedulerSetup) -> None:
    raise AssertionError


def test_a_changed_configuration_applies_to_the_next_request(tmp_path: Path, requested_nodes: Any) -> None:
    cache = Cache()
    if "NodeNames" in requested_nodes:
        cache.add_or_update_node(from_builtins(SMALL, Node))
    file = tmp_path / "config.yaml"
    file.write_text(HEAD)
    setup = load_setup(HEAD.encode(), "config.yaml")
    backend = make_recorded_backend(ServeOptions(setup, cache, ServingOptions()))
    configuration_file, client = ConfigurationFile(file, setup, backend.apply_setup), TestClient(backend.app)

    def rejected_nodes() -> Any:
        return client.post("/filter", json={"Pod": POD, **requested_nodes}).json()["FailedAndUnresolvableNodes"]

    rejection = {"small": "Insufficient cpu"}
    assert rejected_nodes() == rejection
    assert asyncio.run(configuration_file.refresh()) is False
    file.write_text(WITHOUT_FIT)
    assert asyncio.run(configuration_file.refresh()) is True
    assert rejected_nodes() == {}
    file.write_text(WITHOUT_FIT + "# another comment\n")
    assert asyncio.run(configuration_file.refresh()) is False
    file.write_text(HEAD + "nonsense: 1\n")
    for _ in range(2):
        with pytest.raises(ReloadError, match="nonsense"):
            asyncio.run(configuration_file.refresh())
    assert rejected_nodes() == {}
    file.write_text(HEAD)
    assert asyncio.run(configuration_file.refresh()) is True
    assert rejected_nodes() == rejection


@pytest.mark.parametrize("taint_count", [0, 1100], ids=["few taints", "more taints than are retained"])
def test_the_plugins_of_a_replaced_configuration_are_freed(taint_count: int) -> None:
    """Pods of a Deployment have the same cached values for as long as one of them exists."""
    cache, node = Cache(), from_builtins(SMALL, Node)
    cache.add_or_update_node(node)
    web = from_builtins(POD, Pod)
    cache.add_or_update_pod(replace(web, spec=replace(web.spec, node_name="small")))
    backend = make_recorded_backend(ServeOptions(load_setup(HEAD.encode(), "old.yaml"), cache, ServingOptions()))
    asyncio.run(backend.apply_setup(load_setup(HEAD.encode(), "new.yaml")))
    client, verbs = TestClient(backend.app), backend.extender_service.verbs
    for _ in range(3):
        client.post("/filter", json={"Pod": POD, "NodeNames": ["small"]})
        client.post("/prioritize", json={"Pod": POD, "NodeNames": ["small"]})
    plugins = [weakref.ref(plugin) for plugin in verbs.default_profile.plugins.values()]
    del verbs
    for number in range(taint_count):
        taint = Taint(key="number", value=str(number), effect="PreferNoSchedule")
        cache.add_or_update_node(replace(node, spec=replace(node.spec, taints=(taint,))))
    asyncio.run(backend.apply_setup(load_setup(HEAD.encode(), "newest.yaml")))
    gc.collect()
    assert [plugin for ref in plugins if (plugin := ref()) is not None] == []


@pytest.mark.parametrize(("text", "new_text"), [(HEAD, WITH_COSCHEDULING), (WITH_COSCHEDULING, HEAD)])
def test_enabling_or_disabling_coscheduling_requires_a_restart(tmp_path: Path, text: str, new_text: str) -> None:
    file, setup = tmp_path / "config.yaml", load_setup(text.encode(), "config.yaml")
    backend = make_recorded_backend(ServeOptions(setup, Cache(setup.gates), ServingOptions()))
    configuration_file = ConfigurationFile(file, setup, backend.apply_setup)
    file.write_text(new_text)
    with pytest.raises(ReloadError, match="plugin Coscheduling requires a restart"):
        asyncio.run(configuration_file.refresh())
    assert configuration_file.setup is setup
    file.write_text(text + "podMaxBackoffSeconds: 5\n")
    assert asyncio.run(configuration_file.refresh()) is True


def test_the_error_of_an_invalid_file_does_not_grow_while_it_is_checked(tmp_path: Path) -> None:
    """Each entry of a traceback keeps the content that one check read."""
    file = tmp_path / "config.yaml"
    file.write_text("nonsense: 1\n")
    configuration_file = ConfigurationFile(file, load_setup(HEAD.encode(), "config.yaml"), fail_to_apply)
    lengths = []
    for _ in range(4):
        with pytest.raises(ReloadError) as caught:
            asyncio.run(configuration_file.refresh())
        lengths.append(len(caught.traceback))
    assert lengths[1] == lengths[3]


@pytest.mark.parametrize("size", [1024**2 + 1, 1024**4], ids=["one byte too long", "a sparse file of a terabyte"])
def test_a_configuration_of_more_than_a_mebibyte_is_not_read(tmp_path: Path, size: int) -> None:
    file = tmp_path / "config.yaml"
    with file.open("wb") as stream:
        stream.truncate(size)
    configuration_file = ConfigurationFile(file, load_setup(HEAD.encode(), "config.yaml"), fail_to_apply)
    with pytest.raises(ReloadError) as caught:
        asyncio.run(configuration_file.refresh())
    assert str(caught.value) == f"{file} has more than 1 MiB"


def test_a_configuration_that_became_a_device_is_not_read() -> None:
    setup = load_setup(HEAD.encode(), "config.yaml")
    with pytest.raises(ReloadError) as caught:
        asyncio.run(ConfigurationFile(Path("/dev/zero"), setup, fail_to_apply).refresh())
    assert str(caught.value) == "/dev/zero is a device; name a file with text"


def test_shared_plugin_state_is_handed_over_to_the_new_configuration(tmp_path: Path) -> None:
    old = load_setup(HEAD.encode(), "config.yaml")
    new = load_setup(WITHOUT_FIT.encode(), "config.yaml", old.gates, old.profile_set.shared_state)
    assert new.profile_set.shared_state is old.profile_set.shared_state
    assert set(old.profile_set.shared_state) == {"DynamicResources", "VolumeBinding of default-scheduler"}


def test_an_unexpected_error_is_logged_once_and_does_not_end_the_loop(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reload, "CHECK_SECONDS", 0)
    registry = CollectorRegistry()

    def make_results() -> Iterator[bool | Exception]:
        yield from (False, ValueError("odd"), ValueError("odd"), False, True)

    results, done = make_results(), asyncio.Event()

    async def refresh() -> bool:
        result = next(results, None)
        if result is None:
            done.set()
            return False
        if isinstance(result, Exception):
            raise result
        return result

    async def main() -> None:
        task = asyncio.create_task(reload_periodically("certificate", refresh, ReloadMetrics(registry)))
        await asyncio.wait_for(done.wait(), 10)
        task.cancel()

    asyncio.run(main())
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert [vars(record)["err"] for record in warnings] == ["ValueError('odd')"]
    counts = [
        registry.get_sample_value("extender_reloads_total", {"what": "certificate", "result": result})
        for result in ("success", "failure")
    ]
    assert counts == [2.0, 1.0]
