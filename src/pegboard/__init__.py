"""Pegboard: hang ten thousand tools, hand your agent the three it needs.

The road of the data: config → upstream → catalog; `engine` wires them and `cli` shows them.
"""

__version__ = "0.1.0"
