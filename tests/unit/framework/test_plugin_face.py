"""What plugins may import stays where the page says it is, and type checkers refuse wrong signatures."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest
from mypy import api

from extender.catalogue import BUILT_IN
from extender.framework.contract import wrong_with

ROOT = Path(__file__).resolve().parents[3]
FACE = {
    "extender.framework.rowwise": {"filter_plugin", "score_plugin", "row_plugin", "final"},
    "extender.framework.row_adapters": {"Answer"},
    "extender.framework.node_info": {"NodeInfo", "each_node"},
    "extender.framework.setup": {"Setup"},
    "extender.framework.verdict": {"Reason", "Rejection", "Code", "Status", "unschedulable", "unresolvable"},
    "extender.framework.points": {
        "ALLOW", "Bind", "EnqueueExtensions", "Filter", "KeptFilter", "KeptScore", "NormalizeScore", "PASS",
        "Permission", "Permit", "Plan", "PostBind", "PostFilter", "PostFiltered", "PreBind", "PreBindPreFlight",
        "PreEnqueue", "PreFilter", "PreFilterExtensions", "PreFiltered", "PreFlight", "PreScore", "PreScored",
        "QueueSort", "Queued", "Reads", "Reserve", "SKIP", "SKIP_SCORE", "Score", "Write",
    },
    "extender.framework.changes": {"Registration", "Resource", "Action", "Change", "Hint"},
    "extender.framework.normalize": {"in_proportion"},
    "extender.cluster.pods": {"PodQuery", "PlacedPod"},
    "extender.cluster.snapshot": {"NodeView", "Snapshot"},
    "extender.objects.pod": {"Pod"},
    "extender.objects.node": {"Node", "Taint"},
    "extender.objects.requests": {"incoming_requests"},
    "extender.config.faults": {"Fault", "ConfigError"},
    "extender.config.gates": {"FeatureGates"},
    "extender.catalogue": {"catalogue"},
    "extender.testing": {"Cluster", "a_cluster", "a_node", "a_pod", "try_plugin", "try_profile", "check_kept_answers"},
}  # fmt: skip
FIELDS = {
    "NodeInfo": {
        "allocatable", "annotations", "free", "labels", "name", "node", "pods", "requested", "taints",
    },
    "Answer": {"feasible", "refused", "refused_by", "final", "raw", "normalized", "totals", "message", "scores"},
}  # fmt: skip


def imported(source: str) -> set[tuple[str, str]]:
    return {
        (node.module or "", alias.name)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("extender")
        for alias in node.names
    }


@pytest.mark.parametrize("module", FACE)
def test_what_plugins_import_is_where_it_was(module: str) -> None:
    there = import_module(module)
    assert {name for name in FACE[module] if not hasattr(there, name)} == set()


def test_what_a_row_plugin_and_a_test_see_is_what_it_was() -> None:
    node_info = import_module("extender.framework.node_info").NodeInfo
    answer = import_module("extender.testing").Answer
    assert {name for name in dir(node_info) if not name.startswith("_")} == FIELDS["NodeInfo"]
    assert {name for name in dir(answer) if not name.startswith("_")} == FIELDS["Answer"]


def test_the_page_and_the_example_import_nothing_else() -> None:
    page = (ROOT / "docs" / "plugins.md").read_text()
    sources = re.findall(r"^```python[^\n]*\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    sources += [path.read_text() for path in (ROOT / "docs" / "examples" / "plugin").rglob("*.py")]
    assert len(sources) >= 12
    assert {(m, name) for source in sources for m, name in imported(source) if name not in FACE.get(m, set())} == set()


def test_the_page_names_the_modules_plugins_import_from() -> None:
    page = (ROOT / "docs" / "plugins.md").read_text()
    assert [module for module in FACE if f"`{module}`" not in page and module != "extender.catalogue"] == []


@pytest.mark.parametrize("plugin", BUILT_IN, ids=lambda plugin: plugin.name)
def test_built_in_plugins_keep_the_contract_as_well(plugin: type) -> None:
    assert wrong_with(plugin) == []


SIGNATURES = """
import msgspec
from extender.framework.node_info import NodeInfo
from extender.framework.rowwise import filter_plugin, row_plugin, score_plugin
from extender.framework.setup import Setup
from extender.objects.pod import Pod

class Options(msgspec.Struct, frozen=True):
    most: int = 0

@filter_plugin("Right")
def right(pod: Pod, node: NodeInfo) -> str | None:
    return None

@filter_plugin("RightWithOptions", options=Options, keep=True)
def right_with_options(pod: Pod, node: NodeInfo, options: Options) -> str | None:
    return None if options.most else "no"

@row_plugin("RightClass", options=Options)
class RightClass:
    def __init__(self, setup: Setup[Options]) -> None:
        self.most = setup.options.most
    def score(self, pod: Pod, node: NodeInfo) -> int:
        return self.most

@filter_plugin("OneParameter")  # wrong
def one_parameter(pod: Pod) -> str | None:
    return None

@filter_plugin("SaysBool")  # wrong
def says_bool(pod: Pod, node: NodeInfo) -> bool:
    return True

@score_plugin("SaysFloat")  # wrong
def says_float(pod: Pod, node: NodeInfo) -> float:
    return 0.5

@filter_plugin("NoOptions", options=Options)  # wrong
def no_options(pod: Pod, node: NodeInfo) -> str | None:
    return None

@row_plugin("WrongClass")
class WrongClass:  # wrong
    def filter(self, pod: Pod) -> str | None:
        return None
"""


def test_a_type_checker_refuses_wrong_signatures(tmp_path: Path) -> None:
    file = tmp_path / "signatures.py"
    file.write_text(SIGNATURES)
    cache = ROOT / ".mypy_cache"
    said, broken, _ = api.run(["--strict", "--python-version", "3.11", "--cache-dir", str(cache), str(file)])
    assert broken == ""
    found = sorted({int(match) for match in re.findall(r"signatures\.py:(\d+): error", said)})
    assert found == [number for number, line in enumerate(SIGNATURES.splitlines(), 1) if line.endswith("# wrong")], said
