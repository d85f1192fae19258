"""Write docs/reference from the code: flags, configuration, plugins, metrics, alerts; --check only compares."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import click
import msgspec
import typer
import yaml
from answer_reference import render_answers, render_schema_files
from prometheus_client import CollectorRegistry

from extender.app import wiring
from extender.cli import schedule_flags, serve_flags
from extender.cli.main import COMMANDS, app
from extender.cli.pflag import Flag
from extender.config import durations
from extender.config.defaults import DEFAULT_PLUGINS, FEATURE_GATED_PLUGINS
from extender.config.durations import Duration
from extender.config.feature_gate_specs import FEATURE_SPECS
from extender.config.feature_gates import SCHEDULING_FEATURES, FeatureGates
from extender.config.model import ClientConnection, Configuration, Extender, LeaderElection, ManagedResource, TLSConfig
from extender.config.releases import DEFAULT_RELEASE, RELEASE_1_36, RELEASES
from extender.config.strict_decoding import decode_strict
from extender.framework.plugin_args import DefaultedOptions
from extender.framework.profile_builder import EXTENSION_POINT_METHODS, get_extension_points
from extender.metrics import process_families, scheduler_families
from extender.metrics.exposition import STALENESS_FAMILY
from extender.metrics.families import MetricFamily, select_families
from extender.metrics.verb_metrics import VerbMetrics
from extender.plugins.registry import BUILT_IN_PLUGINS

DOCS = Path(__file__).resolve().parent
NEWEST_PLUGINS = DEFAULT_PLUGINS[DEFAULT_RELEASE.version]
OUT = DOCS / "reference"
FIELD_DESCRIPTIONS = yaml.safe_load((DOCS / "fields.yaml").read_text())
TESTS = DOCS.parent / "tests"
ALERTS = DOCS.parent / "chart" / "files" / "alerts.yaml"
GENERATED_NOTE = "<!-- Written by docs/write_reference.py from the code; change the code, then `make reference`. -->\n"


def render_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; bars in cells are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def format_code(value: object) -> str:
    """Return *value* as inline code; empty for an empty value."""
    text = "" if value is None else str(value)
    return f"`{text}`" if text else ""


def describe_field(path: str, name: str) -> str:
    """Return the description of a configuration field; *path* is the place of its struct."""
    description: str | None = FIELD_DESCRIPTIONS.get(path, {}).get(name)
    if description is None:
        sys.exit(f'docs/fields.yaml: add a description of {name} to "{path}"')
    return description


def render_page(title: str, about: str, *parts: str) -> str:
    """Return a page with the note that it is generated."""
    return "\n".join([GENERATED_NOTE, f"# {title}\n", about.strip() + "\n", *parts])


# -- flags


def render_flags() -> str:
    """Return the page of all commands with their flags or options."""
    parts = []
    for name, groups in (("schedule", schedule_flags.GROUPS), ("serve", serve_flags.GROUPS)):
        parts.append(f"## extender {name}\n\n{COMMANDS[name]}\n")
        parts += [f"### {name}: {group}\n\n{render_flag_table(flags)}" for group, flags in groups.items()]
    for name, command in sorted(list_typer_commands()):
        parts.append(f"## {name}\n\n{(command.help or '').split(chr(12))[0].strip()}\n\n{render_option_table(command)}")
    about = """
Each command prints its flags with `--help`. `schedule` and `serve` accept flags in the same forms as kube-scheduler:
`--name=value`, `--name value`, `--name` for booleans, `-v4`.
"""
    return render_page("Commands and flags", about, *parts)


def render_flag_table(flags: Sequence[Flag]) -> str:
    """Return the table of one group of flags."""
    rows = []
    for flag in flags:
        meaning = flag.help
        if flag.deprecated:
            meaning = f"Deprecated: {flag.deprecated}. {meaning}"
        if flag.no_effect_reason:
            meaning += f" Accepted, without effect: {flag.no_effect_reason}."
        rows.append(
            (
                format_code(flag.display_name),
                format_code(flag.type.type_name or "bool"),
                format_code(flag.type.render(flag.default)),
                meaning,
            )
        )
    return render_table(("Flag", "Value", "Default", "Meaning"), rows)


def list_typer_commands() -> Iterator[tuple[str, click.Command]]:
    """Yield full name and command of all Typer commands."""
    root = typer.main.get_command(app)
    for name in set(COMMANDS) - {"schedule", "serve"}:
        command: Any = root.get_command(typer.Context(root), name)  # type: ignore[attr-defined]
        if hasattr(command, "commands"):
            yield from ((f"extender {name} {inner}", each) for inner, each in command.commands.items())
        else:
            yield f"extender {name}", command


def render_option_table(command: click.Command) -> str:
    """Return the table of a command's arguments and options."""
    rows = []
    for parameter in command.params:
        option = isinstance(parameter.opts, list) and parameter.opts[0].startswith("-")
        names = ", ".join(sorted(parameter.opts, key=len)) if option else (parameter.metavar or parameter.name or "")
        default = parameter.default
        shown = "" if default is None or default is False else str(getattr(default, "value", default))
        rows.append(
            (
                format_code(names),
                "required" if parameter.required else format_code(shown),
                getattr(parameter, "help", "") or "",
            )
        )
    return render_table(("Option", "Default", "Meaning"), rows) if rows else ""


