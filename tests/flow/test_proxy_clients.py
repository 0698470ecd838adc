"""Clients replay histories in ways of their own; what the model's API sees must stay what it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from anthropic import APIConnectionError, AsyncAnthropic

from pegboard.proxy.seam import Asked, Passed
from pegboard.testing import FakeLLM, FakeStore, Move
from tests.agent_tools import CORE, NAMES, messages_tools
from tests.flow.test_proxy_messages import FORECAST, ISSUE, Agent, bridged, flat, grows_only, searches
from tests.loops import in_a_loop
from tests.proxied import Proxied

History = list[dict[str, Any]]
READ = ("Read", {"path": "a"})


def of_replies(change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Callable[[History], History]:
    def changed(history: History) -> History:
        return [
            {**each, "content": change(each["content"])} if each["role"] == "assistant" else each for each in history
        ]

    return changed


@of_replies
def without_thinking(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [block for block in blocks if block["type"] != "thinking"]


@of_replies
def one_text(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As clients do that put all text of a reply together while it streams."""
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    rest = [block for block in blocks if block["type"] != "text"]
    return [{"type": "text", "text": text}, *rest] if text else rest


@of_replies
def trimmed(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    stripped = [{**block, "text": block["text"].strip()} if block["type"] == "text" else block for block in blocks]
    return [block for block in stripped if block.get("text") != ""]


def marked_at_the_end(history: History) -> History:
    """The cache marker is on the last message, wherever that is now."""
    *rest, last = history
    blocks = [{"type": "text", "text": last["content"]}] if isinstance(last["content"], str) else last["content"]
    return [*rest, {**last, "content": [*blocks[:-1], {**blocks[-1], "cache_control": {"type": "ephemeral"}}]}]


class Altering(Agent):
    """Sends its history as one of these would."""

    def __init__(self, proxied: Proxied, alter: Callable[[History], History], **settings: Any) -> None:
        super().__init__(proxied, stream=True, **settings)
        self.alter = alter

    async def turn(self) -> Any:
        whole = self.history
        self.history = self.alter(whole)
        message = await super().turn()
        self.history = [*whole, self.history[-1]]
        return message


BRIDGED = [
    searches("weather forecast", text="Let me look."),
    searches("rain", text=" And again.\n"),
    Move(text="Found it.", calls=(("call_tool", {"name": FORECAST, "arguments": {"title": "U"}}),)),
    searches("nothing", text="Once more."),
    Move(text="Rain."),
    Move(text="Bye."),
]
THOUGHT = [
    Move(thinking="a", text="One.", searches=("forecast",), afterthought="b", calls=((FORECAST, {"title": "U"}),)),
    Move(thinking="c", searches=("issue",), text="Rain."),
    Move(thinking="d", calls=(READ,)),
    Move(text="Bye."),
]


def plain(sent: list[bytes]) -> list[bytes]:
    """Without cache markers, which move, and thinking, which may go."""
    out = []
    for body in sent:
        whole = json.loads(body)
        whole["messages"] = [
            {**message, "content": [{**block, "cache_control": None} for block in said if block["type"] != "thinking"]}
            for message in whole["messages"]
            for said in [
                [{"type": "text", "text": message["content"]}]
                if isinstance(message["content"], str)
                else message["content"]
            ]
        ]
        out.append(json.dumps(whole).encode())
    return out


@pytest.mark.parametrize("alter", [one_text, trimmed, marked_at_the_end], ids=lambda alter: alter.__name__)
@in_a_loop
async def test_texts_that_a_client_joins_or_trims_do_not_cost_a_search_its_place(alter) -> None:
    proxied = Proxied(FakeLLM(BRIDGED), executor="bridge")
    agent = Altering(proxied, alter)
    assert await agent.says("Rain?") == "Once more.Rain."
    assert await agent.says("Thanks") == "Bye."
    last = [block for _, block in flat(json.loads(proxied.sent[-1])["messages"])]
    searched = [block["input"]["query"] for block in last if block.get("name") == "search_tools"]
    assert searched == ["weather forecast", "rain", "nothing"]
    texts = [block["text"].strip() for block in last if block["type"] == "text"]
    assert texts == ["Rain?", "Let me look.", "And again.", "Found it.", "Once more.", "Rain.", "Thanks"]
    if alter is not trimmed:
        grows_only(plain(proxied.sent))


@pytest.mark.parametrize("alter", [without_thinking, marked_at_the_end], ids=lambda alter: alter.__name__)
@in_a_loop
async def test_a_client_that_leaves_thinking_out_still_has_its_searches_put_back(alter) -> None:
    proxied = Proxied(FakeLLM(THOUGHT), executor="native")
    agent = Altering(proxied, alter, thinking={"type": "enabled", "budget_tokens": 1024})
    assert await agent.says("Rain?") == "Rain."
    assert await agent.says("Thanks") == "Bye."
    grows_only(plain(proxied.sent))
    found = [block for _, block in flat(json.loads(proxied.sent[-1])["messages"]) if "search" in block["type"]]
    assert len(found) == 2


@pytest.mark.parametrize("executor", ["bridge", "native"])
@in_a_loop
async def test_replies_that_read_the_same_and_answer_the_same_keep_each_their_own_search(executor) -> None:
    search = searches if executor == "bridge" else lambda query: Move(searches=(query,), text="Done.")
    answer = [Move(text="Done.")] if executor == "bridge" else []
    moves = [each for query in ("rain", "mail", "issue") for each in (search(query), *answer)]
    proxied = Proxied(FakeLLM([*moves, Move(text="Bye.")]), executor=executor)
    agent = Agent(proxied, stream=True)
    for _ in range(4):
        await agent.says("continue")
    grows_only(proxied.sent)


@in_a_loop
async def test_of_a_reply_that_was_made_again_only_the_latest_search_is_put_back() -> None:
    moves = [Move(calls=(READ,), unfinished_search="rain"), Move(text="ok"), Move(text="ok"), Move(text="yes")]
    proxied = Proxied(FakeLLM(moves), executor="native")
    agent = Agent(proxied, stream=False)
    await agent.says("Go")
    agent.history.pop()
    await agent.turn()
    assert await agent.says("More") == "yes"
    kinds = [block["type"] for _, block in flat(json.loads(proxied.sent[-1])["messages"])]
    assert kinds.count("tool_search_tool_result") == 1


@in_a_loop
async def test_a_search_of_one_branch_is_not_put_into_another_that_reads_alike() -> None:
    moves = [Move(text="Done."), Move(searches=("rain",), text="Done."), Move(thinking="hm", text="c"), Move(text="d")]
    proxied = Proxied(FakeLLM(moves), executor="native")
    agent = Agent(proxied, stream=True, thinking={"type": "enabled", "budget_tokens": 1024})
    await agent.says("One")
    branch = list(agent.history)
    await agent.says("Two")
    agent.history = branch
    await agent.says("Another")
    assert await agent.says("More") == "d"
    assert b'"server_tool_use"' not in proxied.sent[-1]


@in_a_loop
async def test_a_client_that_truncates_the_middle_gets_a_history_that_the_api_takes() -> None:
    moves = [Move(searches=("rain",), calls=((FORECAST, {"title": "U"}),)), Move(text="Rain."), Move(text="a")]
    moves += [Move(searches=("issue",), text="b"), Move(text="c")]
    proxied = Proxied(FakeLLM(moves), executor="native")
    agent = Agent(proxied, stream=True)
    for words in ("Rain?", "Two", "Three"):
        await agent.says(words)
    agent.history = [agent.history[0], *agent.history[-2:]]
    agent.history[0] = {**agent.history[0], "content": "Rain?"}
    agent.history.insert(1, {"role": "assistant", "content": [{"type": "text", "text": "[cut]"}]})
    agent.history.insert(2, {"role": "user", "content": "Three"})
    del agent.history[3]
    assert await agent.says("Four") == "c"
    assert proxied.passed == []


@in_a_loop
async def test_what_was_hidden_in_a_reply_that_broke_off_is_not_forgotten() -> None:
    think = Move(thinking="a", searches=("rain",), afterthought="b", text="long words " * 20)
    fake = FakeLLM([think, Move(text="ok")])
    proxied = Proxied(fake, executor="native")
    agent = Agent(proxied, stream=True, thinking={"type": "enabled", "budget_tokens": 1024})
    agent.history.append({"role": "user", "content": "Go"})
    body = json.dumps({**agent.asked, "messages": agent.history, "stream": True}).encode()
    plan = await proxied.planner.plan(Asked(wire="messages", upstream="api", headers={}, body=body))
    assert not isinstance(plan, Passed)
    _, _, pieces = fake.answer("/v1/messages", {}, plan.body)
    shown = b"".join([plan.feed(piece) for piece in pieces[:-4]])
    await plan.close()  # the client has gone
    assert b"long words" in shown
    assert b"message_stop" not in shown
    thoughts = [block for block in fake.requests[-1].reply["content"] if block["type"] == "thinking"]
    assert len(thoughts) == 2
    agent.history.append({"role": "assistant", "content": [*thoughts, {"type": "text", "text": "long wor"}]})
    assert await agent.says("Go on") == "ok"
    assert proxied.passed == []
    kinds = [block["type"] for _, block in flat(json.loads(proxied.sent[-1])["messages"])]
    assert kinds[1:5] == ["thinking", "server_tool_use", "tool_search_tool_result", "thinking"]


@in_a_loop
async def test_a_first_reply_that_broke_off_does_not_end_deferral() -> None:
    fake = FakeLLM([Move(text="long words " * 20), Move(text="ok")])
    proxied = Proxied(fake, executor="bridge")
    agent = Agent(proxied, stream=True)
    agent.history.append({"role": "user", "content": "Go"})
    body = json.dumps({**agent.asked, "messages": agent.history, "stream": True}).encode()
    plan = await proxied.planner.plan(Asked(wire="messages", upstream="api", headers={}, body=body))
    assert not isinstance(plan, Passed)
    _, _, pieces = fake.answer("/v1/messages", {}, plan.body)
    plan.feed(b"".join(pieces[:-4]))
    await plan.close()
    agent.history.append({"role": "assistant", "content": "long wor"})
    assert await agent.says("Go on") == "ok"
    assert proxied.passed == []


@in_a_loop
async def test_a_conversation_that_was_passed_is_not_deferred_because_another_began_alike() -> None:
    moves = [Move(text="Hello."), Move(thinking="x", text="Small."), Move(text="ok"), Move(text="more")]
    proxied = Proxied(FakeLLM(moves), executor="native")
    many, few = Agent(proxied, stream=True), Agent(proxied, stream=True)
    few.asked["tools"] = messages_tools()[:7]
    await many.says("hi")
    await few.says("hi")
    assert await few.says("And now?") == "ok"
    assert proxied.passed == ["few tools", "not seen from its beginning"]
    assert await many.says("Still there?") == "more"
    assert len(proxied.passed) == 2


@in_a_loop
async def test_a_conversation_from_before_the_proxy_is_not_taken_for_one_that_began_alike() -> None:
    fake = FakeLLM([Move(thinking="x", text="Old."), Move(text="Hello."), Move(text="ok")])
    proxied = Proxied(fake, executor="native")
    old = Agent(proxied, stream=True)
    ours, old.client = old.client, AsyncAnthropic(**fake.options())
    await old.says("/init")
    old.client = ours
    await Agent(proxied, stream=True).says("/init")
    assert await old.says("And now?") == "ok"
    assert proxied.passed == ["not seen from its beginning"]


@in_a_loop
async def test_a_conversation_from_before_the_proxy_is_not_taken_for_one_that_began_alike_and_broke_off() -> None:
    fake = FakeLLM([Move(thinking="x", text="Old."), Move(text="words " * 20, cut_after=4), Move(text="ok")])
    proxied = Proxied(fake, executor="native")
    old = Agent(proxied, stream=True)
    ours, old.client = old.client, AsyncAnthropic(**fake.options())
    await old.says("/init")
    old.client = ours
    with pytest.raises(APIConnectionError):
        await Agent(proxied, stream=True).says("/init")
    assert await old.says("And now?") == "ok"
    assert proxied.passed == ["not seen from its beginning"]


@in_a_loop
async def test_of_two_that_began_alike_each_goes_on_with_its_own_tools() -> None:
    proxied = Proxied(FakeLLM([Move(text="a"), Move(text="a"), Move(text="c"), Move(text="d")]), executor="bridge")
    first, second = Agent(proxied, stream=False), Agent(proxied, stream=False)
    second.asked["tools"] = [*messages_tools(), *({**each, "name": f"{each['name']}2"} for each in messages_tools())]
    await first.says("hi")
    await second.says("hi")
    await first.says("more")
    await second.says("more")
    assert [json.loads(body)["tools"] for body in proxied.sent[:2]] == [
        json.loads(body)["tools"] for body in proxied.sent[2:]
    ]


@in_a_loop
async def test_a_tool_forced_once_is_in_sight_once_and_the_prefix_is_as_before() -> None:
    moves = [Move(thinking="x", text="a"), Move(calls=((ISSUE, {"title": "x"}),)), Move(text="b")]
    proxied = Proxied(FakeLLM(moves), executor="native")
    agent = Agent(proxied, stream=True)
    await agent.says("One")
    side = Agent(proxied, stream=True, tool_choice={"type": "tool", "name": ISSUE})
    side.history = [*without_thinking(agent.history), {"role": "user", "content": "Sum up"}]
    await side.turn()
    assert ISSUE in [tool["name"] for tool in json.loads(proxied.sent[1])["tools"] if not tool.get("defer_loading")]
    assert await agent.says("Two") == "b"
    assert json.loads(proxied.sent[0])["tools"] == json.loads(proxied.sent[2])["tools"]


@pytest.mark.parametrize("executor", ["bridge", "native"])
@in_a_loop
async def test_a_tool_without_a_name_of_its_own_does_not_end_deferral(executor) -> None:
    toolset = {"type": "mcp_toolset", "mcp_server_name": "x"}
    proxied = Proxied(FakeLLM([Move(thinking="x", text="a"), Move(text="b")]), executor=executor)
    agent = Agent(proxied, stream=True)
    agent.asked["tools"] = [*messages_tools(), toolset]
    await agent.says("One")
    assert await agent.says("Two") == "b"
    assert proxied.passed == []


@in_a_loop
async def test_a_side_request_without_tools_passes_and_the_conversation_goes_on() -> None:
    moves = [searches("rain"), bridged((FORECAST, {"title": "U"})), Move(text="a"), Move(text="Title"), Move(text="b")]
    proxied = Proxied(FakeLLM(moves), executor="bridge")
    agent = Agent(proxied, stream=True)
    await agent.says("One")
    await agent.client.messages.create(
        model="claude-opus-5-5", max_tokens=9, messages=[{"role": "user", "content": "One"}]
    )
    before = proxied.sent.pop()
    await agent.says("Two")
    assert proxied.passed == ["no tools"]
    assert b"search_tools" not in before
    grows_only(proxied.sent)


@in_a_loop
async def test_after_a_summary_tools_are_deferred_anew() -> None:
    moves = [searches("rain"), bridged((FORECAST, {"title": "U"})), Move(text="a"), bridged((FORECAST, {})), Move()]
    proxied = Proxied(FakeLLM(moves), FakeStore(), executor="bridge")
    agent = Agent(proxied, stream=True)
    await agent.says("One")
    agent.history = []
    await agent.says("A summary of what was before. Go on.")
    assert proxied.passed == []
    assert [name for name, _ in agent.ran] == [FORECAST, FORECAST]


def calling_itself(agent: Agent, name: str) -> None:
    agent.client = agent.client.with_options(default_headers={"User-Agent": name})


@pytest.mark.parametrize("executor", ["bridge", "native"])
@in_a_loop
async def test_which_tools_stay_is_kept_to_when_an_agent_calls_itself_otherwise(executor) -> None:
    proxied = Proxied(FakeLLM([Move(thinking="x", text="a"), Move(text="b"), Move(text="c")]), executor=executor)
    agent = Agent(proxied, stream=True)
    agent.asked["tools"] = [*messages_tools(), {**messages_tools()[0], "name": "attempt_completion"}]
    await agent.says("One")
    calling_itself(agent, "opencode/1.18.33")
    assert await agent.says("Two") == "b"
    grows_only(proxied.sent)
    other = Agent(proxied, stream=True)
    other.asked["tools"] = agent.asked["tools"]
    calling_itself(other, "opencode/1.18.33")
    await other.says("One")  # a conversation that begins now is another, though it begins alike
    first, _, last = ([each["name"] for each in shown(body)] for body in proxied.sent)
    assert "attempt_completion" in first
    assert "attempt_completion" not in last


@pytest.mark.parametrize("executor", ["bridge", "native"])
@in_a_loop
async def test_which_tools_stay_is_kept_to_when_the_settings_are_changed(executor) -> None:
    moves = [Move(thinking="x", text="a"), Move(text="b"), Move(text="c")]
    proxied = Proxied(FakeLLM(moves), FakeStore(), executor=executor, keep=("mcp__mail__*",))
    agent = Agent(proxied, stream=True)
    await agent.says("One")
    proxied.settings["keep"] = ()
    proxied.restart()
    assert await agent.says("Two") == "b"
    grows_only(proxied.sent)
    await Agent(proxied, stream=True).says("One")
    assert len(shown(proxied.sent[2])) < len(shown(proxied.sent[1]))


@pytest.mark.parametrize(("begun", "later"), [("native", "bridge"), ("bridge", "native")])
@in_a_loop
async def test_who_searches_is_kept_to_when_the_settings_are_changed(begun, later) -> None:
    proxied = Proxied(FakeLLM([Move(thinking="x", text="a"), Move(text="b"), Move()]), FakeStore(), executor=begun)
    agent = Agent(proxied, stream=True)
    await agent.says("One")
    proxied.settings["executor"] = later
    proxied.restart()
    assert await agent.says("Two") == "b"
    assert proxied.tally.deferred == {begun: 2}
    grows_only(proxied.sent)
    await Agent(proxied, stream=True).says("Another")
    assert proxied.tally.deferred == {begun: 2, later: 1}


def shown(body: bytes) -> list[Any]:
    return [each for each in json.loads(body)["tools"] if not each.get("defer_loading")]


@pytest.mark.parametrize("header", ["authorization", "x-api-key", "api-key", "x-goog-api-key"])
@in_a_loop
async def test_users_of_a_shared_proxy_do_not_share_a_conversation_that_began_alike(header) -> None:
    fake = FakeLLM([Move(text="a")])
    proxied = Proxied(fake, executor="bridge", listen="0.0.0.0:8722")
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "tools": messages_tools()}
    later = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "more"},
    ]

    async def planned(user: str, body: Any) -> Any:
        asked = Asked(wire="messages", upstream="api", headers={header: user}, body=json.dumps(body).encode())
        return await proxied.planner.plan(asked)

    plan = await planned("ann", body)
    _, _, pieces = fake.answer("/v1/messages", {}, plan.body)
    plan.feed(b"".join(pieces))
    plan.finish()
    await plan.close()
    assert not isinstance(await planned("ann", {**body, "messages": later}), Passed)
    assert await planned("bob", {**body, "messages": later}) == Passed("not seen from its beginning")


