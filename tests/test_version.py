# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import pytest

import planebench


def test_the_build_and_the_package_have_one_version() -> None:
    """meson.build and planebench/__init__.py."""
    try:
        installed = version("planebench")
    except PackageNotFoundError:
        pytest.skip("planebench is not installed: make setup")
    assert planebench.__version__ == installed
