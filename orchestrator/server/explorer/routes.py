"""The web application of the explorer: the files of the page, its endpoints, metrics and health."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from callsheet.graphs import CallsheetError, SettingsError, UnknownNameError, User, shown
from callsheet.graphs.catalog.formats.manifests import UNREAD
from callsheet.orchestrator.run.run_context import user_of
from callsheet.orchestrator.run.run_metrics import MEDIA_TYPE, exposition
from callsheet.orchestrator.server.explorer import node_details
from callsheet.orchestrator.server.page_requests import HEADERS, Endpoint, Parameters, RefusedError, check_key
from callsheet.orchestrator.server.request_guard import gate
from callsheet.orchestrator.server.review import AskedPart, ReviewRoutes
from callsheet.orchestrator.server.runs.run_checks import RunChecks
from callsheet.orchestrator.server.runs.run_routes import run_endpoints
from callsheet.orchestrator.server.runs.runs import Runs
from callsheet.orchestrator.server.visible_catalog import Site, VisibleCatalog

ROOT = "/callsheet"
_PAGE = Path(__file__).parent / "page"
_UNGUARDED = (
    "these routes are not authenticated, so nothing is shown: "
    'set "http": {"enable_custom_route_auth": true} in langgraph.json'
)
_MEDIA = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_Handler = Callable[[Request], Awaitable[Response]]
_Form = TypeVar("_Form", bound=Parameters)


def create_explorer(
    site: Site,
    *,
    runs: Runs | None = None,
    key: str = "",
    authenticated: bool = False,
    user: User | None = None,
    hosts: Sequence[str] = (),
    origins: Sequence[str] = (),
) -> Starlette:
    """Returns the explorer, as a stand-alone application or as ``http.app`` of a LangGraph server.

    Args:
        site: The catalog.
        runs: Shows past runs and carries out requests; None does neither.
        key: Secret of the page's address (``/callsheet/#key=...``), which it sends with each request. A request
            without it gets only the page's own files and ``/callsheet/health``. Empty if a server authenticates users.
        authenticated: Whether a server authenticates users (``scope["user"]``). A request without a user then gets only
            the page's own files and ``/callsheet/health``.
        user: The user of all requests without authentication; anonymous by default.
        hosts: As in ``request_guard.gate``.
        origins: As in ``request_guard.gate``.

    Raises:
        SettingsError: There is neither a key nor authentication, or a host name or origin is invalid.
    """
    if not (key or authenticated):
        raise SettingsError("every user of this machine could read the page: give key=..., or authenticated=True")
    review = ReviewRoutes(site, anonymous=not authenticated)
    gets = {**_reading(runs is not None), "review": _threaded(AskedPart, review.items)}
    posts: dict[str, Endpoint] = {"decide": review.decide}
    if runs is not None:
        reading, doing = run_endpoints(runs)
        gets = gets | reading
        posts = posts | doing
    middleware = gate(hosts, origins)
    open_routes = list[Route]()
    if authenticated:
        from callsheet.orchestrator.server import sign_in  # the import takes a second

        posts["sign-in"] = lambda visible, request: sign_in.begin(visible.registry, visible.user, request)
        open_routes = sign_in.public_routes()
        middleware += [Middleware(_Public, routes=[*_public(site), *sign_in.public_routes()]), Middleware(RunChecks)]

    def guarded(path: str, endpoint: Endpoint, method: str = "GET") -> Route:
        handler = _guarded(site, endpoint, None if authenticated else user or User(), key)
        return Route(f"{ROOT}/{path}", handler, methods=[method])

    private = [
        guarded("metrics", _metrics(runs)),
        *(guarded(f"api/{name}", endpoint) for name, endpoint in gets.items()),
        *(guarded(f"api/{name}", endpoint, "POST") for name, endpoint in posts.items()),
    ]
    return Starlette(routes=[*_public(site), *private, *open_routes], middleware=middleware)


def _reading(runs: bool) -> dict[str, Endpoint]:
    """Returns the endpoints about the catalog, by the last part of their address; all of them work in threads.

    Each raises ``ValidationError`` for invalid parameters, and ``UnknownNameError`` for something that does not exist
    or is hidden from the user.
    """

    def findings(visible: VisibleCatalog, given: node_details.Id) -> object:
        return [finding.to_dict() for finding in visible.knowledge.findings.get(given.id, ())]

    return {
        "overview": _threaded(Parameters, lambda visible, _: node_details.overview(visible, runs=runs)),
        "map": _threaded(Parameters, lambda visible, _: node_details.catalog_map(visible)),
        "agents": _threaded(node_details.AgentList, node_details.list_agents),
        "search": _threaded(node_details.SearchQuery, node_details.search),
        "node": _threaded(node_details.Id, node_details.node),
        "capability": _threaded(node_details.Id, node_details.capability),
        "findings": _threaded(node_details.Id, findings),
    }


def _threaded(form: type[_Form], answer: Callable[[VisibleCatalog, _Form], object]) -> Endpoint:
    async def endpoint(visible: VisibleCatalog, request: Request) -> object:
        return await run_in_threadpool(answer, visible, form.model_validate(dict(request.query_params)))

    return endpoint


def page_files() -> tuple[str, ...]:
    """Returns the names of further files that the page loads."""
    return tuple(name for name in _files() if name != "explorer.html")


def _page(request: Request) -> Response:
    name = request.url.path.rpartition("/callsheet/")[2] or "explorer.html"
    return Response(_files()[name], media_type=_MEDIA[name.rpartition(".")[2]], headers=HEADERS)


@cache
def _files() -> Mapping[str, bytes]:
    """Returns all files, read once: the event loop must not wait for the disk."""
    return {str(file.relative_to(_PAGE)): file.read_bytes() for file in _PAGE.rglob("*") if file.is_file()}


def _public(site: Site) -> list[Route]:
    """Routes without catalog data; created anew, because a server adds its authentication to existing routes."""

    async def health(request: Request) -> Response:
        try:
            visible = await run_in_threadpool(site.visible_to, User())
        except CallsheetError:
            return _json({"status": "failing"}, 503)
        lost = any(problem.kind != UNREAD for problem in visible.loaded.problems)
        whole = not (lost or visible.registry.unavailable() or visible.registry.loaded.down)
        return _json({"status": "ok" if whole else "degraded"})

    return [
        # Relative to where the server is mounted.
        Route(ROOT, lambda _: RedirectResponse("callsheet/", headers=HEADERS)),
        *(Route(f"{ROOT}/{name}", _page) for name in ("", *page_files())),
        Route(f"{ROOT}/health", health),
    ]


class _Public:
    """Answers some routes before authentication: a browser cannot sign in without the page."""

    def __init__(self, app: ASGIApp, routes: Sequence[Route]) -> None:
        self._app = app
        self._routes = routes
        self._router = Router(routes, redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        public = scope["type"] == "http" and any(route.matches(scope)[0] is Match.FULL for route in self._routes)
        await (self._router if public else self._app)(scope, receive, send)


def _guarded(site: Site, endpoint: Endpoint, everybody: User | None, key: str) -> _Handler:
    """Returns an endpoint that knows the user and what this user may see, and returns JSON, also for errors."""

    async def handle(request: Request) -> Response:
        if everybody is None and "user" not in request.scope:
            return _error(_UNGUARDED, 403)
        try:
            check_key(request, key)
            user = everybody or user_of(request.user, request.auth.scopes)
            visible = await run_in_threadpool(site.visible_to, user)
            made = await endpoint(visible, request)
            return made if isinstance(made, Response) else await run_in_threadpool(_json, made)
        except ValidationError as error:
            first = error.errors()[0]
            return _error(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", 400)
        except UnknownNameError as error:
            return _error(str(error), 404)
        except RefusedError as error:
            return _error(str(error), error.status)
        except CallsheetError as error:
            return _error(str(error), 500)

    return handle


def _metrics(runs: Runs | None) -> Endpoint:
    async def metrics(visible: VisibleCatalog, request: Request) -> Response:
        waiting = await runs.backend.waiting(request) if runs else None
        text = await run_in_threadpool(exposition, visible.may_see, visible.registry.unavailable(), waiting)
        return Response(text, media_type=MEDIA_TYPE, headers=HEADERS)

    return metrics


def _json(value: Any, status: int = 200) -> Response:
    """Returns a response in ASCII, which keeps any text intact."""
    plain = json.dumps(value, ensure_ascii=True, allow_nan=False)
    headers = {**HEADERS, "cache-control": "no-store"}
    return Response(plain, status, media_type="application/json", headers=headers)


def _error(message: str, status: int) -> Response:
    return _json({"error": shown(message)}, status)
