"""Write docs/reference from the code: flags, configuration, plugins, metrics, alerts; --check only compares."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import click
import msgspec
import typer
import yaml
from prometheus_client import CollectorRegistry

from extender import wiring
from extender.catalogue import BUILT_IN
from extender.cli import app, schedule_flags, serve_flags
from extender.cli.flags import Flag
from extender.config import durations
from extender.config.defaults import DEFAULT_PLUGINS, GATED_PLUGINS
from extender.config.durations import Duration
from extender.config.gates import DEFAULTS, FeatureGates
from extender.config.known_gates import KNOWN_GATES
from extender.config.model import ClientConnection, Configuration, Extender, LeaderElection, ManagedResource, TLSConfig
from extender.config.strict import decode_strict
from extender.framework.registry import METHODS, points_of
from extender.framework.setup import DefaultedOptions
from extender.observe import process_families, scheduler_families
from extender.observe.families import Family
from extender.observe.verbs import VerbMetrics

DOCS = Path(__file__).resolve().parent
OUT = DOCS / "reference"
MEANINGS = yaml.safe_load((DOCS / "fields.yaml").read_text())
TESTS = DOCS.parent / "tests"
ALERTS = DOCS.parent / "chart" / "files" / "alerts.yaml"
MADE = "<!-- Written by docs/write_reference.py from the code; change the code, then `make reference`. -->\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown; bars in cells are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def code(value: object) -> str:
    """*value* as it is written in a file or on a command line; nothing for what is empty."""
    text = "" if value is None else str(value)
    return f"`{text}`" if text else ""


def page(title: str, about: str, *parts: str) -> str:
    """A page, with the note that it is not to be edited."""
    return "\n".join([MADE, f"# {title}\n", about.strip() + "\n", *parts])


# -- flags


def flags_page() -> str:
    """Every command with its flags or options."""
    parts = []
    for name, groups in (("schedule", schedule_flags.GROUPS), ("serve", serve_flags.GROUPS)):
        parts.append(f"## extender {name}\n\n{app.COMMANDS[name]}\n")
        parts += [f"### {name}: {group}\n\n{flag_table(flags)}" for group, flags in groups.items()]
    for name, command in sorted(typer_commands()):
        parts.append(f"## {name}\n\n{(command.help or '').split(chr(12))[0].strip()}\n\n{option_table(command)}")
    about = """
Each command prints the same with `--help`. `schedule` and `serve` read their command line as kube-scheduler does:
`--name=value`, `--name value`, bare booleans, `-v4`.
"""
    return page("Commands and flags", about, *parts)


def flag_table(flags: Sequence[Flag]) -> str:
    """The flags of one group."""
    rows = []
    for flag in flags:
        said = flag.help
        if flag.deprecated:
            said = f"Deprecated: {flag.deprecated}. {said}"
        if flag.idle:
            said += f" Accepted, and changes nothing: {flag.idle}."
        rows.append((code(flag.shown), code(flag.kind.word or "bool"), code(flag.kind.render(flag.default)), said))
    return table(("Flag", "Value", "Default", "Meaning"), rows)


def typer_commands() -> Iterator[tuple[str, click.Command]]:
    """Commands whose options are Typer's, by their full names."""
    root = typer.main.get_command(app.app)
    for name in set(app.COMMANDS) - {"schedule", "serve"}:
        command: Any = root.get_command(None, name)  # type: ignore[attr-defined, arg-type]
        if hasattr(command, "commands"):
            yield from ((f"extender {name} {inner}", each) for inner, each in command.commands.items())
        else:
            yield f"extender {name}", command


def option_table(command: click.Command) -> str:
    """Arguments and options of a command."""
    rows = []
    for parameter in command.params:
        option = isinstance(parameter.opts, list) and parameter.opts[0].startswith("-")
        names = ", ".join(sorted(parameter.opts, key=len)) if option else (parameter.metavar or parameter.name or "")
        default = parameter.default
        shown = "" if default is None or default is False else str(getattr(default, "value", default))
        rows.append(
            (code(names), "required" if parameter.required else code(shown), getattr(parameter, "help", "") or "")
        )
    return table(("Option", "Default", "Meaning"), rows) if rows else ""


