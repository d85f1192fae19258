"""DynamicResources beyond its cases: what it offers after a failed attempt, and its options in full. B115, G043."""

from types import SimpleNamespace

import msgspec
import pytest

from extender.config.gates import FeatureGates
from extender.config.strict import decode_strict
from extender.decide.prefiltering import PreFilterOutcome
from extender.framework.setup import Setup
from extender.framework.verdict import Code, Status
from extender.plugins.dynamic_resources.options import DynamicResourcesOptions
from extender.plugins.dynamic_resources.plugin import DynamicResources
from tests.build import a_cluster, a_query


def offered(before: PreFilterOutcome, gates: FeatureGates) -> Status:
    attempt = SimpleNamespace(feasibility=SimpleNamespace(before=before))
    plugin = DynamicResources(Setup(DynamicResourcesOptions(), gates))
    answer = plugin.post_filter(a_query(), a_cluster().snapshot(), attempt)  # type: ignore[arg-type]
    assert answer.nominated is None
    return answer.status


@pytest.mark.parametrize(
    ("before", "gates", "code", "reason"),
    [
        pytest.param(
            PreFilterOutcome(skipped=frozenset({"DynamicResources"})),
            {},
            Code.UNSCHEDULABLE,
            "no new claims to deallocate",
            id="a pod that was skipped has nothing to give back",
        ),
        pytest.param(
            PreFilterOutcome(notes={"DynamicResources": None}),
            {},
            Code.UNSCHEDULABLE,
            "no new claims to deallocate",
            id="a pod whose own claims were refused has nothing to give back",
        ),
        pytest.param(PreFilterOutcome(), {}, Code.ERROR, "not found", id="an attempt that ended earlier is an error"),
        pytest.param(
            PreFilterOutcome(),
            {"DynamicResourceAllocation": False},
            Code.UNSCHEDULABLE,
            "plugin disabled",
            id="without the gate it stands aside",
        ),
    ],
)
def test_after_a_failed_attempt(before: PreFilterOutcome, gates: dict[str, bool], code: Code, reason: str) -> None:
    assert offered(before, FeatureGates(gates)) == Status(code, (reason,))


@pytest.mark.parametrize(
    ("raw", "gates", "written"),
    [
        pytest.param({}, {}, {"filterTimeout": "10s", "bindingTimeout": "10m0s"}, id="defaults"),
        pytest.param(
            {"filterTimeout": "90s", "bindingTimeout": "1000ms"},
            {},
            {"filterTimeout": "1m30s", "bindingTimeout": "1s"},
            id="durations in their shortest form",
        ),
        pytest.param(
            {},
            {"DRASchedulerFilterTimeout": False, "DRAResourceClaimDeviceStatus": False},
            {"filterTimeout": None, "bindingTimeout": None},
            id="nothing while the gates are off",
        ),
    ],
)
def test_options_are_written_out(raw: dict[str, str], gates: dict[str, bool], written: dict[str, str | None]) -> None:
    on = FeatureGates(gates)
    options, faults = decode_strict(DynamicResourcesOptions.defaulted(raw, on), DynamicResourcesOptions, "args")
    assert (options is not None and options.faults("args", on), faults) == ([], [])
    assert msgspec.to_builtins(options) == written
