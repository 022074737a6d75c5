"""Marks of tests that not every system can run."""

import os

import pytest

needs_memfd = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has no files without a name")
