"""Finds agents and tools for a request.

Modules that use LangChain are imported on first use, because LangChain takes a second to import.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
