"""Our user with the ClusterRole of docs/examples/view-only-role.yaml, and a control plane that audits its requests."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.controlplane import programs
from tests.controlplane.api_client import ApiClient
from tests.controlplane.control_plane import EXTENDER, ControlPlane

ROLE: Final[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[2] / "docs" / "examples" / "view-only-role.yaml").read_text()
)
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
AUDIT_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "Metadata", "users": [EXTENDER]}, {"level": "None"}],
}
"""The audit policy: log every request of our user when it ends."""


@contextmanager
def run_audited_control_plane(folder: Path, *flags: str) -> Iterator[ControlPlane]:
    """Run a control plane that audits every request of our user inside the block; skip the tests without programs.

    *flags* are further flags of the API server.
    """
    used = programs.find()
    if isinstance(used, str):
        (pytest.fail if os.environ.get("CONTROL_PLANE") == "required" else pytest.skip)(used)
    policy = folder / "every-request.json"
    policy.write_text(json.dumps(AUDIT_POLICY))
    plane = ControlPlane(used, folder, f"--audit-policy-file={policy}", *flags)
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()


def make_rules(*, without: Sequence[str] = (), verbs: Sequence[str] = ("get", "list")) -> list[dict[str, Any]]:
    """Return the rules of the role, without some resources and with other verbs."""
    return [
        {
            "apiGroups": rule["apiGroups"],
            "resources": [resource for resource in rule["resources"] if resource not in without],
            "verbs": list(verbs),
        }
        for rule in ROLE["rules"]
    ]


def grant_view_only_role(api: ApiClient, rules: Sequence[Mapping[str, Any]] | None = None) -> None:
    """Grant *rules* to our user; None: the role without persistentvolumeclaims and without the verb watch."""
    meta = {"name": ROLE["metadata"]["name"]}
    used_rules = make_rules(without=("persistentvolumeclaims",)) if rules is None else rules
    api.call("POST", f"{RBAC}/clusterroles", {"metadata": meta, "rules": used_rules})
    namespace, name = EXTENDER.removeprefix("system:serviceaccount:").split(":")
    subject = {"kind": "ServiceAccount", "namespace": namespace, "name": name}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": meta["name"]}
    api.call("POST", f"{RBAC}/clusterrolebindings", {"metadata": meta, "subjects": [subject], "roleRef": role})


def replace_rules(api: ApiClient, rules: Sequence[Mapping[str, Any]]) -> None:
    """Replace the rules of the role."""
    name = ROLE["metadata"]["name"]
    api.call("PUT", f"{RBAC}/clusterroles/{name}", {"metadata": {"name": name}, "rules": rules})


def list_requests(plane: ControlPlane, since: int = 0) -> list[str]:
    """Return the verbs and resources of our requests since byte *since* of the audit log, each once, sorted."""
    events = [json.loads(line) for line in plane.audit_log.read_bytes()[since:].splitlines()]
    references = [(event["verb"], event["objectRef"]) for event in events if "objectRef" in event]
    return sorted({f"{verb} {reference['resource']}" for verb, reference in references})
