"""Upgrades of the chart with Helm on a real API server, without pods."""

import json
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from tests.chart.helm import CHART, HelmError, helm
from tests.controlplane.api_client import ApiClient
from tests.controlplane.control_plane import ControlPlane

NAMESPACE: Final = "upgraded"
RELEASE: Final = "x"
SERVICE: Final = f"/api/v1/namespaces/{NAMESPACE}/services/{RELEASE}-extender"
ROLES: Final = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles"
SERVICE_MODE: Final = ("--set", "mode=service", "--set", "service.clusterIP=10.0.0.77")
Helm = Callable[..., str]


@pytest.fixture
def run_helm(control_plane: ControlPlane, api: ApiClient) -> Iterator[Helm]:
    """Return a function that runs Helm as the administrator in a namespace of its own."""
    flags = ("--kubeconfig", str(control_plane.write_kubeconfig()), "--namespace", NAMESPACE)
    api.create({"kind": "Namespace", "metadata": {"name": NAMESPACE}})
    yield lambda verb, *arguments: helm(verb, *flags, RELEASE, *arguments)
    helm("uninstall", *flags, RELEASE, "--ignore-not-found")


def get_address(api: ApiClient) -> str:
    return str(json.loads(api.call("GET", SERVICE))["spec"]["clusterIP"])


def test_an_upgrade_to_another_address_of_the_service_changes_nothing(api: ApiClient, run_helm: Helm) -> None:
    run_helm("install", str(CHART))
    address = get_address(api)
    with pytest.raises(HelmError, match=f"x-extender has the address {address}, which cannot"):
        run_helm("upgrade", str(CHART), *SERVICE_MODE)
    run_helm("upgrade", str(CHART), "--set", f"mode=service,service.clusterIP={address}")
    run_helm("rollback", "1")
    run_helm("uninstall")
    assert json.loads(api.call("GET", ROLES))["items"] == []


def test_an_upgrade_after_the_service_was_deleted_changes_its_address(api: ApiClient, run_helm: Helm) -> None:
    run_helm("install", str(CHART))
    api.call("DELETE", SERVICE)
    run_helm("upgrade", str(CHART), *SERVICE_MODE)
    assert get_address(api) == "10.0.0.77"
    run_helm("upgrade", str(CHART))
    assert get_address(api) == "10.0.0.77"
