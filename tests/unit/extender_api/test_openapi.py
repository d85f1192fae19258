"""The OpenAPI document and the service agree."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from extender.api.extender_v1 import (
    ArgsByNames,
    ArgsByNodes,
    MetaPod,
    MetaVictims,
    NodeListObject,
    NodeMetadata,
    NodeObject,
    PreemptionArgsByPod,
    PreemptionArgsByUid,
    VictimByUid,
    VictimMetadata,
    VictimObject,
    VictimsByPod,
    VictimsByUid,
)
from extender.extender_api.openapi import add_verb_operations
from extender.extender_api.payloads import decode_args, decode_preemption_args
from extender.extender_api.routes import new_app
from tests.coroutines import run_now
from tests.unit.extender_api.http_harness import make_service, serve_in_thread
from tests.unit.extender_api.test_bind import FakeApiServer, make_bind_verb

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
# An OpenAPI document cannot express that node names are unique, nor that Go rejects 1.0 as an integer.
EXCLUDED_CHECK = "positive_data_acceptance"


def explain_short_names(_namespace: str, pod: str, as_json: bool) -> str | None:
    """Return an explanation of a pod whose name has one character."""
    return None if len(pod) > 1 else "{}" if as_json else "a decision"


@pytest.mark.slow
def test_requests_generated_from_the_openapi_document_pass(tmp_path: Path) -> None:
    """Valid and invalid requests have the statuses, content types and bodies of the document."""
    service = make_service(bind_verb=make_bind_verb(FakeApiServer())[0], explain=explain_short_names)
    with serve_in_thread(new_app(service)) as port:
        command: list[str | Path] = [
            SCHEMATHESIS,
            "run",
            f"http://127.0.0.1:{port}/openapi.json",
            "--no-color",
            "--seed=1",
        ]
        bounds = ["--max-examples=30", f"--exclude-checks={EXCLUDED_CHECK}", "--generation-database=none"]
        found = subprocess.run(
            [*command, *bounds], capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False
        )
    assert found.returncode == 0, found.stdout[-4000:]
    assert "Tested: 9" in found.stdout


POD: dict[str, Any] = {"metadata": {"name": "web"}}


def test_the_request_types_of_the_document_are_what_the_decoder_reads() -> None:
    by_names = run_now(decode_args(msgspec.json.encode(ArgsByNames(POD, ["n1", "n2"]))))
    assert (by_names.pod.metadata.name, by_names.names and by_names.names.names) == ("web", ["n1", "n2"])
    node_list = NodeListObject(items=[NodeObject(NodeMetadata("n1"))])
    by_nodes = run_now(decode_args(msgspec.json.encode(ArgsByNodes(POD, node_list))))
    assert by_nodes.nodes is not None
    assert [sent_node.node.metadata.name for sent_node in by_nodes.nodes.nodes] == ["n1"]
    expected = {"n1": MetaVictims((MetaPod("u1"),), 2)}
    by_uid = PreemptionArgsByUid(POD, {"n1": VictimsByUid([VictimByUid("u1")], 2)})
    assert run_now(decode_preemption_args(msgspec.json.encode(by_uid))).victims == expected
    by_pod = PreemptionArgsByPod(POD, {"n1": VictimsByPod([VictimObject(VictimMetadata("u1"))], 2)})
    assert run_now(decode_preemption_args(msgspec.json.encode(by_pod))).victims == expected


def test_a_response_has_all_fields_of_its_type_and_no_others() -> None:
    document: dict[str, Any] = {"paths": {}}
    add_verb_operations(document, {"filter": "/scheduler/filter", "bind": "/bind"})
    assert list(document["paths"]) == ["/scheduler/filter", "/bind"]
    schemas = document["components"]["schemas"]
    assert schemas["FilterResult"]["required"] == [
        "Nodes",
        "NodeNames",
        "FailedNodes",
        "FailedAndUnresolvableNodes",
        "Error",
    ]
    assert schemas["FilterResult"]["additionalProperties"] is False
    assert schemas["FilterResult"]["description"].count("\n") == 0
    assert schemas["BindingArgs"]["required"] == ["PodName", "PodNamespace", "PodUID", "Node"]
    assert schemas["BindingArgs"]["properties"]["PodUID"] == {"type": "string", "minLength": 1}
    assert document["paths"]["/bind"]["post"]["summary"].endswith(".")
    assert ("500" in document["paths"]["/bind"]["post"]["responses"]) is False


def test_the_document_has_all_answers_of_explain_and_no_others() -> None:
    document = new_app(make_service(explain=explain_short_names)).openapi()
    operation = document["paths"]["/explain/{namespace}/{pod}"]["get"]
    assert [parameter["name"] for parameter in operation["parameters"]] == ["namespace", "pod"]
    contents = {status: list(response["content"]) for status, response in operation["responses"].items()}
    assert contents == {"200": ["text/plain", "application/json"], "400": ["text/plain"], "404": ["text/plain"]}
    assert "HTTPValidationError" not in document["components"]["schemas"]
