"""A clock of the turns of the event loop that tests move."""


class TurnClock:
    """Returns `seconds`, which only a test changes."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds
