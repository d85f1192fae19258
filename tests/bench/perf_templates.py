"""The cases of scheduler_perf, kube-scheduler's own benchmark: its files, parameters and object templates."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.programs import MODULE
from tests.go_build import find_go

_RENDERER = Path(__file__).parent / "templates" / "main.go"


@dataclass(frozen=True, slots=True)
class Workload:
    """A case with one set of parameters.

    Attributes:
        name: `FOLDER/CASE/WORKLOAD`.
        case: the name of the case.
        folder: the folder to which the paths of templates are relative.
        operations: the operations in order, as in `performance-config.yaml`.
        params: the values of the parameters.
        default_pod_template: the pod template of operations that name none.
        feature_gates: the gates that differ from the default.
        configuration: the fields of KubeSchedulerConfiguration that differ from the default.
        labels: the labels of the workload, such as `performance`.
    """

    name: str
    case: str
    folder: Path
    operations: list[dict[str, Any]]
    params: Mapping[str, Any]
    default_pod_template: str
    feature_gates: Mapping[str, bool]
    configuration: Mapping[str, Any]
    labels: frozenset[str]

    def resolve(self, value: Any) -> Any:
        """Return the value of the parameter that *value* names, as `$NAME` or `$NAME|DEFAULT`; else *value*."""
        if not isinstance(value, str) or not value.startswith("$"):
            return value
        name, _, default = value[1:].partition("|")
        return self.params[name] if name in self.params else yaml.safe_load(default)

    def get(self, operation: Mapping[str, Any], field: str, default: Any = None) -> Any:
        """Return *field* of *operation*, or the parameter that its field `FIELDParam` names."""
        parameter = operation.get(f"{field}Param")
        return operation.get(field, default) if parameter is None else self.resolve(parameter)

    def count(self, operation: Mapping[str, Any]) -> int:
        """Return the number of objects of *operation*."""
        return int(self.get(operation, "count", 1)) * int(self.get(operation, "countMultiplier", 1))


def find_folder() -> Path:
    """Return the folder of scheduler_perf in Go's module cache, which `make control-plane` fills."""
    command = [find_go(MODULE), "list", "-modfile", MODULE.mod_file, "-m", "-f", "{{.Dir}}", MODULE.version_module]
    listed = subprocess.run(command, cwd=MODULE.folder, check=True, capture_output=True, text=True)
    return Path(listed.stdout.strip()) / "test" / "integration" / "scheduler_perf"


def list_workloads(folder: Path) -> Iterator[Workload]:
    """Return all workloads below *folder*."""
    for file in sorted(folder.rglob("performance-config.yaml")):
        for case in yaml.safe_load(file.read_text()):
            for workload in case["workloads"]:
                path = workload.get("schedulerConfigPath") or case.get("schedulerConfigPath")
                configuration = yaml.safe_load((file.parent / path).read_text()) if path else {}
                yield Workload(
                    name=f"{file.parent.relative_to(folder)}/{case['name']}/{workload['name']}",
                    case=case["name"],
                    folder=file.parent,
                    operations=case["workloadTemplate"],
                    params=workload.get("params", {}),
                    default_pod_template=case.get("defaultPodTemplatePath", str(folder / "templates/pod-default.yaml")),
                    feature_gates={**case.get("featureGates", {}), **workload.get("featureGates", {})},
                    configuration={
                        key: value for key, value in configuration.items() if key not in ("apiVersion", "kind")
                    },
                    labels=frozenset(workload.get("labels", ())),
                )


class TemplateRenderer:
    """Renders object templates with Go's text/template."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def render(self, file: Path, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the object that the template *file* makes with *values*.

        Raises:
            SystemExit: the template or its YAML is invalid.
        """
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None
        assert answers is not None
        requests.write(json.dumps({"file": str(file), "values": values}) + "\n")
        requests.flush()
        answer = json.loads(answers.readline())
        if answer["error"]:
            raise SystemExit(f"{file}: {answer['error']}")
        rendered: dict[str, Any] = yaml.load(answer["text"], Loader=yaml.CSafeLoader)
        return rendered


@contextmanager
def run_renderer() -> Iterator[TemplateRenderer]:
    """Compile and run the renderer."""
    command = [find_go(MODULE), "run", _RENDERER.name]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=_RENDERER.parent, stdin=pipe, stdout=pipe, text=True) as process:
        yield TemplateRenderer(process)
