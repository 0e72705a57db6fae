"""Installs what would be published where there is nothing else, and uses it.

`make test-packages` has built the packages before.
"""

import json
import os
import posixpath
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAMS = Path(sys.executable).parent
NODE_PROGRAMS = HERE / "node_modules" / ".bin"
NODE_PACKAGE = ROOT / "bindings-node"
ARTIFACTS = ROOT / "scripts" / "artifacts.py"
LICENCES = {"LICENSE-MIT", "LICENSE-APACHE", "LICENSE-THIRD-PARTY"}

sys.path.insert(0, str(ARTIFACTS.parent))
import artifacts  # noqa: E402

PYTHON_EXAMPLE = """
from importlib.metadata import version

import randflake
from randflake import Inspector, Randflake, generate_secret

assert randflake.__version__ == version("randflake")
secret = generate_secret()
with Randflake(7, secret) as flake:
    number = flake.generate()
    text = flake.generate_string()
    for id in (number, text):
        assert Inspector(secret).inspect(id).node_id == 7
    try:
        flake.generate_array(1)
    except ImportError as error:
        assert "numpy" in str(error), error
    else:
        raise AssertionError("numpy is not installed here")
print("used")
"""

NODE_EXAMPLE = """
const secret = generateSecret()
const flake = new Randflake(7, secret)
for (const id of [flake.generate(), flake.generateString()]) {
  if (new Inspector(secret).inspect(id).nodeId !== 7) throw new Error('another node')
}
console.log('used')
"""
NAMES = "{ Inspector, Randflake, generateSecret }"
NODE_SCRIPTS = {
    "module.mjs": f"import {NAMES} from 'randflake'\n{NODE_EXAMPLE}",
    "common.cjs": f"const {NAMES} = require('randflake')\n{NODE_EXAMPLE}",
    "worker.cjs": (
        "const { Worker, isMainThread } = require('node:worker_threads')\n"
        "if (isMainThread) {\n"
        "  new Worker(__filename).on('error', (error) => { throw error })\n"
        "} else {\n"
        f"const {NAMES} = require('randflake')\n{NODE_EXAMPLE}\n"
        "}\n"
    ),
}


def run(*command: str | Path, cwd: Path, environment: dict[str, str] | None = None) -> str:
    """Runs a command and returns what it printed; fails with all of it."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (
        f"exit status {done.returncode}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}"
    )
    return done.stdout


def only(folder: Path, pattern: str) -> Path:
    """Returns the one file of that name."""
    found = list(folder.glob(pattern))
    assert len(found) == 1, f"{pattern} in {folder}: {found}"
    return found[0]


def install_and_use(package: Path, folder: Path) -> None:
    """Installs a Python package in an empty virtual environment and uses it."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--disable-pip-version-check", package, cwd=folder)
    assert run(python, "-W", "error", "-c", PYTHON_EXAMPLE, cwd=folder) == "used\n"
    assert run(python, "-W", "error", HERE / "smoke.py", cwd=folder) == "used\n"
    use_command([python.parent / "randflake"], folder)
    use_command([python, "-W", "error", "-m", "randflake"], folder)


def use_command(command: list[Path | str], folder: Path) -> None:
    """Has an id made and read by the command that a package brings."""
    secret = {"RANDFLAKE_SECRET": run(*command, "secret", cwd=folder).strip()}
    id = run(*command, "generate", "--store", "ids.db", cwd=folder, environment=secret).strip()
    read = json.loads(run(*command, "inspect", "--json", id, cwd=folder, environment=secret))
    assert (read["id"], read["plausible"]) == (id, True)
    (folder / "ids.db").unlink()  # the next one has another secret


@pytest.fixture(scope="module")
def wheel() -> Path:
    return only(ROOT / "target" / "dist" / "python", "*.whl")


def test_wheel_installs_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    install_and_use(wheel, tmp_path)


def test_wheel_is_for_every_python_from_3_11(wheel: Path) -> None:
    assert "-cp311-abi3-" in wheel.name


