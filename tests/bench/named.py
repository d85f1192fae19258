"""What a benchmark is asked to run: the parts named on its command line."""

import argparse
from collections.abc import Collection, Sequence


def all_known(
    parser: argparse.ArgumentParser, what: str, named: Sequence[str], known: Collection[str]
) -> Sequence[str]:
    """*named*; ends the program with a message if one of them is not *known*.

    Args:
        parser: says so.
        what: a part is called.
        named: on the command line.
        known: what there is.
    """
    unknown = sorted(set(named) - set(known))
    if unknown:
        parser.error(f"unknown {what} {', '.join(unknown)}; want {', '.join(known)}")
    return named
