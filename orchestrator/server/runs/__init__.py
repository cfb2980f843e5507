"""Shows and starts runs, on the LangGraph server or in threads of the command line."""
