"""Exponential backoff of retries after failures."""


def calculate_backoff(failures: int, initial: float, maximum: float) -> float:
    """Return the seconds to wait before the next attempt after *failures* consecutive failures.

    The wait is *initial* after the first failure. Each further failure doubles it, up to *maximum*. The wait is 0 if
    there was no failure.
    """
    if failures <= 0:
        return 0.0
    if failures > 60:  # a much larger power would overflow a float
        return maximum
    return min(initial * 2.0 ** (failures - 1), maximum)
