"""Building profiles and plugins from configurations and Policies."""

import json
from typing import Any

import pytest

from extender.app import wiring
from extender.app.wiring import build_setup, build_setup_from_document, load_setup, make_runtime
from extender.config import load
from extender.config.documents import parse_document
from extender.config.errors import ConfigError, FieldError
from extender.config.legacy_policy import policy_document
from extender.framework.plugin_runner import PluginError
from extender.logs.klog import JsonFormatter, verbosity

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def test_without_a_configuration_there_is_the_default_profile() -> None:
    setup = build_setup()
    assert list(setup.profiles) == ["default-scheduler"]
    assert setup.first_profile is setup.profiles["default-scheduler"]
    assert setup.warnings == ()


def test_the_rendered_configuration_builds_the_same_profiles() -> None:
    text = build_setup().render_with_defaults()
    assert load_setup(text.encode(), "config").render_with_defaults() == text


def test_the_private_key_of_an_extender_is_not_logged() -> None:
    """The log of component configs goes to places that must not have the key."""
    key = "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t"
    tls = f"{{certData: {key[:8]}, keyData: {key}}}"
    setup = load_setup(
        f"{HEAD}extenders: [{{urlPrefix: https://x, filterVerb: filter, tlsConfig: {tls}}}]\n".encode(), "f"
    )
    log_text = setup.render_for_log()
    assert key not in log_text
    assert setup.render_with_defaults() == log_text.replace("DATA+OMITTED", key)


def test_errors_of_the_document_and_of_the_plugins_are_raised_together() -> None:
    text = HEAD + "paralelism: 3\nprofiles: [{plugins: {filter: {enabled: [{name: Nope}]}}}]\n"
    with pytest.raises(ConfigError) as caught:
        load_setup(text.encode(), "config")
    assert [error.path for error in caught.value.errors] == ["paralelism", "profiles[0].plugins.filter.enabled"]


@pytest.mark.parametrize(
    "text",
    [
        b"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n",
        b"apiVersion: v1\nkind: Policy\n",
    ],
    ids=["a configuration", "a Policy"],
)
def test_a_document_is_parsed_once(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []

    def count(data: bytes, source: str) -> tuple[object, list[FieldError]]:
        parsed.append(data)
        return parse_document(data, source)

    for module in (wiring, load, policy_document):
        monkeypatch.setattr(module, "parse_document", count)
    load_setup(text, "scheduler.yaml")
    assert parsed == [text]


def test_a_policy_is_converted_with_warnings() -> None:
    document = {
        "kind": "Policy",
        "apiVersion": "v1",
        "priorities": [{"name": "BalancedResourceAllocation", "weight": 2}],
    }
    setup = build_setup_from_document(document, "policy")
    assert list(setup.profiles) == ["default-scheduler"]
    assert any(warning.startswith("BalancedResourceAllocation: ") for warning in setup.warnings)


def test_a_runtime_caches_results_unless_disabled() -> None:
    assert make_runtime() is not make_runtime()
    assert make_runtime(cache_results=False) is not make_runtime(cache_results=False)


class Broken:
    """A plugin that raises."""

    name = "Broken"

    def fail(self) -> None:
        raise KeyError("zone")


@pytest.mark.parametrize("v", [0, 1])
def test_the_traceback_of_a_plugin_is_logged_with_verbosity_1(v: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(verbosity(v), "extender.app")
    plugin: Any = Broken()
    with pytest.raises(PluginError):
        make_runtime().runner.call(plugin, "Filter", plugin.fail)
    assert [record.getMessage() for record in caplog.records] == ["A plugin raised an exception"] * v
    for record in caplog.records:
        line = json.loads(JsonFormatter().format(record))
        assert (line["plugin"], line["extensionPoint"], line["err"]) == ("Broken", "Filter", "KeyError: 'zone'")
        assert "in fail\n    raise KeyError" in line["stacktrace"]
