"""What all that is done is made of: results of calls, limits, plans, costs, and the context of a call."""