# -- configuration


def render_configuration() -> str:
    """Return the page of configuration fields, default plugins, feature gates and the default configuration."""
    structs = (
        ("leaderElection", LeaderElection),
        ("clientConnection", ClientConnection),
        ("extenders[]", Extender),
        ("extenders[].tlsConfig", TLSConfig),
        ("extenders[].managedResources[]", ManagedResource),
    )
    about = """
`--config` names a `KubeSchedulerConfiguration` of `kubescheduler.config.k8s.io/v1`, as in kube-scheduler. It is decoded
strictly: each unknown field, wrong type and violated rule is an error with its field path. `extender config check FILE`
lists all errors. Durations have Go's format: `15s`, `1m30s`. [Plugins](plugins.md) lists the plugins' arguments.
"""
    head = ("Field", "Default", "Meaning")
    gates = render_table(
        ("Gate", *RELEASES, "Added plugins"),
        (
            (format_code(name), *(render_feature_spec(name, version) for version in RELEASES),
             ", ".join(each.name for each in FEATURE_GATED_PLUGINS.get(name, ())))
            for name in sorted(SCHEDULING_FEATURES)
        ),
    )  # fmt: skip
    return render_page(
        "Configuration",
        about,
        "## Fields\n\n" + render_table(head, list_top_fields()),
        *(f"## {path}\n\n" + render_table(head, list_struct_fields(path, struct)) for path, struct in structs),
        "## Default plugins\n\nThe plugins of the set `multiPoint`, in this order; the weight is for score plugins.\n\n"
        + render_table(
            ("Plugin", "Weight"),
            ((format_code(p.name), str(p.weight or "")) for p in NEWEST_PLUGINS.multi_point.enabled),
        )
        + "\nIn release 1.36, `NodeUnschedulable` precedes `NodeName`.\n",
        "## Feature gates\n\n`--feature-gates Gate=bool,...`. These gates change scheduling; all other gates "
        "of the release are accepted, without effect. `--emulated-version` selects the release. The table has the "
        "stage and the default of each gate by release; without an entry, the release does not have the gate.\n\n"
        + gates,
        "## The default configuration\n\n`extender config defaults` prints it: all fields with their defaults."
        f"\n\n```yaml\n{wiring.build_setup().render_with_defaults()}```\n",
    )


def render_feature_spec(gate: str, version: str) -> str:
    """Return the stage and the default of *gate* in a release; empty if the release does not have the gate."""
    spec = FEATURE_SPECS[version].get(gate)
    if spec is None:
        return ""
    return f"{spec.stage or 'GA'}, {'on' if spec.default else 'off'}{', locked' if spec.locked else ''}"


def list_top_fields() -> Iterator[tuple[str, str, str]]:
    """Yield name, default and meaning of the top-level fields."""
    for field in fields(Configuration):
        first, *words = field.name.split("_")
        name = first + "".join(map(str.title, words))
        shown = "" if field.default is MISSING else format_code(to_json(field.default))
        yield format_code(name), shown, describe_field("", name)


def list_struct_fields(path: str, struct: type[msgspec.Struct]) -> Iterator[tuple[str, str, str]]:
    """Yield name, default and meaning of the fields at *path*."""
    for field in msgspec.structs.fields(struct):
        default = durations.render(field.default) if field.type is Duration else field.default
        yield format_code(field.encode_name), format_code(to_json(default)), describe_field(path, field.encode_name)


def to_json(value: object) -> str:
    """Encode *value* as JSON."""
    return msgspec.json.encode(value).decode()


# -- plugins


