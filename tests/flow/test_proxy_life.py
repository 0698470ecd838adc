"""`pegboard proxy start`, `stop` and `status` as people run them: with real processes, signals and sockets."""

from __future__ import annotations

import http.client
import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from pegboard.cli.proxy_log import BoundedLog
from pegboard.cli.proxy_process import end, is_alive
from pegboard.proxy.tally import Running, Tally
from tests.flow.proxy_desk import PATIENCE, PEGBOARD, ProxyDesk, ended


@pytest.fixture
def desk(tmp_path):
    desk = ProxyDesk(tmp_path)
    yield desk
    desk.kill_leftover()


def status_over_http(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", "/_pegboard/status")
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer


def lines_until(process, words):
    """What a process says up to the line with these words."""
    lines = []
    for line in process.stdout:
        lines.append(line)
        if words in line:
            return "".join(lines)
    raise AssertionError("".join(lines) + process.stderr.read())


def test_in_the_foreground_it_says_where_it_is_and_ends_in_order_when_asked(desk):
    with ended(desk.popen("start")) as process:
        said = lines_until(process, "Begin new conversations")
        assert f"The proxy listens on {desk.base} until Ctrl-C." in said
        assert f"{desk.base}/anthropic  https://api.anthropic.com" in said.replace("   ", "  ")
        assert status_over_http(desk.port)["pid"] == process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        assert "The proxy has ended." in process.stdout.read()
        assert process.stderr.read() == ""


def test_ctrl_c_ends_it_too_and_scripts_get_one_object(desk):
    with ended(desk.popen("start", "--json", "--listen", "127.0.0.1:0")) as process:
        told = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")
        assert told["upstreams"]["openai"] == "https://api.openai.com"
        assert status_over_http(int(told["listen"].rpartition(":")[2]))["pid"] == process.pid
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0


def test_in_the_background_it_runs_on_is_found_again_and_stopped(desk):
    said = desk.run("start", "--background").stdout
    told = status_over_http(desk.port)
    assert f"The proxy runs in the background: {desk.base}, process {told['pid']}." in said
    assert os.getsid(told["pid"]) == told["pid"]
    assert Path(f"/proc/{told['pid']}/cwd").readlink() == Path("/")
    assert "The proxy runs already" in desk.run("start", "-b").stdout
    assert desk.json("start", "-b") == {
        "started": False,
        **{key: told[key] for key in ("pid", "listen", "upstreams", "version")},
    }
    found = desk.json("status")
    assert (found["running"], found["pid"]) == (True, told["pid"])
    stopped = desk.run("stop").stdout
    assert "has ended" in stopped
    assert "Begin new conversations" in stopped
    assert not is_alive(told["pid"])
    assert desk.run("stop").stdout == "The proxy is not running.\n"
    assert (desk.state / "proxy.log").read_text() == ""


def test_of_several_that_are_begun_at_once_one_runs_and_the_others_say_so(desk):
    beginning = [desk.popen("start", "--background", "--json") for _ in range(4)]
    told = []
    for process in beginning:
        said, wrong = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, wrong
        told.append(json.loads(said))
    assert sorted(each["started"] for each in told) == [False, False, False, True]
    assert {each["pid"] for each in told} == {status_over_http(desk.port)["pid"]}
    desk.run("stop")


@pytest.mark.parametrize("flags", [("--set", "store.state_dir=my state"), ()])
def test_a_folder_that_is_named_from_here_is_the_same_in_the_background(desk, flags):
    desk.more = {} if flags else {"PEGBOARD_STORE__STATE_DIR": "my state"}
    desk.state = desk.cwd / "my state"
    assert "runs in the background" in desk.run("start", "--background", *flags).stdout
    assert status_over_http(desk.port)["pid"] == json.loads((desk.state / "proxy.json").read_bytes())["pid"]
    assert "has ended" in desk.run("stop", *flags).stdout


def test_a_port_that_another_program_has_is_told(desk):
    with socket.create_server(("127.0.0.1", desk.port)) as other:
        other.settimeout(PATIENCE)
        for flags in ((), ("--background",)):
            told = desk.run("start", *flags, code=1).stderr
            assert f"127.0.0.1:{desk.port} is taken by another program." in told
    assert (
        desk.json("start", "--listen", "nonsense", code=1)["error"]["message"]
        == "nonsense is no HOST:PORT to listen on."
    )


def test_a_background_proxy_that_cannot_start_says_why(desk):
    with socket.socket() as held:
        held.bind(("127.0.0.1", desk.port))  # nobody accepts there, and yet it cannot be had
        told = desk.run("start", "--background", code=1).stderr
    assert f"The proxy did not start: Cannot listen on 127.0.0.1:{desk.port}" in told
    assert "proxy.log" in told


@pytest.mark.parametrize("pid", [1, 2**22 + 1])
def test_a_file_that_a_killed_proxy_left_behind_harms_nobody(desk, pid):
    desk.run("start", "--background")
    known = json.loads((desk.state / "proxy.json").read_bytes())
    os.kill(known["pid"], signal.SIGKILL)
    (desk.state / "proxy.json").write_text(json.dumps({**known, "pid": pid}))
    assert desk.run("stop").stdout == "The proxy is not running.\n"
    assert desk.json("status", code=1)["running"] is False
    assert "runs in the background" in desk.run("start", "--background").stdout
    desk.run("stop")


def test_a_process_that_does_not_answer_as_a_proxy_is_never_signalled(desk):
    with (
        ended(subprocess.Popen(["sleep", "60"], text=True)) as innocent,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        running = {"pid": innocent.pid, "listen": f"127.0.0.1:{other.getsockname()[1]}", "started_at": 1.0}
        running |= {"upstreams": {}, "version": "0", "tally": {}}
        desk.put(".local/state/pegboard/proxy.json", json.dumps(running))
        told = desk.run("stop", code=1).stderr
        assert f"Process {innocent.pid} may be the proxy, but does not answer on {running['listen']}." in told
        assert innocent.poll() is None


def test_a_project_cannot_say_which_process_is_stopped_or_where_requests_go(desk):
    evil = desk.cwd / "pegboard.toml"
    evil.write_text(f'[store]\nstate_dir = "{desk.cwd}"\n[proxy]\nupstreams.anthropic = "https://evil.example"\n')
    desk.run("start", "--background")
    assert status_over_http(desk.port)["upstreams"]["anthropic"] == "https://api.anthropic.com"
    assert not (desk.cwd / "proxy.json").exists()
    desk.run("stop")


def test_a_proxy_that_does_not_end_by_itself_is_killed():
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); signal.pause()"
    with ended(subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE, text=True)) as process:
        assert process.stdout.readline() == "ready\n"
        told = Running(pid=process.pid, listen="", started_at=0.0, upstreams={}, version="", tally=Tally())
        assert not end(told, patience=0.1)
        assert process.wait(PATIENCE) == -signal.SIGKILL
        assert end(told, patience=0.1)  # and one that has gone meanwhile is no error


