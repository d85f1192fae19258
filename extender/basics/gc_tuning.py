"""Settings of Python's garbage collector for a process that holds a large cache of long-lived objects."""

import gc


def set_gc_thresholds() -> None:
    """Make full collections rare, because each pauses the process for milliseconds."""
    gc.set_threshold(5_000, 10, 1_000)


def freeze_heap() -> None:
    """Collect garbage once, then exempt all live objects from later collections."""
    gc.collect()
    gc.freeze()
