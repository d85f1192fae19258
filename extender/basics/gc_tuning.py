"""Settings of Python's garbage collector for a process that holds a large cache of long-lived objects."""

import gc


def set_gc_thresholds() -> None:
    """Make young collections frequent and full ones rare, because a full collection pauses for milliseconds."""
    gc.set_threshold(5_000, 10, 1_000)


def freeze_heap() -> None:
    """Collect once, then exempt all live objects from later collections."""
    gc.collect()
    gc.freeze()
