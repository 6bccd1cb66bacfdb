#!/usr/bin/env python3
"""Writes a GGUF model of random weights, to measure speed at a size that no small model has.

usage: make_synthetic.py OUT.gguf [--type q8_0 | q4_0 | bf16] [--layers 16] [--hidden 2048] [--inner 8192] [--heads 32]
                         [--kv-heads 8] [--vocab 49152] [--seed 1] [--chat-template TEXT]

The defaults are a llama of 1.07 * 10^9 parameters with tied embeddings. What it answers means nothing; scales are such
that activations keep their size from layer to layer. The vocabulary is the 256 bytes and made-up words, without merges.
"""
import argparse
import random
import struct
import sys

ALIGNMENT = 32
TYPES = {"bf16": (30, 1, 2), "q4_0": (2, 32, 18), "q8_0": (8, 32, 34)}  # GGUF id, elements and bytes of a block
U32, F32, STRING, ARRAY, I32 = 4, 6, 8, 9, 5


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def record(key, kind, value):
    """One metadata record; a list is an array of `kind`."""
    pack = {U32: lambda v: struct.pack("<I", v), I32: lambda v: struct.pack("<i", v), F32: lambda v: struct.pack("<f", v), STRING: string}[kind]
    if isinstance(value, list):
        return string(key) + struct.pack("<IIQ", ARRAY, kind, len(value)) + b"".join(map(pack, value))
    return string(key) + struct.pack("<I", kind) + pack(value)


def byte_pieces():
    """The 256 bytes as byte-level BPE spells them: printable ones as themselves, the others from U+0100 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spelled, other = {}, 256
    for b in range(256):
        if b in printable:
            spelled[b] = chr(b)
        else:
            spelled[b], other = chr(other), other + 1
    return [spelled[b] for b in range(256)]


def metadata(o):
    pieces = ["<|end|>", *byte_pieces()]
    pieces += [f"word{i}" for i in range(o.vocab - len(pieces))]
    return [
        record("general.architecture", STRING, "llama"), record("general.name", STRING, f"synthetic {o.type}"),
        record("general.alignment", U32, ALIGNMENT),
        record("llama.block_count", U32, o.layers), record("llama.context_length", U32, 8192),
        record("llama.embedding_length", U32, o.hidden), record("llama.feed_forward_length", U32, o.inner),
        record("llama.attention.head_count", U32, o.heads), record("llama.attention.head_count_kv", U32, o.kv_heads),
        record("llama.attention.layer_norm_rms_epsilon", F32, 1e-5), record("llama.rope.freq_base", F32, 500000.0),
        record("llama.rope.dimension_count", U32, o.hidden // o.heads), record("llama.vocab_size", U32, o.vocab),
        record("tokenizer.ggml.model", STRING, "gpt2"), record("tokenizer.ggml.pre", STRING, "gpt-2"),
        record("tokenizer.ggml.tokens", STRING, pieces), record("tokenizer.ggml.token_type", I32, [3] + [1] * (o.vocab - 1)),
        record("tokenizer.ggml.merges", STRING, []),
        record("tokenizer.ggml.bos_token_id", U32, 0), record("tokenizer.ggml.eos_token_id", U32, 0),
        *([record("tokenizer.chat_template", STRING, o.chat_template)] if o.chat_template else [])]


def tensors(o):
    """(name, (columns, rows) or (columns,), GGUF type, blocks, bytes a block)."""
    kv = o.hidden // o.heads * o.kv_heads
    kind, per, size = TYPES[o.type]

    def matrix(name, rows, columns):
        if columns % per:
            sys.exit(f"make_synthetic: {name} has {columns} columns, {o.type} needs a multiple of {per}")
        return name, (columns, rows), kind, rows * columns // per, size

    def vector(name):
        return name, (o.hidden,), 0, o.hidden, 4
    yield matrix("token_embd.weight", o.vocab, o.hidden)
    yield vector("output_norm.weight")
    for i in range(o.layers):
        at = f"blk.{i}."
        yield vector(at + "attn_norm.weight")
        yield vector(at + "ffn_norm.weight")
        for name, rows, columns in (("attn_q", o.hidden, o.hidden), ("attn_k", kv, o.hidden), ("attn_v", kv, o.hidden),
                                    ("attn_output", o.hidden, o.hidden), ("ffn_gate", o.inner, o.hidden),
                                    ("ffn_up", o.inner, o.hidden), ("ffn_down", o.hidden, o.inner)):
            yield matrix(f"{at}{name}.weight", rows, columns)


def content(o, columns, kind, blocks, size, source):
    """Bytes of one tensor, in pieces. Weights are uniform with deviation about 1 / sqrt(columns)."""
    if kind == 0:
        yield struct.pack("<f", 1.0) * blocks
        return
    peak = 1.7 / columns ** 0.5
    scale = struct.pack("<e", peak / (127 if o.type == "q8_0" else 8))
    step = 1 << 14
    for first in range(0, blocks, step):
        n = min(step, blocks - first)
        data = bytearray(source.randbytes(n * size))
        if o.type == "bf16":
            high = struct.unpack("<I", struct.pack("<f", peak))[0] >> 16
            data[1::2] = bytes((b & 0x80) | (high >> 8) - (b & 1) for b in data[1::2])
        else:
            data[0::size], data[1::size] = scale[:1] * n, scale[1:] * n
        yield bytes(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--type", choices=TYPES, default="q8_0")
    for name, default in (("layers", 16), ("hidden", 2048), ("inner", 8192), ("heads", 32), ("kv-heads", 8), ("vocab", 49152), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--chat-template", help="a Jinja template to put into the file")
    o = parser.parse_args()
    if min(o.layers, o.hidden, o.inner, o.heads, o.kv_heads) < 1 or o.hidden % o.heads or o.heads % o.kv_heads or o.vocab < 257:
        parser.error("sizes are 1 or more, heads divides hidden, kv-heads divides heads, vocab is 257 or more")
    all_tensors, records = list(tensors(o)), metadata(o)
    header = b"GGUF" + struct.pack("<IQQ", 3, len(all_tensors), len(records)) + b"".join(records)
    at = 0
    for name, dims, kind, blocks, size in all_tensors:
        header += string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, at)
        at += -(-blocks * size // ALIGNMENT) * ALIGNMENT
    source = random.Random(o.seed)
    with open(o.out, "wb") as file:
        file.write(header + bytes(-len(header) % ALIGNMENT))
        for _, dims, kind, blocks, size in all_tensors:
            for data in content(o, dims[0], kind, blocks, size, source):
                file.write(data)
            file.write(bytes(-(blocks * size) % ALIGNMENT))
    parameters = sum(d[0] * (d[1] if len(d) > 1 else 1) for _, d, _, _, _ in all_tensors)
    print(f"{o.out}: {parameters / 1e9:.2f} * 10^9 parameters, {at / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