def test_wheel_holds_types_and_licences(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    stubs = ("_randflake.pyi", "_generator.pyi", "_tickets.pyi", "ids.pyi", "snowflake.pyi")
    adapters = (
        "django.py",
        "prometheus.py",
        "pydantic.py",
        "rest_framework.py",
        "sqlalchemy.py",
        "testing.py",
        "text.py",
    )
    for typed in ("py.typed", *stubs, *adapters):
        assert f"randflake/{typed}" in names
    assert {Path(name).name for name in names} >= LICENCES


def test_wheel_keeps_to_the_stable_interface(wheel: Path) -> None:
    run(PROGRAMS / "abi3audit", "--strict", wheel, cwd=ROOT)


def test_wheel_holds_what_is_listed(wheel: Path) -> None:
    run(PROGRAMS / "check-wheel-contents", wheel, cwd=ROOT)
    with zipfile.ZipFile(wheel) as archive:
        assert_listed("wheel", archive.namelist())


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    run(sys.executable, ARTIFACTS, "sdist", "--out", folder, cwd=ROOT)
    return only(folder, "*.tar.gz")


def test_sdist_installs_in_an_empty_environment(sdist: Path, tmp_path: Path) -> None:
    install_and_use(sdist, tmp_path)


def test_the_index_shows_the_description_of_the_python_package(wheel: Path, sdist: Path) -> None:
    run(PROGRAMS / "twine", "check", "--strict", wheel, sdist, cwd=ROOT)


@pytest.fixture(scope="module")
def node_tarballs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The main package, and the one that holds the binary of this platform."""
    folder = tmp_path_factory.mktemp("npm")
    run(sys.executable, ARTIFACTS, "npm", "--prebuilds", NODE_PACKAGE, "--out", folder, cwd=ROOT)
    return only(folder, "randflake-[0-9]*.tgz"), only(folder, "randflake-native-*.tgz")


def assert_listed(package: str, names: list[str]) -> None:
    """Compares the files of a package with the list of them that is committed."""
    version = json.loads((NODE_PACKAGE / "package.json").read_text(encoding="utf-8"))["version"]
    platform = r"\.(linux|darwin|freebsd|win32)-[a-z0-9-]+\."
    found = sorted(
        re.sub(platform, ".PLATFORM.", name.replace(version, "VERSION")) for name in names
    )
    listed = (HERE / "contents" / f"{package}.txt").read_text(encoding="utf-8").split()
    assert found == listed, f"tests/packages/contents/{package}.txt lists other files"


def test_npm_packages_hold_what_is_listed(node_tarballs: tuple[Path, Path]) -> None:
    for package, tarball in zip(["npm", "npm-native"], node_tarballs, strict=True):
        with tarfile.open(tarball) as archive:
            assert_listed(package, archive.getnames())


def test_a_package_that_is_packed_in_a_clone_has_its_native_half(tmp_path: Path) -> None:
    run("npm", "pack", "--ignore-scripts", "--pack-destination", tmp_path, cwd=NODE_PACKAGE)
    (tarball,) = tmp_path.iterdir()
    with tarfile.open(tarball) as archive:
        assert any(name.endswith(".node") for name in archive.getnames())


def test_npm_package_resolves_for_every_kind_of_import(node_tarballs: tuple[Path, Path]) -> None:
    run(NODE_PROGRAMS / "publint", "run", node_tarballs[0], "--strict", cwd=ROOT)
    attw = (NODE_PROGRAMS / "attw", node_tarballs[0], "--profile")
    run(*attw, "node16", "--exclude-entrypoints", "web", cwd=ROOT)
    run(*attw, "esm-only", "--entrypoints", "web", cwd=ROOT)


def test_npm_package_loads_each_package_that_is_published() -> None:
    manifest = json.loads((NODE_PACKAGE / "package.json").read_text(encoding="utf-8"))
    loader = (NODE_PACKAGE / "binding.js").read_text(encoding="utf-8")
    workflow = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    targets = manifest["napi"]["targets"]
    for target in targets:
        assert f"'@randflake/native-{artifacts.platform_of(target)}'" in loader, target
    built = re.findall(r"target: (\S+), kinds: [a-z -]*\bnode\b", workflow)
    assert sorted(built) == sorted(targets)


def test_npm_packages_install_without_a_network(node_tarballs: tuple[Path, Path]) -> None:
    assert run(HERE / "install-npm", node_tarballs[0].parent, cwd=ROOT).endswith("used\n")


@pytest.fixture(scope="module")
def node_folder(node_tarballs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the two packages, and nothing else, are installed."""
    folder = tmp_path_factory.mktemp("empty")
    (folder / "package.json").write_text("{}", encoding="utf-8")
    run("npm", "install", "--offline", "--no-audit", "--no-fund", *node_tarballs, cwd=folder)
    return folder


@pytest.mark.parametrize("script", NODE_SCRIPTS)
def test_npm_packages_work_in_an_empty_folder(script: str, node_folder: Path) -> None:
    (node_folder / script).write_text(NODE_SCRIPTS[script], encoding="utf-8")
    assert run("node", script, cwd=node_folder) == "used\n"


def test_npm_packages_bring_the_command(node_folder: Path) -> None:
    use_command([node_folder / "node_modules" / ".bin" / "randflake"], node_folder)


def test_main_npm_package_holds_everything_but_binaries(node_tarballs: tuple[Path, Path]) -> None:
    with tarfile.open(node_tarballs[0]) as archive:
        files = {}
        for member in archive.getmembers():
            file = archive.extractfile(member)
            assert file is not None
            # One is WebAssembly.
            files[member.name.removeprefix("package/")] = file.read().decode(errors="replace")
    manifest = json.loads(files["package.json"])
    exported = set(re.findall(r'"\./([^"]+\.\w+)"', json.dumps(manifest["exports"])))
    needed = exported | {"binding.js", "command.js", "README.md", "LICENSE-MIT", "LICENSE-APACHE"}
    for name, text in files.items():
        if name == "binding.js":
            continue
        for other in re.findall(r"(?:require\(|from |import )'(\./[^']+|\.\./[^']+)'", text):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), other))
            path = path.removesuffix("?module")  # how an edge runtime is told what it is
            declared = re.sub(r"\.(m?)js$", r".d.\1ts", path) if ".d." in name else path
            needed.add(declared)
    assert {"text.js", "types/ids.d.ts", "lib/native.js", "web/randflake.wasm"} <= needed
    assert files.keys() >= needed
    assert not [name for name in files if name.endswith((".node", ".rs", "Cargo.toml"))]


def test_platform_npm_package_is_for_this_platform_and_version(
    node_tarballs: tuple[Path, Path],
) -> None:
    main = json.loads((NODE_PACKAGE / "package.json").read_text(encoding="utf-8"))
    with tarfile.open(node_tarballs[1]) as archive:
        file = archive.extractfile("package/package.json")
        assert file is not None
        platform = json.load(file)
    assert platform["version"] == main["version"]
    assert platform["name"].startswith("@randflake/native-")
    assert platform["os"] == [sys.platform]
