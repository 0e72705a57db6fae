#!/usr/bin/env python3
"""Builds what a release uploads, one kind at a time.

    scripts/artifacts.py wheel --target aarch64-unknown-linux-gnu --out dist
    scripts/artifacts.py free-threaded --target x86_64-unknown-linux-gnu --out dist
    scripts/artifacts.py node --target x86_64-unknown-linux-musl --out dist
    scripts/artifacts.py npm --prebuilds dist --out dist     packs what `node` built
    scripts/artifacts.py sdist --out dist
    scripts/artifacts.py crates --out dist
    scripts/artifacts.py sbom --out dist
    scripts/artifacts.py licences            of what is compiled in, beside each package's own

For Linux, zig compiles and links C for any processor and for the oldest C library that is
supported (glibc 2.17, on ppc64le 2.28; musl 1.2), whatever this machine has. macOS and Windows are
built on their own systems. The tools: `pip install -r scripts/requirements-release.txt`, maturin,
and `npm ci` in bindings-node.

Two builds of one commit are the same, byte for byte, wherever the clone is: no folder of the
machine gets into an artifact, and all times are that of the commit, or SOURCE_DATE_EPOCH.
"""

import argparse
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CRATES = [
    "randflake",
    "randflake-leases",
    "randflake-tickets",
    "randflake-conformance",
    "randflake-serve",
    "randflake-cli",
]
# The oldest musl, as wheels name it.
MUSL = "musllinux_1_2"
# For SQLite, the only C that is compiled: zig takes -Oz for -Os, and nothing unwinds through C.
# Each package is a thirtieth smaller for it.
ZIG_CFLAGS = "-Xclang -Oz -fno-unwind-tables -fno-asynchronous-unwind-tables"
# Before 3.14, Python ends the threads that are left at its end by unwinding them with libgcc_s,
# which glibc loads. The unwinder that zig would link crashes on that, so the wheel is linked with
# a library that has the names of libgcc_s.
UNWINDER = """\
GCC_3.0 { global: _Unwind_DeleteException; _Unwind_ForcedUnwind; _Unwind_GetDataRelBase;
    _Unwind_GetGR; _Unwind_GetIP; _Unwind_GetLanguageSpecificData; _Unwind_GetRegionStart;
    _Unwind_GetTextRelBase; _Unwind_RaiseException; _Unwind_Resume; _Unwind_SetGR; _Unwind_SetIP; };
GCC_3.3 { global: _Unwind_Backtrace; _Unwind_FindEnclosingFunction; _Unwind_GetCFA;
    _Unwind_Resume_or_Rethrow; };
GCC_4.2.0 { global: _Unwind_GetIPInfo; };
"""
# 32-bit ARM has its own way to unwind.
UNWINDER_ON_ARM = """\
GCC_3.0 { global: _Unwind_DeleteException; _Unwind_ForcedUnwind; _Unwind_GetDataRelBase;
    _Unwind_GetLanguageSpecificData; _Unwind_GetRegionStart; _Unwind_GetTextRelBase;
    _Unwind_RaiseException; _Unwind_Resume; };
GCC_3.3 { global: _Unwind_GetCFA; _Unwind_Resume_or_Rethrow; };
GCC_3.5 { global: _Unwind_Complete; _Unwind_VRS_Get; _Unwind_VRS_Pop; _Unwind_VRS_Set;
    __aeabi_unwind_cpp_pr0; __aeabi_unwind_cpp_pr1; __aeabi_unwind_cpp_pr2; __gnu_unwind_frame; };
GCC_4.3.0 { global: _Unwind_Backtrace; };
"""
# The first free-threaded Python that pyo3 supports. It has no stable interface: a wheel for each.
FREE_THREADED = "3.14t"
# The tests of the core that take seconds, and those of them that take an emulator minutes.
QUICK_TESTS = ["bad_input", "codes", "layouts", "properties", "vectors"]
A_MILLION_CODES = ["each_number_has_one_code", "a_check_refuses_all_other_texts"]
# Of the folder of the npm package.
NOT_PUBLISHED = shutil.ignore_patterns("node_modules", "*.node", "npm", "src", "test")
THIRD_PARTY = "LICENSE-THIRD-PARTY"
LICENCES = ["LICENSE-MIT", "LICENSE-APACHE", THIRD_PARTY]
CARGO_ABOUT = "0.9.3"
CYCLONEDX = "0.5.9"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=list(KINDS))
    parser.add_argument(
        "--target", default=host(), help="a target of Rust; this machine's unless set"
    )
    parser.add_argument("--prebuilds", type=Path, help="where `npm` finds what `node` built")
    parser.add_argument("--all", action="store_true", help="`npm` fails if a target is missing")
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "dist" / "release")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    arguments.out = arguments.out.resolve()
    KINDS[arguments.kind](arguments)


