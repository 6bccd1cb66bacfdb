#!/usr/bin/env python3
"""Greedy-token goldens: transformers in float32 on dequantized weights, checked against a float64 second opinion.

usage: make_tokens.py MODEL OUT.json --heldout DIR [--prompts N] [--tokens N] [--only NAME]
  MODEL      a .gguf file (llama or gemma3), or a Hugging Face directory (config.json, safetensors, tokenizer.json)
  --heldout  directory with kjv.txt and jargon.txt, public-domain texts that prompts are cut from
  --only     makes this prompt alone and puts it into an OUT.json that is there
needs: pip install torch transformers accelerate gguf tokenizers sentencepiece protobuf numpy

In OUT.json, for each prompt: the text, its ids (as fed, BOS included), the greedy ids; `top2_ids`, `top2_logits` per
step; `first` and `last`: logits at `vocabulary_ids` and logsumexp of that step; `gap_min`; `float64_max_abs_dlogit`:
largest |float32 - float64| over all steps and the whole vocabulary. A step whose top two logits are closer than
twice that is listed in `near_ties`: there the second token is as right as the first, and a longer comparison must
feed the golden ids instead of its own. `ids_hash` guards the ids: SHA-256 of their decimal text joined by ",".
"""

import argparse
import hashlib
import json
import os
import sys

import torch
from common import GgufTokenizer, provenance, write_json
from float64_model import Float64Model
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

import gguf

CODE = '''import os


def count_lines(paths):
    """Return the number of lines in each file."""
    counts = {}
    for path in paths:
'''
HERE = os.path.dirname(os.path.abspath(__file__))
VOCABULARY_SAMPLES = 64
TEACHER_TOKENS = 256
MAX_BYTES = 400_000
LAYER_VALUES = 8


def read_part(directory, name, start, chars):
    with open(os.path.join(directory, name), encoding="utf-8") as file:
        return file.read()[start:start + chars]


def prompts_for(family, heldout):
    """(name, text, parse_special): what each prompt is there to catch is in its name."""
    chat = {
        "smollm2": "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
                   "<|im_start|>user\nWhat is the capital of France, and why is it famous?<|im_end|>\n"
                   "<|im_start|>assistant\n",
        "gemma3": "<start_of_turn>user\nWhat is the capital of France, and why is it famous?<end_of_turn>\n"
                  "<start_of_turn>model\n",
    }.get(family)
    prompts = [
        ("short", "Gravity is", False),
        ("code", CODE, False),
        ("languages", "Paris est la capitale de la France. Берлин — столица Германии. 東京は日本の首都です。 "
                      "القاهرة هي عاصمة مصر. Madrid es la capital de", False),
        ("numbers", "1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144,", False),
        ("repeated", "la " * 60 + "la", False),
        ("one_token", "Once", False),
        ("long_verse", read_part(heldout, "kjv.txt", 20000, 2800), False),
        ("long_code", read_part(HERE, "sample_code.txt", 0, 2600), False),
        ("emoji", "Reactions: 👍🏽 👩‍💻 🎉 Café — naïve résumé; ½ cup + ¼ tsp =", False),
        ("prose", "The old lighthouse keeper climbed the stairs every evening to light the lamp. One night, however,",
         False),
    ]
    if chat:
        prompts.insert(1, ("chat", chat, True))
    return prompts


class HubTokenizer:
    """tokenizer.json of a Hugging Face directory, without added BOS."""

    def __init__(self, directory):
        self.tokenizer = Tokenizer.from_file(os.path.join(directory, "tokenizer.json"))
        self.add_bos = False

    def prompt_ids(self, text, parse_special=False):
        return self.tokenizer.encode(text, add_special_tokens=False).ids


class HubDouble:
    """The same transformers model in float64 (its norms and rotary tables stay float32)."""

    def __init__(self, model_dir):
        self.model = AutoModelForCausalLM.from_pretrained(
            model_dir, dtype=torch.float64, attn_implementation="eager",
            experts_implementation="eager").eval()  # the grouped product of experts has no float64

    @torch.no_grad()
    def logits(self, ids, first):
        return self.model(torch.tensor([ids])).logits[0, first:].double()


