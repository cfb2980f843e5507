"""What tools can do in the words of a taxonomy: which tool has what, what a request asks for, and the discovery."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
