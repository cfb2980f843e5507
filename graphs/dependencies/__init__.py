"""Which tool needs which: edges that people wrote, that a program proposed, and that runs showed.

The traversal that Graph RAG-Tool Fusion uses is in `traversal`; files beside a catalog are in `proposals`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
