"""The errors that Callsheet raises; each message says what is wrong, where, and how to correct it."""


class CallsheetError(Exception):
    """Base class of the errors that Callsheet raises."""


class CatalogError(CallsheetError, ValueError):
    """A catalog, or a file that it is read from, is invalid."""


class UnknownNameError(CallsheetError, KeyError):
    """The catalog has no agent or tool of this name."""

    def __str__(self) -> str:
        """The message without the quotation marks that KeyError adds."""
        return str(self.args[0])


class SettingsError(CallsheetError, ValueError):
    """A setting has an invalid value."""


class TrustError(CallsheetError):
    """A command of the catalog has no consent, or the stored pins cannot be used."""


class RequestError(CallsheetError, ValueError):
    """A request or a query is too long."""


class PlanError(CallsheetError, ValueError):
    """A plan is not a directed acyclic graph of existing steps."""
