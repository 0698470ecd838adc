"""One module for each family of causes: facts in, findings out. Pure."""

from pegboard.doctor.checks.causes import CAUSES

__all__ = ["CAUSES"]
