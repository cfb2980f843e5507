"""How the scales and shifts of the embedded model were trained: not a dependency of the project, run by hand."""
