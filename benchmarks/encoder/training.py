"""Contrastive training over requests and the texts that represent tools and agents in the index."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch.nn import functional

from benchmarks.encoder.network import Encoder
from benchmarks.encoder.pairs import BATCH, Pair, Pairs
from benchmarks.encoder.source import Source

TEMPERATURE, RATE, DECAY = 0.05, 1e-3, 0.98


def encoded(model: Encoder, texts: Sequence[str]) -> torch.Tensor:
    """One unit vector a text, in order; texts of about one length share a batch."""
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    vectors = torch.cat([model([texts[i] for i in order[a : a + BATCH]]) for a in range(0, len(order), BATCH)])
    return vectors[torch.argsort(torch.tensor(order))]


def loss(model: Encoder, pairs: Sequence[Pair]) -> torch.Tensor:
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


def train(
    model: Encoder, sources: Sequence[tuple[Source, float]], *, steps: int, seed: int, say: Callable[[str], None]
) -> None:
    """Trains in place; what stays is the moving average of the parameters."""
    torch.manual_seed(seed)
    pairs = Pairs(sources, seed)
    parameters = dict(model.named_parameters())
    average = {name: value.detach().clone() for name, value in parameters.items()}
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
