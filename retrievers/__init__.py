"""Finding: from a request to the agents and tools that serve it.

What stands on LangChain is imported when it is first used: that costs a second.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