# -- configuration


def configuration_page() -> str:
    """The fields of a KubeSchedulerConfiguration, feature gates, and the whole default one."""
    structs = (
        ("leaderElection", LeaderElection),
        ("clientConnection", ClientConnection),
        ("extenders[]", Extender),
        ("extenders[].tlsConfig", TLSConfig),
        ("extenders[].managedResources[]", ManagedResource),
    )
    about = """
A `KubeSchedulerConfiguration` of `kubescheduler.config.k8s.io/v1`, as kube-scheduler takes it with `--config`. It is
decoded strictly: an unknown field, a wrong type or a rule that is broken is an error with its path, all of them at once
(`extender config check FILE`). Durations are written as Go writes them: `15s`, `1m30s`. Arguments of plugins are on the
page of [plugins](plugins.md).
"""
    head = ("Field", "Default", "Meaning")
    gates = table(
        ("Gate", "Stage", "Default", "Plugins it adds"),
        (
            (code(name), (KNOWN_GATES[name].stage or "GA") + (", locked" if KNOWN_GATES[name].locked else ""),
             code(str(on).lower()), ", ".join(each.name for each in GATED_PLUGINS.get(name, ())))
            for name, on in DEFAULTS.items()
        ),
    )  # fmt: skip
    return page(
        "Configuration",
        about,
        "## Fields\n\n" + table(head, top_fields()),
        *(f"## {path}\n\n" + table(head, struct_fields(path, struct)) for path, struct in structs),
        "## Default plugins\n\nOf the set `multiPoint`, in this order; a weight counts where the plugin scores.\n\n"
        + table(
            ("Plugin", "Weight"), ((code(p.name), str(p.weight or "")) for p in DEFAULT_PLUGINS.multi_point.enabled)
        ),
        "## Feature gates\n\n`--feature-gates Gate=bool,...`. These touch scheduling; all others of Kubernetes 1.36 "
        "are known, accepted, and change nothing here.\n\n" + gates,
        "## The default configuration\n\nWhat `extender config defaults` prints: every field that holds when nothing "
        f"is written.\n\n```yaml\n{wiring.scheduling().defaulted()}```\n",
    )


def top_fields() -> Iterator[tuple[str, str, str]]:
    """The fields of the document itself."""
    for field in fields(Configuration):
        first, *words = field.name.split("_")
        name = first + "".join(map(str.title, words))
        shown = "" if field.default is MISSING else code(json(field.default))
        yield code(name), shown, MEANINGS[""][name]


def struct_fields(path: str, struct: type[msgspec.Struct]) -> Iterator[tuple[str, str, str]]:
    """The fields of the part of it at *path*."""
    for field in msgspec.structs.fields(struct):
        default = durations.render(field.default) if field.type is Duration else field.default
        yield code(field.encode_name), code(json(default)), MEANINGS[path][field.encode_name]


def json(value: object) -> str:
    """*value* as JSON."""
    return msgspec.json.encode(value).decode()


# -- plugins


def plugins_page() -> str:
    """What each built-in plugin refuses and scores, from its docstring, and its arguments with their defaults."""
    enabled = {plugin.name for plugin in DEFAULT_PLUGINS.multi_point.enabled}
    gated = {plugin.name: gate for gate, plugins in GATED_PLUGINS.items() for plugin in plugins}
    parts = []
    for plugin in sorted(BUILT_IN, key=lambda each: each.name):
        points = ", ".join(code(point) for point in METHODS if point in points_of(plugin))
        state = "on by default" if plugin.name in enabled else f"on with the gate {gated[plugin.name]}" if (
            plugin.name in gated) else "off unless enabled"  # fmt: skip
        parts.append(f"## {plugin.name}\n\n{points}; {state}.\n\n{manual(plugin)}{arguments(plugin)}")
    about = """
What every built-in plugin does, in the words of its own file. Those that are off unless enabled are plugins of older
releases; a Policy turns them on, or a profile that names them. How each was checked: [parity](parity.md). Your own:
[a plugin in fifteen minutes](../plugins.md).
"""
    return page("Plugins", about, *parts)


