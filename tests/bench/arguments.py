"""Checks the names on the command line of a benchmark."""

import argparse
from collections.abc import Collection, Sequence


def check_names(
    parser: argparse.ArgumentParser, kind: str, names: Sequence[str], known_names: Collection[str]
) -> Sequence[str]:
    """Return *names*; end the program with an error message if one of them is unknown.

    Args:
        parser: prints the error.
        kind: the kind of the names, such as `workload`.
        names: the names on the command line.
        known_names: the valid names.
    """
    unknown = sorted(set(names) - set(known_names))
    if unknown:
        parser.error(f"unknown {kind} {', '.join(unknown)}; want {', '.join(known_names)}")
    return names
