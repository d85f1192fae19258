"""Every metric family of kube-scheduler is on our page, with its type, stability, labels and buckets."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from extender.framework.verdict import Code
from extender.observe.families import Family, Kind
from extender.observe.metrics import PluginMetrics, exposition, new_registry
from extender.observe.process_families import PROCESS_FAMILIES
from extender.observe.scheduler_families import PLUGIN_FAMILIES, SCHEDULER_FAMILIES
from extender.observe.scheduling import SchedulerMetrics

FILE = Path(__file__).parents[2] / "cases" / "kube_scheduler_metrics.yaml"
UPSTREAM: Final[dict[str, dict[str, Any]]] = yaml.safe_load(FILE.read_text())["families"]
OURS: Final[dict[str, Family]] = {
    family.name: family for family in (*PLUGIN_FAMILIES, *SCHEDULER_FAMILIES, *PROCESS_FAMILIES)
}
FROM_THE_SYSTEM = {name for name in UPSTREAM if name.startswith("process_")}


def test_the_list_holds_every_family_of_the_reference() -> None:
    assert len(UPSTREAM) == 106
    assert sum(name.startswith("scheduler_") for name in UPSTREAM) == 37


@pytest.mark.parametrize("name", sorted(set(UPSTREAM) - FROM_THE_SYSTEM))
def test_a_family_is_declared_as_upstream_declares_it(name: str) -> None:
    upstream, ours = UPSTREAM[name], OURS[name]
    assert ours.kind.value == upstream["type"]
    assert ours.stability.value == upstream["stability"]
    assert sorted(ours.labels) == upstream.get("labels", [])
    assert [float(bound) for bound in ours.buckets] == [float(bound) for bound in upstream.get("buckets", [])]


def test_no_family_bears_a_name_that_upstream_does_not_have() -> None:
    assert set(OURS) <= set(UPSTREAM)


@pytest.fixture(scope="module")
def page() -> str:
    """The page when every family has a value."""
    registry = new_registry()
    plugins = PluginMetrics(registry, ["default-scheduler"], lambda: 0.0)
    metrics = SchedulerMetrics(registry, plugins)
    plugins.called("NodeAffinity", "Filter", Code.SUCCESS, 0.1)
    plugins.passed("default-scheduler", "Filter", Code.SUCCESS, 0.1)
    for family in (*SCHEDULER_FAMILIES, *PROCESS_FAMILIES):
        child = metrics._families.child(family.name, *(f"value of {label}" for label in family.labels))
        (child.observe if family.kind is Kind.HISTOGRAM else child.inc)(1)
    return exposition(registry).decode()


@pytest.mark.parametrize("name", sorted(UPSTREAM))
def test_a_family_stands_on_the_page_with_its_labels_and_buckets(page: str, name: str) -> None:
    upstream = UPSTREAM[name]
    assert f"\n# TYPE {name} {upstream['type']}\n" in f"\n{page}"
    if name not in FROM_THE_SYSTEM:
        assert f"\n# HELP {name} [{upstream['stability']}] " in f"\n{page}"
    suffix = "_bucket" if upstream["type"] == "histogram" else ""
    lines = [line for line in page.splitlines() if re.match(rf"{name}{suffix}[{{ ]", line)]
    labels = [dict(re.findall(r'(\w+)="([^"]*)"', line)) for line in lines]
    bounds = [float(each.pop("le")) for each in labels if "le" in each]
    assert {tuple(sorted(each)) for each in labels} == {tuple(upstream.get("labels", []))}
    assert bounds[:-1] == [float(bound) for bound in upstream.get("buckets", [])]


def test_bucket_bounds_are_written_as_go_writes_them(page: str) -> None:
    assert 'scheduler_preemption_victims_bucket{le="64"} ' in page
    assert 'rest_client_request_size_bytes_bucket{host="value of host",le="1.048576e+06",verb="value of verb"} ' in page
    assert re.search(r'le="[0-9]+\.0"', page) is None
