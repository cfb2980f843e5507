"""A folder of skills beside tools of your own: the skill that fits a request, with the tools that it names.

python -m examples.catalogs.own_skills
"""

from callsheet import AgentGraphRetriever, load


def outage_log(service: str) -> str:
    """Outages of a service with their times."""
    return f"{service}: down from 10:02 to 10:31 UTC"


def convert_length(miles: float) -> str:
    """Converts miles to kilometres."""
    return f"{miles * 1.609344} km"


catalog = load("examples/catalogs/skills", {"operations": [outage_log], "units": [convert_length]})
retriever = AgentGraphRetriever.from_catalog(catalog)
for request in ("Write the post-mortem of yesterday's checkout problems", "Convert 3 miles to kilometres"):
    selection = retriever.select(request, tools=2)
    print(request)
    for skill in selection.skills:
        print(f"  {skill.id} with {', '.join(skill.tools)}:", catalog.catalog.skills_by_id[skill.id].text[:18])
    print("  tools:", ", ".join(tool.id for tool in selection.tools))
