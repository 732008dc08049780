"""The documentation's site: nothing is left out, nothing stands twice, every link leads somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from actiongap import operators
from actiongap.learning import settings
from actiongap.training.apex.settings import ApexSettings
from tools.docs_site import algorithms, contents, docstrings, links, pages, repository

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return pages.texts()


def test_every_page_is_in_the_contents_and_only_once(texts):
    places = contents.places()
    assert sorted(places) == sorted(place.removesuffix(".md") for place in texts)
    assert len(places) == len(set(places))
    assert set(contents.SHORT_TITLES) <= set(places)


def test_what_the_contents_say_stands_on_the_pages(texts):
    """Sphinx reads the order from the pages themselves."""
    entries = [entry for text in texts.values() for tree in _trees(text) for entry in tree]
    assert sorted(["index", *entries]) == sorted(contents.places())


def _trees(text: str) -> list[list[str]]:
    found = re.findall(r"```\{toctree\}\n(?::[^\n]*\n)*\n(.*?)```", text, re.S)
    return [re.findall(r"^(?:.*<)?/([\w/-]+)>?$", tree, re.M) for tree in found]


def test_every_setting_is_explained_and_has_its_values(texts):
    text = texts["reference/settings.md"]
    for name in (*settings.NAMES, *(each.name for each in fields(ApexSettings))):
        assert text.count(f"| `{name}` |") == 2, name
    numbers = {number for name in operators.names() for number in operators.parameters(name)}
    assert [number for number in sorted(numbers) if f"| `{number}` |" not in text] == []
    assert [preset for preset in settings.PRESETS if f" {preset} |" not in text] == []
    assert f"| `gamma` | {settings.GENERAL.gamma} |" in text


def test_every_command_tells_its_help(texts):
    from actiongap.cli import COMMANDS

    text = texts["reference/command-line.md"]
    for command in COMMANDS:
        (told,) = re.findall(rf"^## {command}\n\n```\n(.*?)\n```$", text, re.M | re.S)
        assert told.startswith(f"usage: actiongap {command}"), command
        assert "--help" in told
    assert "\x1b" not in text


@pytest.mark.parametrize("name", operators.names())
def test_an_algorithm_has_all_parts_of_its_page(texts, name):
    text = texts[f"algorithms/{name}.md"]
    parts = ["Formula", "Use", "Deviations from the paper", "Results"]
    assert [part for part in parts if f"\n## {part}\n" not in text] == []
    assert "**Who needs it.**" in text
    assert [number for number in operators.parameters(name) if f"| `{number}` |" not in text] == []


def test_a_formula_has_the_parts_of_its_operator():
    told = algorithms.formula(operators.FAMILY["clip_pal"])
    assert told.splitlines() == [
        "v(q)    =  max q",
        "g(q)_a  =  alpha (q_a - v(q))   where  q_a - Q_l >= c (max q - Q_l),  else 0",
        "y       =  max(r + gamma v(q') + g(q)_a, r + gamma q'_a)",
    ]
    assert "max(q_a - v(q), floor, -cap e)" in algorithms.formula(operators.FAMILY["cap_mdqn"])


def test_deviations_stand_where_they_concern(texts):
    told = algorithms.deviations()
    assert list(told) == list(range(1, len(told) + 1))
    assert set(algorithms.CONCERNS) <= set(told)
    assert "(number 5)" in texts["algorithms/clip_mdqn.md"]
    assert "(number 5)" not in texts["algorithms/clip_al.md"]


def test_every_experiment_and_example_has_its_page(texts):
    assert {folder.relative_to(ROOT).as_posix() for folder in repository.REPORTS} >= {"results/pixelcopter"}
    assert "actiongap reproduce pixelcopter" in texts["results/pixelcopter.md"]
    assert "](pixelcopter-report-curves.png)" in texts["results/pixelcopter.md"]
    for path in (ROOT / "examples").glob("*.py"):
        assert path.read_text(encoding="utf-8") in texts[f"examples/{path.stem}.md"]


def test_every_picture_of_a_text_is_on_its_page(texts):
    for path, place in repository.texts().items():
        pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", (ROOT / path).read_text())
        shown = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", texts[place])
        assert len(shown) >= len(pictures), f"{path}: {pictures} became {shown}"


def test_the_playground_is_in_its_page(texts):
    text = texts["playground.md"]
    assert f'src="{pages.PLAYGROUND}"' in text
    assert f'href="{pages.PLAYGROUND}#mdp=chain:11:0.7&amp;gamma=0.99' in text


def test_links_lead_to_the_pages_of_the_site():
    known = repository.places()

    def turned(text: str, path: str = "docs/algorithms/al.md") -> str:
        return repository.turned(text, path, known)

    assert turned("[a](../theory.md#scale)") == "[a](../theory.md#scale)"
    assert turned("[a](../../results/pixelcopter/)") == "[a](../results/pixelcopter.md)"
    assert turned("[a](../../README.md)") == "[a](../index.md)"
    assert turned("[a](docs/start.md)", "README.md") == "[a](start.md)"
    assert turned("![a](minatar/report/curves.png)", "results/README.md") == "![a](minatar-report-curves.png)"
    # A file without a page leaves its words. One that does not exist is left for Sphinx to name; code is no link.
    assert turned("[a](../../pyproject.toml)") == "a"
    for left in ("[a](../nothing.md)", "[a](https://example.org)", "[a](#here)", "```\n[a](../../pyproject.toml)\n```"):
        assert turned(left) == left


def test_a_docstring_is_shown_as_it_is_meant():
    told = [
        "The limit V* of `q_a`, **not** `x`:",
        "",
        "    a_ = b",
        "",
        "Cap     h_k",
        "        e_k",
        "",
        "Last | one.",
    ]
    assert docstrings.as_restructured_text(told) == [
        r"The limit V\* of ``q_a``, \*\*not\*\* ``x``:",
        "",
        "::",
        "",
        "        a_ = b",
        "",
        "    Cap     h_k",
        "            e_k",
        "",
        r"Last \| one.",
        "",
    ]
    assert docstrings.as_restructured_text(["Alias for field number 0", ""]) == []


def test_links_that_lead_nowhere_are_named(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.html").write_text(
        '<a href="sub/b.html#there">1</a> <a href="sub/b.html#not">2</a> <img src="no.png"> <a href="#not">3</a>'
        '<a href="own.html#state">4</a> <a href="https://example.org/no">5</a> <a href="sub">6</a>'
    )
    (tmp_path / "sub" / "b.html").write_text('<p id="there"><a href="../a.html?q=1">back</a>')
    (tmp_path / "own.html").write_text('<a href="no.html">not looked at</a>')
    wrong = links.leading_nowhere(tmp_path, own=("own.html",))
    assert [line.split()[1] for line in wrong] == ["sub/b.html#not", "no.png", "#not", "sub"]


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_asks_nothing_of_the_network(tmp_path):
    for package in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(package)
    site = tmp_path / "site"
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", "tools.docs_site", str(site)]
    built = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=600)
    assert built.returncode == 0, built.stdout + built.stderr
    assert built.stderr == ""
    made = {path.relative_to(site).with_suffix("").as_posix() for path in site.rglob("*.html")}
    assert made >= {*contents.places(), "playground-page", "search"}
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert re.findall(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="?https?:', text) == [], page
    agents = (site / "reference" / "agents.html").read_text(encoding="utf-8")
    assert 'id="actiongap.agent.Agent.learn"' in agents
