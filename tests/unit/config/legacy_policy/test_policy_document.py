"""Loading of Policy documents: JSON or YAML, plain or in a ConfigMap, with case-insensitive extender fields."""

import json
from typing import Any

import pytest

from extender.config.errors import ConfigError
from extender.config.legacy_policy import policy_document
from extender.config.legacy_policy.policy_document import LegacyExtender, Policy, PredicatePolicy
from extender.config.model import TLSConfig

HEAD = {"kind": "Policy", "apiVersion": "v1"}


def load_fields(**fields: Any) -> policy_document.LoadedPolicy:
    return policy_document.load_policy(json.dumps({**HEAD, **fields}).encode(), "policy.json")


def load_errors(data: bytes) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        policy_document.load_policy(data, "policy.json")
    return [str(error) for error in caught.value.errors]


def test_yaml_and_json_are_equivalent() -> None:
    yaml = b"kind: Policy\napiVersion: v1\npredicates:\n- name: HostName\nalwaysCheckAllPredicates: true\n"
    expected = Policy(predicates=(PredicatePolicy("HostName"),), always_check_all_predicates=True)
    assert policy_document.load_policy(yaml, "f").policy == expected
    assert load_fields(predicates=[{"name": "HostName"}], alwaysCheckAllPredicates=True).policy == expected


def test_an_absent_list_and_an_empty_one_differ() -> None:
    assert (load_fields().policy.predicates, load_fields().policy.priorities) == (None, None)
    assert (load_fields(predicates=None).policy.predicates) is None
    policy = load_fields(predicates=[], priorities=[]).policy
    assert (policy.predicates, policy.priorities) == ((), ())


@pytest.mark.parametrize(
    "keys",
    [
        ("bindVerb", "enableHttps", "tlsConfig", "insecure", "httpTimeout"),
        ("BindVerb", "EnableHTTPS", "TLSConfig", "Insecure", "HTTPTimeout"),
        ("bindverb", "enablehttps", "tlsconfig", "INSECURE", "httptimeout"),
    ],
    ids=["as documented", "as Go names the fields", "in any case"],
)
def test_field_names_of_an_extender_are_case_insensitive(keys: tuple[str, ...]) -> None:
    bind, https, tls, insecure, timeout = keys
    extender = {"urlPrefix": "http://x", bind: "bind", https: True, tls: {insecure: True}, timeout: 30_000_000_000}
    expected = LegacyExtender(
        url_prefix="http://x",
        bind_verb="bind",
        enable_https=True,
        tls_config=TLSConfig(insecure=True),
        http_timeout=30_000_000_000,
    )
    loaded = load_fields(extenders=[extender])
    assert (loaded.policy.extenders, loaded.warnings) == ((expected,), ())


def test_an_unknown_field_of_an_extender_is_ignored_with_a_warning() -> None:
    loaded = load_fields(extenders=[{"urlPrefix": "x", "retries": 3}])
    assert loaded.warnings == ("extenders[0].retries: unknown field, ignored",)


def test_other_field_names_are_case_sensitive_and_unknown_fields_are_errors() -> None:
    with pytest.raises(ConfigError) as caught:
        load_fields(
            Predicates=[{"name": "HostName"}], priorities=[{"name": "NodeAffinityPriority", "weight": 1, "wait": 2}]
        )
    assert {str(error) for error in caught.value.errors} == {
        'Predicates: unknown field "Predicates"; did you mean "predicates"?',
        'priorities[0].wait: unknown field "wait"; did you mean "weight"?',
    }


def test_a_policy_is_read_from_the_data_of_a_config_map() -> None:
    policy = json.dumps({**HEAD, "predicates": [{"name": "HostName"}]})
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "p"}, "data": {"policy.cfg": policy}}
    assert policy_document.is_policy_or_config_map(config_map)
    assert policy_document.load_policy(json.dumps(config_map).encode(), "f").policy.predicates == (
        PredicatePolicy("HostName"),
    )
    assert policy_document.decode_document(config_map, "f", []).policy.predicates == (PredicatePolicy("HostName"),)


def test_a_policy_in_a_config_map_may_be_yaml_and_lack_a_kind() -> None:
    data = b"kind: ConfigMap\napiVersion: v1\ndata:\n  policy.cfg: |\n    predicates:\n    - name: HostName\n"
    assert policy_document.load_policy(data, "f").policy.predicates == (PredicatePolicy("HostName"),)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(
            b"{kind: ConfigMap, apiVersion: v1, data: {other: x}}",
            'data: missing policy config map value at key "policy.cfg"; '
            "a KubeSchedulerConfiguration must be a file: extract other",
            id="a ConfigMap without the key",
        ),
        pytest.param(
            b"{kind: ConfigMap, apiVersion: v1}",
            'data: missing policy config map value at key "policy.cfg"',
            id="a ConfigMap without data",
        ),
        pytest.param(
            b"{kind: ConfigMap, apiVersion: v1, data: {policy.cfg: '{kind: ConfigMap}'}}",
            "data[policy.cfg]: a ConfigMap cannot contain another ConfigMap: write a Policy",
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
            id="a weight that is not a number",
        ),
        pytest.param(
            b'{"kind":"Policy","apiVersion":"v1","extenders":[{"httpTimeout":"30s"}]}',
            'extenders[0].httpTimeout: expected an integer, got the string "30s"',
            id="a timeout that is not a number of nanoseconds",
        ),
        pytest.param(
            b'{"kind":"Policy","apiVersion":"v1","predicates":{"name":"HostName"}}',
            "predicates: expected a list, got an object",
            id="predicates that are not a list",
        ),
        pytest.param(b"[]", "policy.json: expected an object, got a list", id="not an object"),
    ],
)
def test_an_invalid_document_is_reported_in_one_line_with_its_path(data: bytes, expected: str) -> None:
    assert load_errors(data) == [expected]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"kind": "Policy", "apiVersion": "v1"}, True),
        ({"kind": "KubeSchedulerConfiguration", "apiVersion": "kubescheduler.config.k8s.io/v1"}, False),
        ({"predicates": []}, False),
        (["Policy"], False),
    ],
    ids=["a Policy", "a configuration", "no kind", "a list"],
)
def test_a_policy_is_recognized_by_its_kind(document: object, expected: bool) -> None:
    assert policy_document.is_policy_or_config_map(document) is expected
