"""Update the example output in the README and docs/ask.md from the commands; --check only compares."""

import re
import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).resolve().parent
PAGES = (DEMO.parents[2] / "README.md", DEMO.parents[1] / "ask.md")
# A console block with one command on the example cluster and its output.
BLOCK = re.compile(
    r"(?ms)^```console\n\$ extender (?P<arguments>(?:explain|simulate) -f cluster\.yaml[^\n]*)\n.*?^```$"
)


def printed(arguments: str) -> str:
    """What `extender` prints for these arguments, trailing blanks removed.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    command = [sys.executable, "-m", "extender", *arguments.split()]
    out = subprocess.run(command, cwd=DEMO, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603  our own
    return "\n".join(line.rstrip() for line in out.strip("\n").splitlines())


def refreshed(page: str) -> str:
    """*page* with every block as its command prints it now."""
    return BLOCK.sub(lambda m: f"```console\n$ extender {m['arguments']}\n{printed(m['arguments'])}\n```", page)


def main() -> int:
    """Update the pages; with --check only report those that differ."""
    fresh = {page: refreshed(page.read_text()) for page in PAGES}
    stale = [page for page, text in fresh.items() if page.read_text() != text]
    if "--check" in sys.argv[1:]:
        for page in stale:
            sys.stderr.write(f"{page.name} differs from the output of its commands; run `make readme`\n")
        return int(bool(stale))
    for page in stale:
        page.write_text(fresh[page])
    return 0


if __name__ == "__main__":
    sys.exit(main())
