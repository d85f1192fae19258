"""Validation of fields that loading always sets, and of the names of extended resources."""

import dataclasses
from typing import Any

import pytest

from extender.api.label_syntax import validate_qualified_name
from extender.config.defaults import make_default_configuration
from extender.config.model import LeaderElection
from extender.config.validation import validate_configuration, validate_extended_resource_name

DEFAULT = make_default_configuration()
CASES = {
    "no profile": ({"profiles": ()}, ["profiles: Required value"]),
    "no name of the lease": (
        {"leader_election": LeaderElection(resource_name="")},
        ["leaderElection.resourceName: Required value"],
    ),
    "no namespace of the lease": (
        {"leader_election": LeaderElection(resource_namespace="")},
        ["leaderElection.resourceNamespace: Required value"],
    ),
    "no kind of lock": (
        {"leader_election": LeaderElection(resource_lock="")},
        [
            "leaderElection.resourceLock: Required value",
            'leaderElection.resourceLock: Invalid value: "": resourceLock value must be "leases"',
        ],
    ),
    "the defaults": ({}, []),
}


@pytest.mark.parametrize(("changes", "errors"), CASES.values(), ids=CASES)
def test_a_configuration_has_validation_errors(changes: Any, errors: Any) -> None:
    assert [str(error) for error in validate_configuration(dataclasses.replace(DEFAULT, **changes))] == errors


LONG = "a" * 64
NAMES = {
    "an extended resource": ("example.com/gpu", []),
    "a name of 63 characters with a prefix": (f"example.com/{LONG[1:]}", []),
    "two prefixes": (
        "a/b/c",
        [
            "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
            "an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        ],
    ),
    "an empty prefix": ("/gpu", ["prefix part must be non-empty"]),
    "a name that is too long": (f"example.com/{LONG}", ["name part must be no more than 63 bytes"]),
    "a prefix that is too long": (f"{'a.' * 127}a/b", ["prefix part must be no more than 253 bytes"]),
    "a prefix too long for a quota": (f"{'a.' * 126}a/b", ["is an invalid extended resource name"]),
    "an unprefixed name": ("gpu", ["is an invalid extended resource name"]),
    "a prefix in capitals": (
        "Example.com/gpu",
        [
            "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
            "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation "
            "is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        ],
    ),
}


@pytest.mark.parametrize(("name", "errors"), NAMES.values(), ids=NAMES)
def test_an_extended_resource_has_a_qualified_name(name: str, errors: Any) -> None:
    assert validate_extended_resource_name(name) == errors


def test_a_name_may_lack_a_prefix_without_being_an_extended_resource() -> None:
    assert validate_qualified_name("gpu") == []
