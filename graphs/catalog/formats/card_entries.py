"""Makes entries of an ``mcp.json`` from Server Cards and from ``server.json`` of the MCP Registry.

A publisher's texts that become part of an entry are checked: none has hidden characters, or refers to a variable of the
reader's environment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from callsheet.graphs.catalog.formats.server_cards import (
    Argument,
    Input,
    NamedInput,
    Package,
    Remote,
    ServerCard,
    Variable,
    shown_line,
)
from callsheet.graphs.errors import CatalogError
from callsheet.graphs.text.hidden import hidden_in
from callsheet.graphs.text.json_schema import JsonObject
from callsheet.graphs.text.regex import linear

_LONGEST = 2_000
_PLACEHOLDER = linear(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_VARIABLE = linear(r"[A-Za-z_][A-Za-z0-9_]*")
_NO_VARIABLE = linear(r"[^A-Z0-9]+")
_VERSION = linear(r"[A-Za-z0-9][A-Za-z0-9.+!_-]*")
_PROJECT = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"


@dataclass(frozen=True, slots=True)
class Need:
    """A value that a server needs from its user.

    Attributes:
        variable: The variable of the environment that is to hold it.
        what: What it is for, as the publisher says, in one line.
        secret: Whether it is a secret.
    """

    variable: str
    what: str
    secret: bool


@dataclass(frozen=True, slots=True)
class Way:
    """One way to reach the server of a card.

    Attributes:
        kind: ``remote``, or the type of the package's registry.
        entry: The entry of an ``mcp.json``.
        needs: The values that it refers to.
        optional: Names of values that it can also have, and that the entry leaves out.
    """

    kind: str
    entry: JsonObject
    needs: tuple[Need, ...]
    optional: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ways:
    """The usable ways to reach a server, the preferred one first, and why others cannot be used."""

    usable: tuple[Way, ...]
    refused: tuple[str, ...]


def ways_of(card: ServerCard, prefix: str) -> Ways:
    """Returns the ways to reach the server of a card: addresses before packages, which start a program.

    ``prefix`` begins the names of variables for values that have none of their own.
    """
    usable: list[Way] = []
    refused: list[str] = []
    remotes = sorted(card.remotes, key=lambda remote: remote.type != "streamable-http")
    for remote in remotes:
        try:
            usable.append(_remote_way(remote, prefix))
        except CatalogError as error:
            refused.append(f"{shown_line(remote.url)}: {error}")
    for package in card.packages:
        try:
            usable.append(_package_way(package, prefix))
        except CatalogError as error:
            refused.append(f"{shown_line(package.registry_type)} package {shown_line(package.identifier)}: {error}")
    return Ways(tuple(usable), tuple(refused))


def _checked(text: str) -> str:
    """Returns a text that may become a part of an entry."""
    if len(text) > _LONGEST:
        raise CatalogError(f"one of its texts is longer than {_LONGEST:,} characters")
    if hidden_in(text) or not text.isprintable():
        raise CatalogError(f"{shown_line(text)!r} has characters that are not shown")
    if "${" in text:
        raise CatalogError(f"{shown_line(text)!r} refers to your environment, which a publisher may not do")
    return text


class _Filling:
    """Fills in the values of one way, and collects those that the user must give."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._needs: dict[str, Need] = {}
        self._optional: list[str] = []

    @property
    def needs(self) -> tuple[Need, ...]:
        return tuple(self._needs.values())

    @property
    def optional(self) -> tuple[str, ...]:
        return tuple(self._optional)

    def value(self, given: Variable, label: str, *, variable: str = "") -> str | None:
        """Returns what an entry holds for an input: its value, its default, or a reference; None if it is left out."""
        if given.value is not None:
            return self.template(given.value, given.variables if isinstance(given, Input) else {})
        if given.default is not None and not given.is_secret:
            return _checked(given.default)
        if not given.is_required:
            self._optional.append(_checked(label))
            return None
        return self._reference(given, label, variable)

    def template(self, text: str, variables: Mapping[str, Variable]) -> str:
        """Returns a text with its variables filled in; what is not one of them stays as it is."""
        parts: list[str] = []
        end = 0
        for match in _PLACEHOLDER.finditer(text):
            variable = variables.get(match[1])
            if variable is None:
                continue
            value = self.value(variable.model_copy(update={"is_required": True}), match[1])
            parts += [_checked(text[end : match.start()]), value or ""]
            end = match.end()
        return "".join([*parts, _checked(text[end:])])

    def _reference(self, given: Variable, label: str, variable: str) -> str:
        name = variable
        if not _VARIABLE.fullmatch(name):
            name = _NO_VARIABLE.sub("_", f"{self._prefix}_{label}".upper()).strip("_")
            name = name if _VARIABLE.fullmatch(name) else f"MCP_{name}"
        what = shown_line(given.description or label)
        if given.choices:
            what += f" (one of {', '.join(map(shown_line, given.choices[:10]))})"
        while name in self._needs and self._needs[name].what != what:
            name += "_2"  # another value, whose name differs only in characters that a variable cannot have
        self._needs[name] = Need(name, what, given.is_secret)
        return f"${{{name}}}"


