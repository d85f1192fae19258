"""`extender serve`: the extender verbs over HTTP, for a live cluster, a recorded cluster, or none."""

import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

import typer
import uvloop

from extender.analysis.input.input_errors import InputError
from extender.app.options import ServeOptions
from extender.app.serve import run
from extender.app.startup import StartError, check_open_file_limit
from extender.cli.pflag import format_help, parse
from extender.cli.schedule import RawArgumentsCommand
from extender.cli.serve_flags import FLAGS, GROUPS
from extender.cli.serve_options import make_serve_options
from extender.cli.terminal import report_failure
from extender.client.errors import ApiError, CredentialsError
from extender.config.errors import ConfigError
from extender.logs.klog import configure_logging

_BAD_INPUT: Final = 2

_USAGE: Final = "extender serve [flags]"
_DESCRIPTION: Final = """\
Answer the extender verbs filter, prioritize, preempt and bind over HTTP. A kube-scheduler with `extenders:` in its \
configuration calls them, with node names or with whole nodes in the request.

The cluster is live (found through --kubeconfig, the configuration file, $KUBECONFIG, ~/.kube/config or the pod's \
service account), or recorded (-f), or absent (--without-cluster) for callers that send whole nodes, such as a cluster \
autoscaler. A live cluster is watched; only the verb bind writes to it.

The pages /livez, /readyz, /healthz, /metrics, /openapi.json and /explain/{namespace}/{pod} are served as well. Until \
the cluster is known, /readyz fails and filter returns an Error."""
_EPILOG: Final = """\
Examples:
  extender serve --config scheduler.yaml
  extender serve --bind-address 0.0.0.0 --tls-cert-file tls.crt \\
      --tls-private-key-file tls.key --client-ca-file ca.crt
  extender serve --url-prefix /scheduler --filter-verb predicates/all \\
      --prioritize-verb priorities/all
  extender serve -f cluster.json
  extender serve --without-cluster
  curl http://127.0.0.1:8888/readyz?verbose
  curl --json '{"Pod": ..., "NodeNames": ["n1"]}' http://127.0.0.1:8888/filter

Signals: TERM and INT finish running requests and end the process; a second
signal ends it at once.

Exit status: 0 after a signal, 1 after a failure, 2 for invalid flags or an
invalid configuration.
"""


class _ServeCommand(RawArgumentsCommand):
    flags = FLAGS


app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(name="serve", cls=_ServeCommand, add_help_option=False)
def serve(ctx: typer.Context) -> None:
    """Answer the extender verbs over HTTP."""
    raise typer.Exit(run_command(ctx.args, run))


def run_command(arguments: Sequence[str], start: Callable[[ServeOptions], Coroutine[Any, Any, int]]) -> int:
    """Run the command line and return the exit status; a failure is one line on standard error.

    Raises:
        ConfigError, InputError: the flags, the configuration or the recording are invalid.
    """
    parsed_flags = parse(arguments, FLAGS)
    if parsed_flags["help"]:
        sys.stdout.write(format_help(_USAGE, _DESCRIPTION, GROUPS, _EPILOG))
        return 0
    log_format = parsed_flags["logging-format"]
    try:
        options = make_serve_options(parsed_flags)
    except (ConfigError, InputError) as error:
        if log_format != "json":
            raise
        return report_failure(*map(str, error.errors), log_format=log_format, status=_BAD_INPUT)
    configure_logging(options.logs)
    try:
        check_open_file_limit()
        return uvloop.run(start(options))
    except CredentialsError as error:
        message = f"{error}; or pass a recorded cluster with -f, or --without-cluster"
        return report_failure(message, log_format=log_format)
    except (ApiError, StartError) as error:
        return report_failure(str(error), log_format=log_format)
