"""Sources of catalogs: what a user may name, and how it is loaded with its servers, pins and policy."""
