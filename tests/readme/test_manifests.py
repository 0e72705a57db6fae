"""The YAML in the documents, against the schemas of those who read it, and what it promises."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml  # type: ignore[import-untyped]
from blocks import ROOT, Block, blocks_of, documents
from randflake import list_leases

SECRET = "9d4be0a1c35f7826b60ef4d7132a985c"

# Of the newest version in which every field of the manifests is stable.
KUBERNETES = "1.34"

CONTAINERS = Path("docs/guides/containers.md")

MANIFESTS = [
    (block, manifest)
    for document in documents()
    for block in blocks_of(document)
    if block.language == "yaml"
    for manifest in yaml.safe_load_all(block.code)
]


def of_kind(kind: str) -> Any:
    (manifest,) = (
        manifest
        for block, manifest in MANIFESTS
        if block.document == CONTAINERS and manifest.get("kind") == kind
    )
    return manifest


def pod_of(kind: str) -> Any:
    return of_kind(kind)["spec"]["template"]["spec"]


@pytest.mark.parametrize(("block", "manifest"), MANIFESTS, ids=str)
def test_yaml_is_what_its_reader_expects(block: Block, manifest: Any, tmp_path: Path) -> None:
    if "kind" in manifest:
        kubernetes_validate.validate(manifest, KUBERNETES, strict=True)
        return
    if "groups" in manifest:
        assert_rules(manifest)
        return
    assert "services" in manifest, f"{block}: no schema is known for this"
    file = tmp_path / "compose.yaml"
    file.write_text(yaml.safe_dump(manifest), encoding="utf-8")
    schema = ["--builtin-schema", "vendor.compose-spec", str(file)]
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", *schema], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


EXAMPLES = sorted(path for path in (ROOT / "examples").iterdir() if path.is_dir())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_says_how_to_run_it(example: Path) -> None:
    assert len((example / "README.md").read_text(encoding="utf-8").splitlines()) <= 15
    schema = ["--builtin-schema", "vendor.compose-spec", str(example / "compose.yaml")]
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", *schema], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    compose = yaml.safe_load((example / "compose.yaml").read_text(encoding="utf-8"))
    for service in compose["services"].values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert not source.startswith(".") or "target" in source or (example / source).is_dir()


# What other exporters have: of machines, and of requests that are tried.
METRICS_OF_OTHERS = {"node_timex_sync_status", "node_timex_offset_seconds", "probe_success"}


def assert_rules(manifest: Any) -> None:
    """Rules of Prometheus: each asks for metrics that there are."""
    adapter = (ROOT / "bindings-node" / "prometheus.js").read_text(encoding="utf-8")
    known = set(re.findall(r"'(randflake_\w+)'", adapter))
    for group in manifest["groups"]:
        for rule in group["rules"]:
            assert rule.keys() >= {"alert", "expr", "labels", "annotations"}, rule
            assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}, rule
            asked = set(re.findall(r"(?:randflake|node|probe)_\w+", rule["expr"]))
            assert asked, rule
            assert asked <= known | METRICS_OF_OTHERS, rule


def test_a_metric_that_does_not_exist_is_found() -> None:
    rule = {"alert": "A", "expr": "randflake_lease > 1", "labels": {}, "annotations": {}}
    with pytest.raises(AssertionError):
        assert_rules({"groups": [{"name": "a", "rules": [rule]}]})


def test_a_field_that_does_not_exist_is_found() -> None:
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"nam": "a"}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


def test_the_job_makes_the_store_and_may_run_again(tmp_path: Path) -> None:
    (container,) = pod_of("Job")["containers"]
    names = {variable["name"] for variable in container["env"]}
    assert names == {"RANDFLAKE_SECRET_FILE", "RANDFLAKE_STORE"}
    program, *arguments = container["command"]
    assert program == "randflake"
    secret = tmp_path / "secret"
    secret.write_text(SECRET, encoding="utf-8")
    secret.chmod(0o440)
    store = tmp_path / "ids.db"
    environment = {"RANDFLAKE_SECRET_FILE": str(secret), "RANDFLAKE_STORE": str(store)}
    command = [sys.executable, "-m", "randflake", *arguments]
    for _ in range(2):
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert list_leases(store).free == 131_072


def test_a_pod_has_more_time_to_end_than_its_parts_take() -> None:
    pod = pod_of("Deployment")
    (container,) = pod["containers"]
    sleep = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    (requests,) = (
        int(part.partition("=")[2])
        for part in container["command"]
        if part.startswith("--timeout-graceful-shutdown=")
    )
    closing = 5
    assert sleep + requests + closing < pod["terminationGracePeriodSeconds"]


@pytest.mark.parametrize(
    ("state", "ready"),
    [
        ("holding", 200),
        ("waiting", 503),
        ("retrying", 200),
        ("expired", 503),
        ("stopped", 503),
    ],
)
def test_readiness_follows_the_lease_and_liveness_does_not(state: str, ready: int) -> None:
    (block,) = (block for block in blocks_of(CONTAINERS) if "FastAPI(" in block.code)
    service: dict[str, Any] = {}
    exec(block.code, service)
    lease = SimpleNamespace(state=state, seconds_left=60.0)
    service["app"].state.flake = SimpleNamespace(lease=lease)
    assert asyncio.run(service["ready"]()).status_code == ready
    assert asyncio.run(service["live"]()) == {}
    (container,) = pod_of("Deployment")["containers"]
    routes = {route.path for route in service["app"].routes}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["path"] in routes
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