def check_weights(model, path):
    """The weights that transformers made must be gguf's own dequantized ones, tensor by tensor, bit by bit."""
    reader = gguf.GGUFReader(path)
    tensors = {t.name: t for t in reader.tensors}
    names = dict(model.named_parameters())
    gemma = reader.fields["general.architecture"].contents() == "gemma3"
    heads, kv_heads = model.config.num_attention_heads, model.config.num_key_value_heads
    middle = model.config.num_hidden_layers // 2
    pairs = [("model.embed_tokens.weight", "token_embd.weight", 0), ("model.norm.weight", "output_norm.weight", 0)]
    for layer in (0, middle, model.config.num_hidden_layers - 1):
        here, there = f"model.layers.{layer}.", f"blk.{layer}."
        pairs += [(here + "self_attn.q_proj.weight", there + "attn_q.weight", heads),
                  (here + "self_attn.k_proj.weight", there + "attn_k.weight", kv_heads),
                  (here + "self_attn.v_proj.weight", there + "attn_v.weight", 0),
                  (here + "self_attn.o_proj.weight", there + "attn_output.weight", 0),
                  (here + "mlp.gate_proj.weight", there + "ffn_gate.weight", 0),
                  (here + "mlp.down_proj.weight", there + "ffn_down.weight", 0),
                  (here + "input_layernorm.weight", there + "attn_norm.weight", 0)]
    for ours, theirs, rotary_heads in pairs:
        want = torch.from_numpy(gguf.dequantize(tensors[theirs].data, tensors[theirs].tensor_type).copy())
        if rotary_heads and not gemma:  # llama files keep rotary pairs as neighbours; transformers wants halves
            rows, columns = want.shape
            half = rows // rotary_heads // 2
            want = want.view(rotary_heads, half, 2, columns).transpose(1, 2).reshape(rows, columns)
        if gemma and "norm" in ours:  # the file holds 1 + w, transformers w
            want = want - 1
        if not torch.equal(names[ours].detach(), want):
            raise SystemExit(f"{theirs}: transformers' dequantized {ours} is not gguf's: cannot be an oracle")
    return [theirs for _, theirs, _ in pairs]


def check_config(config, float64):
    """The hyper-parameters that transformers took must be the file's own."""
    rope = config.rope_parameters
    taken = {"layers": config.num_hidden_layers, "hidden": config.hidden_size, "heads": config.num_attention_heads,
             "kv_heads": config.num_key_value_heads, "head_dim": config.head_dim, "eps": config.rms_norm_eps}
    if float64.gemma:
        taken |= {"window": config.sliding_window, "rope_base": rope["full_attention"]["rope_theta"],
                  "rope_base_local": rope["sliding_attention"]["rope_theta"]}
        kinds = ["full_attention" if (i + 1) % 6 == 0 else "sliding_attention" for i in range(float64.layers)]
        if config.layer_types != kinds or config.query_pre_attn_scalar != float64.head_dim:
            raise SystemExit("gemma3: layer kinds or query scale are not the ones expected")
    else:
        taken["rope_base"] = rope["rope_theta"]
    for name, value in taken.items():
        if value != getattr(float64, name):
            raise SystemExit(f"{name}: transformers took {value}, the file says {getattr(float64, name)}")
    if not config.tie_word_embeddings:
        raise SystemExit("expected tied embeddings")
    return taken


@torch.no_grad()
def greedy(model, ids, tokens):
    """Generated ids and their float32 logits [tokens, vocab]; argmax takes the lowest id on ties."""
    cache, feed, out, rows = None, torch.tensor([ids]), [], []
    for _ in range(tokens):
        result = model(feed, past_key_values=cache, use_cache=True, logits_to_keep=1)
        cache = result.past_key_values
        row = result.logits[0, -1].float()
        best = int((row == row.max()).nonzero()[0])
        out.append(best)
        rows.append(row)
        feed = torch.tensor([[best]])
    return out, torch.stack(rows)


def number(x):
    return float(f"{float(x):.9g}")  # nine digits give a float32 back exactly


def numbers(xs):
    return [number(x) for x in xs]


def step_row(row, vocabulary_ids):
    return {"logits": numbers(row[vocabulary_ids]), "logsumexp": number(torch.logsumexp(row.double(), -1))}


def golden(model, float64, ids, tokens, vocabulary_ids):
    out, rows = greedy(model, ids, tokens)
    second = float64.logits(ids + out[:-1], len(ids) - 1)
    error = float((rows.double() - second).abs().max())
    top = torch.topk(rows, 2, dim=-1)
    gaps = top.values[:, 0] - top.values[:, 1]
    near = [i for i in range(tokens) if float(gaps[i]) < 2 * error]
    wrong = [i for i in range(tokens) if int(second[i].argmax()) != out[i] and i not in near]
    if wrong:
        raise SystemExit(f"float64 prefers other tokens at steps {wrong}, not near ties: the oracle is wrong")
    if error > 0.02:
        raise SystemExit(f"float32 and float64 differ by {error}: the two forward passes are not the same model")
    return {
        "generated_ids": out,
        "top2_ids": top.indices.tolist(),
        "top2_logits": [numbers(v) for v in top.values],
        "first": step_row(rows[0], vocabulary_ids),
        "last": step_row(rows[-1], vocabulary_ids),
        "gap_min": number(gaps.min()),
        "near_ties": near,
        "float64_max_abs_dlogit": number(error),
        "ids_hash": hashlib.sha256(",".join(map(str, ids + out)).encode()).hexdigest(),
    }


