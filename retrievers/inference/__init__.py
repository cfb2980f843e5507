"""Infers dependencies between tools from names, schemas and descriptions; a decision model can judge them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
