"""How Hypothesis looks for counterexamples: never against the clock, and in CI the same way each time."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "house", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("house")