@torch.no_grad()
def teacher_forced(model, float64, ids):
    """Logits of every position of a held-out text: what a quantized path is compared on."""
    rows = model(torch.tensor([ids])).logits[0].float()
    error = float((rows.double() - float64.logits(ids, 0)).abs().max())
    logsumexp = torch.logsumexp(rows.double(), -1)
    following = rows[:-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
    return {
        "ids": ids,
        "argmax": rows.argmax(-1).tolist(),
        "argmax_logit": numbers(rows.max(-1).values),
        "next_logit": numbers(following),
        "logsumexp": numbers(logsumexp),
        "mean_nll": number((logsumexp[:-1] - following.double()).mean()),
        "float64_max_abs_dlogit": number(error),
    }


def layer_trace(float64, ids):
    """Residual stream of the last position after the embedding and each layer: names the first layer that is wrong."""
    return [{"l2": number(x[-1].norm()), "values": numbers(x[-1][:LAYER_VALUES])} for x in float64.residuals(ids)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("out")
    parser.add_argument("--heldout", required=True)
    parser.add_argument("--prompts", type=int, default=99, help="at most this many, the first ones")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--only", metavar="NAME")
    args = parser.parse_args()

    is_gguf = args.model.endswith(".gguf")
    options = {"dtype": torch.float32, "attn_implementation": "eager"}
    if is_gguf:
        directory, name = os.path.split(os.path.abspath(args.model))
        model = AutoModelForCausalLM.from_pretrained(directory, gguf_file=name, **options).eval()
        tokenizer, float64 = GgufTokenizer(args.model), Float64Model(args.model)
        family = "gemma3" if float64.gemma else "smollm2"
        checks = {"config": check_config(model.config, float64), "weights_equal": check_weights(model, args.model)}
        inputs = [args.model]
    else:
        model = AutoModelForCausalLM.from_pretrained(args.model, **options).eval()
        tokenizer, float64, family, checks = HubTokenizer(args.model), HubDouble(args.model), "plain", {}
        inputs = [os.path.join(args.model, f) for f in sorted(os.listdir(args.model))
                  if f.endswith((".safetensors", "config.json", "tokenizer.json"))]

    vocab = model.config.vocab_size
    vocabulary_ids = [i * vocab // VOCABULARY_SAMPLES + i % 7 for i in range(VOCABULARY_SAMPLES)]
    rows = []
    for name, text, special in prompts_for(family, args.heldout)[:args.prompts]:
        if args.only and name != args.only:
            continue
        ids = tokenizer.prompt_ids(text, special)
        row = golden(model, float64, ids, args.tokens, vocabulary_ids)
        rows.append({"name": name, "text": text, "parse_special": special, "prompt_ids": ids} | row)
        print(f"{name}: {len(ids)} prompt tokens, error {row['float64_max_abs_dlogit']:.2g}, least gap "
              f"{row['gap_min']:.2g}, near ties {row['near_ties']}", file=sys.stderr)
    if args.only:
        with open(args.out, encoding="ascii") as file:
            value = json.load(file)
        value["prompts"] = [rows[0] if old["name"] == args.only else old for old in value["prompts"]]
        value["float64_max_abs_dlogit"] = max(r["float64_max_abs_dlogit"] for r in value["prompts"])
        return write_json(args.out, value, MAX_BYTES)
    held = tokenizer.prompt_ids(read_part(args.heldout, "jargon.txt", 4000, 3000))[:TEACHER_TOKENS]
    value = {
        "about": "Greedy tokens of transformers in float32, eager attention; fields: see the script's help.",
        "provenance": provenance(__file__, ["torch", "transformers", "gguf", "tokenizers", "sentencepiece", "numpy"],
                                 inputs),
        "checks": checks,
        "float64_max_abs_dlogit": max(r["float64_max_abs_dlogit"] for r in rows),
        "vocabulary_ids": vocabulary_ids,
        "prompts": rows,
        "teacher_forced": teacher_forced(model, float64, held),
    }
    if is_gguf:
        short = tokenizer.prompt_ids("Gravity is")
        value |= {"layer_trace_ids": short, "layer_trace": layer_trace(float64, short)}
    write_json(args.out, value, MAX_BYTES)


if __name__ == "__main__":
    main()
