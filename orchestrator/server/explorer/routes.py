"""The explorer as a web application: the page, its endpoints, metrics and health."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, is_dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route, Router
from starlette.types import ASGIApp, Lifespan, Receive, Scope, Send

from callsheet.graphs import CallsheetError, UnknownNameError, User, shown
from callsheet.orchestrator.run.current_user import user_of
from callsheet.orchestrator.run.run_metrics import MEDIA_TYPE, exposition
from callsheet.orchestrator.server import sign_in
from callsheet.orchestrator.server.explorer import page_files
from callsheet.orchestrator.server.explorer.api import Api, Endpoint
from callsheet.orchestrator.server.explorer.site import Seen, Site
from callsheet.orchestrator.server.page_key import PageKey, RefusedError
from callsheet.orchestrator.server.request_guard import gate
from callsheet.orchestrator.server.review.review_routes import ReviewRoutes
from callsheet.orchestrator.server.run_checks import RunChecks
from callsheet.orchestrator.server.runs.run_history import Runner, Runs
from callsheet.orchestrator.server.runs.run_routes import RunRoutes

ROOT = "/callsheet"
_UNGUARDED = (
    "these routes are not authenticated, so nothing is shown: "
    'set "http": {"enable_custom_route_auth": true} in langgraph.json'
)
_Handler = Callable[[Request], Awaitable[Response]]


def create_explorer(
    site: Site,
    *,
    runs: Runs | None = None,
    runner: Runner | None = None,
    key: str = "",
    authenticated: bool = False,
    user: User | None = None,
    hosts: Sequence[str] = (),
    origins: Sequence[str] = (),
) -> Starlette:
    """The explorer, as a stand-alone application or as ``http.app`` of a LangGraph server.

    Args:
        site: The content.
        runs: Past runs; None shows none.
        runner: Carries out requests, together with ``runs``; None: the page can only look.
        key: Secret of the page's address, which it sends with each request to run something; empty if a server
            authenticates users, or if nothing can be run.
        authenticated: Whether a server authenticates users (``scope["user"]``). A request without a user then gets only
            the page's own files and ``/callsheet/health``.
        user: The user of all requests without authentication; anonymous by default.
        hosts: Further host names of the server; ``*`` for any.
        origins: Origins of other sites whose pages may use it; none by default.

    Raises:
        SettingsError: A host name or origin is invalid.
    """

    def guarded(endpoint: Endpoint) -> _Handler:
        return _guarded(site, endpoint, None if authenticated else user or User())

    page_key = PageKey(key)
    review = ReviewRoutes(site, page_key, anonymous=bool(key) and not authenticated)
    changing = RunRoutes(runner, runs, page_key) if runner is not None and runs is not None else None
    private = [
        Route(f"{ROOT}/metrics", guarded(_metrics(runs))),
        *(
            Route(f"{ROOT}/api/{name}", guarded(endpoint))
            for name, endpoint in Api(runs, site.reports, page_key.allows if changing else _nobody).endpoints().items()
        ),
        Route(f"{ROOT}/api/review", guarded(review.review)),
    ]
    posts = dict(review.posts())
    if changing is not None:
        private.append(Route(f"{ROOT}/api/watch", guarded(changing.watch)))
        posts |= changing.posts()
    if authenticated:
        posts["sign-in"] = lambda seen, request: sign_in.begin(seen.registry, seen.user, request)
    private += [Route(f"{ROOT}/api/{name}", guarded(endpoint), methods=["POST"]) for name, endpoint in posts.items()]
    middleware = gate(hosts, origins)
    if authenticated:
        private += sign_in.public_routes()
        middleware += [Middleware(_Public, routes=[*_public(site), *sign_in.public_routes()]), Middleware(RunChecks)]
    return Starlette(routes=[*_public(site), *private], middleware=middleware, lifespan=_closes(site))


def _nobody(_: Request) -> bool:
    return False


def _public(site: Site) -> list[Route]:
    """Routes without catalog data; created anew, because a server adds its authentication to existing routes."""
    return [
        Route(ROOT, page_files.home),
        *(Route(f"{ROOT}/{name}", page_files.page) for name in ("", *page_files.names())),
        Route(f"{ROOT}/health", _health(site)),
    ]


def _closes(site: Site) -> Lifespan[Starlette]:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        site.close()

    return lifespan


class _Public:
    """Answers some routes before authentication: a browser cannot sign in without the page."""

    def __init__(self, app: ASGIApp, routes: Sequence[Route]) -> None:
        self._app, self._routes, self._router = app, routes, Router(routes, redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        public = scope["type"] == "http" and any(route.matches(scope)[0] is Match.FULL for route in self._routes)
        await (self._router if public else self._app)(scope, receive, send)


def _guarded(site: Site, endpoint: Endpoint, everybody: User | None) -> _Handler:
    """An endpoint that knows the user and what this user may see, and returns JSON, also for errors."""

    async def handle(request: Request) -> Response:
        if everybody is None and "user" not in request.scope:
            return _said(_UNGUARDED, 403)
        try:
            user = everybody or user_of(request.user, request.auth.scopes)
            seen = await run_in_threadpool(site.seen, user)
            made = await endpoint(seen, request)
            return made if isinstance(made, Response) else await run_in_threadpool(_json, made)
        except ValidationError as error:
            first = error.errors()[0]
            return _said(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", 400)
        except UnknownNameError as error:
            return _said(str(error), 404)
        except RefusedError as error:
            return _said(str(error), error.status)
        except CallsheetError as error:
            return _said(str(error), 500)

    return handle


def _metrics(runs: Runs | None) -> Endpoint:
    async def metrics(seen: Seen, request: Request) -> Response:
        waiting = await runs.waiting(request) if runs else None
        told = await run_in_threadpool(exposition, seen.may_see, seen.registry.unavailable(), waiting)
        return Response(told, media_type=MEDIA_TYPE, headers=page_files.HEADERS)

    return metrics


def _health(site: Site) -> _Handler:
    async def health(request: Request) -> Response:
        try:
            seen = await run_in_threadpool(site.seen, User())
        except CallsheetError:
            return _json({"status": "failing"}, 503)
        whole = not (seen.loaded.problems or seen.registry.unavailable() or seen.registry.down)
        return _json({"status": "ok" if whole else "degraded"})

    return health


def _json(value: Any, status: int = 200) -> Response:
    """A response in ASCII, which keeps any text intact."""
    plain = json.dumps(value, default=_plain, ensure_ascii=True, allow_nan=False)
    headers = {**page_files.HEADERS, "cache-control": "no-store"}
    return Response(plain, status, media_type="application/json", headers=headers)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} cannot be an answer")


def _said(message: str, status: int) -> Response:
    return _json({"error": shown(message)}, status)
