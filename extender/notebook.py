"""The public API for notebooks and scripts: questions about a recorded cluster, answered as plain values.

from extender.notebook import read_cluster

cluster = read_cluster("cluster.json.gz", config="scheduler.yaml")
answer = cluster.explain("shop/web-1")["pods"]["shop/web-1"]
placements = cluster.simulate(seed=7)["placements"]

The answers are those of the commands with `-o json`: docs/reference/answers.md has their fields, and `schemaVersion`
their version. The names in `__all__` stay compatible within a minor release.
"""

import os
from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, SupportsIndex

import msgspec

from extender.analysis.explain import PodExplainer
from extender.analysis.input.input_errors import InputError, make_input_error
from extender.analysis.pod_selection import PodSelection
from extender.analysis.recorded_cluster import check_nodes, load_cache
from extender.analysis.simulate import SimulationOptions, make_simulation_values
from extender.analysis.simulate import simulate as run_simulation
from extender.analysis.text_table import format_count, join_first
from extender.answers.schema_version import AnswerKind, make_answer
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.cli.recording_options import Cluster, InputOptions, make_offline_runtime, read_inputs
from extender.cli.terminal import write_error
from extender.config.errors import ConfigError
from extender.plugins.registry import validate_plugins

__all__ = ["ConfigError", "InputError", "RecordedCluster", "read_cluster"]


class RecordedCluster:
    """A recorded cluster with the configuration in force. No question changes it."""

    def __init__(self, cluster: Cluster) -> None:
        """Take the cluster; see `read_cluster`."""
        self._cluster = cluster

    def __repr__(self) -> str:
        recording = self._cluster.recording
        counts = (
            format_count(sum(isinstance(obj, kind) for obj in recording.objects), noun)
            for kind, noun in ((Node, "node"), (Pod, "pod"))
        )
        return f"<RecordedCluster {join_first(recording.sources)}: {', '.join(counts)}>"

    def explain(self, *pods: str) -> dict[str, Any]:
        """Return what `extender explain -o json` prints.

        Args:
            pods: the pods, as `namespace/name`, or the workloads, as `deployment/name`; none: all pending pods.

        Raises:
            InputError: there is no such pod.
            TypeError: a pod is no text, but a list of names, for example.
        """
        names: tuple[object, ...] = pods  # no type checker runs in most notebooks
        wrong_types = [type(name).__name__ for name in names if not isinstance(name, str)]
        if wrong_types:
            example = 'explain("shop/web-1", "shop/web-2"), or explain(*names)'
            raise TypeError(f"a pod is {wrong_types[0]}, want text: write {example}")
        recording, setup, runtime = self._cluster.recording, self._cluster.setup, make_offline_runtime(verbose=False)
        explainer = PodExplainer(recording, PodSelection(pods), setup.profiles, tuple(setup.profiles), runtime)
        values = {
            key: report.to_values()
            for report in explainer.iterate_reports()
            for key in (report.explanation.pod.key, *report.alike_pods)
        }
        return _to_plain_values(AnswerKind.EXPLANATION, {"pods": values})

    def simulate(self, *, seed: int = 0, preempt: bool = False) -> dict[str, Any]:
        """Return what `extender simulate -o json` prints.

        Args:
            seed: the seed of the choice between equally good nodes.
            preempt: whether pods of lower priority are evicted for pods that fit on no node.

        Raises:
            InputError: a node has no status.
            TypeError: the seed is no whole number, or `preempt` is neither True nor False.
        """
        seed = _check_seed(seed)
        if not isinstance(preempt, bool):
            raise TypeError(f"preempt is {type(preempt).__name__}, want True or False")
        recording, setup = self._cluster.recording, self._cluster.setup
        check_nodes(recording)
        simulation = run_simulation(
            load_cache(recording, setup.gates, setup.profiles),
            setup.profiles,
            make_offline_runtime(verbose=False),
            SimulationOptions(seed, preempt),
            recording=recording,
        )
        return _to_plain_values(AnswerKind.SIMULATION, make_simulation_values(simulation, seed))


def read_cluster(
    *files: str | os.PathLike[str],
    config: str | os.PathLike[str] | Mapping[str, Any] = "",
    override: bool = False,
    plugins: Iterable[object] = (),
) -> RecordedCluster:
    """Read a cluster. Notes, for example about skipped kinds, are printed on standard error.

    Args:
        files: the recordings and manifests, as for the flag `-f`.
        config: the file of the configuration, or its content as plain values; empty: that of the recording, or the
            default configuration.
        override: whether a later object replaces an earlier object of the same kind and name.
        plugins: plugins that no installed package has, such as functions of a notebook that are decorated with
            `filter_plugin`. The configuration enables them. They replace plugins of the same name.

    Raises:
        ConfigError: the recorded release cannot be emulated, or a plugin is invalid.
        InputError: a file or the configuration is invalid, or no file is named.
        TypeError: the plugins are no list.
    """
    if not files:
        raise make_input_error("read_cluster", "names no file; extender record -o cluster.json.gz writes one")
    if not isinstance(plugins, Iterable):
        raise TypeError(f"plugins is {type(plugins).__name__}, want a list: write plugins=[...]")
    registry = validate_plugins(*plugins)
    if isinstance(config, Mapping):
        options = InputOptions(override=override, document=config, plugins=registry)
    else:
        options = InputOptions(os.fspath(config), override=override, plugins=registry)
    cluster = read_inputs([os.fspath(file) for file in files], options)
    enabled_plugins = {name for profile in cluster.setup.profiles.values() for name in profile.plugins}
    for name in sorted(registry.keys() - enabled_plugins):
        write_error(f'note: plugin "{name}" has no effect: the configuration does not enable it')
    return RecordedCluster(cluster)


def _check_seed(seed: object) -> int:
    """Return *seed* as an int, also that of a NumPy array.

    Raises:
        TypeError: it is another value. A text would be accepted as a seed, and None would give other results each time.
    """
    if isinstance(seed, bool) or not isinstance(seed, SupportsIndex):
        raise TypeError(f"seed is {type(seed).__name__}, want a whole number: write seed=7")
    return index(seed)


def _to_plain_values(kind: AnswerKind, values: dict[str, Any]) -> dict[str, Any]:
    """Return an answer as dictionaries, lists and scalars."""
    answer: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(make_answer(kind, values)))
    return answer
