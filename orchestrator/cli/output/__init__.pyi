from .catalog_output import (
    show_assignments as show_assignments,
    show_discovery as show_discovery,
    show_evaluation as show_evaluation,
    show_findings as show_findings,
    show_model_evaluation as show_model_evaluation,
    show_proposals as show_proposals,
)
from .console import SafeConsole as SafeConsole
from .run_output import Show as Show, show_selection as show_selection