def test_status_when_nothing_ever_ran_is_valid_for_scripts_too(desk):
    assert desk.json("status", code=1) == {"running": False, "agents": [], "variables": []}
    assert desk.run("status", code=1).stdout.startswith("The proxy is not running.")


TALLY = {
    "requests": 1210, "deferred": {"native": 700, "bridge": 100}, "counted": 10,
    "passed": {"few tools": 390, "other endpoint": 10},
    "tools_deferred": 60000, "definition_tokens_before": 2000000, "definition_tokens_after": 150000,
    "searches": 90, "searches_empty": 4, "rounds": 105, "failures": {"reply cut": 1},
    "direct_tokens": {"requests": 400, "input": 1000, "output": 50, "cache_read": 500, "cache_write": 100},
    "deferred_tokens": {"requests": 800, "input": 2000, "output": 150, "cache_read": 1800, "cache_write": 20},
}  # fmt: skip
SHOWN = """\
requests  1,210
deferred  800 (native 700, bridge 100)
counted   10 requests that only count tokens, as if deferred
passed    400 (few tools 390, other endpoint 10)
tools     60,000 definitions deferred
tokens    of definitions 2,000,000 → 150,000, 8%
searches  90, of which 4 found nothing
rounds    105 that clients did not ask for themselves
failures  1 (reply cut 1)

          replies  tokens in  tokens out  from cache  to cache
────────  ───────  ─────────  ──────────  ──────────  ────────
passed    400      1,000      50          50%         10%
deferred  800      2,000      150         90%         1%
"""


