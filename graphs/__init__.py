"""Agents, tools, their owners and dependencies, read from catalogs and validated once."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
