"""Plans, work and answers where there is no model: fill a form, read, ask."""

from callsheet.agents.no_model.no_model import NoModel

__all__ = ["NoModel"]
