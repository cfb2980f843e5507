"""Values in a text: numbers with units, places, time zones, formulas, quotations."""
