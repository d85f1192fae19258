"""The public modules for plugins keep their names, and type checkers reject wrong signatures."""

import ast
import re
from pathlib import Path
from types import ModuleType

import pytest
from mypy import api

from extender import plugin as plugin_module
from extender import testing as testing_module
from extender.framework.node_info import NodeInfo
from extender.framework.plugin_validation import validate_plugin
from extender.plugins.registry import BUILT_IN_PLUGINS

ROOT = Path(__file__).resolve().parents[2]
PUBLIC_NAMES = {
    "extender.plugin": {
        "ALLOW", "ActionType", "ApiCall", "ApiPlan", "AssignedPodInfo", "Bind", "CacheableFilter", "CacheableScore",
        "ClusterEvent", "ClusterEventWithHint", "Code", "ConfigError", "DefaultedOptions", "DependsOn", "Diagnosis",
        "EnqueueExtensions", "EventResource", "FailedAttempt", "FeatureGates", "FieldError", "Filter", "FilterReasons",
        "Node", "NodeInfo", "NodeRejection", "NodeView", "NormalizeScore", "PASS", "Permit", "PermitResult",
        "PluginArgs", "Pod", "PodInfo", "PostBind", "PostBindResult", "PostFilter", "PostFilterResult", "PreBind",
        "PreBindPreFlight", "PreBindPreFlightResult", "PreEnqueue", "PreFilter", "PreFilterExtensions",
        "PreFilterResult", "PreScore", "PreScoreResult", "QueueSort", "QueueSortEntry", "QueueingHint", "Reason",
        "Rejection", "Reserve", "SKIP", "SKIP_SCORE", "Score", "Snapshot", "Status", "Taint", "UnreserveResult",
        "ValidatedOptions", "WaitCondition", "default_normalize_score", "filter_plugin", "incoming_pod_requests",
        "iter_node_infos", "per_node_plugin", "score_plugin", "unresolvable_status", "unresolvable_reason",
        "unschedulable_status",
    },
    "extender.testing": {
        "Cluster", "PluginDecision", "PluginFailedError", "check_cached_results", "load_registry", "make_cluster",
        "make_node", "make_pod", "run_plugin", "run_profile",
    },
}  # fmt: skip
ATTRIBUTES = {
    NodeInfo: {"allocatable", "annotations", "free", "labels", "name", "node", "pods", "requested", "taints"},
    testing_module.Cluster: {"cache", "node", "pod", "pod_info", "pods", "snapshot"},
    testing_module.PluginDecision: {
        "feasible_nodes", "message", "normalized_scores", "raw_scores", "rejected", "rejected_by", "scores",
        "total_scores", "unresolvable",
    },
}  # fmt: skip


def imports_of(source: str) -> set[tuple[str, str]]:
    """The module and name of each import from extender in *source*."""
    return {
        (node.module or "", alias.name)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("extender")
        for alias in node.names
    }


@pytest.mark.parametrize("module", [plugin_module, testing_module], ids=lambda module: module.__name__)
def test_a_public_module_exports_exactly_its_names(module: ModuleType) -> None:
    assert set(module.__all__) == PUBLIC_NAMES[module.__name__]
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


@pytest.mark.parametrize("kind", ATTRIBUTES, ids=lambda kind: kind.__name__)
def test_a_public_class_has_exactly_its_attributes(kind: type) -> None:
    assert {name for name in dir(kind) if not name.startswith("_")} == ATTRIBUTES[kind]


