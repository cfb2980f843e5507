"""The retriever alone: which agents and tools fit a request, and why. No key, no network.

python -m examples.catalogs.find_tools
"""

from callsheet import Agent, AgentGraphRetriever, Catalog, Dependency, DependencyKind, Tool


def tool(agent: str, name: str, description: str, *parameters: str, needs: tuple[Dependency, ...] = ()) -> Tool:
    """A tool whose parameters are all required strings."""
    schema = {
        "type": "object",
        "properties": {parameter: {"type": "string"} for parameter in parameters},
        "required": list(parameters),
    }
    return Tool(agent=agent, name=name, description=description, input_schema=schema, depends_on=needs)


location = Dependency(
    tool="phone/get_location",
    kind=DependencyKind.PARAMETER_DIRECTLY,
    parameter="place",
    reason="A forecast needs a place; where none is named, it is where the user is.",
)
catalog = Catalog(
    agents=(
        Agent(
            id="weather",
            tools=(tool("weather", "forecast", "Forecasts rain and temperature.", "place", needs=(location,)),),
        ),
        Agent(id="phone", tools=(tool("phone", "get_location", "Gives the current position of the user."),)),
        Agent(
            id="calendar",
            tools=(
                tool("calendar", "list_events", "Lists the appointments of a day.", "day"),
                tool("calendar", "create_event", "Enters an appointment.", "day", "title"),
            ),
        ),
    )
)

retriever = AgentGraphRetriever.from_catalog(catalog, k=2)
selection = retriever.select("Will it rain this afternoon?")
for agent in selection.agents:
    print(agent.id, f"{agent.score:.2f}")
    for picked in agent.tools:
        print("   ", " > ".join(picked.via), "(required)" if picked.required else "")

for document in retriever.invoke("What is on my calendar today?"):
    print(document.metadata["agent"], document.metadata["tools"])
