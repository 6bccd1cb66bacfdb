#!/usr/bin/env python3
"""Tokenizer goldens: ids of many texts for the tokenizer in a GGUF file, and pieces of the common pre-tokenizers.

usage: make_tokenizer.py ids MODEL.gguf OUT.json --heldout DIR [--lines N] [--random N]
       make_tokenizer.py pieces OUT.json
  --heldout  directory with kjv.txt, jargon.txt and devil.txt (public-domain books)
needs: pip install gguf tokenizers sentencepiece protobuf numpy regex; with --cross-check also transformers

ids: `cases` are {text, ids}: no BOS, special tokens in the text are text. `special_cases` are {text, plain_ids,
parsed_ids}: the same text with special tokens as text, and parsed. `long_cases` repeat `unit` `count` times; ids are
head + cycle × times + tail. `missing_bytes`: bytes that the vocabulary has no token for; they vanish from a text before it is
merged. Without them every text without U+2581 comes back from its ids byte by byte; with a SentencePiece vocabulary
U+2581 comes back as a space.
pieces: for each text the pieces that gpt-2, llama-bpe, qwen2 and smollm split it into; joined they are the text.

How the ids are made: see GgufTokenizer in common.py. What transformers builds from the same file is compared with
--cross-check; it differs in two ways, where the model's own tokenizer (and this golden) is right:
smollm splits digits off before the GPT-2 regex, which transformers' GGUF conversion leaves out ("a  1" differs);
SentencePiece takes the longest user-defined run of spaces, transformers' merges stop at other lengths from 17 up.
"""

import argparse
import os
import sys

import regex
from common import GgufTokenizer, provenance, write_json
from tokenizer_texts import EDGES, SPECIAL_TEXTS, book_lines, code_lines, random_texts
from tokenizers import Regex, pre_tokenizers

HERE = os.path.dirname(os.path.abspath(__file__))
LONG_UNITS = [("a", 1_000_000), (" ", 1_000_000), ("\n", 1_000_000), ("0", 100_000), ("\u00e9", 100_000), ("ab ", 100_000),
              ("\u65e5", 100_000), ("\U0001F600", 20_000)]
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
PATTERNS = {  # each pattern splits the pieces of the one before it; unmatched text is a piece
    "gpt-2": [GPT2],
    "llama-bpe": [LLAMA3],
    "qwen2": [LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")],
    "smollm": [r"\p{N}", GPT2],
}


def split(text, patterns):
    pieces = [text]
    for pattern in patterns:
        following = []
        for piece in pieces:
            end = 0
            for match in regex.finditer(pattern, piece):
                following += [piece[end:match.start()], match.group()]
                end = match.end()
            following.append(piece[end:])
        pieces = [p for p in following if p]
    return pieces


def split_by_tokenizers(text, patterns):
    """The same by the tokenizers library's own engine: both must agree before a case becomes a golden."""
    steps = [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]
    return [piece for piece, _ in pre_tokenizers.Sequence(steps).pre_tokenize_str(text)]


def as_cycle(ids):
    """Writes ids as head + cycle × times + tail, with the least cycle that leaves a short head and tail."""
    for cycle in range(1, 5):
        for head in range(3):
            times = 1
            while ids[head + times * cycle:head + (times + 1) * cycle] == ids[head:head + cycle]:
                times += 1
            tail = ids[head + times * cycle:]
            if len(tail) <= 4:
                return {"head": ids[:head], "cycle": ids[head:head + cycle], "times": times, "tail": tail}
    raise SystemExit(f"no short cycle in {ids[:20]}")


def cross_check(path, tokenizer, texts):
    from transformers import AutoTokenizer
    directory, name = os.path.split(os.path.abspath(path))
    other = AutoTokenizer.from_pretrained(directory, gguf_file=name)
    digits_or_spaces = regex.compile(r"\p{N}" if tokenizer.kind == "gpt2" else " {17}")
    differing = [t for t in texts
                 if tokenizer.encode(t, True) != other(t, add_special_tokens=False)["input_ids"]]
    strange = [t for t in differing if not digits_or_spaces.search(t)]
    print(f"transformers differs on {len(differing)} of {len(texts)} texts, {len(strange)} unexplained", file=sys.stderr)
    for text in strange:
        print(f"  {text!r}: {tokenizer.encode(text, True)} here", file=sys.stderr)


def make_ids(args):
    tokenizer = GgufTokenizer(args.model)
    texts = list(dict.fromkeys(
        [""] + EDGES + random_texts(1, args.random) + code_lines(os.path.join(HERE, "sample_code.txt"))
        + book_lines(args.heldout, ["kjv.txt", "jargon.txt", "devil.txt"], args.lines, 2)))
    specials = SPECIAL_TEXTS[tokenizer.kind]
    if args.cross_check:
        cross_check(args.model, tokenizer, texts + specials)
    cases = [{"text": t, "ids": tokenizer.encode(t)} for t in texts]
    missing = tokenizer.missing_bytes()
    for case in cases:
        back, want = tokenizer.decode(case["ids"]), bytes(b for b in case["text"].encode() if b not in missing)
        if back != want and "\u2581" not in case["text"]:
            raise SystemExit(f"{case['text']!r} comes back as {back!r}")
    write_json(args.out, {
        "about": "Token ids; fields: see the script's help.",
        "provenance": provenance(__file__, ["gguf", "tokenizers", "sentencepiece", "numpy"], [args.model]),
        "bos": tokenizer.bos, "eos": tokenizer.eos, "add_bos": tokenizer.add_bos,
        "missing_bytes": missing,
        "cases": cases,
        "special_cases": [{"text": t, "plain_ids": tokenizer.encode(t), "parsed_ids": tokenizer.encode(t, True)}
                          for t in specials],
        "long_cases": [{"unit": u, "count": n} | as_cycle(tokenizer.encode(u * n)) for u, n in LONG_UNITS],
    }, 300_000)


def make_pieces(args):
    cases, left_out = [], []
    sentences = [t for t in code_lines(os.path.join(HERE, "sample_code.txt"))[:20]]
    for text in dict.fromkeys(EDGES + sentences + random_texts(3, 60)):
        if not text or len(text) > 80:
            continue
        case = {"text": text}
        for name, patterns in PATTERNS.items():
            case[name] = split(text, patterns)
            if "".join(case[name]) != text:
                raise SystemExit(f"{name}: the pieces of {text!r} are not the text")
        if all(case[name] == split_by_tokenizers(text, patterns) for name, patterns in PATTERNS.items()):
            cases.append(case)
        else:
            left_out.append(text)
    print(f"left out, engines disagree: {left_out}", file=sys.stderr)
    write_json(args.out, {
        "about": "Pieces by the public regular expressions of four pre-tokenizers; fields: see the script's help.",
        "provenance": provenance(__file__, ["regex", "tokenizers"]),
        "patterns": PATTERNS,
        "cases": cases,
    }, 100_000)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    ids = kinds.add_parser("ids")
    ids.add_argument("model")
    ids.add_argument("out")
    ids.add_argument("--heldout", required=True)
    ids.add_argument("--lines", type=int, default=100, help="lines per book")
    ids.add_argument("--random", type=int, default=150, help="random Unicode texts")
    ids.add_argument("--cross-check", action="store_true")
    ids.set_defaults(make=make_ids)
    pieces = kinds.add_parser("pieces")
    pieces.add_argument("out")
    pieces.set_defaults(make=make_pieces)
    args = parser.parse_args()
    args.make(args)


if __name__ == "__main__":
    main()