def test_when_it_is_down_the_last_counts_and_the_way_without_it_are_shown(desk):
    running = {"pid": 1, "listen": "127.0.0.1:9", "started_at": 1.0, "upstreams": {}, "version": "0", "tally": TALLY}
    desk.put(".local/state/pegboard/proxy.json", json.dumps(running))
    zed = desk.put(".config/zed/settings.json", '{"language_models": {"openai": {"api_url": "https://x.example/v1"}}}')
    desk.run("install", "zed", "--yes")
    shown = desk.run("status", code=1).stdout
    assert SHOWN in shown
    assert f"  zed  {zed}\n    directly: language_models.anthropic.api_url is not set\n" in shown
    assert "    directly: language_models.openai.api_url = https://x.example/v1\n" in shown
    assert "`pegboard proxy uninstall zed` does that." in shown
    found = desk.json("status", code=1)
    assert found["tally"]["deferred_tokens"]["read_share"] == 0.9
    assert found["agents"] == [
        {
            "agent": "zed",
            "file": str(zed),
            "direct": {
                "language_models.anthropic.api_url": None,
                "language_models.openai.api_url": "https://x.example/v1",
            },
        }
    ]


def test_when_it_is_down_nothing_is_said_to_be_open(desk):
    running = {"pid": 1, "listen": "127.0.0.1:9", "started_at": 1.0, "upstreams": {}, "version": "0"}
    desk.put(".local/state/pegboard/proxy.json", json.dumps({**running, "tally": {"requests": 3, "streaming": 2}}))
    assert "requests  3\n" in desk.run("status", code=1).stdout


def test_when_it_is_down_a_shell_that_points_at_it_is_told_the_way_without_it(desk):
    desk.more = {
        "ANTHROPIC_BASE_URL": f"http://localhost:{desk.port}/anthropic",
        "OPENAI_BASE_URL": "https://elsewhere.example/v1",
    }
    shown = desk.run("status", code=1).stdout
    assert "  this shell  ANTHROPIC_BASE_URL\n    `unset ANTHROPIC_BASE_URL`" in shown
    assert desk.json("status", code=1)["variables"] == ["ANTHROPIC_BASE_URL"]
    desk.run("start", "--background")
    assert "this shell" not in desk.run("status").stdout
    assert "`unset ANTHROPIC_BASE_URL`" in desk.run("stop").stderr


def test_watching_without_a_terminal_prints_again_and_again_until_its_input_ends(desk):
    with ended(desk.popen("status", "--watch", "--json", stdin=subprocess.PIPE)) as process:
        shown = [json.loads(process.stdout.readline()) for _ in range(2)]
        assert [each["running"] for each in shown] == [False, False]
        process.stdin.close()
        assert process.wait(PATIENCE) == 1
        process.stdin = None


def test_watching_without_any_input_shows_it_once(desk):
    assert desk.run("status", "--watch", code=1).stdout.count("The proxy is not running.") == 1


def test_watching_on_a_terminal_shows_it_in_place_until_ctrl_c(desk):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*PEGBOARD, "proxy", "status", "--watch"],
        cwd=desk.cwd, env=desk.variables(), stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    try:
        while seen.count(b"\x1b[H\x1b[J") < 2:
            assert select.select([ours], [], [], PATIENCE)[0]
            seen += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait(PATIENCE)
        os.close(ours)


def test_a_log_never_grows_beyond_its_bounds(tmp_path):
    path = tmp_path / "state" / "proxy.log"
    log = BoundedLog(path, most=1000)
    for number in range(300):
        log.write(f"line {number}\n")
        assert path.stat().st_size <= 1000
    log.write("x" * 5000)
    log.close()
    assert path.stat().st_size <= 1000
    assert oct(path.stat().st_mode & 0o777) == "0o600"


def test_what_went_wrong_most_recently_stays_in_the_log(tmp_path):
    path = tmp_path / "proxy.log"
    log = BoundedLog(path, most=100)
    for number in range(30):
        log.write(f"line {number}\n")
    log.close()
    lines = path.read_text().splitlines()
    assert lines[-1] == "line 29"
    assert lines == [f"line {30 - len(lines) + number}" for number in range(len(lines))]


def test_what_is_told_of_a_proxy_fits_its_struct(desk):
    desk.run("start", "--background")
    running = msgspec.convert(status_over_http(desk.port), Running)
    assert Path("/proc", str(running.pid)).exists()
    desk.run("stop")
