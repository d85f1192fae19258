"""The health checks, the hooks and the diagnostics application of a scheduler process."""

import asyncio
from collections.abc import Mapping

from starlette.testclient import TestClient

from extender.app.options import ScheduleOptions
from extender.app.standalone import StandaloneScheduler
from extender.app.telemetry import Telemetry, make_scheduler_diagnostics_app, make_telemetry
from extender.app.wiring import build_setup
from extender.basics.clock import SystemClock
from extender.client.kubeconfig import CredentialSource
from tests.build import make_node


def make_client(features: Mapping[tuple[str, str], bool] | None = None) -> tuple[Telemetry, TestClient]:
    options = ScheduleOptions(build_setup(), CredentialSource(), flags={"v": "2"}, features=features or {})
    telemetry = make_telemetry(options, 0.0)

    async def make_scheduler() -> StandaloneScheduler:
        return StandaloneScheduler(
            options.setup,
            options.credential_source,
            SystemClock(),
            telemetry.metrics,
            max_in_unschedulable_pods_seconds=300.0,
        )

    scheduler = asyncio.run(make_scheduler())
    scheduler.cache.add_or_update_node(make_node("n1"))
    return telemetry, TestClient(make_scheduler_diagnostics_app(options, scheduler, telemetry))


def test_the_process_is_alive_but_not_ready_before_its_caches_are_synced() -> None:
    _, client = make_client()
    assert client.get("/livez").status_code == 200
    response = client.get("/readyz")
    assert response.status_code == 500
    assert "[-]sched-handler-sync failed: reason withheld" in response.text
    assert "[-]informer-sync failed: reason withheld" in response.text


def test_metrics_include_the_cache_and_event_handling() -> None:
    telemetry, client = make_client()
    with telemetry.metrics.time_event_handling("NodeAdd"):
        pass
    page = client.get("/metrics").text
    assert 'scheduler_cache_size{type="nodes"} 1.0' in page
    assert 'extender_cache_staleness_seconds{kind="Pod"} +Inf' in page
    assert 'scheduler_event_handling_duration_seconds_count{event="NodeAdd"} 1.0' in page


def test_the_pages_show_configuration_and_flags() -> None:
    _, client = make_client()
    assert "v=2" in client.get("/flagz", headers={"Accept": "text/plain"}).text
    assert client.get("/configz").json()["componentconfig"]["kind"] == "KubeSchedulerConfiguration"


def test_the_gates_of_the_pages_disable_them() -> None:
    _, client = make_client({("ComponentFlagz", "BETA"): False, ("ComponentStatusz", "BETA"): True})
    assert (client.get("/flagz").status_code, client.get("/statusz").status_code) == (404, 200)
    _, client = make_client({("ComponentFlagz", "BETA"): True, ("ComponentStatusz", "BETA"): False})
    assert (client.get("/flagz").status_code, client.get("/statusz").status_code) == (200, 404)
