"""The metric families of kube-scheduler have upstream's type, stability, labels and buckets."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from extender.config.releases import RELEASE_1_36
from extender.framework.status import Code
from extender.metrics.exposition import make_registry, render_metrics
from extender.metrics.families import MetricFamily, MetricType, select_families
from extender.metrics.plugin_metrics import PluginMetrics
from extender.metrics.process_families import PROCESS_FAMILIES
from extender.metrics.scheduler_families import PLUGIN_FAMILIES, SCHEDULER_FAMILIES
from extender.metrics.scheduler_metrics import SchedulerMetrics

FILE = Path(__file__).parents[2] / "cases" / "kube_scheduler_metrics.yaml"
UPSTREAM: Final[dict[str, dict[str, Any]]] = yaml.safe_load(FILE.read_text())["families"]
OURS: Final[dict[str, MetricFamily]] = {
    family.name: family
    for family in select_families((*PLUGIN_FAMILIES, *SCHEDULER_FAMILIES, *PROCESS_FAMILIES), RELEASE_1_36)
}
PROCESS_COLLECTOR_NAMES = {name for name in UPSTREAM if name.startswith("process_")}


def test_the_reference_has_every_family_of_kube_scheduler() -> None:
    assert len(UPSTREAM) == 106
    assert sum(name.startswith("scheduler_") for name in UPSTREAM) == 37


@pytest.mark.parametrize("name", sorted(set(UPSTREAM) - PROCESS_COLLECTOR_NAMES))
def test_a_family_is_declared_as_upstream_declares_it(name: str) -> None:
    upstream, ours = UPSTREAM[name], OURS[name]
    assert ours.type.value == upstream["type"]
    assert ours.stability.value == upstream["stability"]
    assert sorted(ours.labels) == upstream.get("labels", [])
    assert [float(bound) for bound in ours.buckets] == [float(bound) for bound in upstream.get("buckets", [])]


def test_every_family_has_a_name_of_upstream() -> None:
    assert set(OURS) <= set(UPSTREAM)


@pytest.fixture(scope="module")
def page() -> str:
    """Return the page with a value of every family."""
    registry = make_registry()
    plugins = PluginMetrics(registry, ["default-scheduler"], lambda: 0.0, release=RELEASE_1_36)
    metrics = SchedulerMetrics(registry, plugins, release=RELEASE_1_36)
    plugins.observe_plugin_call("NodeAffinity", "Filter", Code.SUCCESS, 0.1)
    plugins.observe_extension_point("default-scheduler", "Filter", Code.SUCCESS, 0.1)
    for family in select_families((*SCHEDULER_FAMILIES, *PROCESS_FAMILIES), RELEASE_1_36):
        child = metrics._families.get_child(family.name, *(f"value of {label}" for label in family.labels))
        (child.observe if family.type is MetricType.HISTOGRAM else child.inc)(1)
    return b"".join(render_metrics(registry)).decode()


@pytest.mark.parametrize("name", sorted(UPSTREAM))
def test_a_family_is_exposed_with_its_labels_and_buckets(page: str, name: str) -> None:
    upstream = UPSTREAM[name]
    assert f"\n# TYPE {name} {upstream['type']}\n" in f"\n{page}"
    if name not in PROCESS_COLLECTOR_NAMES:
        assert f"\n# HELP {name} [{upstream['stability']}] " in f"\n{page}"
    suffix = "_bucket" if upstream["type"] == "histogram" else ""
    lines = [line for line in page.splitlines() if re.match(rf"{name}{suffix}[{{ ]", line)]
    labels = [dict(re.findall(r'(\w+)="([^"]*)"', line)) for line in lines]
    bounds = [float(label_set.pop("le")) for label_set in labels if "le" in label_set]
    assert {tuple(sorted(label_set)) for label_set in labels} == {tuple(upstream.get("labels", []))}
    assert bounds[:-1] == [float(bound) for bound in upstream.get("buckets", [])]


def test_bucket_bounds_are_written_as_go_writes_them(page: str) -> None:
    assert 'scheduler_preemption_victims_bucket{le="64"} ' in page
    assert 'rest_client_request_size_bytes_bucket{host="value of host",le="1.048576e+06",verb="value of verb"} ' in page
    assert re.search(r'le="[0-9]+\.0"', page) is None