def wheel(arguments: argparse.Namespace) -> None:
    maturin(arguments, [])


def free_threaded(arguments: argparse.Namespace) -> None:
    # A name is enough for another system; this one's has to be here.
    python = os.environ.get("FREE_THREADED_PYTHON") or f"python{FREE_THREADED}"
    maturin(arguments, ["--interpreter", python])


def maturin(arguments: argparse.Namespace, options: list[str]) -> None:
    target, cflags = arguments.target, ""
    options += ["--target", target, "--compression-level", "9"]
    if "-linux-" in target:
        cflags = ZIG_CFLAGS
        tag = MUSL if "musl" in target else f"manylinux_{glibc(target).replace('.', '_')}"
        options += ["--zig", "--compatibility", tag]
        if "musl" not in target:
            options += ["--", f"-Clink-arg={libgcc_s(target)}"]
    manifest = ROOT / "bindings-python" / "Cargo.toml"
    run(
        *("maturin", "build", "--release", "--locked", "--manifest-path", manifest),
        *("--out", arguments.out, *options),
        cflags=cflags,
    )


def glibc(target: str) -> str:
    """Returns the oldest version that is supported, as zig names it."""
    # For ppc64le, zig has none before 2.19; of the systems that are still maintained, RHEL 8 has
    # the oldest.
    return "2.28" if target.startswith("powerpc64le") else "2.17"


def libgcc_s(target: str) -> Path:
    """Makes a library to link with, which has the names of libgcc_s and nothing in them."""
    # Relative to the workspace, so that it is the same wherever the clone is.
    folder = Path("target", "libgcc_s", target)
    (ROOT / folder).mkdir(parents=True, exist_ok=True)
    processor, abi = target.split("-")[0], target.split("-")[-1]
    versions = UNWINDER_ON_ARM if processor == "armv7" else UNWINDER
    functions = "".join(f"void {it}(void) {{}}\n" for it in re.findall(r"\b_\w+", versions))
    (ROOT / folder / "names.c").write_text(functions)
    (ROOT / folder / "versions").write_text(versions)
    processor = {"armv7": "arm", "i686": "x86"}.get(processor, processor)
    run(
        *("python", "-m", "ziglang", "cc", "-shared", "-nostdlib", "-Wl,-soname,libgcc_s.so.1"),
        *("-target", f"{processor}-linux-{abi}.{glibc(target)}"),
        *(f"-Wl,--version-script={folder / 'versions'}", "-o", folder / "libgcc_s.so"),
        folder / "names.c",
    )
    return folder / "libgcc_s.so"


def sdist(arguments: argparse.Namespace) -> None:
    manifest = ROOT / "bindings-python" / "Cargo.toml"
    run("maturin", "sdist", "--manifest-path", manifest, "--out", arguments.out)


def node(arguments: argparse.Namespace) -> None:
    """Builds `randflake.PLATFORM.node`, and the loader of all platforms."""
    target, options, cflags = arguments.target, [], ""
    if "-linux-" in target or "-freebsd" in target:
        options, cflags = ["--cross-compile"], ZIG_CFLAGS
    if "-linux-gnu" in target:
        target += f".{glibc(target)}"
    with tempfile.TemporaryDirectory() as folder:
        napi(
            *("build", "--platform", "--release", "--target", target, *options),
            *("--js", "binding.js", "--dts", "binding.d.ts", "--output-dir", folder),
            *("--", "--locked"),
            cwd=ROOT / "bindings-node",
            cflags=cflags,
        )
        for built in Path(folder).iterdir():
            shutil.copy(built, arguments.out)


