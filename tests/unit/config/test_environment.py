"""What a server may know of its user's environment."""

from __future__ import annotations

import pytest

from pegboard.config.environment import child_environment, looks_secret
from pegboard.config.model import ServerConfig

SECRET_NAMES = """
TOKEN GITHUB_TOKEN github_token GITHUB_PERSONAL_ACCESS_TOKEN INPUT_TOKEN HF_TOKEN VAULT_TOKEN AWS_SESSION_TOKEN
API_TOKENS OPENAI_API_KEY ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN GEMINI_API_KEY_PROD OPENAI_API_KEY_2 apiKey
openaiApiKey OPENAIAPIKEY KEY KEYS STRIPE_KEY PRIVATE_KEY SSH_PRIVATE_KEY_PEM DJANGO_SECRET_KEY SECRET_KEY_BASE
AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID SECRET CLIENT_SECRET CLIENTSECRET PASSWORD DB_PASSWORD PGPASSWORD MYSQL_PWD
DB_PASS SMTP_PASSWD GPG_PASSPHRASE CREDENTIAL GOOGLE_APPLICATION_CREDENTIALS AUTH BASIC_AUTH REDIS_AUTH
NPM_CONFIG__AUTH npm_config__authToken COOKIE SESSION_COOKIE SESSION_TOKEN GITHUB_PAT DSN SENTRY_DSN DATABASE_URL
PROD_DATABASE_URL DATABASE_URL_PROD AZURE_STORAGE_CONNECTION_STRING SLACK_WEBHOOK_URL SSH_AUTH_SOCK GPG_AGENT_INFO
SSH_AGENT_PID GNOME_KEYRING_CONTROL DBUS_SESSION_BUS_ADDRESS DBUS_SYSTEM_BUS_ADDRESS OTEL_EXPORTER_OTLP_HEADERS
ANTHROPIC_CUSTOM_HEADERS Authorization Proxy-Authorization X-Api-Key X-Auth-Token Cookie Set-Cookie --api-key
--token
"""

HARMLESS_NAMES = """
PATH HOME USER LOGNAME SHELL TERM LANG LC_ALL TZ CI EDITOR PWD OLDPWD TMPDIR DISPLAY WAYLAND_DISPLAY XAUTHORITY _
KEYBOARD MONKEY DONKEY HOTKEY KEYMAP KEYTIMEOUT LESSKEY KEY_REPEAT KEYCLOAK_URL XKB_DEFAULT_LAYOUT AUTHOR AUTHORS
GIT_AUTHOR_NAME AUTHENTICATION_MODE AUTH_TYPE AUTH0_DOMAIN OAUTH_CLIENT_ID XDG_SESSION_ID XDG_SESSION_TYPE
TERM_SESSION_ID ITERM_SESSION_ID DESKTOP_SESSION SESSION_MANAGER XDG_RUNTIME_DIR MAX_TOKENS
CLAUDE_CODE_MAX_OUTPUT_TOKENS MAX_THINKING_TOKENS TOKEN_LIMIT TOKENIZERS_PARALLELISM TOKENIZER PASS COMPASS BYPASS
SSH_ASKPASS GIT_ASKPASS PASSWORD_STORE_DIR AWS_WEB_IDENTITY_TOKEN_FILE SSH_KEY_PATH KUBECONFIG SECRETARY
COOKIECUTTER_CONFIG PATTERN USER_AGENT NPM_CONFIG_USER_AGENT AI_AGENT_NAME SSH_CONNECTION AWS_REGION AWS_PROFILE
OPENAI_BASE_URL ANTHROPIC_BASE_URL ANTHROPIC_MODEL DOCKER_HOST VIRTUAL_ENV NODE_PATH JAVA_HOME HTTP_PROXY
HTTPS_PROXY NO_PROXY Content-Type Accept User-Agent X-Request-Id --verbose
"""


@pytest.mark.parametrize("name", SECRET_NAMES.split())
def test_a_name_that_means_a_secret_looks_like_one(name):
    assert looks_secret(name)


