"""The options that several commands share, and functions that open what they name."""

from __future__ import annotations

import json
import re
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import partial, reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from callsheet.graphs.catalog.formats.manifests import SERVER_TROUBLE
from callsheet.graphs.catalog.formats.server_config import is_address
from callsheet.graphs.errors import CallsheetError, SettingsError, TrustError, near_names
from callsheet.graphs.process_identity import ProcessIdentity
from callsheet.graphs.text.hidden import shown
from callsheet.graphs.trust.open_calls import CallLedger
from callsheet.orchestrator.run.process.environment import Environment

if TYPE_CHECKING:
    from callsheet.graphs import Catalog, Loaded, Taxonomy
    from callsheet.retrievers import AgentGraphRetriever, Changes, Selector, SelectSettings

INTERRUPTED = 130  # exit status
_NAMED_COMMAND = re.compile(r"`(callsheet (?:approve|call|index|sync|trust)\b[^`\n]*)`")
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class CatalogOptions:
    """The options of a command that opens a catalog; ``place`` is where the index is stored."""

    catalogs: tuple[str, ...]
    policy: str | None
    pins: str | None
    yes: bool
    as_json: bool
    place: str | None = None
    embeddings: str = ""

    def open(self, *, tell: bool = True, **asking: Any) -> Loaded:
        """Loads the catalogs, after consent to their commands, and reports listings that are older than an hour.

        Args:
            tell: Report on standard error what was left out, too.
            asking: As in ``load``: ``anew`` or ``known``. Servers that failed are asked again at a terminal.

        Raises:
            SettingsError: There is no catalog, or the policy cannot be read.
            TrustError: There is no consent to its commands, or its pins are not reliable.
        """
        from callsheet.orchestrator.cli.approval_prompt import ask_consent, ask_trust, has_terminal

        named = catalogs_of(self.catalogs)
        read = self.reader()
        if has_terminal():
            # The person who waits may have repaired what failed a moment ago.
            asking.setdefault("retry", True)
        ask_consent(named, yes=self.yes)
        with progress_bar("Reading the catalog"):
            loaded = read(**asking)
        if any(map(is_address, named)) and ask_consent(named, yes=self.yes):
            # Cards at an address name servers on other hosts; it is known only now.
            loaded = read(**asking)
        if ask_trust(loaded, yes=self.yes):
            loaded = read(known=True)
        if tell:
            self._report_problems(loaded, named)
        self._report_age(loaded)
        return loaded

    def runnable(self, text: str) -> str:
        """Returns a text in which each command in backticks has the catalogs of this command, so that it can be run.

        Other code that mentions a command does not know the catalog, and must not show it to users of a server.
        """
        catalogs = [word for name in self.catalogs or Environment().catalog for word in ("--catalog", name)]

        def completed(match: re.Match[str]) -> str:
            command = match[1].removesuffix(" --catalog ...")
            return f"`{command}`" if "--catalog" in command or not catalogs else f"`{command} {shlex.join(catalogs)}`"

        return _NAMED_COMMAND.sub(completed, text)

    def reader(self) -> Callable[..., Loaded]:
        """Returns a function that loads the catalogs without asking for consent; it can be called from any thread."""
        from callsheet.graphs import load, policy_of

        named = catalogs_of(self.catalogs)
        policy = policy_of(self.policy)
        return partial(load, *named, yes=self.yes, pins=self.pins, policy=policy)

    def again(self, *words: str, without: Collection[str]) -> str:
        """Returns the present command line with these additional words and without the options ``without``."""
        context = click.get_current_context()
        parts = [*context.command_path.split(), *words]
        for option in context.command.params:
            name = option.name or ""
            given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
            if isinstance(option, click.Option) and given and name not in without:
                parts += _as_typed(option, context.params[name])
        if not self.catalogs:
            parts += [word for name in Environment().catalog for word in ("--catalog", name)]
        return shlex.join(parts)

    def _report_problems(self, loaded: Loaded, named: tuple[str, ...]) -> None:
        if not (loaded.catalog.agents or loaded.catalog.skills or loaded.problems):
            click.echo(f"{', '.join(map(shown, named))}: it is empty, or everything in it is disabled", err=True)
        for problem in loaded.problems:
            down = problem.agent in loaded.down and problem.kind in SERVER_TROUBLE
            click.echo(f"{'down' if down else problem.word}: {shown(self.runnable(str(problem)))}", err=True)

    def _report_age(self, loaded: Loaded) -> None:
        """Reports listings whose servers were not asked again, if one is older than an hour."""
        if not loaded.remembered:
            return
        oldest = datetime.fromisoformat(min(loaded.remembered.values()))
        hours = (datetime.now(UTC) - oldest) / timedelta(hours=1)
        if hours >= 1:
            told = f"{len(loaded.remembered)} of the servers were not asked again"
            told += f": their listings are up to {hours:.0f} h old (`callsheet sync` asks them)"
            click.echo(self.runnable(told), err=True)

    def retriever(self, loaded: Loaded, **more: Any) -> AgentGraphRetriever:
        """Returns a retriever over the catalog; shows a progress bar while texts are embedded."""
        from callsheet.retrievers import AgentGraphRetriever

        with progress_bar("Indexing") as progress:
            return AgentGraphRetriever.from_catalog(
                loaded, index=self.place, embeddings=self.embeddings, progress=progress, **more
            )

    def selector(self, loaded: Loaded, **more: Any) -> tuple[Selector, Changes, str | Path | None]:
        """Opens the index without LangChain, whose import takes a second; not restricted to a user.

        Returns:
            The selector, what was changed in the index, and its place; None in memory.
        """
        from callsheet.graphs.trust.policy import User
        from callsheet.retrievers.index.embedding import embedder_of
        from callsheet.retrievers.selection.selector_factory import selector_factory

        factory = selector_factory(loaded, embedder_of(self.embeddings), index=self.place, **more)
        with progress_bar("Indexing") as progress:
            selector, changes = factory.made(loaded, progress)
        if loaded.policy:
            selector = selector.within(loaded.policy.view(selector.catalog, User()))
        return selector, changes, factory.place


