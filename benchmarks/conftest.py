"""What pytest-benchmark writes says nothing of whose machine it was."""

from __future__ import annotations

from typing import Any


def pytest_benchmark_update_machine_info(config: Any, machine_info: dict[str, Any]) -> None:
    """Leave the name of the machine and of its kernel out."""
    machine_info.pop("node", None)
    machine_info.pop("release", None)


def pytest_benchmark_update_commit_info(config: Any, commit_info: dict[str, Any]) -> None:
    """Leave the name of the branch out."""
    commit_info.pop("branch", None)
    commit_info.pop("project", None)