class Noting(FakeStore):
    """With all that it was ever given."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[str] = []

    async def keep_proxied(self, conversation: str, state: bytes, expires_at: float) -> None:
        self.given += [conversation, state.decode()]
        await super().keep_proxied(conversation, state, expires_at)


@pytest.mark.parametrize("listen", ["127.0.0.1:8722", "0.0.0.0:8722"])
@pytest.mark.parametrize("executor", ["bridge", "native"])
@in_a_loop
async def test_no_credential_and_no_word_of_a_user_is_kept(executor, listen) -> None:
    store = Noting()
    proxied = Proxied(FakeLLM(THOUGHT if executor == "native" else BRIDGED), store, executor=executor, listen=listen)
    agent = Agent(proxied, stream=True)
    secrets = {"Authorization": "Bearer ey-hidden", "X-Api-Key": "sk-hidden", "Api-Key": "az-hidden"}
    agent.client = agent.client.with_options(default_headers=secrets)
    await agent.says("My password is hunter2.")
    await agent.says("Go on, hunter2.")
    assert store.given
    for hidden in ("hidden", "hunter2"):
        assert hidden not in "".join(store.given)


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "AWS4-HMAC-SHA256 Credential=x"},
        {"x-amz-content-sha256": "x"},
        {"content-digest": "sha-256=:x:"},
        {"digest": "SHA-256=x"},
        {"content-md5": "x"},
        {"signature-input": 'sig=("content-digest")'},
    ],
    ids=lambda headers: next(iter(headers)),
)
@in_a_loop
async def test_a_body_that_is_signed_is_not_changed(headers) -> None:
    said = [{"role": "user", "content": "hi"}]
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": said, "tools": messages_tools()}).encode()
    planner = Proxied(FakeLLM([]), executor="bridge").planner
    plan = await planner.plan(Asked(wire="messages", upstream="api", headers=headers, body=body))
    assert plan == Passed("the body is signed")


@pytest.mark.parametrize("at", [1, 2], ids=["the model's", "the client's"])
@pytest.mark.parametrize("odd", [7, "x", None, ["x"]])
@in_a_loop
async def test_a_message_that_would_be_changed_and_is_not_understood_makes_the_request_pass(at, odd) -> None:
    both = Move(calls=(("call_tool", {"name": ISSUE, "arguments": {}}), ("search_tools", {"query": "rain"})))
    proxied = Proxied(FakeLLM([both, Move(text="ok")]), executor="bridge")
    agent = Agent(proxied, stream=True)
    agent.history.append({"role": "user", "content": "Go"})
    await agent.turn()
    call = agent.history[1]["content"][0]["id"]
    result = {"type": "tool_result", "tool_use_id": call, "content": "ran"}
    history: list[Any] = [*agent.history, {"role": "user", "content": [result]}]

    async def planned() -> Any:
        body = json.dumps({**agent.asked, "messages": history}).encode()
        return await proxied.planner.plan(Asked(wire="messages", upstream="api", headers={}, body=body))

    assert not isinstance(await planned(), Passed)
    history[at] = {**history[at], "content": [*history[at]["content"], odd]}
    assert await planned() == Passed("not understood")


ODD: dict[str, bytes] = {
    "tools are null": b'{"model":"m","tools":null,"messages":[]}',
    "tools are an object": b'{"model":"m","tools":{},"messages":[]}',
    "messages are null": b'{"model":"m","tools":[%s],"messages":null}',
    "messages are texts": b'{"model":"m","tools":[%s],"messages":["a"]}',
    "half a character": b'{"model":"m","tools":[%s],"messages":[{"role":"user","content":"\\ud83d"}]}',
    "half a character in what is forced": b'{"model":"m","tools":[%s],"tool_choice":{"name":"\\ud83d"},'
    b'"messages":[{"role":"user","content":"x"}]}',
    "half a character in an old result": b'{"model":"m","tools":[%s],"messages":[{"role":"user","content":"Go"},'
    b'{"role":"assistant","content":[{"type":"tool_use","id":"toolu_0001_0","name":"x","input":{}}]},'
    b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0001_0","content":"\\ud83d"}]},'
    b'{"role":"assistant","content":"a"},{"role":"user","content":"b"}]}',
    "not UTF-8": b'{"model":"m","tools":[%s],"messages":[{"role":"user","content":"\xff\xfe"}]}',
    "very deep": b'{"model":"m","tools":[%s],"messages":[{"role":"user","content":'
    + b"[" * 5000
    + b"]" * 5000
    + b"}]}",
    "no JSON": b"\x00",
    "nothing": b"",
}


@pytest.mark.parametrize("body", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("executor", ["bridge", "native"])
@in_a_loop
async def test_what_cannot_be_read_passes_and_nothing_is_raised(executor, body) -> None:
    proxied = Proxied(
        FakeLLM([bridged((ISSUE, {})) if executor == "bridge" else Move(calls=(READ,))]), executor=executor
    )
    agent = Agent(proxied, stream=True)
    agent.history.append({"role": "user", "content": "Go"})
    await agent.turn()
    tools = b",".join(json.dumps(tool).encode() for tool in messages_tools())
    body = body.replace(b"%s", tools)
    plan = await proxied.planner.plan(Asked(wire="messages", upstream="api", headers={}, body=body))
    assert isinstance(plan, Passed) or len(json.loads(plan.body)["tools"]) in (
        len(CORE) + 2,
        len(CORE) + len(NAMES) + 1,
    )
