"""The values that all other rooms share: results of calls, limits, plans, costs, and the context of a call."""
