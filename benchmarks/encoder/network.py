"""all-MiniLM-L6-v2 in torch, from its int8 ONNX file, with only scales, shifts and layer norms to be learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor
from torch.nn import functional

from callsheet.retrievers.index.embedding import DIMENSION, shared_tokenizer

LAYERS, HEADS, EPSILON = 6, 12, 1e-12
MATRICES = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "mixed": "attention.output.dense",
    "wide": "intermediate.dense",
    "narrow": "output.dense",
}
_NORMS = ("attention.output.LayerNorm", "output.LayerNorm")
_TOKENS = 80


class Encoder(torch.nn.Module):
    """The published model. What is learned are vectors: per output of a matrix a scale and a shift (SSF).

    Source: Lian et al., Scaling & Shifting Your Features (NeurIPS 2022): y = scale * (x W) + shift. The scale of an
    output is the one that dequantizes its column, so neither the int8 weights nor the cost of a pass change.
    """

    def __init__(self, model: Path) -> None:
        super().__init__()
        tensors = {i.name: numpy_helper.to_array(i) for i in onnx.load(model).graph.initializer}
        self.names: dict[str, str] = {}
        numbers = sorted(int(n[4:-2]) for n in tensors if n.startswith("val_") and n.endswith("_q"))
        for i, number in enumerate(numbers):
            layer, kind = divmod(i, len(MATRICES))
            self._keep(f"weight-{layer}-{list(MATRICES)[kind]}", tensors[f"val_{number}_q"])
            self._learn(f"scale-{layer}-{list(MATRICES)[kind]}", f"val_{number}_scale", tensors)
        for layer in range(LAYERS):
            for kind, path in MATRICES.items():
                self._learn(f"shift-{layer}-{kind}", f"inner.encoder.layer.{layer}.{path}.bias", tensors)
            for i, path in enumerate(_NORMS):
                self._norm(f"{layer}-{i}", f"inner.encoder.layer.{layer}.{path}", tensors)
        self._norm("embeddings", "inner.embeddings.LayerNorm", tensors)
        for kind in ("word", "position"):
            table = f"inner.embeddings.{kind}_embeddings.weight"
            self._keep(kind, tensors[f"{table}_q"] * tensors[f"{table}_scale"])
        self._keep("segment", tensors["inner.embeddings.token_type_embeddings.weight"][0])
        self._tokenizer = shared_tokenizer(_TOKENS)

    def _keep(self, name: str, values: np.ndarray) -> None:
        self.register_buffer(name, torch.tensor(values.astype(np.float32)))

    def _learn(self, name: str, tensor: str, tensors: Mapping[str, np.ndarray]) -> None:
        self.names[name] = tensor
        first = torch.tensor(tensors[tensor].astype(np.float32))
        self.register_buffer(f"first-{name}", first)
        self.register_parameter(name, torch.nn.Parameter(torch.ones_like(first) if "scale" in name else first.clone()))

    def _norm(self, name: str, tensor: str, tensors: Mapping[str, np.ndarray]) -> None:
        self._learn(f"gain-{name}", f"{tensor}.weight", tensors)
        self._learn(f"bias-{name}", f"{tensor}.bias", tensors)

    def __getitem__(self, name: str) -> Tensor:
        found: Tensor = getattr(self, name)
        return found

    def learned(self) -> dict[str, np.ndarray]:
        """Each tensor of the ONNX file that is learned, as it would replace the published one."""
        values = {name: self[name].detach() for name in self.names}
        return {
            self.names[name]: (value * self[f"first-{name}"] if "scale" in name else value).numpy()
            for name, value in values.items()
        }

    def states(self, ids: Tensor, mask: Tensor) -> Tensor:
        """The states of all tokens, ``(n, t, 384)``, of ids and mask ``(n, t)``."""
        rows, length = ids.shape
        x = self._normal(
            functional.embedding(ids, self["word"]) + self["position"][:length] + self["segment"], "embeddings"
        )
        bias = (1 - mask[:, None, None, :].float()) * -1e4
        for layer in range(LAYERS):
            heads = [
                self._linear(x, f"{layer}-{kind}").view(rows, length, HEADS, -1).transpose(1, 2)
                for kind in ("query", "key", "value")
            ]
            mixed = functional.scaled_dot_product_attention(*heads, attn_mask=bias.to(heads[0].dtype))
            mixed = mixed.transpose(1, 2).reshape(rows, length, DIMENSION)
            x = self._normal(x + self._linear(mixed, f"{layer}-mixed"), f"{layer}-0")
            wide = functional.gelu(self._linear(x, f"{layer}-wide"))
            x = self._normal(x + self._linear(wide, f"{layer}-narrow"), f"{layer}-1")
        return x

    def _linear(self, x: Tensor, name: str) -> Tensor:
        scale = self[f"scale-{name}"] * self[f"first-scale-{name}"]
        return (x @ self[f"weight-{name}"]) * scale + self[f"shift-{name}"]

    def _normal(self, x: Tensor, name: str) -> Tensor:
        return functional.layer_norm(x, (DIMENSION,), self[f"gain-{name}"], self[f"bias-{name}"], EPSILON)

    def forward(self, texts: Sequence[str], spans: Sequence[tuple[int, int] | None] = ()) -> Tensor:
        """One unit vector a text, ``(n, 384)``: the mean of its token states, or of those inside a span."""
        encodings = self._tokenizer.encode_batch([text or " " for text in texts])
        length = max(len(encoding.ids) for encoding in encodings)
        ids, mask, counted = (torch.zeros(len(texts), length, dtype=torch.long) for _ in range(3))
        for row, encoding in enumerate(encodings):
            size = len(encoding.ids)
            ids[row, :size], mask[row, :size], counted[row, :size] = torch.tensor(encoding.ids), 1, 1
            if spans and (span := spans[row]):
                inside = [a < b and span[0] <= a and b <= span[1] for a, b in encoding.offsets]
                if any(inside):
                    counted[row, :size] = torch.tensor(inside)
        with torch.autocast("cpu", torch.bfloat16):
            states = self.states(ids, mask).float()
        weights = counted[..., None].float()
        return functional.normalize((states * weights).sum(1) / weights.sum(1), dim=-1)
