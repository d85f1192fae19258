"""`extender compare`: place the same pods with two configurations or releases, and show the differences."""

from typing import Annotated, Final

import typer

from extender.analysis.coscheduling_groups import convert_coscheduling_groups
from extender.analysis.simulate import SimulationOptions
from extender.answers.schema_version import AnswerKind
from extender.cli import options
from extender.cli.live.cluster_options import ClusterOptions, read_cluster
from extender.cli.recording_options import (
    Cluster,
    InputOptions,
    load_setup_for_recording,
    make_offline_runtime,
    parse_gates_of_release,
    redirect_plugin_output,
    write_answer,
)
from extender.cli.terminal import ProgressBar
from extender.config.errors import ConfigError, FieldError
from extender.config.feature_gates import FeatureGates
from extender.config.releases import Release
from extender.planning.compare import (
    Comparison,
    ConfiguredCluster,
    compare,
    format_comparison,
    make_comparison_values,
    return_pods_to_queue,
)

_EPILOG: Final = """\b
Examples:
  extender compare --with-config binpack.yaml                               the pending pods of the live cluster
  extender compare -f cluster.json --config a.yaml --with-config b.yaml     those of a recording
  extender compare -f cluster.json --with-config binpack.yaml --all-pods    place all pods of controllers again
  extender compare -f cluster.json --emulated-version 1.36 --with-emulated-version 1.37    an upgrade

What --with-config, --with-feature-gates and --with-emulated-version do not name is as in the first configuration."""

WithConfigOption = Annotated[
    str, typer.Option("--with-config", metavar="FILE", help="The configuration to compare with.")
]
WithGatesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--with-feature-gates",
        metavar="GATE=BOOL",
        help="Its feature gates. May be repeated.",
        autocompletion=options.complete_gates,
    ),
]
WithVersionOption = Annotated[
    str,
    typer.Option(
        "--with-emulated-version",
        metavar="VERSION",
        help="Its release.",
        autocompletion=options.complete_releases,
    ),
]
AllPodsOption = Annotated[
    bool, typer.Option("--all-pods", help="Also place the pods of controllers again that have a node.")
]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command("compare", epilog=_EPILOG)
def compare_command(
    file: options.FilesOrClusterOption = None,
    config: options.ConfigOption = "",
    feature_gates: options.GatesOption = None,
    emulated_version: options.EmulatedVersionOption = "",
    with_config: WithConfigOption = "",
    with_feature_gates: WithGatesOption = None,
    with_emulated_version: WithVersionOption = "",
    all_pods: AllPodsOption = False,
    preempt: options.PreemptOption = False,
    override: options.OverrideOption = False,
    kubeconfig: options.KubeconfigOption = "",
    context: options.ContextOption = "",
    output: options.OutputOption = options.OutputFormat.TABLE,
    seed: options.SeedOption = 0,
    verbose: options.VerboseOption = False,
) -> None:
    """Place the same pods with two configurations, on a copy of the cluster, and show which pods go elsewhere.

    Without -f, the live cluster of the current kubeconfig is read. The report also has the pods that wait, the use of
    the cluster and its evenness, and the time per pod. Nothing is written anywhere.
    """
    if not (with_config or with_feature_gates or with_emulated_version):
        raise typer.BadParameter(
            "nothing to compare with; name a configuration or a release", param_hint="--with-config"
        )
    first_options = InputOptions(config, tuple(feature_gates or ()), emulated_version, override)
    second_options = InputOptions(
        with_config or config,
        tuple(with_feature_gates or first_options.feature_gates),
        with_emulated_version or emulated_version,
    )
    with redirect_plugin_output():
        first = read_cluster(file, first_options, ClusterOptions(kubeconfig, context))
        gates = _parse_second_gates(first.setup.gates.release, second_options, has_own_gates=bool(with_feature_gates))
        setup = load_setup_for_recording(second_options.config, first.recording, gates)
        second = Cluster(convert_coscheduling_groups(first.recording, setup.gates), setup)
        if all_pods:
            return_pods_to_queue(first.cache)
            return_pods_to_queue(second.cache)
        comparison = _compare((first, second), SimulationOptions(seed, preempt), verbose=verbose)
    write_answer(
        output,
        AnswerKind.COMPARISON,
        lambda: make_comparison_values(comparison, seed),
        lambda: format_comparison(comparison, _make_titles(first_options, second_options)),
    )


def _parse_second_gates(first_release: Release, second: InputOptions, *, has_own_gates: bool) -> FeatureGates:
    """Return the gates of the second configuration. The paths of the errors are its flags.

    Without *has_own_gates*, its gates are those of the first configuration, of which its release may not have all.
    """
    try:
        return parse_gates_of_release([first_release.version, *second.emulated_versions], second.feature_gates)
    except ConfigError as error:
        raise ConfigError(_name_flag(item, has_own_gates=has_own_gates) for item in error.errors) from error


def _name_flag(error: FieldError, *, has_own_gates: bool) -> FieldError:
    if error.path == "--feature-gates" and not has_own_gates:
        hint = "the second configuration has the same gates without --with-feature-gates"
        return FieldError(error.path, f"{error.message}; {hint}")
    return FieldError(error.path.replace("--", "--with-", 1), error.message)


def _compare(clusters: tuple[Cluster, Cluster], options: SimulationOptions, *, verbose: bool) -> Comparison:
    """Place the pods of both clusters, and show a progress bar at a terminal."""
    first, second = (
        ConfiguredCluster(cluster.cache, cluster.setup.profiles, make_offline_runtime(verbose=verbose))
        for cluster in clusters
    )
    with ProgressBar("pods") as progress_bar:
        return compare(first, second, options, progress_bar.show)


def _make_titles(first: InputOptions, second: InputOptions) -> tuple[str, str]:
    """Return the titles of the two columns: what the configurations do not share."""
    titles = []
    for own, other in ((first, second), (second, first)):
        parts = [own.config or "DEFAULT"] if own.config != other.config else []
        if own.emulated_version != other.emulated_version:
            parts.append(own.emulated_version or "default release")
        if own.feature_gates != other.feature_gates:
            parts.append(",".join(own.feature_gates) or "default gates")
        titles.append(" ".join(parts) or "SAME")
    return titles[0], titles[1]
