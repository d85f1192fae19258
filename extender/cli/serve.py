"""`extender serve`: the extender verbs over HTTP, for a live cluster, a recorded one, or none."""

import asyncio
import shutil
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

import typer

from extender.cli.flag_help import help_text
from extender.cli.flags import parse
from extender.cli.schedule import AsItStands, loop_factory
from extender.cli.serve_flags import FLAGS, GROUPS
from extender.cli.serve_options import options_of
from extender.client.errors import ApiError, CredentialsError
from extender.observe.logs import configure
from extender.options import ServeOptions
from extender.process.entrance import StartError
from extender.process.extending import run

_FAILED: Final = 1
_NARROW, _WIDE = 80, 120

_USAGE: Final = "extender serve [flags]"
_ABOUT: Final = """\
Answer the extender verbs filter, prioritize, preempt and bind over HTTP, as a kube-scheduler with `extenders:` in its \
configuration asks them: about nodes by name, or about whole nodes that come with the request.

The cluster is a live one, found in --kubeconfig, the configuration file, $KUBECONFIG, ~/.kube/config or the pod this \
runs in; or a recorded one (-f); or none (--without-cluster), for callers that send whole nodes, such as a cluster \
autoscaler. It is watched and never written to, except for bindings where the verb bind is called.

/livez, /readyz, /healthz, /metrics, /openapi.json and /explain/{namespace}/{pod} are there too. Until the cluster is \
known, /readyz says so, and filter answers with an Error."""
_END: Final = """\
Examples:
  extender serve --config scheduler.yaml
  extender serve --bind-address 0.0.0.0 --tls-cert-file tls.crt --tls-private-key-file tls.key --client-ca-file ca.crt
  extender serve --url-prefix /scheduler --filter-verb predicates/all --prioritize-verb priorities/all
  extender serve -f cluster.json
  extender serve --without-cluster
  curl http://127.0.0.1:8888/readyz?verbose
  curl --data '{"Pod": ..., "NodeNames": ["node-1", "node-2"]}' http://127.0.0.1:8888/filter

Signals: TERM and INT finish what is being answered and end the process; a second one ends it at once.

Exit status: 0 was told to stop, 1 something failed, 2 the flags or the configuration are wrong.
"""

app = typer.Typer(rich_markup_mode=None)


@app.command(name="serve", cls=AsItStands, add_help_option=False)
def serve(ctx: typer.Context) -> None:
    """Answer the extender verbs over HTTP."""
    raise typer.Exit(command(ctx.args, run))


def command(words: Sequence[str], start: Callable[[ServeOptions], Coroutine[Any, Any, int]]) -> int:
    """Carry the command line out, and give the exit status; what fails is a line on standard error.

    Raises:
        ConfigError, InputError: the flags or what they name are wrong.
    """
    parsed = parse(words, FLAGS)
    if parsed["help"]:
        width = min(max(shutil.get_terminal_size().columns, _NARROW), _WIDE)
        sys.stdout.write(help_text(_USAGE, _ABOUT, GROUPS, _END, width))
        return 0
    options = options_of(parsed)
    configure(options.logs)
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(start(options))
    except CredentialsError as wrong:
        return _failed(f"{wrong}; or give a recorded cluster with -f, or none with --without-cluster")
    except (ApiError, StartError) as wrong:
        return _failed(str(wrong))


def _failed(line: str) -> int:
    sys.stderr.write(f"extender: {' '.join(line.split())}\n")
    return _FAILED