def catalogs_of(given: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the catalogs that were named for a command, otherwise those of ``CALLSHEET_CATALOG``.

    Raises a ``SettingsError`` if there are none.
    """
    named = given or Environment().catalog
    if named:
        return named
    raise SettingsError("no catalog: give --catalog PATH, or set CALLSHEET_CATALOG")


def report(content: Mapping[str, Any], text: str | Callable[[], object], *, as_json: bool) -> None:
    """Prints the result of a command: as one JSON object, or as text for people."""
    if as_json:
        click.echo(json.dumps(content, ensure_ascii=False))
    elif isinstance(text, str):  # of a message, it can be called too
        click.echo(text)
    else:
        text()


def save(file: Path, text: str) -> None:
    """Writes the file of ``-o``; raises a usage error if that fails."""
    from callsheet.graphs.storage import replace_bytes

    try:
        replace_bytes(file, text.encode("utf-8", "replace"), mode=0o666)
    except OSError as error:
        raise click.BadParameter(f"{file} cannot be written: {error.strerror}", param_hint="--output") from error


def _as_typed(option: click.Option, value: Any) -> list[str]:
    if option.is_flag:
        return [(option.opts if value else option.secondary_opts)[-1]]
    values = value if option.multiple else (value,)
    return [word for one in values for word in (option.opts[-1], str(one))]


def refuse_before(context: click.Context, command: str) -> None:
    """Raises a usage error for an option that stands before the name of a subcommand, which would ignore it."""
    for option in context.command.params:
        if context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"put {option.opts[0]} after {command!r}, or leave it out")


def together(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Combines several decorators to one; their options stand in the help in this order."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


def env(name: str) -> dict[str, Any]:
    """Returns the keyword arguments that bind an option to the variable ``CALLSHEET_`` and this name."""
    return {"envvar": f"CALLSHEET_{name}", "show_envvar": True}


def _taxonomy(_context: click.Context, _parameter: click.Parameter, file: str | None) -> Taxonomy | None:
    from callsheet.graphs import read_taxonomy

    return read_taxonomy(file) if file else None


def model_option(about: str, **more: Any) -> Callable[[Any], Any]:
    """Makes the option ``--model``; ``check_model_name`` refuses an invalid name before anything is started."""
    return click.option("--model", metavar="PROVIDER:NAME", help=about, **more)


decision_option = click.option(
    "--decision-model", metavar="PROVIDER:NAME", help="Chat model that judges the first tools.  [default: none]"
)


def size_options(agents: int, tools: int, each: str, *, default: str = "10") -> Callable[[Command], Command]:
    """Makes the options ``-k`` and ``--tools`` with these maximum values.

    Neither has a value if it is not given; ``default`` says in the help what then holds for ``--tools``.
    """
    most = click.IntRange(1, agents), click.IntRange(1, tools)
    return together(
        click.option("-k", "agents", type=most[0], help=f"Maximum agents per {each}.  [default: no limit]"),
        click.option("--tools", type=most[1], help=f"Maximum tools per {each}.  [default: {default}]"),
    )


class _NamesOption(click.Option):
    """An option whose help ends with names that only the help imports: ``names`` returns them."""

    def __init__(self, declarations: Sequence[str], *, names: Callable[[], Iterable[str]], **attributes: Any) -> None:
        super().__init__(declarations, **attributes)
        self._names = names
        self._about = self.help or ""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        self.help = f"{self._about}: {', '.join(self._names())}."
        return super().get_help_record(ctx)


def _method_names() -> Iterable[str]:
    from callsheet.retrievers import METHODS

    return METHODS


def _catalog_names() -> Iterable[str]:
    from callsheet.graphs.sources.loading import CATALOG_KINDS

    for kind in CATALOG_KINDS:
        yield from kind.names


def methods_option(name: str, about: str) -> Callable[[Any], Any]:
    """Makes the option ``--method`` or ``--methods``, whose value is the settings of each method by name."""
    metavar = "NAME" if name == "--method" else "NAME,..."
    return click.option(name, cls=_NamesOption, names=_method_names, metavar=metavar, callback=_methods, help=about)


def _methods(_context: click.Context, parameter: click.Parameter, given: str | None) -> dict[str, SelectSettings]:
    from callsheet.retrievers import METHODS

    names = [] if given is None else given.replace(" ", "").split(",") if parameter.name == "methods" else [given]
    unknown = [name for name in names if name not in METHODS]
    if unknown:
        near = near_names(unknown[0], METHODS)
        raise click.BadParameter(f"there is no method {unknown[0]!r}{near}; there are {', '.join(METHODS)}")
    return {name: METHODS[name] for name in names}


def output_option(about: str) -> Callable[[Any], Any]:
    """Makes the option ``-o``, which is passed as ``file``."""
    return click.option("-o", "--output", "file", type=FILE, help=about)


FILE = click.Path(path_type=Path, dir_okay=False)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object, and nothing else, on standard output."
)
catalog_option = click.option(
    "--catalog",
    "catalogs",
    multiple=True,
    metavar="PATH",
    cls=_NamesOption,
    names=_catalog_names,
    help="Repeatable.  [default: CALLSHEET_CATALOG]  A catalog is a module:object, the address of an API's "
    "specification or of a domain with Server Cards, or a path of one of these",
)
taxonomy_option = click.option(
    "--taxonomy",
    callback=_taxonomy,
    metavar="NAME|FILE",
    **env("TAXONOMY"),
    help="Capabilities: default (the paper's), detailed, or a file with your own in addition.",
)
approval_option = click.option(
    "--approval",
    default="ask",
    type=click.Choice(["ask", "never", "always"]),
    **env("APPROVAL"),
    help="Whether to ask before calls: of tools that are not known to be harmless, never (but before what may delete), "
    "or always. A tool that is allowed by name is not asked about.",
)
run_options = together(model_option("Chat model for planner, workers and answer.", **env("MODEL")), approval_option)
index_options = together(
    click.option(
        "--index",
        "place",
        metavar="PLACE",
        **env("INDEX"),
        help="Folder, Chroma server's address, or module:object of a VectorStore.  [default: the user's cache]",
    ),
    click.option("--embeddings", default="minilm", **env("EMBEDDINGS"), help="minilm (embedded), or provider:model."),
)
_loading = together(
    catalog_option,
    click.option("--policy", metavar="FILE", help="Who may see and call which tools.  [default: CALLSHEET_POLICY]"),
    click.option("--pins", metavar="FILE", help="File of accepted tool definitions.  [default: CALLSHEET_PINS]"),
    click.option("--yes", is_flag=True, help="Start the commands of the catalog without asking."),
    json_option,
)


def catalog_options(command: Command) -> Command:
    """Adds the options for loading a catalog: ``--catalog``, ``--policy``, ``--pins``, ``--yes`` and ``--json``."""
    names = {field.name for field in fields(CatalogOptions)}

    @wraps(command)
    def with_options(**values: Any) -> Any:
        options = CatalogOptions(**{name: values.pop(name) for name in names & values.keys()})
        try:
            return command(options=options, **values)
        except CallsheetError as error:
            told = options.runnable(str(error))
            if told == str(error):
                raise
            raise SettingsError(told) from error

    decorated: Any = _loading(with_options)
    return decorated  # type: ignore[no-any-return]


def common(command: Command) -> Command:
    """Adds ``catalog_options`` and ``index_options``."""
    return index_options(catalog_options(command))


def check_model_name(name: str | None) -> None:
    """Creates a chat model before anything is started, so that an invalid name is reported at once."""
    if name:
        from callsheet.agents import chat_model

        chat_model(name)


def allowed_catalog(loaded: Loaded) -> Catalog:
    """Returns the part of a catalog that the policy allows, and reports how much is hidden."""
    if loaded.policy is None:
        return loaded.catalog
    view = loaded.policy.view(loaded.catalog)
    if len(view.tools) < len(loaded.catalog.tools):
        click.echo(view.summary(len(loaded.catalog.tools)), err=True)
    return view.catalog


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Shows a progress bar on standard error, which is updated with (done, total); does nothing without a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def open_calls_named(loaded: Loaded, thread: str = "") -> Iterator[None]:
    """Names, if the block is interrupted, the calls that were running, on standard error.

    SIGTERM ends the block as Ctrl-C does: servers end, and the outcome of the calls is recorded as unknown.

    Args:
        loaded: The catalog whose tools are called.
        thread: The thread of the run; calls of other threads are named only if this process made them.
    """
    with _terminated_like_interrupted():
        try:
            yield
        except (KeyboardInterrupt, click.Abort):
            for line in left_open(loaded, thread):
                click.echo(f"\n{line}", err=True)
            raise


def left_open(loaded: Loaded, thread: str = "") -> list[str]:
    """Returns the calls that this process or a thread has left open, each with the command that settles it."""
    ledger = CallLedger(loaded.label)
    here = ProcessIdentity.here()
    try:
        entries = [one for one in ledger.entries() if not one.is_settled and (one.owner == here or one.run == thread)]
    except TrustError as error:
        return [str(error)]
    how = "Look whether it did, and say so with"
    return [shown(f"{one.tool_id} {one.stopped.told}. {how} {ledger.how_to_settle(one.id)}") for one in entries]


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """Makes SIGTERM act as SIGINT in the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
