"""The supervisor over tools of your own, without a model; give ``model="openai:gpt-5-mini"`` for one.

python -m examples.own_tools
"""

from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from callsheet import create_supervisor

STOCK = {"ORD-551": "shipped on Monday", "ORD-552": "in preparation"}
OUTBOX: list[str] = []


@tool
def order_status(order_id: str) -> str:
    """Looks up the status of an order by its order id."""
    return STOCK.get(order_id, f"there is no order {order_id}")


@tool
def send_mail(email: str, body: str) -> str:
    """Sends a text by mail to an e-mail address."""
    OUTBOX.append(f"{email}: {body}")
    return f"sent to {email}"


order_status.metadata = {"annotations": {"readOnlyHint": True}}  # harmless: nobody is asked on the command line either


def agents() -> dict[str, list[object]]:
    """Two agents, by name; ``callsheet ask --catalog examples.own_tools:agents`` takes them too."""
    return {"orders": [order_status], "mail": [send_mail]}


if __name__ == "__main__":
    ask_before = {"mail/send_mail": True}
    app = create_supervisor(agents(), interrupt_on=ask_before).compile(checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    request = "Look up the status of order ORD-551 and send the result by mail to ann@example.org"
    state = app.invoke({"messages": [("user", request)]}, thread)
    while questions := state.get("__interrupt__"):  # here somebody would decide
        for question in questions:
            (action,) = question.value["action_requests"]
            print("May I?", action["name"], action["args"])
        answer = {"decisions": [{"type": "approve"}]}  # LangChain's form
        state = app.invoke(Command(resume={question.id: answer for question in questions}), thread)
    for step in state["plan"]["steps"]:
        result = state["results"][step["id"]]
        print(step["id"], step["text"], "->", result["status"], [call["tool"] for call in result["calls"]])
    print(state["messages"][-1].text)
