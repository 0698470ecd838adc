"""What a step costs inside the agent frameworks: Pegboard's plug-ins beside what each of them does by itself.

A driver is a module here with `async def rows(sizes) -> list[Row]` and `async def shares() -> list[Share]`.
"""
