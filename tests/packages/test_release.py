"""What a release does beyond what a check of it would show."""

import importlib.util
import io
import json
import os
import subprocess
import sys
import tarfile
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PUBLISH = ROOT / "scripts" / "publish"

# Has one package, and takes the others.
NPM = """\
#!/bin/sh
case $1 in
view) [ "$2" != "@randflake/native-a@3.0.0" ] || echo 3.0.0 ;;
publish)
    case $2 in /*) echo "published $(basename "$2")" ;; *) exit 1 ;; esac ;;
esac
"""


@pytest.fixture(scope="module")
def release() -> Any:
    sys.path.insert(0, str(ROOT / "scripts"))
    loader = SourceFileLoader("release", str(ROOT / "scripts" / "release"))
    spec = importlib.util.spec_from_loader("release", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def tarball(path: Path, files: dict[str, str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def test_what_differs_between_two_builds_is_named(release: Any, tmp_path: Path) -> None:
    same = {"same.txt": "same", "other.txt": "one"}
    one = tarball(tmp_path / "one" / "p.tgz", same)
    two = tarball(tmp_path / "two" / "p.tgz", {**same, "other.txt": "two", "more.txt": ""})
    assert release.difference(one, two) == "p.tgz differs in more.txt, other.txt"
    for name, content in [("a.node", b"0123456789"), ("b.node", b"01234x6789")]:
        (tmp_path / name).write_bytes(content)
    found = release.difference(tmp_path / "a.node", tmp_path / "b.node")
    assert found == "a.node differs from byte 5 on: b'56789', b'x6789'"


def test_an_upload_that_failed_halfway_is_finished(tmp_path: Path) -> None:
    for name in ["@randflake/native-b", "randflake", "@randflake/native-a"]:
        file = name.removeprefix("@").replace("/", "-")
        manifest = json.dumps({"name": name, "version": "3.0.0"})
        tarball(tmp_path / f"{file}-3.0.0.tgz", {"package/package.json": manifest})
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(NPM, encoding="utf-8")
    npm.chmod(0o755)
    path = f"{npm.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        # As the workflow names it.
        [PUBLISH, "npm", os.path.relpath(tmp_path, ROOT)],
        cwd=ROOT,
        env={**os.environ, "PATH": path, "DRY_RUN": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "@randflake/native-a@3.0.0 is there already",
        "published randflake-native-b-3.0.0.tgz",
        # The others first, since it depends on them.
        "published randflake-3.0.0.tgz",
    ]


def test_a_bill_of_materials_has_only_what_is_compiled_in(release: Any) -> None:
    compiled = release.artifacts.compiled_into("randflake-python")
    names = {name for name, _ in compiled}
    assert {"libsqlite3-sys", "pyo3", "randflake", "randflake-leases"} <= names
    # These belong to the command that cargo installs, to tests, or to tools.
    assert not names & {"loom", "pyo3-macros", "randflake-serve", "rustls", "tokio"}

    compiled = {("randflake-python", "3.0.0"), ("sqlite", "2.0.0")}
    parts = [("sqlite", "2.0.0"), ("sqlite", "1.0.0"), ("tokio", "1.0.0")]
    refs = [f"{name}@{version}" for name, version in parts]
    own = {"name": "randflake-python", "version": "3.0.0", "bom-ref": "it"}
    bill: dict[str, Any] = {
        "metadata": {"component": own},
        "components": [
            {"name": name, "version": version, "bom-ref": ref}
            for (name, version), ref in zip(parts, refs, strict=True)
        ],
        "dependencies": [{"ref": "it", "dependsOn": refs}, *({"ref": ref} for ref in refs)],
    }
    release.artifacts.leave_out_others(bill, compiled)
    assert [part["bom-ref"] for part in bill["components"]] == refs[:1]
    assert bill["dependencies"] == [
        {"ref": "it", "dependsOn": refs[:1]},
        {"ref": refs[0], "dependsOn": []},
    ]
    with pytest.raises(LookupError, match=r"not in the bill .*zlib"):
        release.artifacts.leave_out_others(bill, {*compiled, ("zlib", "1.0.0")})
