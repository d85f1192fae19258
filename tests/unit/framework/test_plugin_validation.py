"""Invalid plugins, and the error that names each when it is loaded or created."""

from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
import yaml

from extender.app import wiring
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView
from extender.config.errors import ConfigError
from extender.framework.extension_points import Filter
from extender.framework.plugin_args import PluginArgs
from extender.framework.status import Rejection
from extender.plugins.registry import load_registry, validate_plugins
from extender.testing import make_cluster, make_node, make_pod, run_plugin

CASES = yaml.safe_load((Path(__file__).parents[2] / "cases" / "wrong_plugins.yaml").read_text())["cases"]
MODULE_NUMBERS = count(1)


def install_plugin(folder: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Install a package with the entry point `entry` in *folder*; return its module's name."""
    module = f"wrong_module_{next(MODULE_NUMBERS)}"
    (folder / f"{module}.py").write_text(source)
    info = folder / "wrong_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wrong-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[extender.plugins]\nentry = {module}:plugin\n")
    monkeypatch.syspath_prepend(folder)
    return module


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_invalid_plugin_is_rejected_when_it_is_loaded(
    case: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = install_plugin(tmp_path, case["source"], monkeypatch)
    with pytest.raises(ConfigError) as error:
        load_registry()
    want = case["want"].replace("{module}", module)
    fix = "pip uninstall wrong-package removes it"
    assert str(error.value) == f'plugin "entry" of wrong-package ({module}:plugin): {want}; {fix}'


def test_a_valid_plugin_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    imports = "from extender.plugin import filter_plugin\n"
    source = imports + '@filter_plugin("Right")\ndef plugin(p, n): return None\n'
    install_plugin(tmp_path, source, monkeypatch)
    assert load_registry()["Right"].name == "Right"


def test_a_module_that_cannot_be_imported_is_one_error_for_all_its_plugins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = install_plugin(tmp_path, "1 / 0\n", monkeypatch)
    with (tmp_path / "wrong_package-1.0.dist-info" / "entry_points.txt").open("a") as file:
        file.write(f"other = {module}:other\n")
    with pytest.raises(ConfigError) as error:
        load_registry()
    assert str(error.value) == (
        f'plugin "entry", "other" of wrong-package ({module}): cannot be imported: '
        f"ZeroDivisionError: division by zero ({module}.py:1); pip uninstall wrong-package removes it"
    )


def test_the_name_of_an_entry_point_leads_to_the_name_of_its_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "class plugin:\n    name = 'Own'\n    def filter(self, pod, nodes, state): pass\n"
    install_plugin(tmp_path, source, monkeypatch)
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"filter": {"enabled": [{"name": "entry"}]}}}],
    }
    with pytest.raises(ConfigError) as error:
        wiring.build_setup_from_document(document, "f")
    want = 'FilterPlugin "entry" does not exist; its entry point has the plugin "Own"'
    assert str(error.value) == f"profiles[0].plugins.filter.enabled: {want}"


def test_an_entry_point_that_names_only_a_module_is_an_error_of_its_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command ended with an internal error."""
    module = install_plugin(tmp_path, "", monkeypatch)
    entry_points = tmp_path / "wrong_package-1.0.dist-info" / "entry_points.txt"
    entry_points.write_text(f"[extender.plugins]\nentry = {module}\n")
    (warning,) = wiring.build_setup().warnings
    assert warning.startswith(f'plugin "entry" of wrong-package ({module}): ')


def test_two_plugins_of_one_name_are_an_error_in_tests_and_notebooks() -> None:
    other_plugin = type("Other", (RaisingPlugin,), {})
    assert validate_plugins(RaisingPlugin, RaisingPlugin) == {"RaisingPlugin": RaisingPlugin}
    with pytest.raises(ConfigError, match="plugin RaisingPlugin: two plugins have this name"):
        validate_plugins(RaisingPlugin, other_plugin)


class RaisingPlugin:
    """Raises in its constructor."""

    name: ClassVar[str] = "RaisingPlugin"

    def __init__(self, args: PluginArgs[None]) -> None:
        raise FileNotFoundError(2, "No such file or directory", "models.txt")

    def filter(self, pod: Any, nodes: Any, state: Any) -> Any:
        return ()


def test_a_constructor_that_raises_is_an_error_with_its_plugin() -> None:
    with pytest.raises(ConfigError) as error:
        run_plugin(RaisingPlugin, make_cluster(make_node("one"), make_pod("web")), "web")
    line = RaisingPlugin.__init__.__code__.co_firstlineno + 1
    assert str(error.value) == (
        'profiles[0]: initializing plugin "RaisingPlugin": '
        "FileNotFoundError: [Errno 2] No such file or directory: 'models.txt' "
        f"(tests/unit/framework/test_plugin_validation.py:{line})"
    )


class MostPods(msgspec.Struct):
    """Options with a default."""

    most: int = 1


class TypedPlugin(Filter):
    """Names its Protocol as its base, so that an editor completes the method."""

    name: ClassVar[str] = "TypedPlugin"

    def filter(self, pod: PodInfo, nodes: NodeView, state: object) -> tuple[Rejection, ...]:
        return ()


def test_a_plugin_may_have_the_protocol_of_its_extension_point_as_its_base() -> None:
    decision = run_plugin(TypedPlugin, make_cluster(make_node("one"), make_pod("web")), "web")
    assert decision.feasible_nodes == ("one",)


def test_options_of_a_plugin_with_a_protocol_as_its_base_need_a_constructor() -> None:
    class TypedPluginWithOptions(TypedPlugin):
        options = MostPods

    with pytest.raises(ConfigError, match="it has options but its constructor takes nothing"):
        validate_plugins(TypedPluginWithOptions)


class WrongEventsPlugin:
    """Registers a name instead of an event."""

    name: ClassVar[str] = "WrongEventsPlugin"

    def filter(self, pod: Any, nodes: Any, state: Any) -> Any:
        return ()

    def events_to_register(self) -> Any:
        return ["Pod"]


def test_events_of_a_wrong_type_are_an_error_with_its_plugin() -> None:
    with pytest.raises(ConfigError) as error:
        run_plugin(WrongEventsPlugin, make_cluster(make_node("one"), make_pod("web")), "web")
    assert str(error.value) == (
        'profiles[0]: initializing plugin "WrongEventsPlugin": '
        "events_to_register returned list ['Pod'], want a tuple of ClusterEventWithHint(resource, action)"
    )


OPTIONS_SOURCE = """
import msgspec
from extender.plugin import per_node_plugin

class Args(msgspec.Struct):
    most: int = 1

    def validate(self, path, gates):
        {statement}

@per_node_plugin("LimitedPods", options=Args)
class plugin:
    def __init__(self, args): pass
    def filter(self, pod, node): return None
"""


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("raise KeyError('most')", "KeyError: 'most' ({module}.py:9)"),
        ("return ['too many']", "TypeError: validate returned ['too many'], want a list of FieldError"),
        ("pass", "TypeError: validate returned None, want a list of FieldError"),
    ],
)
def test_an_error_in_validate_concerns_only_the_profiles_with_the_plugin(
    statement: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = install_plugin(tmp_path, OPTIONS_SOURCE.format(statement=statement), monkeypatch)
    assert "LimitedPods" not in wiring.build_setup().profiles["default-scheduler"].plugins
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "LimitedPods"}]}}}],
    }
    with pytest.raises(ConfigError) as error:
        wiring.build_setup_from_document(document, "f")
    path, want = "profiles[0].pluginConfig[LimitedPods].args", message.format(module=module)
    assert str(error.value) == f'{path}: initializing plugin "LimitedPods": {want}'
