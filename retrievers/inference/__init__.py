"""Infers dependencies between tools from names, schemas and descriptions."""

from callsheet.retrievers.inference.dependency_proposals import infer_dependencies, with_inferred

__all__ = ["infer_dependencies", "with_inferred"]
