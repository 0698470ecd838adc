"""LangChain's own tools on a board: found like any other, run by LangChain with all that it injects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.tools import InjectedState, InjectedStore, ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt

from pegboard import Pegboard
from pegboard.errors import ConfigError
from pegboard.integrations.langchain import PegboardMiddleware, ToolSource
from tests.flow.langchain_chat import board_in, calls, chat_of, crm, search
from tests.loops import in_a_loop

OWN = ("search_tools", "read_result")
THREAD: Any = {"configurable": {"thread_id": "t", "colour": "blue"}}
HELLO: Any = {"messages": [("user", "hello")]}
Run = Callable[[Pegboard, Any, Any], Any]


@pytest.fixture(params=["ainvoke", "invoke", "ainvoke elsewhere"])
def run(request: pytest.FixtureRequest) -> Run:
    """One run of an agent on the board's loop, without any loop, and on another one."""

    def ran(board: Pegboard, agent: Any, given: Any) -> Any:
        if request.param == "ainvoke":

            async def main() -> Any:
                async with board:
                    return await agent.ainvoke(given, THREAD)

            return asyncio.run(main())
        with board:
            return (
                agent.invoke(given, THREAD) if request.param == "invoke" else asyncio.run(agent.ainvoke(given, THREAD))
            )

    return ran


def tool_messages(result: Any) -> list[ToolMessage]:
    return [each for each in result["messages"] if isinstance(each, ToolMessage)]


@tool
def count_messages(
    greeting: str,
    state: Annotated[dict[str, Any], InjectedState],
    store: Annotated[Any, InjectedStore()],
    call_id: Annotated[str, InjectedToolCallId],
    config: RunnableConfig,
    runtime: ToolRuntime,
) -> str:
    """Counts the messages of this conversation."""
    store.put(("counts",), "last", {"value": len(state["messages"])})
    colour = config["configurable"]["colour"]
    return f"{greeting} {len(state['messages'])} {call_id} {colour} {runtime.tool_call_id == call_id}"


