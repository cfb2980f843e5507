"""The errors that a caller of Callsheet can meet; each says what, which and how to cure it."""


class CallsheetError(Exception):
    """Base of every error that Callsheet raises on purpose."""


class CatalogError(CallsheetError, ValueError):
    """A catalog, or a file it is read from, is not valid."""


class UnknownNameError(CallsheetError, KeyError):
    """An agent or a tool was named that the catalog does not hold."""

    def __str__(self) -> str:
        """The message itself: KeyError alone would show it in quotes."""
        return str(self.args[0])


class SettingsError(CallsheetError, ValueError):
    """A setting has a value that cannot work."""


class TrustError(CallsheetError):
    """A command of the catalog has no consent, or stored pins cannot be used."""


class RequestError(CallsheetError, ValueError):
    """A request or a query is longer than it may be."""


class PlanError(CallsheetError, ValueError):
    """A plan is not a directed acyclic graph of known steps."""
