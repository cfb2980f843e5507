"""What the supervisor's nodes decide with: the request in its conversation, the way to plan, limits, mapped steps."""