@tool
def remember(note: str, call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Remembers a note."""
    return Command(
        update={"messages": [ToolMessage(f"noted {note}", tool_call_id=call_id)], "structured_response": note}
    )


@tool
def confirm(what: str) -> str:
    """Asks a person to confirm something."""
    return f"they said {interrupt(what)}"


@tool
async def fail_loudly() -> str:
    """Fails loudly."""
    raise RuntimeError("on fire")


def test_a_tool_is_found_and_runs_with_all_that_langchain_injects(run: Run, tmp_path: Path) -> None:
    board = board_in(tmp_path, crm(), ToolSource([count_messages], name="desk"))
    chat = chat_of([search("count the messages", limit=1), calls(("desk__count_messages", {"greeting": "hi"}))])
    store = InMemoryStore()
    agent = create_agent(chat, middleware=[PegboardMiddleware(board)], store=store)
    result = run(board, agent, HELLO)
    [_, counted] = tool_messages(result)
    assert (counted.text, counted.name) == ("hi 4 call-2-0 blue True", "desk__count_messages")
    assert store.get(("counts",), "last").value == {"value": 4}  # type: ignore[union-attr]
    [definition] = [each["function"] for each in chat.script.shown[1].tools if "count" in each["function"]["name"]]
    assert list(definition["parameters"]["properties"]) == ["greeting"]
    assert chat.script.shown[-1].names == (*OWN, "desk__count_messages")


def test_a_tool_may_answer_with_a_command(run: Run, tmp_path: Path) -> None:
    board = board_in(tmp_path, crm(), ToolSource([remember]))
    chat = chat_of([calls(("langchain__remember", {"note": "milk"}))])
    result = run(board, create_agent(chat, middleware=[PegboardMiddleware(board)]), HELLO)
    assert [each.text for each in tool_messages(result)] == ["noted milk"]
    assert result["structured_response"] == "milk"
    assert chat.script.shown[-1].names == (*OWN, "langchain__remember")


def test_a_tool_may_interrupt_and_goes_on_when_the_run_does(tmp_path: Path) -> None:
    source = ToolSource([confirm])
    for way in ("invoke", "ainvoke"):
        chat = chat_of([calls(("langchain__confirm", {"what": "really?"}))])
        with board_in(tmp_path / way, crm(), source) as board:
            agent = create_agent(chat, middleware=[PegboardMiddleware(board)], checkpointer=InMemorySaver())

            def go(given: Any, agent: Any = agent, way: str = way) -> Any:
                return agent.invoke(given, THREAD) if way == "invoke" else asyncio.run(agent.ainvoke(given, THREAD))

            [asked] = go(HELLO)["__interrupt__"]
            assert asked.value == "really?"
            assert tool_messages(go(Command(resume="yes")))[-1].text == "they said yes"


def test_what_a_tool_raises_langchain_gets(run: Run, tmp_path: Path) -> None:
    board = board_in(tmp_path, crm(), ToolSource([fail_loudly]))
    chat = chat_of([calls(("langchain__fail_loudly", {}))])
    agent = create_agent(chat, middleware=[PegboardMiddleware(board)])
    with pytest.raises((RuntimeError, NotImplementedError)):
        run(board, agent, HELLO)


def test_wrong_arguments_are_told_in_words(run: Run, tmp_path: Path) -> None:
    board = board_in(tmp_path, crm(), ToolSource([remember]))
    chat = chat_of([calls(("langchain__remember", {"nothing": 1}))])
    result = run(board, create_agent(chat, middleware=[PegboardMiddleware(board)]), HELLO)
    [message] = tool_messages(result)
    assert message.status == "error"
    assert "note" in message.text


def test_through_call_tool_they_run_in_the_same_way(run: Run, tmp_path: Path) -> None:
    board = board_in(tmp_path, crm(), ToolSource([count_messages, remember]))
    batch = [
        {"name": "langchain__count_messages", "arguments": {"greeting": "hi"}},
        {"name": "langchain__remember", "arguments": {"note": "milk"}},
    ]
    chat = chat_of([calls(("call_tool", batch[0])), calls(("batch_tools", {"calls": batch}))])
    agent = create_agent(chat, middleware=[PegboardMiddleware(board, reveal="bridge")], store=InMemoryStore())
    result = run(board, agent, HELLO)
    one, both = tool_messages(result)
    assert one.text == "hi 2 call-1-0 blue True"
    assert "hi 4 call-2-0 blue True" in both.text
    assert "noted milk" in both.text
    assert result["structured_response"] == "milk"


@in_a_loop
async def test_called_from_anywhere_else_they_are_simply_invoked(tmp_path: Path) -> None:
    @tool
    def add(a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    def double(a: int) -> int:
        """Doubles a number."""
        return a * 2

    async with board_in(tmp_path, ToolSource([add, double, fail_loudly])) as board:
        chat = board.conversation("x")
        assert (await chat.call("langchain__add", {"a": 1, "b": 2})).text == "3"
        assert (await chat.call("double", {"a": 4})).text == "8"
        failed = await chat.call("fail_loudly")
        assert (failed.is_error, failed.text) == (True, "RuntimeError: on fire")


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="Two tools are named 'remember'"):
        ToolSource([remember, remember])


def test_only_one_run_of_a_native_tool_is_traced(tmp_path: Path) -> None:
    from langchain_core.callbacks import BaseCallbackHandler

    started: list[str] = []

    class Heard(BaseCallbackHandler):
        def on_tool_start(self, serialized: Any, input_str: str, **kwargs: Any) -> None:
            started.append(serialized["name"])

    chat = chat_of([calls(("langchain__remember", {"note": "milk"}))])
    with board_in(tmp_path, ToolSource([remember])) as board:
        agent = create_agent(chat, middleware=[PegboardMiddleware(board)])
        agent.invoke(HELLO, {"callbacks": [Heard()]})
    assert started == ["remember"]
