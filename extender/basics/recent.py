"""Texts that come again and again, each read once: what was made of those seen last."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """What was made of the texts seen last. Texts are compared byte for byte, so a text never gets another's.

    Only for what depends on the text alone and is never written to: who has the same text gets the same object.
    """

    __slots__ = ("_known", "_most", "_weight")

    def __init__(self, most: int) -> None:
        """Keep texts of *most* bytes together; the one seen longest ago goes first."""
        self._known: OrderedDict[bytes, T] = OrderedDict()
        self._most = most
        self._weight = 0

    def of(self, text: bytes, read: Callable[[bytes], T]) -> T:
        """What *read* makes of *text*, or made of it before; if it raises, nothing is kept."""
        known = self._known.get(text)
        if known is not None:
            self._known.move_to_end(text)
            return known
        made = read(text)
        self._known[text] = made
        self._weight += len(text)
        while self._weight > self._most:
            gone, _ = self._known.popitem(last=False)
            self._weight -= len(gone)
        return made

    def __len__(self) -> int:
        return len(self._known)
