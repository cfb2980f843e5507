"""Dependencies between tools: declared by people, proposed by a program, or observed in runs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
