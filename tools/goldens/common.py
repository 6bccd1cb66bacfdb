"""Shared by the golden makers: provenance, GGUF tokenizers, JSON output.

Packages (all public): gguf, numpy, tokenizers, sentencepiece, protobuf; make_tokens.py also torch and transformers.
"""

import hashlib
import importlib.metadata
import json
import os
import re
import sys

import gguf
import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as sp_proto
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

NORMAL, CONTROL, USER_DEFINED, BYTE = 1, 3, 4, 6  # tokenizer.ggml.token_type


def byte_of_char():
    """GPT-2's alphabet: printable Latin-1 stands for itself, the other bytes for U+0100 and up, in order."""
    printable = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    rest = [b for b in range(256) if b not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(rest)}


BYTE_OF_CHAR = byte_of_char()


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def provenance(script, packages, inputs=()):
    """What made a golden: script, Python and package versions, and size and SHA-256 of each input file."""
    return {
        "script": "tools/goldens/" + os.path.basename(script),
        "python": ".".join(map(str, sys.version_info[:3])),
        "packages": {name: importlib.metadata.version(name) for name in packages},
        "inputs": [
            {"file": os.path.basename(p), "bytes": os.path.getsize(p), "sha256": sha256(p)} for p in inputs
        ],
    }


def write_json(path, value, limit_bytes):
    """Writes one item per line of the top-level lists of objects, so that a regenerated golden gives a readable diff."""
    parts = []
    for key, item in value.items():
        if isinstance(item, list) and item and isinstance(item[0], (dict, list)):
            rows = ",\n".join("  " + json.dumps(x, ensure_ascii=True) for x in item)
            parts.append(f" {json.dumps(key)}: [\n{rows}\n ]")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(item, ensure_ascii=True)}")
    text = "{\n" + ",\n".join(parts) + "\n}\n"
    if len(text) > limit_bytes:
        raise SystemExit(f"{path}: {len(text)} bytes, above the limit of {limit_bytes}: use fewer cases")
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    print(f"{path}: {len(text)} bytes", file=sys.stderr)


class GgufTokenizer:
    """Tokenizer of a GGUF file, rebuilt from its vocabulary; encode() never adds BOS by itself.

    gpt2 + smollm: byte-level BPE as `tokenizers` runs it, digits apart (\\p{N} one by one) before the GPT-2 regex.
    llama: a SentencePiece BPE model with byte fallback, without dummy prefix; user-defined pieces match first.
    """

    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        get = lambda name: reader.fields["tokenizer.ggml." + name].contents()
        self.tokens, self.types = get("tokens"), get("token_type")
        self.kind = get("model")
        template = reader.fields.get("tokenizer.chat_template")
        self.template = template.contents() if template else None
        self.bos = get("bos_token_id")
        self.eos = get("eos_token_id")
        self.add_bos = bool(get("add_bos_token"))
        if self.kind == "gpt2":
            self._open_bpe(get("merges"), get("pre"))
        elif self.kind == "llama":
            self._open_sentencepiece(get("scores"), bool(get("add_space_prefix")))
        else:
            raise SystemExit(f"tokenizer.ggml.model = {self.kind!r}: expected gpt2 or llama")

    def _open_bpe(self, merges, pre):
        if pre != "smollm":
            raise SystemExit(f"tokenizer.ggml.pre = {pre!r}: expected smollm")
        vocab = {token: i for i, token in enumerate(self.tokens)}

        def make():
            tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[tuple(m.split(" ")) for m in merges]))
            tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
            ])
            tokenizer.decoder = decoders.ByteLevel()
            return tokenizer

        plain, special = make(), make()
        special.add_special_tokens([
            AddedToken(self.tokens[i], normalized=False, special=True)
            for i, kind in enumerate(self.types) if kind == CONTROL
        ])
        self._plain = lambda text: plain.encode(text, add_special_tokens=False).ids
        self._special = lambda text: special.encode(text, add_special_tokens=False).ids

    def _open_sentencepiece(self, scores, add_space_prefix):
        proto = sp_proto.ModelProto()
        proto.trainer_spec.model_type = sp_proto.TrainerSpec.BPE
        proto.trainer_spec.byte_fallback = True
        proto.trainer_spec.vocab_size = len(self.tokens)
        proto.trainer_spec.unk_piece = "<unk>"
        proto.normalizer_spec.name = "identity"
        proto.normalizer_spec.add_dummy_prefix = add_space_prefix
        proto.normalizer_spec.remove_extra_whitespaces = False
        proto.normalizer_spec.escape_whitespaces = True
        kinds = sp_proto.ModelProto.SentencePiece
        for token, kind, score in zip(self.tokens, self.types, scores):
            piece = proto.pieces.add()
            # The file holds user-defined pieces unescaped; SentencePiece compares after escaping spaces.
            piece.piece = token.replace(" ", "\u2581") if kind == USER_DEFINED else token
            piece.score = score
            # The enumeration of GGUF is SentencePiece's, except that conversion to GGUF calls <unk> a control token.
            piece.type = kinds.UNKNOWN if token == "<unk>" else kind
        processor = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
        self._plain = lambda text: processor.encode(text, out_type=int)

        control = {t: i for i, (t, kind) in enumerate(zip(self.tokens, self.types)) if kind == CONTROL}
        pattern = re.compile("(" + "|".join(map(re.escape, sorted(control, key=len, reverse=True))) + ")")

        def parse(text):
            ids = []
            for part in pattern.split(text):
                ids += [control[part]] if part in control else self._plain(part) if part else []
            return ids

        self._special = parse

    def encode(self, text, parse_special=False):
        return list((self._special if parse_special else self._plain)(text))

    def prompt_ids(self, text, parse_special=False):
        """As the engine feeds a prompt: BOS first where the file asks for it."""
        return ([self.bos] if self.add_bos else []) + self.encode(text, parse_special)

    def decode(self, ids):
        """Bytes of the ids, special tokens as their text."""
        out = bytearray()
        for i in ids:
            token, kind = self.tokens[i], self.types[i]
            if self.kind == "gpt2" and kind != CONTROL:
                out += bytes(BYTE_OF_CHAR[c] for c in token)
            elif kind == BYTE:
                out.append(int(token[3:5], 16))
            else:
                out += (token.replace("\u2581", " ") if kind == NORMAL else token).encode()
        return bytes(out)

    def missing_bytes(self):
        """Bytes that no token stands for: the BPE model drops them (it names no unknown token)."""
        if self.kind != "gpt2":
            return []
        known = set(self.tokens)
        return sorted(b for c, b in BYTE_OF_CHAR.items() if c not in known)