def npm(arguments: argparse.Namespace) -> None:
    """Packs the package of each platform, and the main package that names them all."""
    prebuilds = (arguments.prebuilds or arguments.out).resolve()
    run("node", ROOT / "scripts" / "build-web", cwd=ROOT)
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "package"
        shutil.copytree(
            ROOT / "bindings-node",
            package,
            ignore=NOT_PUBLISHED,
        )
        shutil.copy(prebuilds / "binding.js", package)
        shutil.copy(prebuilds / "binding.d.ts", package)
        if not arguments.all:
            only_targets(package, {file.name.split(".")[1] for file in prebuilds.glob("*.node")})
        napi("create-npm-dirs", cwd=package)
        for platform in (package / "npm").iterdir():
            # Fails where there is none.
            shutil.copy(prebuilds / f"randflake.{platform.name}.node", platform)
            for licence in LICENCES:
                shutil.copy(package / licence, platform)
            manifest = json.loads((platform / "package.json").read_text(encoding="utf-8"))
            manifest["files"] += LICENCES
            write_json(platform / "package.json", manifest)
        # Has the main package depend on the others, each in this version, and publishes nothing.
        napi("pre-publish", "--skip-optional-publish", "--no-gh-release", cwd=package)
        for each in [*sorted((package / "npm").iterdir()), package]:
            run("npm", "pack", "--ignore-scripts", "--pack-destination", arguments.out, cwd=each)
    # npm compresses less than it could.
    for packed in arguments.out.glob("*.tgz"):
        content = gzip.decompress(packed.read_bytes())
        packed.write_bytes(gzip.compress(content, compresslevel=9, mtime=0))


def only_targets(package: Path, platforms: set[str]) -> None:
    """Leaves the platforms out that were not built, for a check on one machine."""
    manifest = json.loads((package / "package.json").read_text(encoding="utf-8"))
    targets = manifest["napi"]["targets"]
    manifest["napi"]["targets"] = [name for name in targets if platform_of(name) in platforms]
    write_json(package / "package.json", manifest)


def platform_of(target: str) -> str:
    """Returns how npm packages name a target of Rust."""
    cpu, _, system, *abi = target.split("-")
    processor = {"x86_64": "x64", "aarch64": "arm64", "armv7": "arm"}[cpu]
    systems = {"apple": "darwin", "pc": "win32"}
    system = systems.get(target.split("-")[1], system)
    return "-".join([system, processor, *(abi if system != "darwin" else [])])


def crates(arguments: argparse.Namespace) -> None:
    """Packs the crates, without compiling them: `cargo publish --dry-run` does."""
    packages = [argument for crate in CRATES for argument in ("-p", crate)]
    run("cargo", "package", "--locked", "--allow-dirty", "--no-verify", "--quiet", *packages)
    for crate in CRATES:
        shutil.copy(ROOT / "target" / "package" / f"{crate}-{version()}.crate", arguments.out)


