"""Builds etcd and the programs of Kubernetes: `make control-plane`. Takes 3 GB of disk and minutes the first time."""

from tests.controlplane.programs import MODULE, programs_from_environment
from tests.go_build import main

if __name__ == "__main__":
    major, minor, _ = MODULE.version().removeprefix("v").split(".")
    linker_variables = {"gitVersion": MODULE.version(), "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    main(
        MODULE,
        {f"k8s.io/component-base/version.{field}": value for field, value in linker_variables.items()},
        programs_from_environment(),
    )
