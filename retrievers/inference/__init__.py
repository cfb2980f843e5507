"""Proposes dependencies from names, schemas and descriptions."""

from callsheet.retrievers.inference.dependency_proposals import infer_dependencies

__all__ = ["infer_dependencies"]
