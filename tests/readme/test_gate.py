"""What a change has to pass, what runs at night, and what a change can affect."""

import importlib.util
import os
import re
import subprocess
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import pytest
from blocks import ROOT, repository_files

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")

# Targets that only name others, and those that need what a release has built.
NAMES = {"test-all", "test-changed", "test-nightly", "test-servers"}
OF_RELEASES = {"test-release", "test-runtimes"}


@pytest.fixture(scope="module")
def affected() -> Any:
    loader = SourceFileLoader("affected", str(ROOT / "scripts" / "affected"))
    spec = importlib.util.spec_from_loader("affected", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def everything(affected: Any) -> list[str]:
    return [*affected.listed("GATE"), *affected.listed("BY_PATH")]


def test_every_test_is_run_for_a_change_or_at_night(affected: Any, everything: list[str]) -> None:
    rules = re.findall(r"^([a-z][a-z -]*):(?!=)", MAKEFILE, re.MULTILINE)
    targets = {name for rule in rules for name in rule.split()}
    tests = {name for name in targets if re.match("test-|lint-", name)}
    nightly = affected.listed("NIGHTLY")
    assert sorted(tests - NAMES - OF_RELEASES) == sorted([*everything, *nightly])
    assert set(affected.listed("TEST")) <= set(affected.listed("GATE"))


def test_what_runs_at_night_has_all_that_a_change_has_to_pass() -> None:
    [prerequisites] = re.findall(r"^test-nightly: (\$.*?) ##", MAKEFILE, re.MULTILINE)
    assert prerequisites == "$(GATE) $(BY_PATH) $(NIGHTLY)"


def test_the_jobs_of_the_workflow_are_what_a_change_has_to_pass(everything: list[str]) -> None:
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    jobs = re.findall(r"name: (\w+).*?targets: ([a-z -]+)", workflow)
    newest = [target for name, targets in jobs if name != "oldest" for target in targets.split()]
    assert sorted(newest) == sorted(everything)


def test_the_workflows_install_what_the_gate_needs() -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    lists = re.findall(r"^needed\+?=\((.*)\)", script, re.MULTILINE)
    needed = {name for names in lists for name in names.split()}
    for file in ["ci.yml", "nightly.yml"]:
        workflow = (ROOT / ".github/workflows" / file).read_text(encoding="utf-8")
        installed = " ".join(re.findall(r"apt-get install -q -y (.*)$", workflow, re.MULTILINE))
        assert needed <= set(installed.split()), file


CHANGES = {
    "README.md": ({"test-readme", "test-site"}, {"test-rust", "test-node", "lint-rust"}),
    "docs/guides/bundlers.md": ({"test-bundlers"}, {"test-rust"}),
    "bindings-node/src/arguments.rs": (
        {"test-node", "test-cross", "lint-bindings"},
        {"test-python"},
    ),
    "bindings-python/tests/test_v2.py": ({"test-python"}, {"test-node", "test-rust"}),
    "leases/src/keeper.rs": ({"test-rust", "test-simulation", "test-soak"}, {"test-loom"}),
    "cli/src/main.rs": ({"test-rust", "test-packages"}, {"test-loom"}),
    "fuzz/fuzz_targets/text.rs": ({"test-fuzz"}, {"test-rust"}),
}


@pytest.mark.parametrize("path", CHANGES)
def test_a_change_has_to_pass_what_it_can_affect(
    path: str, affected: Any, everything: list[str]
) -> None:
    runs, runs_not = CHANGES[path]
    targets = set(affected.affected([path], everything))
    assert runs <= targets
    assert not runs_not & targets


def test_what_is_unknown_or_under_everything_affects_everything(
    affected: Any, everything: list[str]
) -> None:
    for path in ["core/src/lib.rs", "Makefile", ".ci/run", "Cargo.lock", "tests/vectors/ids.json",
                 "a/new/folder.rs", "scripts/affected"]:  # fmt: skip
        assert affected.affected([path], everything) == everything, path
    assert affected.affected(["fuzz/Cargo.toml", "unknown"], everything) == everything


def test_every_rule_names_targets_and_fits_files(affected: Any, everything: list[str]) -> None:
    paths = [str(path) for path in repository_files()]
    for pattern, targets in affected.RULES:
        assert targets is None or targets <= set(everything), pattern
        assert any(affected.fnmatchcase(path, pattern) for path in paths), pattern


def test_a_command_that_never_ends_is_shown_and_ended(tmp_path: Path) -> None:
    times = tmp_path / "times"
    timed = [str(ROOT / "scripts/timed"), "slow", "-c", "sleep 86399 & sleep 86398"]
    limits = {"TIMES": str(times), "LIMIT": "0.2"}
    done = subprocess.run(timed, env=os.environ | limits, capture_output=True, text=True)
    assert done.returncode == 124
    assert "more than 0.2 seconds" in done.stderr
    assert {"sleep 86399", "sleep 86398"} <= {line[-11:] for line in done.stderr.splitlines()}
    assert times.read_text().startswith("slow ")
