"""The supervisor over agents and tools of your own: a compiled agent, and functions. No key, no network.

python -m examples.own_supervisor
"""

from langchain.agents import create_agent

from callsheet import create_supervisor
from examples.stand_in import StandIn


def weather(city: str) -> str:
    """Tells the weather forecast of a city."""
    return f"sunny in {city}"


def order_status(order_id: str) -> str:
    """Looks up the status of an order by its order id."""
    return f"{order_id} was shipped on Monday"


def send_mail(email: str, body: str) -> str:
    """Sends a text by mail to an e-mail address."""
    return f"sent to {email}: {body}"


forecaster = create_agent(StandIn(), tools=[weather], name="forecaster")
workflow = create_supervisor(
    {"forecaster": forecaster, "orders": [order_status], "mail": [send_mail]}  # yours, so nobody is asked before a call
)
request = (
    "Look up the status of order ORD-551 and send the result by mail to ann@example.org. "
    "Ask the forecaster for the weather in Rome"
)
state = workflow.compile().invoke({"messages": request})
for result in state["results"].values():
    print(result["status"], [call["tool"] for call in result["calls"]], result["result"] or result["error"])
print(state["messages"][-1].text)
