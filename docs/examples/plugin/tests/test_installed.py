"""The package as it is installed: found by its entry points, enabled and configured in an ordinary profile."""

from pathlib import Path

from extender.catalogue import catalogue
from extender.testing import a_cluster, try_profile

HERE = Path(__file__).resolve().parent.parent
CLUSTER = (HERE / "cluster.yaml").read_text()
PROFILE = (HERE / "profile.yaml").read_text()


def test_both_plugins_are_found() -> None:
    assert {"GpuModel", "GpuPacking"} <= catalogue().keys()


def test_the_profile_s_arguments_decide() -> None:
    answer = try_profile(PROFILE, a_cluster(CLUSTER), "two-gpus")
    assert answer.feasible == ("a100-full", "a100-empty")
    assert answer.refused_by == {"h200": "GpuModel", "plain": "NodeResourcesFit"}
    assert answer.normalized["GpuPacking"] == {"a100-full": 84, "a100-empty": 0}


def test_the_message_counts_the_plugins_reasons() -> None:
    answer = try_profile(PROFILE, a_cluster(CLUSTER), "eight-gpus")
    assert answer.message is not None
    assert "1 node(s) would keep too few GPUs free" in answer.message
    assert "1 node(s) have a reserved GPU model" in answer.message
