import json

from tests.cli.running import tocsin
from tocsin import __version__, from_json, parse


def test_parse_prints_canonical_text() -> None:
    done = tocsin("parse", "SYMBOL LIKE 'I%' AND NOT (price<=100)")
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "SYMBOL starts with 'I' and not price <= 100\n",
        "",
    )


def test_parse_reads_standard_input() -> None:
    assert tocsin("parse", "-", stdin="a = 1").stdout == "a = 1\n"


def test_parse_prints_json_that_reads_back() -> None:
    done = tocsin("parse", "from s a next s b on b.x = a.x", "--form", "json")
    assert from_json(json.loads(done.stdout)) == parse("from s a next s b on b.x = a.x")


def test_parse_prints_normal_forms() -> None:
    text = "(a = 1 or b = 2) and c = 3"
    assert tocsin("parse", text, "--form", "dnf").stdout.splitlines() == [
        "c = 3 and a = 1",
        "c = 3 and b = 2",
    ]
    assert tocsin("parse", text, "--form", "cnf").stdout.splitlines() == ["c = 3", "a = 1 or b = 2"]
    assert tocsin("parse", text, "--form", "normal").stdout.splitlines() == ["cnf", "c = 3", "a = 1 or b = 2"]
    assert tocsin("parse", "a = 1 or b = 2 and c = 3", "--form", "normal").stdout.splitlines() == [
        "dnf",
        "a = 1",
        "b = 2 and c = 3",
    ]
    refused = tocsin("parse", "select min(p) from table t", "--form", "dnf")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "only filters have a normal form" in refused.stderr


def test_an_error_shows_its_place_on_standard_error() -> None:
    done = tocsin("parse", "price => 100")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[:3] == [
        "line 1, column 7: a comparison is missing, found `=>`",
        "    price => 100",
        "          ^^",
    ]


def test_warnings_go_to_standard_error() -> None:
    done = tocsin("parse", "a = 1 and a = 2")
    assert (done.returncode, done.stdout) == (0, "a = 1 and a = 2\n")
    assert done.stderr == "warning: it can never match: no value of a satisfies `a = 1 and a = 2`\n"


def test_version() -> None:
    assert tocsin("version").stdout == tocsin("--version").stdout == f"tocsin {__version__}\n"


def test_a_wrong_command_and_a_wrong_subscription_have_different_errors() -> None:
    assert tocsin("prase", "a = 1").returncode == 2
    assert "--form" in tocsin("parse", "--help").stdout
