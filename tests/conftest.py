"""For all tests: compiled programs are kept, in memory up to a limit; no example has a deadline; one browser."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import pytest

from actiongap.training import one_core

# How long an example takes says nothing about whether it is right: a busy machine must not fail a test.
hypothesis.settings.register_profile("actiongap", deadline=None)
hypothesis.settings.load_profile("actiongap")


# Most of the quick tests' time is the compiler's. What they look at does not depend on how good its code is: it is told
# not to take pains. It works for one core, as it does for the workers of an experiment and of Ape-X, so that these find
# in the cache what was compiled here. The slow tests are run, with all others, by the compiler as users have it
# (`make test-all`), and so are the quick ones that compare bits with those of another day (`users_compiler`).
_NO_PAINS = {
    **one_core.VARIABLES,
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    "XLA_FLAGS": " ".join(
        [
            "--xla_cpu_use_fusion_emitters=false",
            "--xla_cpu_parallel_codegen_split_count=1",
            "--xla_cpu_prefer_vector_width=128",
            one_core.VARIABLES["XLA_FLAGS"],
        ]
    ),
}


def pytest_configure(config: pytest.Config) -> None:
    # A seventh of all processor time was the search for garbage among what JAX makes while it traces and lowers. What
    # is there by now stays to the end; the rest is looked through less often, and whenever a module has used too much.
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        # Started in the background of a script. What tests start, and send Ctrl-C to, would ignore it, too.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if getattr(config, "cache", None) is not None:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(config.cache.mkdir("xla")))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
    if config.option.markexpr == "not slow" and not any(name in os.environ for name in _NO_PAINS):
        # A version of XLA that does not know a flag ends the process.
        probe = [sys.executable, "-c", "import jax; jax.devices()"]
        if subprocess.run(probe, env={**os.environ, **_NO_PAINS}, capture_output=True).returncode == 0:
            os.environ.update(_NO_PAINS)


@pytest.fixture(scope="session")
def users_compiler() -> dict[str, str]:
    """The environment of a process whose programs are compiled as users' are."""
    return {name: value for name, value in os.environ.items() if value != _NO_PAINS.get(name)}


_ENOUGH_BYTES = 900_000_000


def _memory_bytes() -> int:
    """What this process holds now; where the system does not tell, more than enough."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return _ENOUGH_BYTES


@pytest.fixture(scope="module", autouse=True)
def compiled_programs_leave_before_they_are_too_many() -> Iterator[None]:
    """Hundreds of them add up to gigabytes. Until then, the next module finds there what it trains with, too."""
    yield
    if _memory_bytes() < _ENOUGH_BYTES:
        return
    gc.collect()
    if _memory_bytes() < _ENOUGH_BYTES:
        return
    for name in ("fused", "hosted"):
        if module := sys.modules.get(f"actiongap.training.{name}"):
            module.program.cache_clear()
    if jax := sys.modules.get("jax"):
        jax.clear_caches()
    gc.collect()


@pytest.fixture
def figures_as_png(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what is around the figures of a report; those of the figures themselves draw all three forms.

    Each is drawn once: nobody looks whether its parts have found their places, for which it is drawn another time.
    """
    monkeypatch.setattr("actiongap.analysis.figures.ENDINGS", ("png",))
    monkeypatch.setattr("matplotlib.figure.Figure.draw_without_rendering", lambda self: None)


@pytest.fixture
def two_nodes(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A Ray cluster of two nodes on this machine, and its second node. The parameter is the cores of each, else 2."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    from actiongap.training import ray_cluster

    cores = getattr(request, "param", 2)
    with ray_cluster.local_only(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        node = {"num_cpus": cores, "object_store_memory": 100 * 2**20, "node_ip_address": "127.0.0.1"}
        cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
        other = cluster.add_node(**node)
        ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
    yield cluster, other
    ray.shutdown()
    cluster.shutdown()


_CHROMIUM_ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, the system's or playwright's; without one the test is skipped."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as running:
        try:
            opened = running.chromium.launch(executable_path=shutil.which("chromium"), args=_CHROMIUM_ARGUMENTS)
        except playwright.Error as error:
            pytest.skip(f"there is no Chromium, neither the system's nor playwright's: {str(error).splitlines()[0]}")
        yield opened
        opened.close()


@pytest.fixture
def open_address(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens a page with some settings; at the end nothing may have gone wrong or left the machine."""
    contexts, wrong = [], []

    def open_it(address: str, width: int = 1280, **settings: Any) -> Any:
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, **settings))
        page = contexts[-1].new_page()
        own = address.partition("#")[0]

        def watch(request: Any) -> None:
            if request.url.partition("#")[0] != own and not request.url.startswith("data:"):
                wrong.append(request.url)

        page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", watch)
        page.goto(address)
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert wrong == []


_CONTRAST = """selector => {
  const numbers = text => text.match(/[\\d.]+/g).map(Number);
  const light = rgb => rgb.slice(0, 3).map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const behind = e => {
    const colour = numbers(getComputedStyle(e).backgroundColor);
    return colour[3] === 0 ? behind(e.parentElement) : colour;
  };
  return [...document.querySelectorAll(selector)].filter(e => e.checkVisibility()).map(e => {
    const style = getComputedStyle(e), ink = numbers(e instanceof SVGElement ? style.fill : style.color);
    const [a, b] = [light(ink), light(behind(e))].sort((x, y) => y - x);
    return (a + .05) / (b + .05);
  });
}"""


@pytest.fixture(scope="session")
def contrasts() -> Callable[[Any, str], list[float]]:
    """The contrast of each visible text that a selector finds on a page, to what is behind it."""
    return lambda page, selector: page.evaluate(_CONTRAST, selector)
