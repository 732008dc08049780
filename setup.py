"""Builds the image layer's C++ library beside the package; everything else is in pyproject.toml.

It is optional: without a C++ compiler, or without the headers that come with jaxlib, the package is installed without
it and computes the same in plain JAX.
"""

from setuptools import Extension, setup


def native_library() -> list[Extension]:
    try:
        import jax.ffi
    except ImportError:
        return []
    folder = "src/actiongap/learning/native"
    return [
        Extension(
            # Loaded with ctypes, so it needs no Python headers and serves every version of Python.
            "actiongap.learning.native._image_layer",
            sources=[f"{folder}/image_layer.cc"],
            depends=[f"{folder}/kernel.h"],
            extra_compile_args=["-std=gnu++17", "-O3", f"-isystem{jax.ffi.include_dir()}"],
            language="c++",
            optional=True,
        )
    ]


setup(ext_modules=native_library())
