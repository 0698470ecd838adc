"""The house rules that a linter does not know."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
FORBIDDEN = {"utils", "util", "helpers", "helper", "common", "shared", "manager", "service", "base", "misc"}
SLOW_IMPORTS = {
    "asyncio",
    "httpx2",
    "platformdirs",
    "subprocess",
    "logging",
    "dataclasses",
    "socket",
    "ssl",
    "mcp",
    "anyio",
    "numpy",
    "Stemmer",
}


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse(path.read_text("utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_no_function_is_longer_than_60_lines() -> None:
    long = [
        f"{path.name}:{node.name} {length(node)}" for path in SOURCES for node in functions(path) if length(node) > 60
    ]
    assert long == []


def test_at_most_three_in_a_hundred_functions_are_longer_than_50_lines_and_nine_in_ten_fit_30() -> None:
    sizes = sorted(length(node) for path in SOURCES for node in functions(path))
    assert sum(size > 50 for size in sizes) <= 0.03 * len(sizes)
    assert sizes[int(0.9 * len(sizes))] <= 30


def test_no_module_is_longer_than_500_lines() -> None:
    assert [path.name for path in SOURCES if path.read_text("utf-8").count("\n") > 500] == []


def test_every_module_says_why_it_exists() -> None:
    assert [str(path) for path in SOURCES if not ast.get_docstring(ast.parse(path.read_text("utf-8")))] == []


def test_no_module_or_folder_is_a_drawer() -> None:
    names = {part for path in SOURCES for part in (path.stem, *path.relative_to(ROOT / "src").parts[:-1])}
    assert names & FORBIDDEN == set()


def test_tests_use_no_mocks_and_do_not_sleep() -> None:
    pattern = re.compile(r"unittest\.mock|time\.sleep\(|MagicMock|pytest_mock|mocker")
    tests = [path for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)]
    assert [path.name for path in tests if pattern.search(path.read_text("utf-8"))] == []


def tracked_files() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_the_repository_names_no_path_of_anyones_machine() -> None:
    pattern = re.compile(r"/(?:work|farm|root)/\w")
    found = [
        str(path.relative_to(ROOT))
        for path in tracked_files()
        if path != Path(__file__) and pattern.search(path.read_text("utf-8", errors="replace"))
    ]
    assert found == []


def loaded_by(*command: str, cwd: Path) -> set[str]:
    code = (
        "import sys; from pegboard.cli.main import main; main(sys.argv[1:]);"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command], cwd=cwd, capture_output=True, text=True, timeout=30, check=True
    )
    return {name.partition(".")[0] for name in done.stderr.splitlines()}


@pytest.mark.parametrize("command", [("tools",), ("servers",), ("config", "check")])
def test_commands_that_read_the_cache_load_no_event_loop_and_no_http(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "pegboard.toml").write_text(
        f'[servers.a]\ncommand = "{sys.executable}"\n[store]\ncache_dir = "{tmp_path}"\nstate_dir = "{tmp_path}"\n'
    )
    loaded = loaded_by("--config", "pegboard.toml", *command, cwd=tmp_path)
    assert "msgspec" in loaded
    assert loaded & SLOW_IMPORTS == set()


def test_a_client_that_lists_tools_pays_for_neither_index_nor_store_nor_http(tmp_path: Path) -> None:
    (tmp_path / "pegboard.toml").write_text(
        f'[servers.a]\ncommand = "{sys.executable}"\n[store]\ncache_dir = "{tmp_path}"\nstate_dir = "{tmp_path}"\n'
        '[surface]\nmode = "on"\n[record]\nenabled = false\n[gateway]\nbackground_refresh = false\n'
    )
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    asked = [("initialize", about), ("tools/list", {})]
    lines = (
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        for number, (method, params) in enumerate(asked)
    )
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "pegboard", "serve"],
        cwd=tmp_path, input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    assert "search_tools" in done.stdout
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "pegboard.platform_tools.desk" in loaded
    heavy = {"numpy", "sqlite3", "httpx2", "mcp", "pydantic", "pegboard.index.finder", "pegboard.invoke.path"}
    heavy |= {"yaml", "pegboard.skills", "pegboard.platform_tools.library"}
    assert loaded & heavy == set()


def test_every_module_can_be_imported_without_the_optional_dependencies() -> None:
    modules = [".".join(path.relative_to(ROOT / "src").with_suffix("").parts) for path in SOURCES]
    plug_ins = "pegboard.integrations."  # each needs its framework, and says so
    names = [
        name.removesuffix(".__init__")
        for name in modules
        if not name.endswith(("__main__", "guard"))
        and not name.removesuffix("__init__").rstrip(".").startswith(plug_ins)
    ]
    code = (
        "import sys, importlib\n"
        "for name in ('mcp', 'mcp_types', 'pydantic', 'hypothesis', 'psutil'): sys.modules[name] = None\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