def render_plugins() -> str:
    """Return the page of built-in plugins: the docstring of each, and its arguments with their defaults."""
    enabled = {plugin.name for plugin in NEWEST_PLUGINS.multi_point.enabled}
    gated = {plugin.name: gate for gate, plugins in FEATURE_GATED_PLUGINS.items() for plugin in plugins}
    parts = []
    first_plugins: dict[str, str] = {}
    for plugin in sorted(BUILT_IN_PLUGINS, key=lambda each: each.name):
        first = first_plugins.setdefault(plugin.__module__, plugin.name)
        manual = plugin_manual(plugin) if first == plugin.name else f"See [{first}](#{first.lower()}).\n"
        points = ", ".join(
            format_code(point) for point in EXTENSION_POINT_METHODS if point in get_extension_points(plugin)
        )
        state = "enabled by default" if plugin.name in enabled else f"enabled by the gate {gated[plugin.name]}" if (
            plugin.name in gated) else "disabled by default"  # fmt: skip
        parts.append(f"## {plugin.name}\n\n{points}; {state}.\n\n{manual}{render_plugin_args(plugin)}")
    about = """
All built-in plugins, with the docstrings of their modules. Plugins that are disabled by default are GpuShare and those
of older releases; a Policy or a profile can enable them. [Parity](parity.md) shows how each plugin was compared with
kube-scheduler. [A plugin in fifteen minutes](../plugins.md) explains your own plugins.
"""
    return render_page("Plugins", about, *parts)


def plugin_manual(plugin: type[Any]) -> str:
    """Return the docstring of the plugin's module, which is Markdown, without its `Source:` paragraph.

    Sections may be indented by four spaces, which Markdown would show as code.
    """
    text = (sys.modules[plugin.__module__].__doc__ or "").partition("\nSource: ")[0].strip()
    return re.sub(r"(?m)^ {4}", "", text) + "\n"


def render_plugin_args(plugin: type[Any]) -> str:
    """Return the plugin's arguments with their defaults as YAML for a profile."""
    options = getattr(plugin, "options", None)
    if options is None:
        return ""
    raw = options.apply_defaults({}, FeatureGates()) if issubclass(options, DefaultedOptions) else {}
    decoded, _errors = decode_strict(raw, options, "")
    config = [{"name": plugin.name, "args": msgspec.to_builtins(decoded)}]
    text = yaml.safe_dump(config, sort_keys=False)
    return f"\nArguments in `pluginConfig`, with their defaults:\n\n```yaml\n{text}```\n"


# -- parity


DIFFERENCES = """## Differences

- kube-scheduler selects one of the nodes with the highest score at random. The extender does the same: the set of nodes
  is equal, the selected node may differ.
- With `percentageOfNodesToScore: 0`, the default, all nodes are evaluated. In a cluster of 100 nodes or more,
  kube-scheduler ends the search at 50 % to 5 % of the nodes, so that the best node may not be among them.
- Responses of HTTP extenders have a maximum size; in kube-scheduler they have none. It is an error if an extender
  returns a whole node that it was not asked about. A message has no reasons for nodes that do not exist.
- A pod with more than 1,000 labels, volumes or containers, 256 resources, or 1,000 fields of scheduling rules is not
  scheduled; its event names the limit.
- The client of the API server uses JSON, not protobuf. Its user agent starts with `extender/`, and `managedFields` name
  the manager `extender`.
- If the response to a claim's allocation is lost, the allocation is written again until its outcome is known. Until
  then no other claim gets the devices. kube-scheduler frees the devices at once, and may allocate them twice.
- There are no `go_*` metrics and no profiling endpoints; their flags are accepted. There are no `informer_*` metrics.
- `/statusz` lists `/explain` too. `/statusz` and `/flagz` have no CBOR, which kube-scheduler has with the alpha gate
  `CBORServingAndStorage`.
- If the API server cannot be reached for 10 seconds at the start, or refuses the credentials, `extender schedule` ends
  with an error. kube-scheduler waits, and `/readyz` responds with 500.
- There is no opportunistic batching: the scores of each pod are up to date, and those that did not change are reused.
  With batching, kube-scheduler uses scores that are up to 500 ms old. The metrics of batching have no samples.
- `InterPodAffinityHostnameFastPath`, an alpha gate of 1.37, has no effect. In kube-scheduler it changes decisions only
  if nodes share a value of the label `kubernetes.io/hostname`, or lack it.
- With `CompositePodGroup`, kube-scheduler proposes the members of a tree to preemption in any order of their pod
  groups. The extender takes the order in which it scheduled them, so that other victims may be selected.
"""


