"""A second opinion: llama and gemma3 forward passes in float64, written from the GGUF tensors.

It shares no code with transformers: the weights come from gguf.dequantize, the hyper-parameters from the file's own
keys, the rotary pairs from the file's layout (llama: neighbours 2i, 2i+1; gemma3: halves i, i + head_dim/2), gemma's
norm weights as stored (the file already holds 1 + w). One pass over the whole sequence, no KV cache.
"""

import gguf
import numpy as np
import torch

ROPE_BASE_LOCAL = 10000.0  # gemma3 sliding layers where the file does not name rope.freq_base_swa
GLOBAL_EVERY = 6           # gemma3: layers 5, 11, 17 ... attend to everything


class Float64Model:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.tensors = {t.name: t for t in reader.tensors}
        self.cache = {}
        self.arch = reader.fields["general.architecture"].contents()
        key = lambda name, default=None: (
            reader.fields[f"{self.arch}.{name}"].contents() if f"{self.arch}.{name}" in reader.fields else default)
        self.layers = key("block_count")
        self.hidden = key("embedding_length")
        self.heads = key("attention.head_count")
        self.kv_heads = key("attention.head_count_kv")
        self.head_dim = key("attention.key_length", self.hidden // self.heads)
        self.eps = key("attention.layer_norm_rms_epsilon")
        self.rope_base = key("rope.freq_base")
        self.rope_base_local = key("rope.freq_base_swa", ROPE_BASE_LOCAL)
        self.window = key("attention.sliding_window", 0)
        self.gemma = self.arch == "gemma3"
        if self.arch not in ("llama", "gemma3"):
            raise SystemExit(f"general.architecture = {self.arch!r}: expected llama or gemma3")

    def weight(self, name):
        """Dequantized tensor, outermost dimension first, float64."""
        if name not in self.cache:
            t = self.tensors[name]
            self.cache[name] = torch.from_numpy(gguf.dequantize(t.data, t.tensor_type).astype(np.float64))
        return self.cache[name]

    def norm(self, x, name):
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + self.eps) * self.weight(name)

    def rope(self, x, base):
        """x [tokens, heads, head_dim]."""
        half = self.head_dim // 2
        angle = torch.outer(torch.arange(x.shape[0], dtype=torch.float64),
                            base ** (-torch.arange(half, dtype=torch.float64) / half))[:, None, :]
        cos, sin = torch.cos(angle), torch.sin(angle)
        if self.gemma:
            a, b = x[..., :half], x[..., half:]
            return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)

    def attention(self, x, layer):
        tokens = x.shape[0]
        name = f"blk.{layer}."
        is_local = self.gemma and (layer + 1) % GLOBAL_EVERY != 0
        q = (x @ self.weight(name + "attn_q.weight").T).view(tokens, self.heads, self.head_dim)
        k = (x @ self.weight(name + "attn_k.weight").T).view(tokens, self.kv_heads, self.head_dim)
        v = (x @ self.weight(name + "attn_v.weight").T).view(tokens, self.kv_heads, self.head_dim)
        if self.gemma:
            q, k = self.norm(q, name + "attn_q_norm.weight"), self.norm(k, name + "attn_k_norm.weight")
        base = self.rope_base_local if is_local else self.rope_base
        q, k = self.rope(q, base), self.rope(k, base)
        group = self.heads // self.kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scores = torch.einsum("qhd,khd->hqk", q, k) * self.head_dim ** -0.5
        distance = torch.arange(tokens)[:, None] - torch.arange(tokens)[None, :]
        hidden = (distance < 0) | (distance >= self.window) if is_local else distance < 0
        scores = scores.masked_fill(hidden, -torch.inf)
        mixed = torch.einsum("hqk,khd->qhd", torch.softmax(scores, -1), v).reshape(tokens, -1)
        return mixed @ self.weight(name + "attn_output.weight").T

    def mlp(self, x, layer):
        name = f"blk.{layer}."
        gate = x @ self.weight(name + "ffn_gate.weight").T
        act = torch.nn.functional.gelu(gate, approximate="tanh") if self.gemma else torch.nn.functional.silu(gate)
        return (act * (x @ self.weight(name + "ffn_up.weight").T)) @ self.weight(name + "ffn_down.weight").T

    @torch.no_grad()
    def residuals(self, ids):
        """The residual stream [tokens, hidden] after the embedding and after each layer."""
        x = self.weight("token_embd.weight")[torch.tensor(ids)]
        if self.gemma:
            x = x * self.hidden ** 0.5
        stream = [x]
        for layer in range(self.layers):
            name = f"blk.{layer}."
            y = self.attention(self.norm(x, name + "attn_norm.weight"), layer)
            x = x + (self.norm(y, name + "post_attention_norm.weight") if self.gemma else y)
            y = self.mlp(self.norm(x, name + "ffn_norm.weight"), layer)
            x = x + (self.norm(y, name + "post_ffw_norm.weight") if self.gemma else y)
            stream.append(x)
        return stream

    @torch.no_grad()
    def logits(self, ids, first):
        """Logits [len(ids) - first, vocab] of positions first and later."""
        x = self.norm(self.residuals(ids)[-1][first:], "output_norm.weight")
        head = "output.weight" if "output.weight" in self.tensors else "token_embd.weight"
        return x @ self.weight(head).T
