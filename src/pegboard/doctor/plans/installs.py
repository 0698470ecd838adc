"""What putting the gateway into an agent, or the proxy before it, comes to; the installers' own plans say.

Above: the commands. Below: the installers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from pegboard.config.importers.found import Places
from pegboard.config.installers.agents import agent_named
from pegboard.config.installers.clients import Launch, Scope, Site, client_named, sites
from pegboard.config.installers.journal import Redirect
from pegboard.config.installers.plan import SitePlan, Wish, plan_all
from pegboard.config.installers.redirect import Plan as RedirectPlan
from pegboard.config.installers.redirect import Proxy
from pegboard.config.installers.redirect import plan as plan_redirect
from pegboard.doctor.facts import Agent, Fix
from pegboard.doctor.plans.plan import GatewayInstall, Plan, ProxyInstall
from pegboard.doctor.plans.rewritten import rewriters
from pegboard.errors import PegboardError

_RESIDENT = "It needs the proxy to run whenever {title} does: `pegboard proxy start --background`."


class Desk(Protocol):
    """What the installers need to know of this Pegboard and its machine."""

    @property
    def places(self) -> Places: ...

    def read(self, file: Path) -> str | None: ...

    def launch(self, scope: Scope, places: Places, *, new_config: bool) -> Launch: ...

    def config_file(self, scope: Scope, places: Places) -> Path: ...

    def proxy(self) -> Proxy: ...

    def upstreams_file(self) -> Path: ...

    def redirects(self, agent: str) -> Sequence[Redirect]: ...


def install_plan(plan: Plan, desk: Desk) -> Plan:
    """The plan with what the installers would write; a refusal of theirs is one of the plan."""
    try:
        return _gateway(plan, desk) if plan.fix.kind == "gateway-install" else _proxy(plan, desk)
    except PegboardError as error:
        return msgspec.structs.replace(plan, refusal=plan.refusal or error.message, hint=plan.hint or error.hint)


def _gateway(plan: Plan, desk: Desk) -> Plan:
    client = client_named(plan.fix.agent)
    scope, folder, others = _where(plan.fix)
    places = msgspec.structs.replace(desk.places, cwd=folder) if folder else desk.places
    launch, planned = _site_plans(plan.fix, sites(client, scope, places), scope, places, desk)
    needed = tuple(each for each in planned if each.is_needed)
    if not needed:
        return msgspec.structs.replace(plan, refusal="Pegboard is installed there already.")
    target = desk.config_file(scope, places)
    install = GatewayInstall(
        sites=needed, config=target, config_before=desk.read(target), command=tuple(launch.command)
    )
    by_hand = [
        f"`pegboard install {client.id} --project {other}` moves the servers of that project." for other in others
    ]
    return msgspec.structs.replace(
        plan,
        install=install,
        risks=(*plan.risks, *_gateway_risks(needed)),
        by_hand=(*plan.by_hand, *by_hand),
        rewritten_by=_rewriters(each.site.file for each in needed),
    )


def _where(fix: Fix) -> tuple[Scope, Path | None, list[str]]:
    """The user's own settings, unless all servers are some project's; and the projects that are left out."""
    folders = Counter(entry.project for entry in fix.servers if entry.scope == "project" and entry.project)
    if not folders or any(entry.scope == "user" for entry in fix.servers):
        return "user", None, list(folders)
    first, *others = [folder for folder, _ in folders.most_common()]
    return "project", Path(first), others


def _site_plans(
    fix: Fix, chosen: Sequence[Site], scope: Scope, places: Places, desk: Desk
) -> tuple[Launch, tuple[SitePlan, ...]]:
    texts = [desk.read(site.file) for site in chosen]
    config = desk.read(desk.config_file(scope, places))

    def planned(only: tuple[str, ...], *, new_config: bool) -> tuple[Launch, tuple[SitePlan, ...]]:
        launch = desk.launch(scope, places, new_config=new_config)
        return launch, plan_all(chosen, texts, config or "", Wish(launch=launch, only=only), places)

    launch, found = planned((), new_config=True)
    movable = [move.name for each in found for move in each.moves]
    meant = {entry.name for entry in fix.servers}
    only = tuple(name for name in movable if name in meant) if meant else ()
    if only and len(only) < len(movable):
        launch, found = planned(only, new_config=True)
    if config is None and not any(each.imported.servers for each in found):
        return planned(only, new_config=False)  # the file that the entry would name is not written after all
    return launch, found


def _gateway_risks(needed: Sequence[SitePlan]) -> Iterator[str]:
    for each in needed:
        if each.site.scope == "project":
            yield (
                f"{each.site.file} belongs to the project: everybody who works on it gets the change, and needs "
                "Pegboard, where this says it is, to reach these servers."
            )
        for name, reason in each.stays.items():
            yield f"{name} stays in {each.site.file}: {reason.rstrip('.')}."
        yield from each.warnings
        if secrets := sorted(each.imported.secrets):
            yield f"What look like secrets of {', '.join(secrets)} are copied as plain text into the pegboard.toml."


def _proxy(plan: Plan, desk: Desk) -> Plan:
    agent = agent_named(plan.fix.agent)
    if agent.files is None:
        variables = {name: f"{desk.proxy().base}/{upstream}{suffix}" for name, upstream, suffix in agent.variables}
        return msgspec.structs.replace(
            plan,
            refusal=f"{agent.title} is told by its environment, and shell files are not edited.",
            by_hand=(*plan.by_hand, *_exports(variables)),
        )
    home = msgspec.structs.replace(desk.places, cwd=desk.places.home)
    texts = {file: desk.read(file) for file in agent.files(home)}
    target = desk.upstreams_file()
    redirect = plan_redirect(agent, texts, desk.proxy(), (target, desk.read(target)), desk.redirects(agent.id))
    if not redirect.is_needed:
        return msgspec.structs.replace(plan, refusal=_not_needed(redirect))
    stays = [f"{name} stays as it is: {reason.rstrip('.')}." for name, reason in redirect.stays.items()]
    return msgspec.structs.replace(
        plan,
        install=ProxyInstall(redirect=redirect),
        risks=(*plan.risks, _RESIDENT.format(title=agent.title), *([agent.note] if agent.note else []), *stays),
        rewritten_by=_rewriters(each.file for each in redirect.files),
    )


def _not_needed(redirect: RedirectPlan) -> str:
    title = redirect.agent.title
    if redirect.pointed:
        return f"{title} goes through the proxy already."
    return f"{title} has no provider set up that could go through the proxy."


def _exports(variables: Mapping[str, str]) -> Iterator[str]:
    return (f"export {name}={value}" for name, value in variables.items())


def _rewriters(files: Iterator[Path]) -> tuple[Agent, ...]:
    return tuple(dict.fromkeys(agent for file in files for agent in rewriters(file)))
