"""Installs what a release uploads, by version number, where there is nothing else, and makes an id.
The commands that the packages bring make one, too, and that of cargo serves one over HTTP.

`make test-runtimes ARTIFACTS=folder` says where the artifacts are: a wheel, the packages of npm and
the crates, as `scripts/artifacts.py` makes them.
"""

import json
import os
import subprocess
import sys
import tarfile
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from registry import registry

ROOT = Path(__file__).resolve().parents[2]
ARTIFACTS = Path(os.environ.get("ARTIFACTS", ROOT / "target" / "artifacts")).resolve()
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"][
    "version"
]
NODES = Path(__file__).parent / "node_modules"
OTHERS = ROOT / "tests" / "bundlers" / "node_modules" / ".bin"
SID = [str(ROOT / "scripts" / "sid"), "run"]

PYTHONS = {
    "this Python": [sys.executable],
    # Debian has none.
    "Python 3.12": ["python3.12"],
    **{f"Python {version}": [*SID, f"python{version}"] for version in ["3.13", "3.14", "3.15"]},
}
DENO = ["run", "--allow-ffi", "--allow-env", "--allow-read"]
JAVASCRIPTS = {
    "this Node.js": ["node"],
    **{
        f"Node.js {version}": [str(NODES / f"node-{version}" / "bin" / "node")]
        for version in [22, 24, 26]
    },
    "Bun": [str(OTHERS / "bun")],
    "Deno": [str(OTHERS / "deno"), *DENO],
}
INSTALLS = {
    "npm": ["npm", "install", "--no-audit", "--no-fund"],
    "Bun": [str(OTHERS / "bun"), "add"],
    "Deno": [str(OTHERS / "deno"), "add"],
}

FIRST_ID = {
    "first.py": """
from randflake import Inspector, Randflake, generate_secret

secret = generate_secret()
with Randflake.leased("ids.db", secret) as flake:
    id = flake.generate_string()
    print(Inspector(secret).inspect(id).node_id in flake.node_ids)
""",
    "first.mjs": """
import { generateSecret, Inspector, Randflake } from 'randflake'

const secret = generateSecret()
const flake = await Randflake.leased('ids.db', secret)
const id = flake.generateString()
console.log(flake.nodeIds.includes(new Inspector(secret).inspect(id).nodeId) ? 'True' : 'False')
flake.close()
""",
    "src/main.rs": """
use randflake::{Inspector, Secret};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let secret = Secret::random();
    let flake = randflake_leases::leased("ids.db", &secret)?;
    let parts = Inspector::new(&secret).inspect(flake.generate()?);
    println!("{}", if flake.node_ids().contains(&parts.node_id) { "True" } else { "False" });
    Ok(())
}
""",
}

# A program of 2.1, whose ids depend on nothing but itself.
PROGRAM_OF_2_1 = """
from randflake.v2 import Config, Generator, Lease

clock = lambda: 1763640000

lease = Lease(node_id=42, start=1763640000, end_exclusive=1763640600)
secret = bytes.fromhex("9d4be0a1c35f7826b60ef4d7132a985c")
generator = Generator(Config(lease, secret, clock))
ids = [generator.generate() for _ in range(1000)]
ids += [generator.generate_string() for _ in range(1000)]
known = [5173093286486018529, "fphhelk04q8f8"]
for id in [*ids, *known]:
    parts = (generator.inspect_string if isinstance(id, str) else generator.inspect)(id)
    print(id, parts.timestamp, parts.node_id, parts.sequence)
"""
THE_SAME_FOR_NODE = """
import { Generator } from 'randflake/v2'

const lease = { nodeID: 42, start: 1763640000, endExclusive: 1763640600 }
const secret = Buffer.from('9d4be0a1c35f7826b60ef4d7132a985c', 'hex')
const generator = new Generator({ lease, secret, clock: () => 1763640000 })
const ids = Array.from({ length: 1000 }, () => generator.generate())
ids.push(...Array.from({ length: 1000 }, () => generator.generateString()))
for (const id of [...ids, 5173093286486018529n, 'fphhelk04q8f8']) {
  const parts = typeof id === 'string' ? generator.inspectString(id) : generator.inspect(id)
  console.log(String(id), parts.timestamp, parts.nodeID, parts.sequence)
}
"""


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    """Runs a command and returns what it printed; fails with all of it."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", "DENO_NO_UPDATE_CHECK": "1", **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    said = f"--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}"
    assert done.returncode == 0, f"{command}: exit status {done.returncode}\n{said}"
    return done.stdout


def needs(command: list[str]) -> None:
    """Skips the test where a runtime is missing, loudly; fails in CI."""
    program = command if command[0] == SID[0] else command[:1]
    try:
        run(*program, "--version", cwd=ROOT)
    except (AssertionError, FileNotFoundError) as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"{' '.join(program)} cannot be run: {missing}")


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.fixture(scope="module", autouse=True)
def artifacts() -> Path:
    assert ARTIFACTS.is_dir(), f"{ARTIFACTS}: no folder; scripts/artifacts.py makes one"
    return ARTIFACTS


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the published 2.1.0."""
    folder = tmp_path_factory.mktemp("published")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    run(*pip, "--no-deps", "--dest", folder, "randflake==2.1.0", cwd=folder)
    return next(folder.iterdir())


