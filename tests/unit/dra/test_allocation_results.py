"""Allocation results: the configuration of each class and of the claim, with the requests that it applies to."""

from typing import Any

import msgspec
import pytest

from extender.api.codec import from_builtins
from extender.api.kinds.devices import DeviceClaimConfiguration
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37
from extender.dra.allocation_results import build_allocation_results
from extender.dra.features import Features
from tests.unit.dra.builders import make_allocator, make_claim, make_cluster_with_devices

PARAMETERS = {"driver": "gpu.example.com", "parameters": {"mode": "fast"}}
TWO: dict[str, Any] = {"r": {}, "s": {}}
PREFERRED = {"r": {"firstAvailable": {"big": {"count": 3}, "small": {}}}}


@pytest.mark.parametrize(
    ("requests", "config_requests", "names_1_36", "names_1_37"),
    [
        pytest.param(TWO, [[]], [()], [()], id="without requests it applies to all"),
        pytest.param(TWO, [["r"]], [("r",)], [("r",)], id="one request"),
        pytest.param(TWO, [["r", "s"]], [("r", "s"), ("r", "s")], [()], id="all requests"),
        pytest.param(TWO, [["r"], ["r"]], [("r",), ("r",)], [("r",), ("r",)], id="two configurations for a request"),
        pytest.param(PREFERRED, [["r/small"]], [("r/small",)], [()], id="the chosen subrequest of the only request"),
        pytest.param(PREFERRED, [["r/big"]], [], [], id="a subrequest that was not chosen"),
    ],
)
def test_a_configuration_for_all_requests_names_none_since_1_37(
    requests: dict[str, Any],
    config_requests: list[list[str]],
    names_1_36: list[tuple[str, ...]],
    names_1_37: list[tuple[str, ...]],
) -> None:
    """Source: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, Allocator.Allocate
    (1.36, 1.37).
    """
    claim = make_claim("c", requests)
    config = tuple(
        from_builtins({"requests": names, "opaque": PARAMETERS}, DeviceClaimConfiguration) for names in config_requests
    )
    devices = msgspec.structs.replace(claim.spec.devices, config=config)
    claim = msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, devices=devices))
    snapshot = make_cluster_with_devices({"slices": [{"devices": {"a": {}, "b": {}}}]}).snapshot()
    for release, names in ((RELEASE_1_36, names_1_36), (RELEASE_1_37, names_1_37)):
        allocator = make_allocator(release=release)
        allocator.sync(snapshot)
        allocation = allocator.allocate(allocator.prepare([claim]), snapshot.nodes[0])
        assert allocation is not None
        features = Features(FeatureGates(release=release))
        (result,) = build_allocation_results([claim], allocation, "n", features, lambda: "id")
        assert [(entry.source, entry.requests) for entry in result.devices.config] == [("FromClaim", n) for n in names]


@pytest.mark.parametrize(
    ("gate", "want"), [("DRAOptionalNodeOperations", ("*",)), ("DRAConsumableCapacity", ())], ids=["with", "without"]
)
def test_the_experimental_allocator_copies_the_skipped_operations(gate: str, want: tuple[str, ...]) -> None:
    """Source: dynamic-resource-allocation/structured/internal/experimental/allocator_experimental.go,
    Allocator.Allocate (1.37).
    """
    gates, claim = {gate: True}, make_claim("c", {"r": {}})
    raw_slice = {"devices": {"a": {}}, "skips": ["*"]}
    snapshot = make_cluster_with_devices({"slices": [raw_slice], "features": ["DRAOptionalNodeOperations"]}).snapshot()
    allocator = make_allocator(gates, RELEASE_1_37)
    allocator.sync(snapshot)
    allocation = allocator.allocate(allocator.prepare([claim]), snapshot.nodes[0])
    assert allocation is not None
    features = Features(FeatureGates(gates, RELEASE_1_37))
    (result,) = build_allocation_results([claim], allocation, "n", features, lambda: "id")
    assert result.devices.results[0].skip_node_operations == want
