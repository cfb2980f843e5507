"""The retriever in a LangGraph agent of your own: each turn is shown just the tools that it needs. No key, no network.

python -m examples.own_agent
"""

from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from callsheet import AgentGraphRetriever
from examples.stand_in import StandIn


def weather(city: str) -> str:
    """Tells the weather forecast of a city."""
    return f"sunny in {city}"


def opening_hours(museum: str) -> str:
    """Tells when a museum is open."""
    return f"{museum} is open from 10 to 18"


TOOLS = {function.__name__: function for function in (weather, opening_hours)}  # think of thousands
retriever = AgentGraphRetriever.from_catalog(list(TOOLS.values()))
model = StandIn()  # yours: init_chat_model("openai:gpt-5-mini")


def think(state: MessagesState) -> dict[str, object]:
    """Asks the model, showing it what the request needs."""
    picked = retriever.select(state["messages"][0].text, tools=1).tools
    equipped = model.bind_tools([TOOLS[tool.id.partition("/")[2]] for tool in picked])
    return {"messages": [equipped.invoke(state["messages"])]}


agent = StateGraph(MessagesState).add_node("think", think).add_node("tools", ToolNode(list(TOOLS.values())))
agent.add_edge(START, "think").add_conditional_edges("think", tools_condition).add_edge("tools", "think")
for question in ("Will it rain in Oslo?", "When can I visit the Louvre?"):
    print(agent.compile().invoke({"messages": [("user", question)]})["messages"][-1].text)
