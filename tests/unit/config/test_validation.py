"""Validation of fields that loading always sets."""

import dataclasses

import pytest

from extender.config.defaults import make_default_configuration
from extender.config.model import LeaderElection
from extender.config.validation import validate_configuration

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
def test_a_configuration_has_validation_errors(changes, errors):
    assert [str(error) for error in validate_configuration(dataclasses.replace(DEFAULT, **changes))] == errors
