"""A deep agent with many tools behind it: each turn is shown just those that it needs. No key, no network.

pip install deepagents && python -m examples.deep_agent
"""

from deepagents import create_deep_agent
from langchain.agents.middleware import TodoListMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from callsheet import CallsheetTools
from examples.stand_in import StandIn


def tell_weather(city: str) -> str:
    """Tells the weather forecast of a city."""
    return f"sunny in {city}"


def send_mail(to: str) -> str:
    """Sends a mail with the weather forecast to an address."""
    return f"sent to {to}"


agents = {"meteo": [tell_weather], "post": [send_mail]}  # yours: "mcp.json"
tools = CallsheetTools(agents, tools=1, interrupt_on={"post/send_mail": True})
agent = create_deep_agent(
    StandIn(),  # yours: "openai:gpt-5-mini"
    middleware=[TodoListMiddleware(), tools],
    subagents=[{"name": "clerk", "description": "Does errands.", "system_prompt": "", "middleware": [tools]}],
    checkpointer=InMemorySaver(),
)
thread = {"configurable": {"thread_id": "1"}}
for request in ("Tell me the weather in Oslo", "Send mail to ann@example.org"):
    state = agent.invoke({"messages": [("user", request)]}, thread)
    while questions := state.get("__interrupt__"):
        print("May I?", *questions[0].value["action_requests"])
        state = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)  # LangChain's form
    print(state["messages"][-1].text)