@pytest.mark.parametrize("name", HARMLESS_NAMES.split())
def test_a_name_that_only_resembles_one_does_not(name):
    assert not looks_secret(name)
    assert not looks_secret(name, "/usr/share/something")


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("REDIS_URL", "redis://:hush@localhost:6379/0", True),
        ("REDIS_URL", "redis://localhost:6379/0", False),
        ("MONGO_URI", "mongodb+srv://ada:hush@host/db", True),
        ("PIP_INDEX_URL", "https://deploy-token@pypi.example.org/simple", True),
        ("PIP_INDEX_URL", "https://pypi.example.org/simple", False),
        ("GIT_REMOTE_URL", "ssh://git@example.org/repo.git", False),
        ("BROKER", "amqp://ada:hush@host", True),
        ("HTTPS_PROXY", "http://ada:hush@proxy:3128", False),
        ("SOMETHING", "sk-ant-" + "x1" * 12, True),
        ("SOMETHING", "ghp_" + "x1" * 18, True),
        ("SOMETHING", "xoxb-" + "1" * 12, True),
        ("SOMETHING", "-----BEGIN OPENSSH PRIVATE KEY-----\nx", True),
        ("SOMETHING", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig", True),
        ("SOMETHING", "skirt", False),
        ("COMPLETION_TOKENS", "4096", False),
        ("COMPLETION_TOKENS", "abc,def", True),
    ],
)
def test_a_value_tells_where_the_name_does_not(name, value, secret):
    assert looks_secret(name, value) is secret


PARENT = {
    "PATH": "/bin",
    "HOME": "/home/ada",
    "LANG": "C.UTF-8",
    "GITHUB_TOKEN": "t",
    "AWS_SECRET_ACCESS_KEY": "s",
    "PEGBOARD_CONFIG": "x.toml",
    "PEGBOARD_SERVERS__A__ENV__X": "y",
}


def child(**fields):
    return child_environment(ServerConfig(command="x", **fields), PARENT)


def test_by_default_a_server_inherits_all_but_secrets_and_hears_what_was_kept():
    environment, withheld = child()
    assert environment == {"PATH": "/bin", "HOME": "/home/ada", "LANG": "C.UTF-8"}
    assert withheld == ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN")


def test_a_list_adds_the_secrets_it_names():
    environment, withheld = child(inherit_env=("GITHUB_TOKEN", "NOT_SET"))
    assert environment == {"PATH": "/bin", "HOME": "/home/ada", "LANG": "C.UTF-8", "GITHUB_TOKEN": "t"}
    assert withheld == ("AWS_SECRET_ACCESS_KEY",)


def test_an_empty_list_is_the_default():
    assert child(inherit_env=()) == child()


def test_true_is_everything_and_false_is_next_to_nothing():
    everything, withheld = child(inherit_env=True)
    assert everything == {name: value for name, value in PARENT.items() if not name.startswith("PEGBOARD_")}
    assert withheld == ()
    assert child(inherit_env=False) == ({"PATH": "/bin", "HOME": "/home/ada"}, ())


@pytest.mark.parametrize("rule", [None, True, False, ("PEGBOARD_CONFIG",)])
def test_pegboards_own_variables_are_never_handed_on(rule):
    environment, withheld = child(inherit_env=rule)
    assert not [name for name in (*environment, *withheld) if name.startswith("PEGBOARD_")]


@pytest.mark.parametrize("rule", [None, True, False, ()])
def test_what_the_server_is_given_by_name_it_gets_whatever_the_rule(rule):
    environment, withheld = child(inherit_env=rule, env={"GITHUB_TOKEN": "own", "LANG": "de", "PEGBOARD_X": "1"})
    assert (environment["GITHUB_TOKEN"], environment["LANG"], environment["PEGBOARD_X"]) == ("own", "de", "1")
    assert "GITHUB_TOKEN" not in withheld