def test_the_page_and_the_example_import_public_names_only() -> None:
    page = (ROOT / "docs" / "plugins.md").read_text()
    sources = re.findall(r"^```python[^\n]*\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    sources += [path.read_text() for path in (ROOT / "docs" / "examples" / "plugin").rglob("*.py")]
    assert len(sources) >= 12
    imports = {item for source in sources for item in imports_of(source)}
    assert {(module, name) for module, name in imports if name not in PUBLIC_NAMES.get(module, set())} == set()


def test_the_chart_s_examples_import_public_names_only() -> None:
    texts = [(ROOT / "chart" / file).read_text() for file in ("ci/plugins-values.yaml", "README.md")]
    lines = [line for text in texts for line in re.findall(r"^ +from (extender\S*) import (\w+)$", text, re.MULTILINE)]
    assert len(lines) == 2
    assert [(module, name) for module, name in lines if name not in PUBLIC_NAMES.get(module, set())] == []


@pytest.mark.parametrize("module", PUBLIC_NAMES)
def test_the_page_lists_all_public_names(module: str) -> None:
    section = (ROOT / "docs" / "plugins.md").read_text().split("## Where things are")[1].split("\n## ")[0]
    tables = {name: set(re.findall(r"`(\w+)`", rows)) for name, rows in re.findall(
        r"^\| names in `([\w.]+)`[^\n]*\n\|---\|---\|\n((?:\|[^\n]*\n)+)", section, re.MULTILINE
    )}  # fmt: skip
    assert tables[module] == PUBLIC_NAMES[module]


@pytest.mark.parametrize("plugin", BUILT_IN_PLUGINS, ids=lambda plugin: plugin.name)
def test_built_in_plugins_are_valid(plugin: type) -> None:
    assert validate_plugin(plugin) == []


SIGNATURES = """
import msgspec
from extender.plugin import FailedAttempt, NodeInfo, PluginArgs, Pod, PodInfo, PostFilter, PostFilterResult, Snapshot
from extender.plugin import filter_plugin, per_node_plugin, score_plugin, unschedulable_status
from extender.testing import make_node, make_pod

make_node("n", labels={"a": "b"}, resources={"example.com/gpu": "4"}, cpu="8")
make_pod("p", requests={"example.com/gpu": "1"}, memory="1Gi")
make_node("n", cpu=8)  # wrong

class Options(msgspec.Struct, frozen=True):
    limit: int = 0

@filter_plugin("Right")
def right(pod: Pod, node: NodeInfo) -> str | None:
    return None

@filter_plugin("RightWithOptions", options=Options, cacheable=True)
def right_with_options(pod: Pod, node: NodeInfo, options: Options) -> str | None:
    return None if options.limit else "no"

@per_node_plugin("RightClass", options=Options)
class RightClass:
    def __init__(self, args: PluginArgs[Options]) -> None:
        self.limit = args.options.limit
    def score(self, pod: Pod, node: NodeInfo) -> int:
        return self.limit

class RightPostFilter:
    name = "RightPostFilter"
    def post_filter(self, pod: PodInfo, snapshot: Snapshot, attempt: FailedAttempt) -> PostFilterResult:
        texts = (rejection.reason.text for rejection in attempt.diagnosis.rejections)
        return PostFilterResult(unschedulable_status(*texts))

class WrongPostFilter:
    name = "WrongPostFilter"
    def post_filter(self, pod: PodInfo, snapshot: Snapshot, attempt: FailedAttempt) -> PostFilterResult:
        return PostFilterResult(unschedulable_status(attempt.no_such_attribute))  # wrong

@filter_plugin("OneParameter")  # wrong
def one_parameter(pod: Pod) -> str | None:
    return None

@filter_plugin("ReturnsBool")  # wrong
def returns_bool(pod: Pod, node: NodeInfo) -> bool:
    return True

@score_plugin("ReturnsFloat")  # wrong
def returns_float(pod: Pod, node: NodeInfo) -> float:
    return 0.5

@filter_plugin("NoOptions", options=Options)  # wrong
def no_options(pod: Pod, node: NodeInfo) -> str | None:
    return None

@per_node_plugin("WrongClass")
class WrongClass:  # wrong
    def filter(self, pod: Pod) -> str | None:
        return None
"""


def test_a_type_checker_rejects_wrong_signatures(tmp_path: Path) -> None:
    file = tmp_path / "signatures.py"
    file.write_text(SIGNATURES)
    cache = ROOT / ".mypy_cache"
    output, stderr, _ = api.run(["--strict", "--python-version", "3.11", "--cache-dir", str(cache), str(file)])
    assert stderr == ""
    numbers = sorted({int(match) for match in re.findall(r"signatures\.py:(\d+): error", output)})
    wrong = [number for number, line in enumerate(SIGNATURES.splitlines(), 1) if line.endswith("# wrong")]
    assert numbers == wrong, output