@pytest.fixture(scope="module")
def of_2_1(published: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the program of 2.1 prints with 2.1."""
    folder = tmp_path_factory.mktemp("of_2_1")
    run(*pip([sys.executable]), "--target", folder / "2.1", published, cwd=folder)
    program = write(folder, "program.py", PROGRAM_OF_2_1)
    return run(sys.executable, program, cwd=folder, PYTHONPATH=str(folder / "2.1"))


def pip(python: list[str]) -> list[str]:
    return [
        *python,
        *["-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index"],
    ]


def makes_an_id(command: list[str], folder: Path) -> None:
    """Makes ids with the command randflake, and reads them."""
    secret = write(folder, "secret.hex", run(*command, "secret", cwd=folder))
    secret.chmod(0o600)
    options = ["--secret-file", "secret.hex"]
    ids = run(
        *command, "generate", *options, "--store", "command.db", "-n", "2", cwd=folder
    ).split()
    assert len(set(ids)) == 2
    parts = json.loads(run(*command, "inspect", *options, "--json", ids[0], cwd=folder))
    assert parts["plausible"] is True


@pytest.mark.parametrize("runtime", PYTHONS)
def test_python(runtime: str, published: Path, of_2_1: str, tmp_path: Path) -> None:
    needs(PYTHONS[runtime])
    run(*PYTHONS[runtime], "-m", "venv", "venv", cwd=tmp_path)
    python = [*PYTHONS[runtime][:-1], str(tmp_path / "venv" / "bin" / "python")]
    links = ["--find-links", str(published.parent), "--find-links", str(ARTIFACTS)]

    run(*pip(python), *links, f"randflake=={VERSION}", cwd=tmp_path)
    first = write(tmp_path, "first.py", FIRST_ID["first.py"])
    assert run(*python, "-W", "error", first, cwd=tmp_path) == "True\n"
    command = [*PYTHONS[runtime][:-1], str(tmp_path / "venv" / "bin" / "randflake")]
    makes_an_id(command, tmp_path)

    program = write(tmp_path, "program.py", PROGRAM_OF_2_1)
    for version in ["2.1.0", VERSION]:
        run(*pip(python), *links, f"randflake=={version}", cwd=tmp_path)
        shown = run(
            *python,
            "-c",
            "import importlib.metadata as m; print(m.version('randflake'))",
            cwd=tmp_path,
        )
        assert shown.strip() == version
        assert run(*python, program, cwd=tmp_path) == of_2_1


@pytest.fixture(scope="module")
def npm() -> Iterator[str]:
    with registry(list(ARTIFACTS.rglob("*.tgz"))) as url:
        yield url


def install(runtime: str, folder: Path, url: str) -> None:
    write(folder, "package.json", "{}")
    name = f"npm:randflake@{VERSION}" if runtime == "Deno" else f"randflake@{VERSION}"
    # Each keeps what it fetched in a place of its own.
    caches = {"npm_config_cache": "npm", "BUN_INSTALL_CACHE_DIR": "bun", "DENO_DIR": "deno"}
    variables = {variable: str(folder / "cache" / name) for variable, name in caches.items()}
    command = INSTALLS.get(runtime, INSTALLS["npm"])
    run(*command, name, cwd=folder, NPM_CONFIG_REGISTRY=url, **variables)


@pytest.mark.parametrize("runtime", JAVASCRIPTS)
def test_javascript(runtime: str, npm: str, of_2_1: str, tmp_path: Path) -> None:
    needs(JAVASCRIPTS[runtime])
    install(runtime, tmp_path, npm)
    first = write(tmp_path, "first.mjs", FIRST_ID["first.mjs"])
    assert run(*JAVASCRIPTS[runtime], first, cwd=tmp_path) == "True\n"
    if runtime not in ["Bun", "Deno"]:
        command = "node_modules/randflake/command.js"
        makes_an_id([*JAVASCRIPTS[runtime], str(tmp_path / command)], tmp_path)
    # The index has no 2.1 for Node.js, so ours prints what 2.1 of Python does.
    program = write(tmp_path, "program.mjs", THE_SAME_FOR_NODE)
    assert run(*JAVASCRIPTS[runtime], program, cwd=tmp_path) == of_2_1


def unpack(crates: list[str], folder: Path) -> str:
    """Unpacks crates, and returns what makes cargo take them in place of those of the registry."""
    patches = ["[patch.crates-io]"]
    for crate in crates:
        with tarfile.open(next(ARTIFACTS.rglob(f"{crate}-{VERSION}.crate"))) as archive:
            archive.extractall(folder, filter="data")
        patches.append(f"{crate} = {{ path = {json.dumps(str(folder / f'{crate}-{VERSION}'))} }}")
    return "\n".join(patches)


def test_rust(tmp_path: Path) -> None:
    """Of the registry's crates the program gets those that ours need, and ours from the folder."""
    project = tmp_path / "project"
    patches = unpack(["randflake", "randflake-leases"], tmp_path)
    write(project, ".cargo/config.toml", patches)
    dependencies = f'randflake = "={VERSION}"\nrandflake-leases = "={VERSION}"\n'
    package = f'[package]\nname = "first"\nedition = "2024"\n\n[dependencies]\n{dependencies}'
    write(project, "Cargo.toml", package)
    write(project, "src/main.rs", FIRST_ID["src/main.rs"])
    target = str(ROOT / "target" / "clone")
    assert run("cargo", "run", "--quiet", cwd=project, CARGO_TARGET_DIR=target) == "True\n"


def test_command_of_cargo(tmp_path: Path) -> None:
    """It makes ids, and serves them."""
    names = ["", "-leases", "-tickets", "-serve", "-cli"]
    patches = unpack([f"randflake{name}" for name in names], tmp_path)
    write(tmp_path, ".cargo/config.toml", patches)
    package = str(tmp_path / f"randflake-cli-{VERSION}")
    target = str(ROOT / "target" / "clone")
    install = ["cargo", "install", "--quiet", "--debug", "--path", package, "--root", str(tmp_path)]
    run(*install, cwd=tmp_path, CARGO_TARGET_DIR=target)
    command = [str(tmp_path / "bin" / "randflake")]
    makes_an_id(command, tmp_path)

    serve = [
        "serve",
        "--secret-file",
        "secret.hex",
        "--store",
        "command.db",
        "--listen",
        "127.0.0.1:0",
    ]
    with subprocess.Popen(
        [*command, *serve], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stderr is not None
            said = next(line for line in server.stderr if "listening on " in line)
            url = said.split("listening on ")[1].strip()
            request = urllib.request.Request(f"{url}/v1/ids", method="POST")
            with urllib.request.urlopen(request, timeout=300) as answer:
                [served] = json.load(answer)["ids"]
        finally:
            server.terminate()
    assert server.returncode == 0
    inspect = ["inspect", "--secret-file", "secret.hex", "--json", served]
    assert json.loads(run(*command, *inspect, cwd=tmp_path))["plausible"] is True
