"""Callsheet: for every step of a request, the agents it needs and which of their tools.

Everything public is imported when it is first used, so that ``import callsheet`` costs next to nothing.
"""

import lazy_loader

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