def render_parity() -> str:
    """Return the page that shows how each plugin is compared with kube-scheduler."""
    checked = yaml.safe_load((DOCS / "parity.yaml").read_text())
    gated = {plugin.name for plugins in FEATURE_GATED_PLUGINS.values() for plugin in plugins}
    rows: dict[str, list[tuple[str, ...]]] = {"default": [], "gated": [], "older": []}
    if missing := sorted({plugin.name for plugin in BUILT_IN_PLUGINS} - checked.keys()):
        sys.exit(f"docs/parity.yaml: add how these plugins are compared with kube-scheduler: {', '.join(missing)}")
    for plugin in sorted(BUILT_IN_PLUGINS, key=lambda each: each.name):
        how = checked.pop(plugin.name)
        if "own" in how:
            continue
        kind = "older" if "until" in how else "gated" if plugin.name in gated else "default"
        points = ", ".join(point for point in EXTENSION_POINT_METHODS if point in get_extension_points(plugin))
        until = (how.get("until", ""),) if kind == "older" else ()
        rows[kind].append(
            (f"[{plugin.name}](plugins.md#{plugin.name.lower()})", points, *until, render_evidence(plugin, how))
        )
    if checked:
        sys.exit(f"docs/parity.yaml: remove these plugins, which do not exist: {', '.join(checked)}")
    about = """
The reference is kube-scheduler 1.37.2 and 1.36.3, as `--emulated-version` selects; the default is 1.37. These results
must be equal: the rejected nodes with plugin and reason; raw, normalized and weighted scores; messages; preemption
victims. Five kinds of tests compare them:

- **Recorded results** (`tests/parity`): 84 clusters in 14 categories with the results of kube-scheduler 1.36 and 1.37
  for each pending pod, compared field by field, through `explain` and over HTTP in all payload forms.
- **A real kube-scheduler** (`tests/controlplane`): both schedulers run on a real API server; placements, events,
  victims, metrics, HTTP endpoints, extender requests and pod groups are compared.
- **Cases** (`tests/cases`, `tests/unit/plugins`): one rule per case, with written expected values.
- **A second implementation of a Policy's rules** (`tests/policy_oracle.py`), for plugins of older releases, which
  kube-scheduler 1.36 and 1.37 do not have.
- **Properties** (`tests/properties`): cached results equal newly computed ones; dry runs of preemption equal clusters
  rebuilt without the victims; a Policy gives the same decisions as its conversion.

All plugins of kube-scheduler 1.37 and 1.36 exist here. A row without a recorded category has no recorded cluster for
that plugin alone; the plugin still runs on all recorded clusters.
"""
    head = ("Plugin", "Extension points", "Compared by")
    older = ("Plugin", "Extension points", "In kube-scheduler until", "Compared by")
    return render_page(
        "Parity",
        about,
        "## Default plugins\n\n" + render_table(head, rows["default"]),
        "## Plugins behind feature gates (alpha)\n\n" + render_table(head, rows["gated"]),
        "## Plugins of older releases\n\n" + render_table(older, rows["older"]),
        DIFFERENCES,
    )


def render_evidence(plugin: type[Any], how: Mapping[str, Any]) -> str:
    """Return the recorded categories and test files that compare a plugin with kube-scheduler."""
    parts = plugin.__module__.removeprefix("extender.plugins.").removeprefix("legacy.").split(".")[0]
    patterns = (f"unit/plugins/test_{parts}*.py", f"unit/plugins/{parts}/test_*.py")
    cases = [file for file in TESTS.glob("cases/*.yaml") if f"plugin: {plugin.name}\n" in file.read_text()]
    cases += [file for pattern in patterns for file in TESTS.glob(pattern)]
    live = [TESTS / "controlplane" / f"{name}.py" for name in how.get("live", ())]
    recorded = ", ".join(how.get("recorded", ()))
    files = [str(file.relative_to(TESTS)) for file in (*sorted(cases), *live)]
    missing = [file for file in live if not file.exists()]
    if missing:
        raise FileNotFoundError(*missing)
    found = [f"recorded: {recorded}"] if recorded else []
    found += ["Policy's oracle, `cases/legacy`"] if how.get("policy") else []
    return "; ".join([*found, *map(format_code, files)])


# -- metrics and alerts


