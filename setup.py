"""Builds the image layer's C++ library beside the package; everything else is in pyproject.toml.

The library is optional: without a C++ compiler, or without the headers that come with jaxlib, the package is built
without it and computes the same in plain JAX. It is loaded with ctypes, so it needs no Python headers and serves every
version of Python: its file name and the wheel's tag name the platform alone, and a wheel without it names none.
"""

import re
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

FOLDER = "src/actiongap/learning/native"
LIBRARY = Extension(
    "actiongap.learning.native._image_layer",
    sources=[f"{FOLDER}/image_layer.cc"],
    depends=[f"{FOLDER}/kernel.h", f"{FOLDER}/patches.h"],
    extra_compile_args=["-std=gnu++17", "-O3", "-g0"],
    language="c++",
    optional=True,
)


class BuildLibrary(build_ext):
    """A shared library, not a module of one version of Python."""

    def get_ext_filename(self, fullname: str) -> str:
        return f"{fullname.replace('.', '/')}.so"

    def build_extension(self, ext: Extension) -> None:
        try:
            import jax.ffi
        except ImportError as error:
            raise CompileError(f"the headers that come with jaxlib are missing ({error})") from error
        ext.extra_compile_args.append(f"-isystem{jax.ffi.include_dir()}")
        super().build_extension(ext)


class BuildWheel(bdist_wheel):
    """For one platform where the library was built, for all where it was not."""

    def run(self) -> None:
        self.run_command("build_ext")
        build = self.get_finalized_command("build_ext")
        if not Path(build.get_ext_fullpath(LIBRARY.name)).exists():
            self.distribution.ext_modules = []
            self.root_is_pure = True
        super().run()

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


def readme() -> str:
    """README.md for a package index, where links into the repository would lead nowhere: their texts remain."""
    text = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    return re.sub(r"\[([^\]]+)\]\((?!https?://)[^)]+\)", r"\1", text)


setup(
    ext_modules=[LIBRARY],
    cmdclass={"build_ext": BuildLibrary, "bdist_wheel": BuildWheel},
    long_description=readme(),
    long_description_content_type="text/markdown",
)
