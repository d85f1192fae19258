"""Builds etcd and the programs of Kubernetes: `make control-plane`. Takes 3 GB of disk and minutes the first time."""

from tests.controlplane.programs import MODULE, given
from tests.go_build import main

if __name__ == "__main__":
    major, minor, _ = MODULE.version().removeprefix("v").split(".")
    told = {"gitVersion": MODULE.version(), "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    main(MODULE, {f"k8s.io/component-base/version.{field}": value for field, value in told.items()}, given())
