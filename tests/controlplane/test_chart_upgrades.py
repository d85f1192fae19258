"""Upgrades of the chart with Helm on a real API server, without pods."""

import base64
import json
import re
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

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


def read_certificate(api: ApiClient, suffix: str) -> x509.Certificate:
    """Return the certificate in the Secret of the release with this suffix."""
    secret = json.loads(api.call("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets/{RELEASE}-extender-{suffix}"))
    return x509.load_pem_x509_certificate(base64.b64decode(secret["data"]["tls.crt"]))


def read_common_name(certificate: x509.Certificate) -> str:
    return str(certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param(
            "certificates.extraNames={10.0.0.9,api.example.com}",
            "certificates.extraNames: the certificate in the Secret x-extender-tls does not have api.example.com; "
            "delete the Secrets x-extender-tls and x-extender-client before the upgrade to make new certificates",
            id="a name that the server's certificate lacks",
        ),
        pytest.param(
            "service.allowedClientNames={batch}",
            "service.allowedClientNames: must have system:kube-scheduler, the name of the certificate in the Secret "
            "x-extender-client; or delete the Secrets",
            id="no name of the client's certificate",
        ),
    ],
)
def test_an_upgrade_that_the_self_signed_certificates_do_not_follow_changes_nothing(
    api: ApiClient, run_helm: Helm, values: str, message: str
) -> None:
    run_helm("install", str(CHART), *SERVICE_MODE, "--set", "certificates.extraNames={10.0.0.9}")
    server, client = read_certificate(api, "tls"), read_certificate(api, "client")
    with pytest.raises(HelmError, match=re.escape(message)):
        run_helm("upgrade", str(CHART), *SERVICE_MODE, "--set", values)
    more_callers = "service.allowedClientNames={batch,system:kube-scheduler}"
    for _ in range(2):  # the second upgrade reads what the first one has written
        run_helm("upgrade", str(CHART), *SERVICE_MODE, "--set", more_callers)
        assert (read_certificate(api, "tls"), read_certificate(api, "client")) == (server, client)
        with pytest.raises(HelmError, match=re.escape(message)):
            run_helm("upgrade", str(CHART), *SERVICE_MODE, "--set", values)


def test_an_upgrade_after_the_secrets_were_deleted_makes_certificates_with_other_names(
    api: ApiClient, run_helm: Helm
) -> None:
    run_helm("install", str(CHART), *SERVICE_MODE)
    for suffix in ("tls", "client"):
        api.call("DELETE", f"/api/v1/namespaces/{NAMESPACE}/secrets/{RELEASE}-extender-{suffix}")
    names = "service.allowedClientNames={batch},certificates.extraNames={api.example.com}"
    run_helm("upgrade", str(CHART), *SERVICE_MODE, "--set", names)
    assert read_common_name(read_certificate(api, "client")) == "batch"
    extension = read_certificate(api, "tls").extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert "api.example.com" in extension.value.get_values_for_type(x509.DNSName)
