"""The agents that the proxy is tried with: installed once from npm beside the conformance suite, run from there.

Their programs come inside the packages of one platform each, so no install script has to run for them.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.conformance.suite import CannotInstall, installed, is_on_npm

_MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}


class Package(NamedTuple):
    """One agent on npm."""

    name: str
    version: str
    program: str
    """Where its program is beneath `node_modules`; `*` may be followed by more, as in `-baseline`."""


PACKAGES: Mapping[str, Package] = {
    "opencode": Package("opencode-ai", "1.18.33", "opencode-linux-{machine}*/bin/opencode"),
    "kilo": Package("@kilocode/cli", "7.7.7", "@kilocode/cli-linux-{machine}*/bin/kilo"),
    "cline": Package("cline", "3.0.65", "@cline/cli-linux-{machine}/bin/cline"),
    "claude": Package("@anthropic-ai/claude-code", "2.1.327", "@anthropic-ai/claude-code-linux-{machine}/claude"),
}


def program(agent: str) -> Path:
    """The agent's program; it is fetched unless it is there already. Only where nothing can be fetched it cannot be."""
    package = PACKAGES[agent.partition(" ")[0]]
    machine = _MACHINES.get(platform.machine().lower(), "")
    if platform.system() != "Linux" or not machine:
        raise CannotInstall(f"{agent} is tried on Linux only, and not on {platform.system()} {platform.machine()}")
    try:
        _, folder = installed(package.name, package.version)
    except CannotInstall as error:
        if is_on_npm(package.name):
            raise LookupError(f"npm answers, but {package.name} {package.version} cannot be installed") from error
        raise
    modules = next(each for each in folder.parents if each.name == "node_modules")
    found = [each for each in modules.glob(package.program.format(machine=machine)) if "musl" not in str(each)]
    if not found:
        raise LookupError(f"npm has {package.name} {package.version} without its program for this machine")
    return max(found)  # of two the one that asks less of the processor