def manual(plugin: type[Any]) -> str:
    """The docstring of the plugin's file, which is Markdown, without the rows of the specification it names."""
    return (sys.modules[plugin.__module__].__doc__ or "").partition("\nSource: ")[0].strip() + "\n"


def arguments(plugin: type[Any]) -> str:
    """The plugin's arguments with their defaults, as they stand in a profile."""
    options = getattr(plugin, "options", None)
    if options is None:
        return ""
    raw = options.defaulted({}, FeatureGates()) if issubclass(options, DefaultedOptions) else {}
    decoded, _faults = decode_strict(raw, options, "")
    config = [{"name": plugin.name, "args": msgspec.to_builtins(decoded)}]
    text = yaml.safe_dump(config, sort_keys=False)
    return f"\nIn `pluginConfig`, with every default:\n\n```yaml\n{text}```\n"


# -- parity


DIFFERENCES = """## What differs

- kube-scheduler breaks ties among the best nodes by chance, and so do we: the nodes to choose from are the same, the
  choice is not.
- Answers of extenders are bounded in size; kube-scheduler's are not.
- The API server is spoken to in JSON.
- `go_*` metrics and profiling pages are not there; the flags for them are accepted.
"""


def parity_page() -> str:
    """How each plugin was compared with kube-scheduler."""
    checked = yaml.safe_load((DOCS / "parity.yaml").read_text())
    gated = {plugin.name for plugins in GATED_PLUGINS.values() for plugin in plugins}
    rows: dict[str, list[tuple[str, ...]]] = {"default": [], "gated": [], "older": []}
    for plugin in sorted(BUILT_IN, key=lambda each: each.name):
        how = checked.pop(plugin.name)
        kind = "older" if "until" in how else "gated" if plugin.name in gated else "default"
        points = ", ".join(point for point in METHODS if point in points_of(plugin))
        until = (how.get("until", ""),) if kind == "older" else ()
        rows[kind].append((f"[{plugin.name}](plugins.md#{plugin.name.lower()})", points, *until, evidence(plugin, how)))
    if checked:
        raise KeyError(*checked)
    about = """
The yardstick is kube-scheduler 1.36, and the aim that nobody can tell the difference: which nodes are refused, by which
plugin, for which reason; raw, normalized and weighted scores; the message; whom to evict where. Five things check it:

- **Recorded answers** (`tests/parity`): 84 clusters in 14 categories with what kube-scheduler 1.36 itself answered
  about every waiting pod, compared field by field, through `explain` and over HTTP in every form.
- **A real kube-scheduler** (`tests/controlplane`): both schedulers on one real API server; placements, events, victims,
  metrics, pages, calls of extenders and pod groups are compared as they happen.
- **Cases** (`tests/cases`, `tests/unit/plugins`): each rule on its own, expected values written out.
- **A Policy's rules written a second time** (`tests/policy_oracle.py`), for plugins of older releases, which no
  kube-scheduler of today has any more.
- **Properties** (`tests/properties`): answers kept between cycles equal fresh ones, dry runs of preemption equal
  clusters rebuilt without the victims, a Policy decides as its conversion does.

All plugins that kube-scheduler 1.36 has are here. Where a row names no recorded category, no recorded cluster is about
that plugin; it takes part in all of them all the same.
"""
    head = ("Plugin", "Points", "Compared by")
    older = ("Plugin", "Points", "In kube-scheduler until", "Compared by")
    return page(
        "Parity",
        about,
        "## Default plugins\n\n" + table(head, rows["default"]),
        "## Behind feature gates (alpha)\n\n" + table(head, rows["gated"]),
        "## Plugins of older releases\n\n" + table(older, rows["older"]),
        DIFFERENCES,
    )