def _remote_way(remote: Remote, prefix: str) -> Way:
    """Returns the entry for an address."""
    types = {"streamable-http": "http", "sse": "sse"}
    if remote.type not in types:
        raise CatalogError(f"the transport {shown_line(remote.type)!r} is unknown")
    filling = _Filling(prefix)
    url = filling.template(remote.url, remote.variables)
    if not url.lower().startswith(("http://", "https://")) or _PLACEHOLDER.search(url.replace("${", "")):
        raise CatalogError("it is no address with http:// or https://, or has a variable that the card does not define")
    entry: JsonObject = {"type": types[remote.type], "url": url}
    headers = _named(remote.headers, filling)
    if headers:
        entry["headers"] = headers
    return Way("remote", entry, filling.needs, filling.optional)


def _named(inputs: Sequence[NamedInput], filling: _Filling, *, variables: bool = False) -> dict[str, str]:
    """Returns headers, or variables of a process, by name; a variable is read from one of the same name."""
    found: dict[str, str] = {}
    for given in inputs:
        name = _checked(given.name)
        value = filling.value(given, name, variable=name if variables else "")
        if value is not None:
            found[name] = value
    return found


@dataclass(frozen=True, slots=True)
class _Runtime:
    """The program that starts the packages of a registry: its arguments before and after the package.

    Attributes:
        home: The registry from which it takes packages by itself.
        identifier: The form of the name of a package; anything else could be an option, a path or an address.
        joint: Stands between a package and its version.
    """

    command: str
    home: str
    identifier: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    joint: str = "@"


_RUNTIMES: Mapping[str, _Runtime] = {
    "npm": _Runtime("npx", "https://registry.npmjs.org", rf"(?:@{_PROJECT}/)?{_PROJECT}", before=("-y",)),
    "pypi": _Runtime("uvx", "https://pypi.org", _PROJECT),
    "nuget": _Runtime("dnx", "https://api.nuget.org", _PROJECT, after=("--yes", "--")),
    "oci": _Runtime(
        "docker",
        "https://docker.io",
        r"[a-z0-9](?:[a-z0-9._:/-]*[a-z0-9])?(?:@sha256:[0-9a-f]{64})?",
        before=("run", "-i", "--rm"),
        joint=":",
    ),
}


def _package_way(package: Package, prefix: str) -> Way:
    """Returns the entry that starts a package."""
    runtime = _RUNTIMES.get(package.registry_type)
    if runtime is None:
        raise CatalogError(f"only packages of {', '.join(_RUNTIMES)} can be started: install it yourself")
    _check_package(package, runtime)
    filling = _Filling(prefix)
    env = _named(package.environment_variables, filling, variables=True)
    args = [*runtime.before]
    args += [word for word in _arguments(package.runtime_arguments, filling) if word not in runtime.before]
    if package.registry_type == "oci":
        # The process in the container has only the variables that its command names.
        args += [word for name in env for word in ("-e", name)]
    versioned = package.version and not ("@" in package.identifier[1:] or (runtime.joint == ":" and _tag(package)))
    args.append(f"{package.identifier}{runtime.joint}{package.version}" if versioned else package.identifier)
    own = _arguments(package.package_arguments, filling)
    args += [*runtime.after, *own]
    entry: JsonObject = {"command": runtime.command, "args": args}
    if env:
        entry["env"] = env
    return Way(package.registry_type, entry, filling.needs, filling.optional)


def _tag(package: Package) -> bool:
    """Returns whether the name of an image ends with a tag."""
    return ":" in package.identifier.rpartition("/")[2]


def _check_package(package: Package, runtime: _Runtime) -> None:
    """Refuses what would not start the package of the registry that a reader sees."""
    if package.transport.type != "stdio":
        raise CatalogError("it is a server over HTTP that you must start yourself")
    if not linear(runtime.identifier).fullmatch(package.identifier):
        raise CatalogError(f"its name is none of a package of {runtime.home}")
    if package.version and not _VERSION.fullmatch(package.version):
        raise CatalogError(f"{shown_line(package.version)!r} is not one version")
    home = package.registry_base_url.rstrip("/")
    if home and home.removesuffix("/v3/index.json") != runtime.home:
        raise CatalogError(f"it is in another registry than {runtime.home}: {shown_line(home)}")
    if package.runtime_hint not in ("", runtime.command):
        raise CatalogError(
            f"it wants to be started by {shown_line(package.runtime_hint)!r}, not by {runtime.command!r}"
        )


def _arguments(arguments: Sequence[Argument], filling: _Filling) -> list[str]:
    """Returns arguments as they stand in a command; a flag with an empty value stands alone."""
    words: list[str] = []
    for given in arguments:
        flag = _checked(given.name) if given.type == "named" else ""
        value = filling.value(given, given.value_hint or flag.lstrip("-") or "argument")
        if value is not None:
            words += [word for word in (flag, value) if word]
    return words
