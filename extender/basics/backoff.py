"""How long to wait before trying again, as a function of how often it failed."""


def delay(failures: int, initial: float, most: float) -> float:
    """Seconds to wait after *failures* failures: *initial*, doubled with each further one, *most* at the most.

    0 without failures.
    """
    if failures <= 0:
        return 0.0
    if failures > 60:  # doubling has long passed any bound, and a float would overflow in the end
        return most
    return min(initial * 2.0 ** (failures - 1), most)
