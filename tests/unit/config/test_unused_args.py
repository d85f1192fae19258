"""A warning names the arguments of plugins that a profile does not enable."""

from typing import Any

import pytest

from extender.app.wiring import build_setup, build_setup_from_document
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release


def list_warnings(plugins: dict[str, Any], *names: str) -> tuple[str, ...]:
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    profile = {"plugins": plugins, "pluginConfig": [{"name": name, "args": {}} for name in names]}
    return build_setup_from_document({**head, "profiles": [profile]}, "scheduler.yaml").warnings


def test_a_misspelled_plugin_is_named_with_the_right_spelling() -> None:
    assert list_warnings({}, "NodeAffinity", "NodeResourceFit") == (
        'profiles[0].pluginConfig[1].args: no effect: the profile does not enable plugin "NodeResourceFit"; '
        'did you mean "NodeResourcesFit"?',
    )


def test_a_plugin_that_is_not_enabled_is_named() -> None:
    want = 'profiles[0].pluginConfig[0].args: no effect: the profile does not enable plugin "GpuShare"'
    assert list_warnings({}, "GpuShare") == (want,)
    assert list_warnings({"multiPoint": {"enabled": [{"name": "GpuShare"}]}}, "GpuShare") == ()


def test_a_disabled_plugin_is_named() -> None:
    disabled = {"multiPoint": {"disabled": [{"name": "NodeAffinity"}]}}
    want = 'profiles[0].pluginConfig[0].args: no effect: the profile does not enable plugin "NodeAffinity"'
    assert list_warnings(disabled, "NodeAffinity") == (want,)


@pytest.mark.parametrize("release", [RELEASE_1_36, RELEASE_1_37])
def test_the_default_configuration_has_no_unused_arguments(release: Release) -> None:
    gates = FeatureGates(release=release)
    document = build_setup(gates=gates).build_document()
    assert build_setup_from_document(document, "scheduler.yaml", gates).warnings == ()
