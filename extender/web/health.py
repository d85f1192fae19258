"""Health as Kubernetes asks for it: `/livez`, `/healthz` and `/readyz`, with `?verbose` and `?exclude=`.

Source: H043 to H045.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

log = logging.getLogger("extender.web")

Check = Callable[[], str]
"""Empty if all is well, else what is wrong."""


Told = Callable[[str, str, bool], None]
"""Hears of each check made: its name, the endpoint, whether it passed."""


def _ping() -> str:
    return ""


def _nobody(name: str, endpoint: str, well: bool) -> None:
    """Nothing."""


@dataclass(slots=True)
class Health:
    """What is checked. A process that drains is alive, and not ready.

    Attributes:
        ready: further checks of readiness by name.
        draining: set when the process was told to stop.
        healthy: checks of `healthz` by name, in place of the ping.
        open: the endpoints are open to everyone, so they do not say why a check fails, only the page of that check
            and the log do. Readiness has no ping then. Source: H045.
        told: hears of each check.
    """

    ready: Mapping[str, Check] = field(default_factory=dict)
    draining: bool = False
    healthy: Mapping[str, Check] = field(default_factory=dict)
    open: bool = False
    told: Told = _nobody

    def _shutdown(self) -> str:
        return "process is shutting down" if self.draining else ""

    def checks(self, endpoint: str) -> Mapping[str, Check]:
        """The checks behind `livez`, `healthz` or `readyz`, in order."""
        if endpoint == "healthz" and self.healthy:
            return self.healthy
        if endpoint != "readyz":
            return {"ping": _ping}
        return {**({} if self.open else {"ping": _ping}), **self.ready, "shutdown": self._shutdown}

    def check(self, endpoint: str, name: str) -> str | None:
        """What is wrong with one check, empty if nothing; None if there is no such check."""
        found = self.checks(endpoint).get(name)
        return None if found is None else found()

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
            if name in left_out:
                lines.append(f"[+]{name} excluded: ok")
                continue
            wrong = check()
            self.told(name, endpoint, not wrong)
            if wrong:
                well = False
                lines.append(f"[-]{name} failed: {'reason withheld' if self.open else wrong}")
                log.log(logging.INFO - 2, "%s check failed: %s: %s", endpoint, name, wrong)
            else:
                lines.append(f"[+]{name} ok")
        unknown = sorted(left_out - set(self.checks(endpoint)))
        if unknown:
            quoted = ", ".join(f'"{name}"' for name in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}")
        if well and not verbose:
            return True, "ok"
        lines.append(f"{endpoint} check {'passed' if well else 'failed'}")
        return well, "\n".join(lines) + "\n"
