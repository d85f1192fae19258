"""Settings of Hypothesis: no deadlines, and the same examples for every run in CI."""

import os

from hypothesis import HealthCheck, settings

pytest_plugins = ("tests.parallel",)

settings.register_profile(
    "project", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("project")
