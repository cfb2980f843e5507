"""Does steps of a plan: the worker, its task and its tools, and the final answer."""
