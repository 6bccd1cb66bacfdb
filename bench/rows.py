"""Rows of the scoreboard: what is asked for (targets.json), what was measured (results/DEVICE/ROW.json), and whether
the sources that a result depends on are still those that it was measured with."""
import datetime
import hashlib
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET_KEYS = {"id", "area", "condition", "target", "unit", "better", "of", "sources", "workload"}
WORKLOAD_KEYS = {"model", "weight_format", "kv_format", "activation_format", "prompt_tokens", "output_tokens", "batch",
                 "prefix_hit_tokens", "sampling", "constrained_decoding"}
PROVENANCE_KEYS = {"date", "commit", "device", "command", "sources_sha256"}


class Wrong(Exception):
    """A targets or result file that does not say what it must; the message names the file and the field."""


def load_targets(root=ROOT):
    """({source set: globs}, [target]) of bench/targets.json, checked."""
    path = root / "bench" / "targets.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        sources, rows = data["sources"], data["rows"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Wrong(f"{path}: {error}") from error
    seen = set()
    for row in rows:
        if missing := TARGET_KEYS - row.keys():
            raise Wrong(f"{path}: row {row.get('id', '?')} lacks {', '.join(sorted(missing))}")
        if row["better"] not in ("lower", "higher") or row["of"] not in ("value", "peer", "limit"):
            raise Wrong(f"{path}: row {row['id']}: better is lower or higher, of is value, peer or limit")
        if row["sources"] not in sources:
            raise Wrong(f"{path}: row {row['id']}: no source set {row['sources']}")
        if row["id"] in seen:
            raise Wrong(f"{path}: row {row['id']} is there twice")
        seen.add(row["id"])
    return sources, rows


def named(glob, root):
    return {p for p in root.glob(glob + "/*" if glob.endswith("**") else glob) if p.is_file()}


def sources_hash(globs, root=ROOT):
    """SHA-256 over path and content of every file that the globs name: a new file that one names changes it too. A glob
    after a ! takes away from those that the globs before it name."""
    files = set()
    for glob in globs:
        files = files - named(glob[1:], root) if glob.startswith("!") else files | named(glob, root)
    digest = hashlib.sha256()
    for path in sorted(files):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def commit(root=ROOT):
    """The commit of the work tree, with a plus if a tracked file was changed since, results apart; 'unknown' without git."""
    def git(*arguments):
        return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True).stdout.strip()
    try:
        return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!bench/results") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        match = re.search(r"^model name\s*:\s*(.*)$", file.read(), re.M)
    return match.group(1).strip() if match else "unknown CPU"


def waited_us():
    """Time in which some runnable thread of this machine waited for a core; 0 where the kernel does not tell."""
    try:
        with open("/proc/pressure/cpu", encoding="utf-8") as file:
            return int(file.readline().rsplit("total=", 1)[1])
    except OSError:
        return 0


def folder_name(device):
    return re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")


def make_row(row_id, value, *, spread, runs, device, command, peer=None, limit=None, workload=None, more=None, root=ROOT):
    """A result for target `row_id`: value in the target's unit, spread [lowest, highest] of the runs; peer is
    {"name", "value", "same_run"}. Provenance is added here."""
    sources, targets = load_targets(root)
    target = next((t for t in targets if t["id"] == row_id), None)
    if target is None:
        raise Wrong(f"targets.json has no row {row_id}")
    result = {"row": row_id, "condition": target["condition"], "value": value, "unit": target["unit"], "spread": spread,
              "runs": runs}
    if peer is not None:
        result["peer"] = peer
        result["ratio"] = value / peer["value"]
    if limit is not None:
        result["limit"] = limit
    if workload is not None:
        result["workload"] = workload
    result.update(more or {})
    result["provenance"] = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), "commit": commit(root),
        "device": device, "command": command, "sources_sha256": sources_hash(sources[target["sources"]], root)}
    check_result(result, target, row_id)
    return result


def write_row(result, root=ROOT):
    folder = root / "bench" / "results" / folder_name(result["provenance"]["device"])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result['row']}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return path


def check_result(result, target, name):
    """Raises Wrong if the result does not say what a row must."""
    if not isinstance(result, dict):
        raise Wrong(f"{name}: not an object")
    for key in ("row", "value", "unit", "spread", "runs", "provenance"):
        if key not in result:
            raise Wrong(f"{name}: {key} is missing")
    if result["row"] != target["id"] or result["unit"] != target["unit"]:
        raise Wrong(f"{name}: is row {result['row']} in {result['unit']}, wanted {target['id']} in {target['unit']}")
    if result["runs"] < target.get("runs", 1):
        raise Wrong(f"{name}: {result['runs']} runs, at least {target['runs']} are wanted")
    if missing := PROVENANCE_KEYS - result["provenance"].keys():
        raise Wrong(f"{name}: provenance lacks {', '.join(sorted(missing))}")
    numbers = {"value": result["value"]}
    if target["of"] == "peer":
        numbers["peer.value"] = result.get("peer", {}).get("value")
    if target["of"] == "limit":
        numbers["limit"] = result.get("limit")
    for key, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, (int, float)) or number != number:
            raise Wrong(f"{name}: {key} is {number}, a number is wanted")
        if key != "value" and number == 0:
            raise Wrong(f"{name}: {key} is 0, nothing can be compared with that")
    if target["workload"] and (missing := WORKLOAD_KEYS - set(result.get("workload") or {})):
        raise Wrong(f"{name}: workload lacks {', '.join(sorted(missing))}")


def judged(result, target):
    """The number that the target bounds."""
    if target["of"] == "peer":
        return result["value"] / result["peer"]["value"]
    if target["of"] == "limit":
        return result["value"] / result["limit"]
    return result["value"]


def met(result, target):
    number = judged(result, target)
    return number <= target["target"] if target["better"] == "lower" else number >= target["target"]
