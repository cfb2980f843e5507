"""Values that a text names: numbers with units, places, time zones, formulas, quotations."""
