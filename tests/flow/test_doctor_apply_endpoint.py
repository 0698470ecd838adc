"""Deferral is never forced on behind an endpoint that was not verified; one tiny request verifies it, when asked."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import contextmanager

import pytest

from pegboard.doctor.checks import causes
from pegboard.testing import FakeLLM
from pegboard.testing.script import Fault, Move
from tests.flow.doctor_clinic import Clinic
from tests.homes import causes as homes
from tests.served_llm import served

KEY = "sk-ant-secret-key-0123456789"
REFUSAL = {"type": "error", "error": {"message": "tools.1.custom.defer_loading: Extra inputs are not permitted"}}


@pytest.fixture
def clinic(tmp_path, monkeypatch, capsys):
    """A home behind an endpoint of its own, with a version that has to be told to defer there."""

    def opened(url, *, scope="user", make=homes.off_by_version, **about):
        home = make(tmp_path, **about)
        home.env(scope=scope, ANTHROPIC_BASE_URL=url)
        if scope != "user":
            (home.claude_folder / "settings.json").write_text("{}\n")
        home.process(ANTHROPIC_API_KEY=KEY)
        return Clinic(home, monkeypatch, capsys)

    return opened


def kept_in(there):
    """All that Pegboard remembers, as one text."""
    return b"".join(path.read_bytes() for path in there.state.rglob("*") if path.is_file())


def test_nothing_is_forced_on_behind_an_endpoint_that_was_not_verified(clinic):
    fake = FakeLLM([])
    with served(fake) as url:
        there = clinic(url)
        before = there.files()
        out, _ = there.run("plan")
        assert f"It would turn deferral on behind {url}, which was not verified" in " ".join(out.split())
        assert "`pegboard doctor verify-endpoint` finds out with one tiny request" in " ".join(out.split())
        [row] = there.json("apply", causes.OLD_VERSION, "--yes", code=1)
        assert "was not verified" in row["refused"]
        assert row["applied"] is None
    assert there.files() == before
    assert fake.requests == [], "nobody was asked"


def test_one_tiny_request_verifies_it_and_then_the_fix_is_made_and_undone(clinic):
    fake = FakeLLM([Move(text="pong")])
    with served(fake) as url:
        there = clinic(url)
        before = there.files()
        assert there.json("verify-endpoint", "--yes")["takes"] is True
        [seen] = fake.requests
    assert not seen.refused, "it is a request that the API takes"
    assert seen.body["max_tokens"] == 1
    assert len(json.dumps(seen.body)) < 1_000
    assert [tool.get("defer_loading", False) for tool in seen.body["tools"]] == [False, True]
    assert seen.headers["x-api-key"] == KEY
    assert url in there.run("verify-endpoint", "--known")[0]
    [row] = there.json("apply", causes.OLD_VERSION, "--yes")
    assert row["applied"]
    settings = json.loads((there.home.claude_folder / "settings.json").read_text())
    assert settings["env"] == {"ANTHROPIC_BASE_URL": url, "ENABLE_TOOL_SEARCH": "true"}
    assert there.json()["findings"] == []
    there.json("undo")
    assert there.files() == before
    assert len(fake.requests) == 1, "the answer was kept"
    assert KEY.encode() not in kept_in(there)


def test_an_endpoint_that_refuses_is_remembered_as_one(clinic):
    with served(FakeLLM([Move(fault=Fault(400, REFUSAL))])) as url:
        there = clinic(url)
        out, _ = there.run("verify-endpoint", "--yes")
    assert f"{url} refuses deferral (400)" in out
    assert "defer_loading: Extra inputs are not permitted" in out
    [plan] = there.json("plan", causes.OLD_VERSION)
    assert plan["refusal"] == f"{url} was found to refuse deferral (400)."
    assert "verify it again" in plan["hint"]


def test_a_fix_of_the_users_own_settings_answers_for_projects_that_nobody_asked_about(tmp_path, monkeypatch, capsys):
    home = homes.off_by_variable(tmp_path, version="2.1.305")
    other = home.folder / "code" / "other"
    home.json(other / ".claude/settings.json", {"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}})
    home.claude_session(version="2.1.305", tools=homes.TOOLS, deferral=False, project=other)
    there = Clinic(home, monkeypatch, capsys)
    for words in ([], ["--project", str(home.project)]):
        [plan] = there.json("plan", causes.ENV, *words)
        assert "http://127.0.0.1:1, which was not verified" in plan["refusal"]


def test_a_version_that_goes_on_without_is_warned_and_not_refused(clinic):
    there = clinic("http://127.0.0.1:1", make=homes.off_by_variable)
    [plan] = there.json("plan", causes.ENV)
    assert plan["applicable"]
    assert any("http://127.0.0.1:1 was not verified" in risk for risk in plan["risks"])


def test_nobody_is_asked_unless_somebody_says_yes(clinic):
    fake = FakeLLM([Move(text="pong")])
    with served(fake) as url:
        there = clinic(url)
        _, err = there.run("verify-endpoint", code=1)
        assert "There is nobody to ask, so nothing was sent" in err
        code, shown = there.at_terminal("verify-endpoint", typed=[("Send it? [y/N]", "n\n")])
        assert code == 0
        assert f"POST {url}/v1/messages?beta=true, with your key from ANTHROPIC_API_KEY" in shown
        assert "Nothing was sent." in shown
        assert KEY not in shown
        assert fake.requests == []
        code, shown = there.at_terminal("verify-endpoint", typed=[("Send it? [y/N]", "y\n")])
        assert "takes deferral (200)" in shown
    assert len(fake.requests) == 1


@pytest.mark.parametrize(("fault", "said"), [
    (Fault(401, {"error": {"message": "invalid x-api-key"}}), "The key was refused"),
    (Fault(404, "not here"), "It knows no /v1/messages"),
    (Fault(400, {"error": {"message": "model: unknown"}}), "for another reason, perhaps the model"),
    (Fault(429), "Try again later"),
    (Fault(503, "<html>busy</html>"), "Try again later"),
    (Fault(302, "", {"location": "https://elsewhere.example"}), "Is the address right?"),
    (Fault(200, "<html>welcome</html>"), "no message of a model"),
])  # fmt: skip
def test_an_answer_that_may_have_another_cause_says_nothing_and_is_not_kept(fault, said, clinic):
    with served(FakeLLM([Move(fault=fault)])) as url:
        there = clinic(url)
        _, err = there.run("verify-endpoint", "--yes", code=1)
    assert "says nothing of deferral" in err
    assert said in err
    assert "Nothing was remembered." in err
    assert there.json("verify-endpoint", "--known") == []


@pytest.mark.parametrize("status", [400, 401])
def test_an_endpoint_that_repeats_the_key_does_not_have_it_shown_or_kept(status, clinic):
    told = {"error": {"message": f"Received API Key = {KEY}. defer_loading: Extra inputs are not permitted"}}
    with served(FakeLLM([Move(fault=Fault(status, told)), Move(fault=Fault(status, told))])) as url:
        there = clinic(url)
        shown = [*there.run("verify-endpoint", "--yes", code=int(status == 401))]
        shown += there.run("verify-endpoint", "--yes", "--json", code=int(status == 401))
    assert "Received API Key = ***. defer_loading" in "".join(shown)
    assert KEY not in "".join(shown)
    assert KEY.encode() not in kept_in(there)


def test_a_password_in_an_address_is_not_shown(clinic):
    there = clinic("https://ada:hunter2@llm.example.com", make=homes.off_by_variable)
    shown = [*there.run("plan"), *there.run("plan", "--json")]
    shown += there.run("verify-endpoint", "--yes", "--url", "https://ada:hunter2@llm.example.com", code=1)
    assert "https://llm.example.com was not verified" in "".join(shown)
    assert "hunter2" not in "".join(shown)


@contextmanager
def hangs_up():
    """An endpoint that takes a connection and ends it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def take():
            connection, _ = listening.accept()
            connection.recv(65536)
            connection.close()

        thread = threading.Thread(target=take)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread.join(20)


