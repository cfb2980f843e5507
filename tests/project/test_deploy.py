"""The files of ``deploy`` name services, settings, commands, routes and metrics that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import yaml

from callsheet.orchestrator.cli.main import callsheet
from callsheet.orchestrator.run.run_metrics import exposition, select_measured
from explored import contacts, explorer, served

ROOT = Path(__file__).parents[2]
SETTINGS = set(re.findall(r"`(CALLSHEET_\w+)`", (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")))
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text(encoding="utf-8"))
MANIFESTS: list[dict[str, Any]] = [*yaml.safe_load_all((ROOT / "deploy/kubernetes.yaml").read_text(encoding="utf-8"))]
BY_KIND = {manifest["kind"]: manifest for manifest in MANIFESTS}
OF_LANGGRAPH = {"DATABASE_URI", "REDIS_URI", "LANGSMITH_API_KEY", "OPENAI_API_KEY"}


def understood(words: list[str]) -> None:
    """Reads a command line as the program would, without doing anything."""
    program, name, *rest = words
    command = callsheet.get_command(click.Context(callsheet), name)
    assert (program, command is not None) == ("callsheet", True)
    assert command is not None
    command.make_context(name, rest)


def containers() -> Iterator[dict[str, Any]]:
    for kind in ("Job", "Deployment"):
        yield from BY_KIND[kind]["spec"]["template"]["spec"]["containers"]


def test_compose_names_what_it_defines() -> None:
    services = COMPOSE["services"]
    assert set(COMPOSE["volumes"]) == {v.split(":")[0] for s in services.values() for v in s.get("volumes", ())}
    for service in services.values():
        needed = service.get("depends_on", {})
        assert set(needed) <= set(services)
        healthy = [name for name, how in needed.items() if how["condition"] == "service_healthy"]
        assert all("healthcheck" in services[name] for name in healthy)


def test_compose_sets_what_callsheet_knows() -> None:
    ours = [s for s in COMPOSE["services"].values() if s["image"] == "callsheet"]
    assert len(ours) == 2
    for service in ours:
        assert set(service["environment"]) <= SETTINGS | OF_LANGGRAPH
        if "entrypoint" in service:
            understood(service["entrypoint"])
    secrets = [v for s in ours for v in s["environment"].values() if re.search(r":[^/$@{}]+@", v)]
    assert secrets == []


def test_kubernetes_sets_what_callsheet_knows() -> None:
    assert set(BY_KIND["ConfigMap"]["data"]) <= SETTINGS
    for container in containers():
        names = {ref[kind]["name"] for ref in container["envFrom"] for kind in ref}
        assert names == {"callsheet"}
        if "command" in container:
            understood(container["command"])


def test_kubernetes_asks_routes_that_exist_on_the_port_of_the_server() -> None:
    (server,) = BY_KIND["Deployment"]["spec"]["template"]["spec"]["containers"]
    probes = [server[probe]["httpGet"] for probe in ("livenessProbe", "readinessProbe")]
    routes = {getattr(route, "path", "") for route in explorer(contacts()).routes} | {"/ok"}
    assert [probe["path"] for probe in probes if probe["path"] not in routes] == []
    (port,) = BY_KIND["Service"]["spec"]["ports"]
    assert {server["ports"][0]["containerPort"], port["targetPort"], *(p["port"] for p in probes)} == {8000}
    labels = BY_KIND["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert BY_KIND["Service"]["spec"]["selector"] == labels == BY_KIND["Deployment"]["spec"]["selector"]["matchLabels"]


def test_the_dashboard_shows_metrics_that_exist() -> None:
    select_measured(served(contacts()).retriever, "find a contact")
    told = exposition(lambda _: True, ["crm"], waiting=0)
    families = set(re.findall(r"^# TYPE (\w+(?<!_created)) ", told, re.MULTILINE))
    panels = json.loads((ROOT / "deploy/grafana.json").read_text(encoding="utf-8"))["panels"]
    used = {name for p in panels for t in p["targets"] for name in re.findall(r"callsheet_\w+", t["expr"])}
    assert used - families - {"callsheet_retrieval_seconds_bucket"} == set()
    assert families - used == {"callsheet_retrieval_seconds"}
