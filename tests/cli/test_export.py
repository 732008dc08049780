"""The command export, and --best wherever it is taken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from actiongap.training import checkpoint

from .conftest import Run

TINY = [
    *("hidden_size=8", "replay_capacity=200", "warmup_steps=100", "evaluation_period_steps=100"),
    *("evaluation_episodes=2", "evaluation_limit_steps=30", "keep_best=true"),
]


def test_the_last_network_and_the_best_one(run: Run) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("safetensors")
    assert run("train", "pixelcopter", "--algo", "al", "--steps", "250", "--quiet", "--set", *TINY)[0] == 0
    folder = "runs/pixelcopter-al-0"
    best_step = checkpoint.load_metadata(Path(folder) / "best")["step"]
    assert best_step < 250
    for words, step in (([], 250), (["--best"], best_step)):
        code, out, _ = run("export", folder, "--out", "made/policy.onnx", *words)
        assert (code, out) == (0, "made/policy.onnx\n")
        told = {each.key: each.value for each in onnx.load("made/policy.onnx").metadata_props}
        assert json.loads(told["actiongap"])["step"] == step
        code, out, _ = run("evaluate", folder, "--episodes", "2", *words)
        assert code == 0
        assert f"step {step}\n" in out
    assert run("export", folder, "--out", "policy.safetensors")[0] == 0
    code, out, _ = run("watch", folder, "--steps", "3", "--best")
    assert (code, out) == (0, "out/watch-pixelcopter-al-0-best.gif\n")
    for words, wanted in (
        (["export", folder, "--out", "policy.pt"], "an export ends in .onnx or .safetensors"),
        (["export", "nowhere", "--out", "policy.onnx"], "nowhere is not the folder of a run"),
    ):
        code, _, err = run(*words)
        assert code == 2
        assert wanted in err
        assert len(err.strip().splitlines()) <= 2
    assert not Path("policy.pt").exists()


def test_a_run_that_kept_no_best_network(run: Run) -> None:
    assert run("train", "pixelcopter", "--steps", "100", "--quiet", "--set", *TINY[:-1])[0] == 0
    for command in (["evaluate"], ["watch"], ["export", "--out", "policy.onnx"]):
        code, _, err = run(*command, "runs/pixelcopter-clip_al-0", "--best")
        assert code == 2
        assert err == (
            "actiongap: runs/pixelcopter-clip_al-0 has no best network: train with keep_best=true to get one\n"
        )
    assert not Path("policy.onnx").exists()
