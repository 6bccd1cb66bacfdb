#!/usr/bin/env python3
"""Runs Ridge on SmolLM2 and puts what it prints into README.md, with device, date and commit, and the report of the same
profile, as Chromium draws it, into docs/report.png.

usage: readme_output.py [--ridge build/cpu/ridge] [--dry]

Replaces what stands between <!-- output --> and <!-- /output -->. Run it on a machine that does nothing else. Lines wider
than 150 characters are cut, and say so by an ellipsis.
"""
import argparse
import datetime
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import rows  # noqa: E402

HEADLESS = ROOT / "tools" / "headless.sh"
WIDTH = 150
COMMANDS = [
    ["run", "{m}", "-p", "Explain in two sentences why the sky is blue.", "-n", "80"],
    ["profile", "{m}", "--prompt-tokens", "512", "--output-tokens", "64", "--report", "report.html"],
    ["advise", "{m}", "--budget", "30"],
]


def output(ridge, model, command, folder):
    run = subprocess.run([os.path.abspath(ridge), *[a.format(m=model) for a in command]], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, env={**os.environ, "NO_COLOR": "1"})
    if run.returncode != 0:
        sys.exit(f"readme_output: ridge {command[0]} ended with {run.returncode}:\n{run.stdout[-2000:]}")
    typed = " ".join(f"'{a}'" if " " in a else a for a in command).replace("{m}", os.path.basename(model))
    text = run.stdout.replace(model, os.path.basename(model)).replace(os.path.expanduser("~"), "~")
    lines = [line.rstrip() if len(line) <= WIDTH else line[:WIDTH - 1].rstrip() + "…" for line in text.strip("\n").splitlines()]
    return "\n".join([f"$ ridge {typed}", *lines])


def picture(folder):
    if subprocess.run([HEADLESS], check=False).returncode:
        sys.exit("readme_output: there is nothing to draw docs/report.png with")
    subprocess.run([HEADLESS, f"--user-data-dir={folder}/user", "--window-size=1280,1010", f"--screenshot={folder}/report.png",
                    f"file://{folder}/report.html"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
    return pathlib.Path(folder, "report.png").read_bytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ridge", default=str(ROOT / "build" / "cpu" / "ridge"))
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    fetched = subprocess.run([str(ROOT / "tools" / "fetch_model.py"), "smollm2"], check=True, stdout=subprocess.PIPE, text=True)
    with tempfile.TemporaryDirectory() as folder:
        shown = [output(options.ridge, fetched.stdout.strip(), c, folder) for c in COMMANDS]
        drawn = picture(folder)
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%-d %B %Y")
    load = os.getloadavg()[0]
    text = ("```\n" + "\n\n".join(shown) + "\n```\n\n"
            f"By `tools/readme_output.py` on {rows.cpu_name()}, {len(os.sched_getaffinity(0))} cores, {date}, commit {rows.commit()}, "
            f"load average {load:.1f}.\n")
    readme = ROOT / "README.md"
    new, count = re.subn(r"(<!-- output -->\n).*?(<!-- /output -->)", lambda m: m.group(1) + text + m.group(2),
                         readme.read_text(encoding="utf-8"), flags=re.S)
    if count != 1:
        sys.exit("readme_output: README.md has no place for it, <!-- output --> … <!-- /output -->")
    if options.dry:
        print(text)
    else:
        readme.write_text(new, encoding="utf-8")
        (ROOT / "docs" / "report.png").write_bytes(drawn)


if __name__ == "__main__":
    main()
