"""`--write-config-to` of kube-scheduler and of `extender schedule` write the same bytes."""

import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from tests.controlplane import programs
from tests.controlplane.control_plane import ControlPlane

EXISTS: Final = [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]
CONFIGURATIONS: Final[dict[str, dict[str, Any]]] = {
    "defaults": {},
    "settings": {
        "parallelism": 3,
        "podInitialBackoffSeconds": 2,
        "podMaxBackoffSeconds": 7,
        "delayCacheUntilActive": True,
        "percentageOfNodesToScore": 40,
        "extenders": [],
    },
    "extenders": {
        "extenders": [
            {"urlPrefix": "http://127.0.0.1:1/", "filterVerb": "filter", "httpTimeout": "0s"},
            {
                "urlPrefix": "http://127.0.0.1:1/",
                "prioritizeVerb": "prioritize",
                "weight": 3,
                "httpTimeout": "1500ms",
                "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
            },
        ]
    },
    "plugins": {
        "profiles": [
            {
                "schedulerName": "first",
                "plugins": {
                    "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit", "weight": 5}]}
                },
            },
            {"schedulerName": "second", "percentageOfNodesToScore": 30},
        ]
    },
    "arguments that are set": {
        "profiles": [
            {
                "pluginConfig": [
                    {
                        "name": "NodeAffinity",
                        "args": {
                            "addedAffinity": {
                                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": EXISTS},
                                "preferredDuringSchedulingIgnoredDuringExecution": [
                                    {"weight": 1, "preference": EXISTS[0]}
                                ],
                            }
                        },
                    },
                    {
                        "name": "PodTopologySpread",
                        "args": {
                            "defaultingType": "List",
                            "defaultConstraints": [
                                {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"}
                            ],
                        },
                    },
                    {
                        "name": "NodeResourcesFit",
                        "args": {
                            "ignoredResources": ["example.com/gpu"],
                            "scoringStrategy": {
                                "type": "RequestedToCapacityRatio",
                                "resources": [{"name": "cpu"}, {"name": "memory", "weight": 3}],
                                "requestedToCapacityRatio": {
                                    "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
                                },
                            },
                        },
                    },
                    {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 0}},
                    {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 0}},
                ]
            }
        ]
    },
    "arguments that are empty": {
        "profiles": [
            {
                "pluginConfig": [
                    {"name": "PodTopologySpread", "args": {"defaultingType": "List", "defaultConstraints": []}},
                    {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}},
                    {"name": "NodeResourcesBalancedAllocation", "args": {"resources": [{"name": "cpu"}]}},
                ]
            }
        ]
    },
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_written_configuration_is_that_of_kube_scheduler(
    control_plane: ControlPlane, tmp_path: Path, name: str
) -> None:
    file = control_plane.write_configuration(CONFIGURATIONS[name])
    found = programs.find()
    assert not isinstance(found, str), found
    written: list[str] = []
    for command in ([found.path("kube-scheduler")], programs.make_extender_command("schedule")):
        target = tmp_path / f"{len(written)}.yaml"
        subprocess.run(
            [*command, f"--config={file}", f"--write-config-to={target}"],
            check=True,
            capture_output=True,
            timeout=60,
        )
        written.append(target.read_text())
    assert written[1] == written[0]
