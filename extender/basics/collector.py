"""Python's garbage collector, as suits a process that keeps most of what it reads."""

import gc


def look_seldom() -> None:
    """Look at what is old rarely, at what is new often, as everything stands still meanwhile, for some milliseconds."""
    gc.set_threshold(5_000, 10, 1_000)


def settle() -> None:
    """What is there now stays: it need not be looked at again."""
    gc.collect()
    gc.freeze()
