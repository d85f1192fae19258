"""The health checks behind `/livez`, `/healthz` and `/readyz`, with `?verbose` and `?exclude=`.

Source: apiserver/pkg/server/healthz/healthz.go, InstallPathHandlerWithHealthyFunc; cmd/kube-scheduler/app/server.go,
Run (1.36).
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

log = logging.getLogger("extender.extender_api")

HealthCheck = Callable[[], str]
"""Returns an error message; empty if the check passes."""


CheckObserver = Callable[[str, str, bool], None]
"""Is called after each check with the check's name, the endpoint, and whether the check passed."""


@dataclass(slots=True)
class Health:
    """The health checks of a process. A draining process is alive but not ready.

    Attributes:
        readiness_checks: additional checks of `readyz` by name.
        draining: whether the process is stopping.
        healthz_checks: checks of `healthz` by name, which replace the ping.
        public: whether the endpoints need no authentication. If so, `readyz` has no ping, and the list of checks omits
            the reasons of failures. A reason is then only in the log and on the page of the failed check.

    Source: cmd/kube-scheduler/app/server.go, Run (1.36).
    """

    readiness_checks: Mapping[str, HealthCheck] = field(default_factory=dict)
    draining: bool = False
    healthz_checks: Mapping[str, HealthCheck] = field(default_factory=dict)
    public: bool = False
    observe_check: CheckObserver = lambda *_: None

    def _check_shutdown(self) -> str:
        return "process is shutting down" if self.draining else ""

    def get_checks(self, endpoint: str) -> Mapping[str, HealthCheck]:
        """Return the checks of `livez`, `healthz` or `readyz`, in order."""
        if endpoint == "healthz" and self.healthz_checks:
            return self.healthz_checks
        ping: dict[str, HealthCheck] = {"ping": lambda: ""}
        if endpoint != "readyz":
            return ping
        return {**({} if self.public else ping), **self.readiness_checks, "shutdown": self._check_shutdown}

    def run_check(self, endpoint: str, name: str) -> str | None:
        """Run one check. Return its error message, which is empty if it passes; None if there is no such check."""
        check = self.get_checks(endpoint).get(name)
        return None if check is None else check()

    def run_checks(self, endpoint: str, *, verbose: bool = False, exclude: Iterable[str] = ()) -> tuple[bool, str]:
        """Run the checks; return whether all pass, and the text of the page (`ok`, or one line per check).

        *endpoint* is `livez`, `healthz` or `readyz`. With *verbose*, the checks are listed even if all pass. Those in
        *exclude* are left out.
        """
        excluded_names = frozenset(exclude)
        lines: list[str] = []
        all_passed = True
        for name, check in self.get_checks(endpoint).items():
            if name in excluded_names:
                lines.append(f"[+]{name} excluded: ok")
                continue
            error = check()
            self.observe_check(name, endpoint, not error)
            if error:
                all_passed = False
                lines.append(f"[-]{name} failed: {'reason withheld' if self.public else error}")
                log.log(logging.INFO - 2, "%s check failed: %s: %s", endpoint, name, error)
            else:
                lines.append(f"[+]{name} ok")
        unknown_names = sorted(excluded_names - set(self.get_checks(endpoint)))
        if unknown_names:
            quoted_names = ", ".join(f'"{name}"' for name in unknown_names)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted_names}")
        if all_passed and not verbose:
            return True, "ok"
        lines.append(f"{endpoint} check {'passed' if all_passed else 'failed'}")
        return all_passed, "\n".join(lines) + "\n"
