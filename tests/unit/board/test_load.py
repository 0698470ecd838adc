"""Loading tools into a conversation by name, as whoever reads them out of a history does."""

from __future__ import annotations

from pathlib import Path

from tests.loops import in_a_loop
from tests.sdk_agents import board_of, hub


@in_a_loop
async def test_what_is_loaded_by_name_takes_the_place_of_what_was(tmp_path: Path) -> None:
    async with board_of(tmp_path, hub(20), max_active=2, pinned=["hub__delete_invoice_0"]) as board:
        await board.refresh()
        chat = board.conversation("u")
        await chat.search("select:hub__create_invoice_0")
        names = [f"hub__{each}_invoice_0" for each in ("delete", "archive", "export", "rename")]
        assert chat.load([*names, "nobody__knows"]) == ("hub__rename_invoice_0", "hub__export_invoice_0")
        assert set(chat.surface().names) == {"search_tools", "read_result", "hub__delete_invoice_0", *names[2:]}


@in_a_loop
async def test_a_sub_agent_loads_nothing_that_it_may_not_use(tmp_path: Path) -> None:
    async with board_of(tmp_path, hub(20)) as board:
        await board.refresh()
        child = board.conversation("u").fork("c", allow=["hub__export_*"])
        assert child.load(["hub__create_invoice_0", "hub__export_invoice_0"]) == ("hub__export_invoice_0",)
