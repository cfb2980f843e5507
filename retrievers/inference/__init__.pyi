from .dependency_judge import DependencyReview as DependencyReview, judge_dependencies as judge_dependencies
from .dependency_proposals import infer_dependencies as infer_dependencies, with_inferred as with_inferred
