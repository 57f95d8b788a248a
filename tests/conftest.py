"""Settings for every test: property tests are reproducible and have no deadline, as kernels compile on first use."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("ripplet", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ripplet")
