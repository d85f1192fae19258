"""The installed package: found by its entry points, enabled and configured in a profile."""

from pathlib import Path

from extender.testing import load_registry, make_cluster, run_profile

HERE = Path(__file__).resolve().parent.parent
CLUSTER = (HERE / "cluster.yaml").read_text()
PROFILE = (HERE / "profile.yaml").read_text()


def test_both_plugins_are_found() -> None:
    assert {"GpuModel", "GpuPacking"} <= load_registry().keys()


def test_the_profile_sets_the_arguments() -> None:
    decision = run_profile(PROFILE, make_cluster(CLUSTER), "two-gpus")
    assert decision.feasible_nodes == ("a100-full", "a100-empty")
    assert decision.rejected_by == {"h200": "GpuModel", "plain": "NodeResourcesFit"}
    assert decision.normalized_scores["GpuPacking"] == {"a100-full": 84, "a100-empty": 0}


def test_the_message_counts_the_plugins_reasons() -> None:
    decision = run_profile(PROFILE, make_cluster(CLUSTER), "eight-gpus")
    assert decision.message is not None
    assert "1 node(s) would keep too few GPUs free" in decision.message
    assert "1 node(s) have a reserved GPU model" in decision.message
