"""What holds for all tests: no example of a property has to be done in a given time."""

from hypothesis import settings

settings.register_profile("pegboard", deadline=None)
settings.load_profile("pegboard")
