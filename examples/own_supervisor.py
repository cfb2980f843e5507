"""The supervisor over agents and tools of your own: a compiled agent, and functions. No key, no network.

python -m examples.own_supervisor
"""

from langchain.agents import create_agent

from callsheet import Settings, create_supervisor
from examples.stand_in import StandIn


def weather(city: str) -> str:
    """Tells the weather forecast of a city."""
    return f"sunny in {city}"


def order_status(order_id: str) -> str:
    """Looks up the status of an order by its order id."""
    return f"{order_id} was shipped on Monday"


def send_mail(to: str, body: str) -> str:
    """Sends an e-mail with a text to an address."""
    return f"sent to {to}: {body}"


forecaster = create_agent(StandIn(), tools=[weather], name="forecaster")
workflow = create_supervisor(
    {"forecaster": forecaster, "orders": [order_status], "mail": [send_mail]},
    settings=Settings(approval="never"),  # nobody is asked before an e-mail is sent
)
request = (
    "Look up the status of order ORD-551 and send the result by e-mail to ann@example.org. Tell the weather in Rome"
)
state = workflow.compile().invoke({"messages": request})
for result in state["results"].values():
    print(result["status"], [call["tool"] for call in result["calls"]], result["result"] or result["error"])
print(state["messages"][-1].text)