def render_metrics() -> str:
    """Return the page of all metric families, by component."""
    registry = CollectorRegistry()
    VerbMetrics(registry)
    verbs = []
    for collector in registry._collector_to_names:  # noqa: SLF001  a registry lists no family without values
        (family,) = collector.describe()
        verbs.append((format_code(family.name + ("_total" if family.type == "counter" else "")), family.type,
                      ", ".join(map(format_code, collector._labelnames)), "", family.documentation))  # noqa: SLF001  # fmt: skip
    others = [family for family in process_families.PROCESS_FAMILIES if family not in process_families.CLIENT_FAMILIES]
    head = ("Metric", "Type", "Labels", "Stability", "Meaning")
    about = """
`/metrics` serves these metrics in Prometheus' text format. Names, labels and buckets are kube-scheduler's if it has the
metric, so that its dashboards and alerts work. `python_*` and `process_*` replace the metrics of Go's runtime. There
are no shared informers, work queues and batches of equal pods: `informer_*` is absent, and `workqueue_*`,
`scheduler_batch_*`, `scheduler_get_node_hint_*` and `scheduler_store_schedule_results_*` have no values.
[Alerts](alerts.md) shows which metrics to watch. The tables show the metrics of Kubernetes 1.37. The last column names
the release or the feature gate that a metric needs.
"""
    return render_page(
        "Metrics",
        about,
        "## Verbs (`serve`)\n\n" + render_table(head, verbs),
        "## Cache (`serve` and `schedule`)\n\n" + render_table(head, list_families([STALENESS_FAMILY])),
        "## Changed files (`serve`)\n\n" + render_table(head, list_families(process_families.RELOAD_FAMILIES)),
        "## Plugins (`serve` and `schedule`)\n\n"
        + render_table(head, list_families(scheduler_families.PLUGIN_FAMILIES)),
        "## Scheduling (`schedule`)\n\n" + render_table(head, list_families(scheduler_families.SCHEDULER_FAMILIES)),
        "## API requests (`serve` and `schedule`)\n\n"
        + render_table(head, list_families(process_families.CLIENT_FAMILIES)),
        "## Process (`schedule`)\n\n" + render_table(head, list_families(others)),
        "## Health checks (`/metrics/slis`)\n\n" + render_table(head, list_families(process_families.HEALTH_FAMILIES)),
    )


def list_families(found: Iterable[MetricFamily]) -> Iterator[tuple[str, ...]]:
    """Yield the table rows of metric families, as they are in the default release if it has them."""
    found = tuple(found)
    families = {family.name: family for family in select_families(found, DEFAULT_RELEASE)}
    names_before = {family.name for family in select_families(found, RELEASE_1_36)}
    gates = {name: gate for gate, names in scheduler_families.FAMILIES_BY_GATE.items() for name in names}
    for family in (families.get(family.name, family) for family in found):
        notes = [f"Needs the feature gate {format_code(gates[family.name])}."] if family.name in gates else []
        if family.name not in families:
            notes.append("Only in 1.36.")
        elif family.name not in names_before:
            notes.append(f"Since {DEFAULT_RELEASE.version}.")
        if family.deprecated_version:
            notes.append(f"Deprecated since {family.deprecated_version}.")
        if family.is_hidden:
            notes.append("Hidden without `--show-hidden-metrics-for-version`.")
        labels = ", ".join(map(format_code, family.labels))
        text = " ".join([family.help, *notes])
        yield format_code(family.name), family.type.value, labels, family.stability.value, text


def render_alerts() -> str:
    """Return the page of the chart's alerts."""
    about = """
With `metrics.prometheusRule.enabled=true` the chart creates a PrometheusRule with the alerts of its mode. `JOB` is the
Prometheus job of the installation. [Operations](../operations.md#when-an-alert-fires) lists the actions for each alert.
"""
    parts = []
    for alert in yaml.safe_load(ALERTS.read_text()):
        annotations, severity = alert["annotations"], alert["labels"]["severity"]
        parts.append(
            f"## {alert['alert']}\n\n{annotations['summary']} {annotations['description']}\n\n"
            f"Severity {severity}, after {alert['for']}, in the modes {', '.join(alert['modes'])}.\n\n"
            f"```promql\n{alert['expr'].strip()}\n```\n"
        )
    return render_page("Alerts", about, *parts)


PAGES: Mapping[str, Callable[[], str]] = {
    "flags.md": render_flags,
    "configuration.md": render_configuration,
    "plugins.md": render_plugins,
    "metrics.md": render_metrics,
    "alerts.md": render_alerts,
    "parity.md": render_parity,
    "answers.md": lambda: GENERATED_NOTE + "\n" + render_answers(),
}


def main() -> int:
    """Write the pages; with --check only report those that differ."""
    pages = {OUT / name: make() for name, make in PAGES.items()} | render_schema_files()
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            sys.stderr.write(f"{path.relative_to(DOCS.parent)} differs from the code; run `make reference`\n")
        return int(bool(stale))
    OUT.mkdir(exist_ok=True)
    for path in stale:
        path.write_text(pages[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
