"""What the documents say is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pegboard.catalog.naming import public_name
from pegboard.cli.main import COMMANDS
from pegboard.config.load import load

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[[^\]]+\]\((?!https?:|#)([^)#]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = [target for target in LINK.findall(page.read_text("utf-8")) if not (page.parent / target).exists()]
    assert broken == []


def test_the_readme_names_every_command() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [name for name in COMMANDS if f"pegboard {name}" not in readme] == []


def test_the_configuration_in_the_readme_loads(tmp_path: Path) -> None:
    [example] = re.findall(r"```toml\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    path = tmp_path / "pegboard.toml"
    path.write_text(example)
    config = load(files=[path], environ={"GITHUB_TOKEN": "t", "PATH": "/usr/bin"})
    assert set(config.servers) == {"github", "docs"}
    assert config.servers["github"].config.env == {"GITHUB_PERSONAL_ACCESS_TOKEN": "t"}
    assert [spec.problem for spec in config.servers.values()] == ["", ""]


def test_tools_are_named_as_the_readme_says() -> None:
    assert public_name("github", "create_issue") == "github__create_issue"


def test_every_folder_of_the_house_is_on_the_architecture_page() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    house = ROOT / "src" / "pegboard"
    rows = [f"{each.name}/" for each in house.iterdir() if (each / "__init__.py").exists()]
    rows += [each.name for each in house.glob("*.py") if not each.name.startswith("__")]
    assert [row for row in rows if f"`{row}`" not in page] == []


def test_every_module_the_architecture_page_names_exists() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    house = ROOT / "src" / "pegboard"
    names = set(re.findall(r"`((?:[a-z_]+/)?[a-z_]+\.py)`", page))
    missing = [name for name in names if not ((house / name).exists() or list(house.glob(f"*/{name}")))]
    assert missing == []


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = sorted(int(path.name[:4]) for path in (ROOT / "docs" / "decisions").glob("0*.md"))
    assert numbers == list(range(1, len(numbers) + 1))


def test_every_dependency_has_its_reason() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    page = (ROOT / "docs" / "dependencies.md").read_text("utf-8")
    assert [name for each in needed if f"`{(name := re.split('[<>=;[]', each)[0].strip())}`" not in page] == []
