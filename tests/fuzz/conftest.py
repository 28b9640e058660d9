"""How many examples: always the same few; with `pytest tests/fuzz --hypothesis-profile thorough` many, and others."""

from hypothesis import HealthCheck, settings

COMMON = settings(deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("repeatable", COMMON, derandomize=True, max_examples=25)
settings.register_profile("thorough", COMMON, max_examples=1000)
if settings.get_current_profile_name() == "default":
    settings.load_profile("repeatable")
