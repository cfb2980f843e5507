"""How sure it is that a tool has, or a request asks for, a capability."""

from __future__ import annotations

import os
from math import exp
from pathlib import Path

import numpy as np
import pytest

from callsheet.graphs import Agent, Catalog, Taxonomy, Tool, default_taxonomy, shipped_taxonomy
from callsheet.graphs.capabilities.taxonomy import SHIPPED
from callsheet.retrievers import AgentGraphRetriever, MiniLMEmbeddings, nodes_of
from callsheet.retrievers.capabilities import CapabilityIndex, capability_index
from callsheet.retrievers.capabilities.capability_index import Signs, confidence
from known import Known, WordVectors, capability, taxonomy_of
from scripted import Scripted, catalog_of

CATALOG = catalog_of(a_x="", a_y="", b_z="")


def indexed(catalog: Catalog, taxonomy: Taxonomy, said: dict[str, dict[str, float]]) -> CapabilityIndex:
    """Phrase -> node -> cosine, as a test wrote it down."""
    nodes = nodes_of(catalog)
    vectors = Scripted(nodes, {}, said)
    return CapabilityIndex(catalog, vectors, [n.id for n in nodes], taxonomy, embeddings=WordVectors("fly", "swim"))


def test_confidence_is_logistic_in_the_fit_and_the_distance_behind_the_best() -> None:
    found = confidence(np.array([[0.5, 0.4]], np.float32))[0]
    assert found[0] == pytest.approx(1 / (1 + exp(4.3 - 12.4 * 0.5)), abs=1e-5)
    assert found[1] == pytest.approx(1 / (1 + exp(4.3 - 12.4 * 0.4 + 11.8 * 0.1)), abs=1e-5)


def test_a_fit_is_half_the_best_phrase_and_half_the_mean_of_all() -> None:
    phrases = {"fly one": {"a/x": 0.9}, "fly two": {"a/x": 0.3}, "fly three": {}}
    index = indexed(CATALOG, taxonomy_of("fly"), phrases)
    fit = (0.9 + (0.9 + 0.3 + 0) / 3) / 2
    assert index.of_tools[index.rows["a/x"], 0] == pytest.approx(1 / (1 + exp(4.3 - 12.4 * fit)), abs=1e-5)


def test_agents_have_no_capability() -> None:
    index = indexed(CATALOG, taxonomy_of("fly"), {"fly one": {"a": 1.0, "a/x": 1.0}})
    assert index.of_tools[index.rows["a"]].tolist() == [0.0]


def test_a_declared_capability_counts_one_and_a_broad_one_includes_all_below() -> None:
    tools = tuple(
        Tool(agent="a", name=name, capabilities=names)
        for name, names in (("x", ("swim",)), ("y", ("do",)), ("z", ("dance", "fly")))
    )
    catalog = Catalog(agents=(Agent(id="a", tools=tools),))
    index = indexed(catalog, taxonomy_of("fly", "swim"), {"fly one": {"a/x": 1.0}})
    assert {tool: index.of_tools[index.rows[f"a/{tool}"]].tolist() for tool in "xyz"} == {
        "x": [0.0, 1.0],
        "y": [1.0, 1.0],
        "z": [1.0, 0.0],
    }


def test_a_tool_that_declares_only_what_the_taxonomy_does_not_know_has_the_capabilities_of_its_text() -> None:
    catalog = Catalog(agents=(Agent(id="a", tools=(Tool(agent="a", name="x", capabilities=("dance",)),)),))
    index = indexed(catalog, taxonomy_of("fly"), {"fly one": {"a/x": 1.0}})
    assert index.of_tools[index.rows["a/x"], 0] > 0.5


def test_words_and_meaning_of_a_request_decide_its_capabilities() -> None:
    index = indexed(CATALOG, taxonomy_of("fly", "swim"), {})
    whole, part = index.asked("swim and fly off", [(9, 12)])
    assert whole[0] == whole[1]
    assert part[0] > 0.9
    assert part[1] < 0.1


def test_only_a_capability_asked_for_with_certainty_is_evidence() -> None:
    known = Known(CATALOG, {"a/x": {"fly": 0.8, "swim": 1.0}, "b/z": {"fly": 0.5}}, {}, "fly", "swim")
    evidence = known.evidence(known.vector({"fly": 0.95, "swim": 0.89}), sure=0.9)
    found = {tool: float(evidence[known.rows[tool]]) for tool in CATALOG.tools}
    assert found == pytest.approx({"a/x": 0.95 * 0.8, "a/y": 0.0, "b/z": 0.95 * 0.5})
    assert not known.evidence(known.vector({"fly": 0.5}), sure=0.9).any()


def test_likely_capabilities_are_those_asked_for_or_of_the_expected_tools() -> None:
    known = Known(CATALOG, {"a/x": {"fly": 1.0}, "b/z": {"swim": 0.5}}, {}, "fly", "swim", "run")
    use = {known.rows["a/x"]: 0.6, known.rows["b/z"]: 0.3}
    likely = known.likely(known.vector({"run": 0.4}), use)
    assert known.named(likely) == pytest.approx({"fly": 1.0, "run": 0.4, "swim": 0.3 * 0.5 / 0.6})


def test_a_link_is_at_least_a_tenth_and_one_for_a_tool_without_capability() -> None:
    known = Known(CATALOG, {"a/x": {"fly": 0.8}, "a/y": {"swim": 0.9}, "b/z": {"fly": 0.09}}, {}, "fly", "swim")
    likely = known.vector({"fly": 0.5})
    links = {tool: known.link(known.rows[tool], likely) for tool in CATALOG.tools}
    assert links == pytest.approx({"a/x": 0.4, "a/y": 0.1, "b/z": 1.0})


