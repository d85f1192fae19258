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

# Tests depend neither on the terminal or the CI service in which they run, nor on a cluster that is configured there.
for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
    os.environ.pop(name, None)
