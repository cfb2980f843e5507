"""The end of a program in the middle of its work."""


class PowerCut(BaseException):
    """Raised where a program is cut off; no handler of an ``Exception`` catches it."""
