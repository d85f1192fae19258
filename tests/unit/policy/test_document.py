"""Policy documents as they come: JSON or YAML, bare or in a ConfigMap, with the odd spelling of old releases."""

import json
from typing import Any

import pytest

from extender.config.faults import ConfigError
from extender.config.model import TLSConfig
from extender.policy import document
from extender.policy.model import LegacyExtender, Policy, PredicatePolicy

HEAD = {"kind": "Policy", "apiVersion": "v1"}


def read(**fields: Any) -> document.Written:
    return document.load(json.dumps({**HEAD, **fields}).encode(), "policy.json")


def faults(data: bytes) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        document.load(data, "policy.json")
    return [str(fault) for fault in caught.value.faults]


def test_yaml_and_json_are_one_document() -> None:
    """C074."""
    yaml = b"kind: Policy\napiVersion: v1\npredicates:\n- name: HostName\nalwaysCheckAllPredicates: true\n"
    wanted = Policy(predicates=(PredicatePolicy("HostName"),), always_check_all_predicates=True)
    assert document.load(yaml, "f").policy == wanted
    assert read(predicates=[{"name": "HostName"}], alwaysCheckAllPredicates=True).policy == wanted


def test_an_absent_list_and_an_empty_one_differ() -> None:
    """C013."""
    assert (read().policy.predicates, read().policy.priorities) == (None, None)
    assert (read(predicates=None).policy.predicates) is None
    written = read(predicates=[], priorities=[]).policy
    assert (written.predicates, written.priorities) == ((), ())


@pytest.mark.parametrize(
    "keys",
    [
        ("bindVerb", "enableHttps", "tlsConfig", "insecure", "httpTimeout"),
        ("BindVerb", "EnableHTTPS", "TLSConfig", "Insecure", "HTTPTimeout"),
        ("bindverb", "enablehttps", "tlsconfig", "INSECURE", "httptimeout"),
    ],
    ids=["as documented", "as Go names the fields", "in any case"],
)
def test_the_case_of_an_extender_s_fields_does_not_matter(keys: tuple[str, ...]) -> None:
    """C075."""
    bind, https, tls, insecure, timeout = keys
    extender = {"urlPrefix": "http://x", bind: "bind", https: True, tls: {insecure: True}, timeout: 30_000_000_000}
    wanted = LegacyExtender(
        url_prefix="http://x",
        bind_verb="bind",
        enable_https=True,
        tls_config=TLSConfig(insecure=True),
        http_timeout=30_000_000_000,
    )
    found = read(extenders=[extender])
    assert (found.policy.extenders, found.notes) == ((wanted,), ())


def test_within_extenders_an_unknown_field_is_passed_over_with_a_note() -> None:
    found = read(extenders=[{"urlPrefix": "x", "retries": 3}])
    assert found.notes == ("extenders[0].retries: there is no such field; it is passed over",)


def test_elsewhere_the_case_matters_and_an_unknown_field_is_a_fault() -> None:
    with pytest.raises(ConfigError) as wrong:
        read(Predicates=[{"name": "HostName"}], priorities=[{"name": "NodeAffinityPriority", "weight": 1, "wait": 2}])
    assert {str(fault) for fault in wrong.value.faults} == {
        'Predicates: unknown field "Predicates"; did you mean "predicates"?',
        'priorities[0].wait: unknown field "wait"; did you mean "weight"?',
    }


def test_a_config_map_carries_a_policy_in_its_data() -> None:
    """C082."""
    policy = json.dumps({**HEAD, "predicates": [{"name": "HostName"}]})
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "p"}, "data": {"policy.cfg": policy}}
    assert document.is_policy(config_map)
    assert document.load(json.dumps(config_map).encode(), "f").policy.predicates == (PredicatePolicy("HostName"),)
    assert document.from_builtins(config_map, "f").policy.predicates == (PredicatePolicy("HostName"),)


def test_a_config_map_may_hold_yaml_and_a_policy_without_a_kind() -> None:
    data = b"kind: ConfigMap\napiVersion: v1\ndata:\n  policy.cfg: |\n    predicates:\n    - name: HostName\n"
    assert document.load(data, "f").policy.predicates == (PredicatePolicy("HostName"),)


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        pytest.param(
            b"{kind: ConfigMap, apiVersion: v1, data: {other: x}}",
            'data: missing policy config map value at key "policy.cfg"',
            id="a ConfigMap without the key",
        ),
        pytest.param(
            b"{kind: ConfigMap, apiVersion: v1}",
            'data: missing policy config map value at key "policy.cfg"',
            id="a ConfigMap without data",
        ),
        pytest.param(
            b"{kind: ConfigMap, apiVersion: v1, data: {policy.cfg: '{kind: ConfigMap}'}}",
            "data[policy.cfg]: a ConfigMap cannot carry another: write a Policy",
            id="a ConfigMap in a ConfigMap",
        ),
        pytest.param(
            b"{kind: Policy, apiVersion: v2}",
            "couldn't decode as Policy, got v2, Kind=Policy: write apiVersion: v1 and kind: Policy",
            id="another version",
        ),
        pytest.param(
            b"{kind: Deployment, apiVersion: apps/v1}",
            "couldn't decode as Policy, got apps/v1, Kind=Deployment: write apiVersion: v1 and kind: Policy",
            id="another kind",
        ),
        pytest.param(
            b'{"kind":"Policy","apiVersion":"v1","priorities":[{"name":"A","weight":"heavy"}]}',
            'priorities[0].weight: expected an integer, got the string "heavy"',
            id="a weight that is no number",
        ),
        pytest.param(
            b'{"kind":"Policy","apiVersion":"v1","extenders":[{"httpTimeout":"30s"}]}',
            'extenders[0].httpTimeout: expected an integer, got the string "30s"',
            id="a timeout that is no number of nanoseconds",
        ),
        pytest.param(
            b'{"kind":"Policy","apiVersion":"v1","predicates":{"name":"HostName"}}',
            "predicates: expected a list, got an object",
            id="predicates that are no list",
        ),
        pytest.param(b"[]", "policy.json: expected an object, got a list", id="no object at all"),
    ],
)
def test_bad_input_is_told_in_one_line_with_its_place(data: bytes, wanted: str) -> None:
    assert faults(data) == [wanted]


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ({"kind": "Policy", "apiVersion": "v1"}, True),
        ({"kind": "KubeSchedulerConfiguration", "apiVersion": "kubescheduler.config.k8s.io/v1"}, False),
        ({"predicates": []}, False),
        (["Policy"], False),
    ],
    ids=["a Policy", "a configuration", "no kind", "a list"],
)
def test_a_policy_is_told_from_other_documents_by_its_kind(found: object, wanted: bool) -> None:
    assert document.is_policy(found) is wanted
