"""Past runs, from the LangGraph server or from threads of the command line."""
