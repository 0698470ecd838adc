"""Environment variables as an agent would get them: from this process, or from the profile that sets them.

Above: the modules of the agents. Below: the shells.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import msgspec

from pegboard.doctor.facts import Setting
from pegboard.doctor.settings.addresses import without_credentials
from pegboard.doctor.settings.machine import Glance, Machine
from pegboard.doctor.settings.shells import assignments

_COMPUTED = re.compile(r"[$`]")


def variables(machine: Machine, glance: Glance, wanted: Collection[str]) -> tuple[Setting, ...]:
    """The wanted variables, the strongest first of each name.

    A profile's line that has the value of this process is where that value is from, so it stands for both: it has a
    file and a line that a person can change.
    """
    profiles = assignments(machine, glance, wanted)
    found: list[Setting] = []
    for name in wanted:
        lines = [each for each in profiles if each.name == name]
        value = machine.environ.get(name)
        if value is None:
            found += lines
            continue
        shown = without_credentials(value) if name.endswith("_URL") else value
        origin = next((each for each in lines if each.value == shown or _COMPUTED.search(each.value)), None)
        if origin is None:
            found.append(Setting(name=name, value=shown, scope="environment"))
        else:
            found.append(msgspec.structs.replace(origin, value=shown))
        found += [each for each in lines if each is not origin]
    return tuple(found)
