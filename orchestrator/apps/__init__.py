"""Further graphs and components: ask, A-RAG, middleware, folders of documents."""
