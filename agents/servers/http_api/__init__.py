"""APIs over HTTP that an OpenAPI specification describes: read, fetched and called like servers."""
