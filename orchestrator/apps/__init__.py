"""Other graphs and components beside the supervisor: ask, A-RAG, middleware, folders of documents."""
