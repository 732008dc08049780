"""Action gaps of hand-made Q functions on an environment that one knows all about."""

import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from scipy.stats import norm

from actiongap import Agent, analysis
from actiongap.analysis import gap_page, gaps, models
from actiongap.analysis.models import Model

Q_OF_STEP = np.array([[1.0, 3.0, 2.5], [4.0, 0.0, 0.0], [0.5, 0.25, 0.5]])


class Three(gymnasium.Env):
    """Three steps with the rewards 1, 2 and 4, whatever one does; then it terminates, or is truncated."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, render_mode=None, truncates=False):
        self.observation_space = spaces.Box(0, 3, (1,), np.float32)
        self.action_space = spaces.Discrete(3)
        self.render_mode, self.truncates = render_mode, truncates
        self.step_number = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.step_number = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        reward = 2.0**self.step_number
        self.step_number += 1
        over = self.step_number == 3
        return (
            np.array([self.step_number], np.float32),
            reward,
            over and not self.truncates,
            over and self.truncates,
            {},
        )

    def render(self):
        return np.full((16, 16, 3), 80 * self.step_number, np.uint8)


def by_step(observations):
    return Q_OF_STEP[np.minimum(observations[:, 0].astype(int), 2)]


def test_the_table_by_hand():
    table = analysis.action_gaps(by_step, Three, episodes=2, gamma=0.5)
    assert list(table["episode"]) == [0, 0, 0, 1, 1, 1]
    one = table[:3]
    assert list(one["step"]) == [0, 1, 2]
    assert list(one["action"]) == [1, 0, 0]
    assert list(one["value"]) == [3.0, 4.0, 0.5]
    assert list(one["gap"]) == [0.5, 4.0, 0.0]  # a tie has no gap
    assert list(one["reward"]) == [1.0, 2.0, 4.0]
    assert list(one["discounted_return"]) == [1 + 0.5 * 2 + 0.25 * 4, 2 + 0.5 * 4, 4]
    assert one["complete"].all()
    np.testing.assert_array_equal(gaps.q_columns(one), Q_OF_STEP)


def test_a_return_that_was_cut_counts_only_where_little_is_missing():
    truncated = lambda render_mode=None: Three(render_mode, truncates=True)  # noqa: E731
    assert not analysis.action_gaps(by_step, truncated, 1, gamma=0.5)["complete"].any()
    # .1^3, .1^2 and .1 of what follows are missing: at most 1% of the first two.
    assert list(analysis.action_gaps(by_step, truncated, 1, gamma=0.1)["complete"]) == [True, True, False]


def test_flips_of_two_actions_are_a_normal_probability():
    q = np.array([[1.0, 0.0]])
    # The difference of two errors has the standard deviation sqrt(2) sigma.
    np.testing.assert_allclose(
        gaps.flips(q, [0.5, 1.0]), norm.cdf(-1 / (np.sqrt(2) * np.array([0.5, 1.0]))), atol=1e-10
    )
    assert gaps.flips(q, [0.0])[0] == 0
    np.testing.assert_allclose(gaps.noise_of_flips(q, 0.1), -1 / (np.sqrt(2) * norm.ppf(0.1)), rtol=1e-6)
    assert gaps.noise_of_flips(q, 0.5) == np.inf


def test_flips_of_many_actions_are_what_drawn_noise_gives():
    random = np.random.default_rng(0)
    q = random.normal(size=(5, 4))
    noisy = q[None] + 0.3 * random.normal(size=(40_000, 5, 4))
    drawn = (noisy.argmax(axis=2) != q.argmax(axis=1)).mean()
    np.testing.assert_allclose(gaps.flips(q, [0.3]), drawn, atol=0.004)
    # All equal: of four actions, three in four are another one.
    np.testing.assert_allclose(gaps.flips(np.zeros((1, 4)), [1.0]), 0.75)


def test_what_is_wrong_is_told():
    for q_values, wrong in [
        (lambda observations: np.zeros((1, 2)), r"shape \(1, 2\); for 1 observation of .* 3 actions"),
        (lambda observations: np.full((1, 3), np.nan), "not finite"),
    ]:
        with pytest.raises(ValueError, match=wrong):
            analysis.action_gaps(q_values, Three, 1)
    with pytest.raises(ValueError, match="episodes is 0"):
        analysis.action_gaps(by_step, Three, 0)


def test_the_page_tells_numbers_pictures_and_files(tmp_path):
    pair = [Model("mine", by_step), Model("mine", lambda observations: 10 * by_step(observations), gamma=0.5)]
    page = gap_page.write(pair, Three, tmp_path, episodes=2, gamma=0.5).read_text(encoding="utf-8")
    # 3 - 3, 4 - 4 and .5 - 4 of the first; ten times the values of the second.
    assert "-1.17" in page
    assert f"+{(30 - 3 + 40 - 4 + 5 - 4) / 3:.3g}" in page
    assert "mine (1)" in page
    assert "mine (2)" in page
    assert page.count("data:image/png") == 4  # the first step of each episode that is not close to another: 2 a model
    assert "http" not in page.replace("http-equiv", "")
    assert (tmp_path / "mine (1).csv").read_text(encoding="utf-8").startswith("episode,step,action,value,gap")


def test_an_environment_without_pictures_is_told(tmp_path):
    class Unseen(Three):
        metadata = {"render_modes": []}  # noqa: RUF012

    page = gap_page.write([Model("mine", by_step)], Unseen, tmp_path, episodes=1).read_text(encoding="utf-8")
    assert "gives no pictures" in page


def test_a_run_and_a_function_on_the_command_line(tmp_path, monkeypatch, capsys):
    from actiongap.cli import main

    settings = {"warmup_steps": 64, "evaluation_period_steps": 200, "evaluation_episodes": 1}
    Agent("clip_al", "CartPole-v1", gamma=0.9, **settings).learn(200, out=tmp_path / "run", progress=False)
    (tmp_path / "poles.py").write_text(
        "import numpy as np\ndef lean(o):\n    return np.stack([-o[:, 2], o[:, 2]], axis=1)\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", ["actiongap", "analyse", "run", "poles:lean", "--episodes", "2", "--no-pictures"])
    main()
    assert capsys.readouterr().out.strip() == "out/gaps-CartPole-v1/index.html"
    page = (tmp_path / "out/gaps-CartPole-v1/index.html").read_text(encoding="utf-8")
    assert "discount 0.9 / 0.99" in page
    assert "analyse run poles:lean" in page
    for arguments, wrong in [
        (["poles:lean"], "--env CartPole-v1"),
        (["nowhere"], "nowhere is not a model"),
        (["poles:np.pi", "--env", "CartPole-v1"], "it must map a batch"),
    ]:
        monkeypatch.setattr(sys, "argv", ["actiongap", "analyse", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert stopped.value.code == 2
        assert wrong in capsys.readouterr().err


def test_an_agent_of_stable_baselines3(tmp_path):
    torch = pytest.importorskip("torch")
    library = pytest.importorskip("stable_baselines3")
    agent = library.DQN("MlpPolicy", "CartPole-v1", seed=0, gamma=0.95, policy_kwargs={"net_arch": [8]}, device="cpu")
    agent.save(tmp_path / "theirs.zip")
    model = models.load(tmp_path / "theirs.zip")
    observations = np.array([[0.1, 0.2, -0.1, 0.3], [0.0, 0.0, 0.05, 0.0]], np.float32)
    with torch.no_grad():
        np.testing.assert_allclose(model.q_values(observations), agent.q_net(torch.as_tensor(observations)).numpy())
    assert (model.name, model.gamma) == ("theirs", 0.95)
    table = analysis.action_gaps(model.q_values, "CartPole-v1", episodes=1)
    greedy = agent.predict(observations, deterministic=True)[0]
    np.testing.assert_array_equal(model.q_values(observations).argmax(axis=1), greedy)
    assert len(table) > 1
    (tmp_path / "broken.zip").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="cannot be read as an agent"):
        models.load(tmp_path / "broken.zip")
