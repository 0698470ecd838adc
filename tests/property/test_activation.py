"""What holds of a conversation's loaded tools after any sequence of searches, calls, restarts and changes."""

from __future__ import annotations

from collections import OrderedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from pegboard.surface.activation import Activation, restored
from tests.often import often

NAMES = [f"s__t{number}" for number in range(12)]
some = st.lists(st.sampled_from(NAMES), max_size=9)
pins = st.frozensets(st.sampled_from(NAMES), max_size=3)


class Conversation(RuleBasedStateMachine):
    """The real thing beside a plain model of it: a dictionary in which the last used stands last."""

    def __init__(self) -> None:
        super().__init__()
        self.state = Activation()
        self.model: OrderedDict[str, float] = OrderedDict()
        self.cap = 24
        self.now = 0.0
        self.children: list[tuple[Activation, bytes]] = []

    @initialize(cap=st.integers(0, 6))
    def begin(self, cap: int) -> None:
        self.cap = cap
        self.state = Activation(cap=cap)

    @rule(names=some, pinned=pins, passed=st.floats(0, 50))
    def search(self, names: list[str], pinned: frozenset[str], passed: float) -> None:
        self.now += passed
        before = set(self.state.names)
        change = self.state.activated(names, self.now, pinned)
        wanted = [name for name in dict.fromkeys(names) if name not in pinned]
        for name in pinned:
            self.model.pop(name, None)
        held = set(self.model)
        for name in reversed(wanted[: self.cap]):  # the best is used last, and so goes last
            self.model[name] = self.now
            self.model.move_to_end(name)
        evicted = []
        while len(self.model) > self.cap:
            evicted.append(self.model.popitem(last=False)[0])
        self.state = change.activation
        now = set(self.state.names)
        assert list(change.activated) == wanted[: self.cap]
        assert set(change.evicted) == set(evicted) == held - now
        assert set(change.left_out) == set(wanted) - now - set(change.evicted)
        told = [*change.activated, *change.evicted, *change.left_out]
        assert len(told) == len(set(told))
        assert before - now <= set(change.evicted) | pinned

    @rule(name=st.sampled_from(NAMES), passed=st.floats(0, 50))
    def call(self, name: str, passed: float) -> None:
        self.now += passed
        self.state = self.state.used(name, self.now).activation
        if self.cap:
            self.model[name] = self.now
            self.model.move_to_end(name)
        while len(self.model) > self.cap:
            self.model.popitem(last=False)

    @rule(gone=st.frozensets(st.sampled_from(NAMES), max_size=4))
    def catalog_loses(self, gone: frozenset[str]) -> None:
        self.state = self.state.without(gone)
        for name in gone:
            self.model.pop(name, None)

    @rule(ttl=st.floats(0, 200))
    def expire(self, ttl: float) -> None:
        self.state = self.state.expired(self.now, ttl)
        for name in [name for name, at in self.model.items() if self.now - at > ttl]:
            del self.model[name]

    @rule(cap=st.integers(0, 6))
    def restart(self, cap: int) -> None:
        self.state = restored(self.state.to_bytes(), cap)
        self.cap = cap
        while len(self.model) > cap:
            self.model.popitem(last=False)

    @rule(inherit=st.booleans(), names=some)
    def fork(self, inherit: bool, names: list[str]) -> None:
        before = self.state
        child = self.state.fork(inherit=inherit)
        assert child.names == (self.state.names if inherit else ())
        grown = child.activated(names, self.now).activation
        assert self.state == before
        self.children = [*self.children[-3:], (grown, grown.to_bytes())]

    @invariant()
    def is_the_model(self) -> None:
        assert self.state.names == tuple(reversed(self.model))
        assert {use.name: use.at for use in self.state.uses} == dict(self.model)
        assert len(self.state.uses) <= self.cap

    @invariant()
    def children_are_left_alone(self) -> None:
        assert all(child.to_bytes() == then for child, then in self.children)


Conversation.TestCase.settings = settings(max_examples=often(150), stateful_step_count=25, deadline=None)
TestConversation = Conversation.TestCase


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_ten_thousand_sequences_leave_what_the_model_says() -> None:
    run_state_machine_as_test(
        Conversation, settings=settings(max_examples=10_000, stateful_step_count=25, deadline=None)
    )


@settings(max_examples=often(300), deadline=None)
@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace")), st.integers())
def test_whatever_the_store_gives_back_a_conversation_goes_on(kept, cap):
    state = restored(kept, cap)
    assert len(state.uses) <= state.cap == max(cap, 0)
    assert state.used("a", 1.0).activation.cap == state.cap


@settings(max_examples=often(300), deadline=None)
@given(st.data())
def test_bytes_that_were_damaged_in_one_place_never_stop_a_conversation(data):
    whole = bytearray(Activation(cap=4).activated(NAMES[:3], 5.0).activation.to_bytes())
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    state = restored(bytes(whole), 4)
    assert len(state.uses) <= 4
    assert restored(state.to_bytes(), 4) == state
