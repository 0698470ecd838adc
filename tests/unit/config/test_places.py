"""Where files belong on this platform."""

from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest

from pegboard.config.model import Config, StoreConfig
from pegboard.config.places import expand_home, project_file, user_file, user_folder


@pytest.mark.parametrize("kind", ["config", "cache", "state"])
def test_without_variables_the_folder_is_the_platforms(kind, monkeypatch):
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    dirs = platformdirs.PlatformDirs("pegboard", appauthor=False)
    assert user_folder(kind) == getattr(dirs, f"user_{kind}_path")


@pytest.mark.parametrize(
    ("kind", "variable"), [("config", "XDG_CONFIG_HOME"), ("cache", "XDG_CACHE_HOME"), ("state", "XDG_STATE_HOME")]
)
def test_a_variable_moves_the_folder_and_a_relative_one_counts_for_nothing(kind, variable):
    assert user_folder(kind, {variable: "/elsewhere", "HOME": "/home/ada"}) == Path("/elsewhere/pegboard")
    assert user_folder(kind, {variable: "relative", "HOME": "/home/ada"}) == user_folder(kind, {"HOME": "/home/ada"})


def test_the_users_file_has_the_projects_files_name():
    assert user_file({"XDG_CONFIG_HOME": "/x"}) == Path("/x/pegboard/pegboard.toml")


def test_a_folder_of_the_files_name_is_no_project_file(tmp_path):
    (tmp_path / "a" / "pegboard.toml").mkdir(parents=True)
    (tmp_path / "pegboard.toml").write_text("", encoding="utf-8")
    assert project_file(tmp_path / "a") == tmp_path / "pegboard.toml"


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("~", "/home/ada"),
        ("~/x", "/home/ada/x"),
        ("a~", "a~"),
        ("/~", "/~"),
        ("", ""),
        ("~no-such-user/x", "~no-such-user/x"),
    ],
)
def test_a_tilde_at_the_start_is_the_home_folder(text, expanded):
    assert expand_home(text, {"HOME": "/home/ada"}) == expanded


def test_a_home_at_the_root_gives_no_double_slash():
    assert expand_home("~/x", {"HOME": "/"}) == "/x"
    assert expand_home("~", {"HOME": "/"}) == "/"


def test_the_store_says_where_files_lie(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/c")
    monkeypatch.setenv("XDG_STATE_HOME", "/s")
    assert (Config().cache_dir, Config().state_dir) == (Path("/c/pegboard"), Path("/s/pegboard"))
    store = StoreConfig(cache_dir="/own", state_dir="/mine")
    assert (Config(store=store).cache_dir, Config(store=store).state_dir) == (Path("/own"), Path("/mine"))
