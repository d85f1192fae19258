"""What only a configuration built by hand can get wrong, since loading fills it in."""

import dataclasses

import pytest

from extender.config.defaults import default_configuration
from extender.config.faults import Fault
from extender.config.model import LeaderElection
from extender.config.resource_names import extended_resource_faults
from extender.config.validate import validate
from extender.objects.label_syntax import qualified_name_faults

DEFAULT = default_configuration()
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


@pytest.mark.parametrize(("changes", "faults"), CASES.values(), ids=CASES)
def test_a_configuration_is_refused(changes, faults):
    assert [str(fault) for fault in validate(dataclasses.replace(DEFAULT, **changes))] == faults


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


@pytest.mark.parametrize(("name", "faults"), NAMES.values(), ids=NAMES)
def test_an_extended_resource_has_a_qualified_name(name, faults):
    assert extended_resource_faults(name) == faults


def test_a_name_may_lack_a_prefix_without_being_an_extended_resource():
    assert qualified_name_faults("gpu") == []


def test_a_fault_reads_as_its_path_and_its_message():
    assert str(Fault("a[0].b", "wrong")) == "a[0].b: wrong"