def test_an_endpoint_that_hangs_up_or_is_not_there_is_told_in_words(clinic):
    with hangs_up() as url:
        there = clinic(url)
        _, err = there.run("verify-endpoint", "--yes", code=1)
    assert f"{url} could not be asked: " in err
    _, err = there.run("verify-endpoint", "--yes", code=1)
    assert f"{url} could not be asked: " in err
    assert "Is it running? Nothing was remembered." in err


@pytest.mark.parametrize(("words", "said"), [
    (["--url", "http://llm.example.com"], "must begin with https://"),
    (["--url", "https://u:p@llm.example.com"], "no user, no query"),
    (["--url", "nonsense"], "expected an address"),
    (["--url", "https://[::1"], "not an address"),
    (["--model", "claude-3-7-sonnet-20250219"], "too old to defer"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused_before_anything_is_sent(words, said, clinic):
    _, err = clinic("http://127.0.0.1:1").run("verify-endpoint", "--yes", *words, code=1)
    assert said in err


def test_no_key_no_request(clinic, monkeypatch):
    there = clinic("https://llm.example.com")
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    _, err = there.run("verify-endpoint", "--yes", code=1)
    assert "There is no key in the environment to ask with" in err
    assert "ANTHROPIC_AUTH_TOKEN" in err


@pytest.mark.parametrize("key", ["schlüssel", "two\nlines", "nul\x7f"])
def test_a_key_that_cannot_be_sent_is_not_shown(key, clinic, monkeypatch):
    with served(FakeLLM([])) as url:
        there = clinic(url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", key)
        _, err = there.run("verify-endpoint", "--yes", code=1)
    assert "The key in ANTHROPIC_API_KEY has letters that no key has; nothing was sent." in err
    assert key[:3] not in err


def test_a_projects_file_does_not_decide_alone_where_a_key_goes(clinic):
    fake = FakeLLM([Move(text="pong")])
    with served(fake) as url:
        there = clinic(url, scope="project")
        _, err = there.run("verify-endpoint", "--yes", code=1)
        assert "a project's file does not decide alone where your key goes" in err
        assert f"--url {url}" in err
        assert fake.requests == []
        there.run("verify-endpoint", "--yes", "--url", url)
    assert len(fake.requests) == 1


def test_anthropics_own_endpoint_needs_no_verifying(tmp_path, monkeypatch, capsys):
    there = Clinic(homes.off_by_variable(tmp_path), monkeypatch, capsys)
    _, err = there.run("verify-endpoint", "--yes", code=1)
    assert "there is nothing to verify" in err


def test_what_is_remembered_and_broken_counts_as_nothing(clinic):
    there = clinic("http://127.0.0.1:1")
    (there.state / "doctor").mkdir(parents=True)
    (there.state / "doctor/endpoints.json").write_text("{oops")
    assert there.json("verify-endpoint", "--known") == []
    [plan] = there.json("plan", causes.OLD_VERSION)
    assert "was not verified" in plan["refusal"]
