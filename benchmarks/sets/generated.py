"""Catalogs of any size from a small grammar, for measuring time and memory, never for measuring quality."""

from __future__ import annotations

import random
from itertools import product

from callsheet.graphs import Agent, Catalog, Tool

VERBS = """
    create read update delete list search export import archive share approve assign schedule cancel validate
    merge compare translate summarise convert publish restore duplicate lock tag
""".split()
OBJECTS = """
    invoice ticket contact calendar playlist recipe shipment contract dataset image video branch deployment sensor
    booking payment refund survey lesson prescription portfolio order campaign subscription itinerary warranty
    inventory timesheet meeting newsletter dashboard database bucket certificate vehicle apartment article
    donation tournament translation
""".split()
QUALIFIERS = """
    draft overdue shared archived monthly regional public private recurring temporary verified flagged partial
    scheduled external internal historical current pending duplicate
""".split()
MEANS = ("identifier", "name", "date range", "owner", "status", "location", "keyword", "category")
RESULTS = ("the changed record", "a list of matches", "a confirmation", "a link to the file", "a short report")
FIELDS = ("id", "name", "start_date", "end_date", "owner", "status", "city", "keyword", "limit", "format")
TOOLS_AN_AGENT = 10
SEED = 7


def generated_catalog(tools: int, seed: int = SEED) -> Catalog:
    """A catalog of so many tools, ten an agent; the same for the same seed."""
    chance = random.Random(seed)
    agents = [
        _agent(number, min(TOOLS_AN_AGENT, tools - first), chance)
        for number, first in enumerate(range(0, tools, TOOLS_AN_AGENT))
    ]
    return Catalog(agents=tuple(agents))


def generated_queries(count: int, seed: int = SEED) -> list[str]:
    """Requests in the words of the same grammar."""
    chance = random.Random(seed + 1)
    return [
        f"Please {chance.choice(VERBS)} the {chance.choice(QUALIFIERS)} {chance.choice(OBJECTS)} "
        f"by {chance.choice(MEANS)} and give me {chance.choice(RESULTS)}."
        for _ in range(count)
    ]


def _agent(number: int, tools: int, chance: random.Random) -> Agent:
    thing = OBJECTS[number % len(OBJECTS)]
    agent = f"{chance.choice(QUALIFIERS)}-{thing}-{number}"
    names = chance.sample(list(product(VERBS, QUALIFIERS)), tools)
    return Agent(
        id=agent,
        description=f"Works with every {thing}: {', '.join(sorted({verb for verb, _ in names}))}.",
        tools=tuple(_tool(agent, verb, qualifier, thing, chance) for verb, qualifier in names),
    )


def _tool(agent: str, verb: str, qualifier: str, thing: str, chance: random.Random) -> Tool:
    fields = chance.sample(FIELDS, chance.randint(1, 4))
    schema = {
        "type": "object",
        "properties": {f: {"type": "string", "description": f"The {f.replace('_', ' ')}."} for f in fields},
        "required": fields[:1],
    }
    about = (
        f"{verb.capitalize()}s the {qualifier} {thing} by its {chance.choice(MEANS)}. Gives {chance.choice(RESULTS)}."
    )
    return Tool(agent=agent, name=f"{verb}_{qualifier}_{thing}", description=about, input_schema=schema)
