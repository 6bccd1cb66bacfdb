"""Splits rows.json of gpu_bench into one file a row: collect.py rows.json [...] bench/results/nvidia-h200

A row keeps the fastest of our shapes and every peer; `tried` holds the other shapes' medians."""
import json
import os
import sys

*sources, folder = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
for source in sources:
    for row in json.load(open(source)):
        ours = sorted((c for c in row["contenders"] if c["ours"]), key=lambda c: c["us"])
        peers = sorted((c for c in row["contenders"] if not c["ours"]), key=lambda c: c["us"])
        row["contenders"] = ours[:1] + peers
        row["tried"] = {c["name"]: c["us"] for c in ours[1:]}
        if peers:
            row["ratio_to_best_peer"] = round(ours[0]["us"] / peers[0]["us"], 3)
        with open(os.path.join(folder, row["row"] + ".json"), "w") as out:
            json.dump(row, out, indent=1)
            out.write("\n")