def sbom(arguments: argparse.Namespace) -> None:
    """Lists what is compiled into the wheel, the npm package and the command, in CycloneDX."""
    tool = cargo_tool("cargo-cyclonedx", CYCLONEDX)
    name = "randflake-sbom"
    run(
        *(tool, "cyclonedx", "--format", "json", "--spec-version", "1.5", "--target", "all"),
        *("--override-filename", name, "--quiet"),
    )
    published = {"bindings-python": "python", "bindings-node": "node", "cli": "cli"}
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    for crate in manifest["workspace"]["members"]:
        written = ROOT / crate / f"{name}.json"
        text = written.read_text(encoding="utf-8")
        written.unlink()
        if crate in published:
            # Our own crates are named by the folder that they are in.
            bill = json.loads(text.replace(ROOT.as_uri(), "file://"))
            leave_out_others(bill, compiled_into(bill["metadata"]["component"]["name"]))
            # GitHub attests no bill without a serial number. Made from the contents, so that two
            # builds agree.
            bill["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bill)).urn
            write_json(arguments.out / f"randflake-{published[crate]}.cdx.json", bill)


def compiled_into(crate: str) -> set[tuple[str, str]]:
    """Returns the names and versions of what is compiled into a crate, on any system."""
    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    targets = re.findall(r"\btarget: ([a-z]\S+),", workflow)
    if not targets:
        raise LookupError("release.yml names no targets")
    command = ["cargo", "tree", "--locked", "-p", crate, "--edges=normal,no-proc-macro"]
    command += ["--prefix=none", *(f"--target={target}" for target in targets)]
    lines = subprocess.check_output(command, cwd=ROOT, text=True).splitlines()
    return {(line.split()[0], line.split()[1].removeprefix("v")) for line in lines if line}


def leave_out_others(bill: dict[str, Any], compiled: set[tuple[str, str]]) -> None:
    """Leaves out tools, tests and other crates: cargo-cyclonedx lists the whole workspace."""
    own = bill["metadata"]["component"]
    named = [it for it in bill["components"] if (it["name"], it["version"]) in compiled]
    if missing := compiled - {(it["name"], it["version"]) for it in [own, *named]}:
        raise LookupError(f"not in the bill of materials of {own['name']}: {missing}")
    refs = {it["bom-ref"] for it in [own, *named]}
    bill["components"] = named
    bill["dependencies"] = [
        {**it, "dependsOn": [ref for ref in it.get("dependsOn", []) if ref in refs]}
        for it in bill["dependencies"]
        if it["ref"] in refs
    ]


def licences(_: argparse.Namespace) -> None:
    """Writes the licences of what is compiled into the wheel and into the npm packages."""
    # With some optimization: it compares long texts, for minutes without.
    tool = cargo_tool(
        *("cargo-about", CARGO_ABOUT, "--features=cli", "--config=profile.dev.opt-level=2")
    )
    # Of all systems. Offline, since it would ask a server for what the crates say themselves.
    run("cargo", "fetch", "--locked", "--quiet")
    for binding in ["bindings-python", "bindings-node"]:
        run(
            *(tool, "generate", "--locked", "--offline", "--fail"),
            *("--config", "scripts/licences.toml", "--manifest-path", f"{binding}/Cargo.toml"),
            *("--output-file", f"{binding}/{THIRD_PARTY}", "scripts/licences.hbs"),
        )
        # Each text has the line ends of its author.
        written = ROOT / binding / THIRD_PARTY
        written.write_text(written.read_text(encoding="utf-8"), encoding="utf-8", newline="\n")


def cargo_tool(name: str, wanted: str, *options: str) -> Path:
    """Returns a program of cargo in the version that is wanted, and builds it the first time."""
    folder = ROOT / "target" / "tools" / wanted
    if not (folder / "bin" / name).exists():
        # Without optimization, which takes longer than they run.
        run(
            *("cargo", "install", "--locked", "--debug", "--quiet", "--root", folder),
            *(f"{name}@{wanted}", *options),
        )
    return folder / "bin" / name


def host() -> str:
    return subprocess.check_output(["rustc", "--print", "host-tuple"], text=True).strip()


def version() -> str:
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    found: str = manifest["workspace"]["package"]["version"]
    return found


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8", newline="\n")


def napi(*arguments: str | Path, cwd: Path, cflags: str = "") -> None:
    cli = ROOT / "bindings-node" / "node_modules" / "@napi-rs" / "cli" / "dist" / "cli.js"
    run("node", cli, *arguments, cwd=cwd, cflags=cflags)


def run(*command: str | Path, cwd: Path = ROOT, cflags: str = "") -> None:
    program, *arguments = map(str, command)
    variables = environment(cflags)
    print("$", program, *arguments, flush=True)
    subprocess.run(
        # npm is a script on Windows, which only a search finds.
        [shutil.which(program, path=variables["PATH"]) or program, *arguments],
        cwd=cwd,
        env=variables,
        check=True,
    )


def environment(cflags: str = "") -> dict[str, str]:
    """Returns this process's, with what makes builds the same wherever they are made."""
    programs = ROOT / ".venv" / ("Scripts" if os.name == "nt" else "bin")
    cargo = os.environ.get("CARGO_HOME", str(Path.home() / ".cargo"))
    folders = {str(ROOT): "/randflake", cargo: "/cargo"}
    values = {
        **os.environ,
        "PATH": os.pathsep.join([str(programs), os.environ["PATH"]]),
        "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH") or committed(),
        "RUSTFLAGS": " ".join(f"--remap-path-prefix={a}={b}" for a, b in folders.items()),
    }
    if os.name != "nt":
        mapped = (f"-ffile-prefix-map={a}={b}" for a, b in folders.items())
        values["CFLAGS"] = " ".join([*mapped, cflags])
    return values


def committed() -> str:
    return subprocess.check_output(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, text=True
    ).strip()


KINDS = {
    "wheel": wheel,
    "free-threaded": free_threaded,
    "sdist": sdist,
    "node": node,
    "npm": npm,
    "crates": crates,
    "sbom": sbom,
    "licences": licences,
}

if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"failed: {' '.join(error.cmd)}")
