"""Settings of Hypothesis: no deadlines, and the same examples for every run in CI. Removes settings of the shell."""

import os

from hypothesis import HealthCheck, settings

pytest_plugins = ("tests.parallel",)

settings.register_profile(
    "project", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("project")

# Python's clients send requests for loopback addresses to the proxy of the environment; Go's and ours never do.
_hosts = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(filter(None, [_hosts, "localhost,127.0.0.1,::1"]))

# The output of commands does not depend on the terminal in which the tests run, or on the settings of a CI service.
for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR"):
    os.environ.pop(name, None)
