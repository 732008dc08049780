"""The page as a file: whole, closed in itself, and set to what was asked for."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from actiongap import cli, operators, playground
from actiongap.playground.page import _SCRIPTS
from actiongap.tabular.chain_walk import experiment
from actiongap.tabular.chain_walk.walk import Walk


def test_every_script_and_every_operator_is_on_the_page():
    files = resources.files("actiongap.playground").joinpath("scripts").iterdir()
    assert sorted(file.name for file in files) == sorted(f"{name}.js" for name in _SCRIPTS)
    page = playground.render()
    assert page.count("<script>") == page.count("</script>") == len(_SCRIPTS) + 1
    family = page[page.index("const FAMILY") : page.index("const START")]
    assert [name for name in operators.names() if f'"{name}":' not in family] == []
    assert not re.search(r"/\*[A-Z]+\*/|<!--[A-Z]+-->", page)


def test_the_page_knows_every_number_of_the_record():
    page = playground.render()
    neutral = page[page.index("const NEUTRAL") : page.index("};", page.index("const NEUTRAL"))]
    assert [field for field in operators.Operator._fields if f"{field}:" not in neutral] == []


def test_the_page_names_no_other_address():
    assert re.findall(r"https?://[^\s\"'`]+", playground.render()) == []


def test_a_state_cannot_end_the_script():
    page = playground.render("</script><script>alert(1)</script>")
    assert "alert(1)" in page
    assert "<script>alert" not in page


def test_the_state_of_a_chain_walk_holds_its_numbers():
    walk = Walk(alpha=0.5, clip_ratio=0.7, lower_bound=-3, gamma=0.9, states=5, iterations=7)
    made = experiment.run(["al", "clip_mdqn"], walk)
    assert playground.chain_walk_state(made) == (
        "mdp=chain:5:0.7&gamma=0.9&sweeps=7&k=7&op=al,alpha:0.5"
        "&op=clip_mdqn,alpha:0.5,temperature:0.03,floor:-1,clip_ratio:0.7,lower_bound:-3"
    )
    noisy = experiment.run(operators.names(), Walk(iterations=1), noise=0.25, seed=3)
    state = playground.chain_walk_state(noisy)
    assert "&noise=0.25&seed=3&" in state
    assert state.count("op=") == playground.PANELS < len(operators.names())


def run(*words):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["actiongap", *map(str, words)])
        cli.main()


def test_the_command_writes_the_page_set_to_a_link(tmp_path, capsys):
    written = tmp_path / "new" / "page.html"
    run("playground", "--out", written, "--state", "file:///elsewhere.html#mdp=garnet:5:2:2:9&op=pal")
    assert str(written) in capsys.readouterr().out.replace("\n", "")
    assert 'const START = "mdp=garnet:5:2:2:9&op=pal";' in written.read_text()
    with pytest.raises(SystemExit, match="2"):
        run("playground", "--out", tmp_path)