def test_a_part_of_the_index_gives_the_same_confidences() -> None:
    known = Known(CATALOG, {"a/x": {"fly": 0.8}, "b/z": {"fly": 0.7}}, {}, "fly")
    part = known.part([known.rows["b"], known.rows["b/z"]])
    assert part.rows == {"b": 0, "b/z": 1}
    assert part.of_tools.tolist() == known.of_tools[[known.rows["b"], known.rows["b/z"]]].tolist()


def test_an_index_without_tools_or_leaves_works() -> None:
    assert indexed(Catalog(), default_taxonomy(), {}).of_tools.shape == (0, 10)
    nothing = indexed(CATALOG, Taxonomy(), {})
    assert nothing.of_tools.shape == (5, 0)
    assert nothing.asked("q").shape == (1, 0)
    assert not nothing.evidence(nothing.asked("q")[0], sure=0.9).any()
    assert nothing.link(2, nothing.likely(nothing.asked("q")[0], {2: 1.0})) == 1.0


def test_an_index_by_vectors_and_one_by_texts_give_the_same_confidences(minilm: MiniLMEmbeddings) -> None:
    catalog = Catalog(
        agents=(Agent(id="a", tools=(Tool(agent="a", name="convert", description="Converts units of length."),)),)
    )
    retriever = AgentGraphRetriever.from_catalog(catalog, index=":memory:", embeddings=minilm)
    multiplying = retriever.selector.capabilities

    class ByText:
        def __init__(self) -> None:
            self.scores, self.sync = multiplying._vectors.scores, multiplying._vectors.sync

    asked = CapabilityIndex(catalog, ByText(), ["a", "a/convert"], default_taxonomy(), embeddings=minilm)
    assert np.allclose(asked.of_tools, multiplying.of_tools, atol=1e-4)


@pytest.mark.parametrize(
    ("request_text", "wanted"),
    [
        ("google it online", "web-search"),
        ("delete the old file", "file-management delete"),
        ("run a command in the shell", "shell-execution command-execution"),
        ("multiply these two numbers", "computation arithmetic"),
        ("draw a bar chart of the sales", "image-generation chart-creation"),
    ],
)
@pytest.mark.parametrize("taxonomy", SHIPPED)
def test_the_embedded_model_finds_the_capability_of_plain_requests(
    request_text: str, wanted: str, taxonomy: str, minilm: MiniLMEmbeddings
) -> None:
    retriever = AgentGraphRetriever.from_catalog(CATALOG, index=":memory:", embeddings=minilm, taxonomy=taxonomy)
    index = retriever.selector.capabilities
    asked = index.asked(request_text)[0]
    assert index.leaves[int(asked.argmax())] == wanted.split()[-1 if taxonomy == "detailed" else 0]
    assert asked.max() > 0.8


SIGNS = Signs([capability("mail", None, "send", "mail"), capability("post", None, "send", "web search")])


def test_a_signal_word_counts_by_its_position_and_how_many_capabilities_share_it() -> None:
    cases = [
        ({"name": "send_it"}, [0.5, 0.5]),  # two share it
        ({"name": "mail_it"}, [1.0, 0.0]),
        ({"description": "Goes by mail. Then it searches."}, [0.6, 0.0]),
        ({"input_schema": {"type": "object", "properties": {"mailAddress": {"type": "string"}}}}, [0.4, 0.0]),
        ({"name": "send_mail"}, [1.0, 0.5]),
        ({"name": "webSearch"}, [0.0, 1.0]),
        ({"name": "search_web"}, [0.0, 0.0]),  # a phrase stands together
        ({"description": "Mailing and sending."}, [0.6, 0.3]),  # stems
    ]
    for fields, found in cases:
        tool = Tool(**{"agent": "a", "name": "x", **fields})
        assert [round(float(x), 3) for x in SIGNS.of_tool(tool)] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("mail it to Ada and Bob and Cy", [1.0, 0.0]),
        ("write it down for me now and then mail it", [0.6, 0.0]),
        ("", [0.0, 0.0]),
        ("邮件", [0.0, 0.0]),
        ("\u202e" * 50, [0.0, 0.0]),
    ],
)
def test_the_first_words_of_a_request_count_more(text: str, found: list[float]) -> None:
    assert [round(float(x), 3) for x in SIGNS.of_request(text)] == found


def test_a_huge_text_is_not_read_to_its_end() -> None:
    assert SIGNS.of_request("x " * 1_000_000 + "mail").tolist() == [0.0, 0.0]


PHRASES = Path(capability_index.__file__).with_name("phrases.npz")


def test_the_shipped_vectors_are_those_of_the_shipped_taxonomies_by_the_embedded_model(
    minilm: MiniLMEmbeddings,
) -> None:
    """``CALLSHEET_PHRASES=update pytest ...`` writes them, after a change of a taxonomy or of the model."""
    entries = [one.by_id[leaf] for one in map(shipped_taxonomy, SHIPPED) for leaf in one.leaves]
    unique = list(dict.fromkeys(phrase for entry in entries for phrase in (entry.definition, *entry.examples)))
    vectors = minilm.encode(unique)
    if os.environ.get("CALLSHEET_PHRASES") == "update":
        np.savez_compressed(PHRASES, phrases=np.array(unique), vectors=vectors)
    shipped = np.load(PHRASES)
    assert shipped["phrases"].tolist() == unique
    assert (shipped["vectors"] * vectors).sum(axis=1).min() > 0.999
