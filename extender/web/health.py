"""Health as Kubernetes asks for it: `/livez`, `/healthz` and `/readyz`, with `?verbose` and `?exclude=`.

Source: H043 to H045.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

Check = Callable[[], str]
"""Empty if all is well, else what is wrong."""


def _ping() -> str:
    return ""


@dataclass(slots=True)
class Health:
    """What is checked. A process that drains is alive, and not ready.

    Attributes:
        ready: further checks of readiness by name.
        draining: set when the process was told to stop.
    """

    ready: Mapping[str, Check] = field(default_factory=dict)
    draining: bool = False

    def _shutdown(self) -> str:
        return "the process is shutting down" if self.draining else ""

    def checks(self, endpoint: str) -> Mapping[str, Check]:
        """The checks behind `livez`, `healthz` or `readyz`, in order."""
        if endpoint != "readyz":
            return {"ping": _ping}
        return {"ping": _ping, **self.ready, "shutdown": self._shutdown}

    def report(self, endpoint: str, *, verbose: bool = False, exclude: Iterable[str] = ()) -> tuple[bool, str]:
        """Whether all is well, and the text of the answer: `ok`, or a line a check if asked for or if one fails.

        Args:
            endpoint: `livez`, `healthz` or `readyz`.
            verbose: list the checks even if all is well.
            exclude: names of checks to leave out.
        """
        left_out = frozenset(exclude)
        lines: list[str] = []
        well = True
        for name, check in self.checks(endpoint).items():
            wrong = "" if name in left_out else check()
            if name in left_out:
                lines.append(f"[+]{name} excluded: ok")
            elif wrong:
                well = False
                lines.append(f"[-]{name} failed: {wrong}")
            else:
                lines.append(f"[+]{name} ok")
        if well and not verbose:
            return True, "ok"
        lines.append(f"{endpoint} check {'passed' if well else 'failed'}")
        return well, "\n".join(lines) + "\n"