def evidence(plugin: type[Any], how: Mapping[str, Any]) -> str:
    """What compares it: categories, tests against kube-scheduler, files of cases, the Policy's oracle."""
    parts = plugin.__module__.split(".")[2]
    cases = [*TESTS.glob(f"cases/{parts}*.yaml"), *TESTS.glob(f"unit/plugins/test_{parts}*.py")]
    live = [TESTS / "controlplane" / f"{name}.py" for name in how.get("live", ())]
    recorded = ", ".join(how.get("recorded", ()))
    files = [str(file.relative_to(TESTS)) for file in (*sorted(cases), *live)]
    missing = [file for file in live if not file.exists()]
    if missing:
        raise FileNotFoundError(*missing)
    found = [f"recorded: {recorded}"] if recorded else []
    found += ["Policy's oracle, `cases/legacy`"] if how.get("policy") else []
    return "; ".join([*found, *map(code, files)])


# -- metrics and alerts


def metrics_page() -> str:
    """Every metric family, by who has it."""
    registry = CollectorRegistry()
    VerbMetrics(registry)
    verbs = []
    for collector in registry._collector_to_names:  # noqa: SLF001  a registry lists no family without values
        (family,) = collector.describe()
        verbs.append((code(family.name + ("_total" if family.type == "counter" else "")), family.type,
                      ", ".join(map(code, collector._labelnames)), "", family.documentation))  # noqa: SLF001  # fmt: skip
    others = [family for family in process_families.PROCESS_FAMILIES if family not in process_families.CALL_FAMILIES]
    head = ("Metric", "Kind", "Labels", "Stability", "Meaning")
    about = """
At `/metrics`, in the text format of Prometheus. Names, labels and buckets are kube-scheduler's wherever it has the
metric, so that its dashboards and alerts work; families of Go's runtime are replaced by `python_*` and `process_*`.
What to watch is among the [alerts](alerts.md).
"""
    return page(
        "Metrics",
        about,
        "## Of the verbs (`serve`)\n\n" + table(head, verbs),
        "## Of plugins (`serve` and `schedule`)\n\n" + table(head, families(scheduler_families.PLUGIN_FAMILIES)),
        "## Of scheduling (`schedule`)\n\n" + table(head, families(scheduler_families.SCHEDULER_FAMILIES)),
        "## Of calls (`serve` and `schedule`)\n\n" + table(head, families(process_families.CALL_FAMILIES)),
        "## Of the process (`schedule`)\n\n" + table(head, families(others)),
        "## Of health (`/metrics/slis`)\n\n" + table(head, families(process_families.HEALTH_FAMILIES)),
    )


def families(found: Iterable[Family]) -> Iterator[tuple[str, ...]]:
    """Rows of a table of families."""
    for family in found:
        labels = ", ".join(map(code, family.labels))
        yield code(family.name), family.kind.value, labels, family.stability.value, family.help


def alerts_page() -> str:
    """The alerts of the chart."""
    about = """
The chart makes a PrometheusRule of these with `metrics.prometheusRule.enabled=true`, each in the modes where it makes
sense; `JOB` stands for the job that Prometheus gives the targets. What to do is on the page of
[operations](../operations.md#when-an-alert-fires).
"""
    parts = []
    for alert in yaml.safe_load(ALERTS.read_text()):
        said = alert["annotations"]
        parts.append(
            f"## {alert['alert']}\n\n{said['summary']} {said['description']}\n\n"
            f"{alert['labels']['severity']}, after {alert['for']}; {', '.join(alert['modes'])}.\n\n"
            f"```promql\n{alert['expr'].strip()}\n```\n"
        )
    return page("Alerts", about, *parts)


PAGES: Mapping[str, Callable[[], str]] = {
    "flags.md": flags_page,
    "configuration.md": configuration_page,
    "plugins.md": plugins_page,
    "metrics.md": metrics_page,
    "alerts.md": alerts_page,
    "parity.md": parity_page,
}


def main() -> int:
    """Write the pages, or with --check say which are not as they would be written."""
    made = {OUT / name: make() for name, make in PAGES.items()}
    stale = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            sys.stderr.write(f"docs/reference/{path.name} does not say what the code says; run `make reference`\n")
        return int(bool(stale))
    OUT.mkdir(exist_ok=True)
    for path in stale:
        path.write_text(made[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
