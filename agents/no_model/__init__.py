"""Plans, work and answers where there is no model: fill a form, read, ask."""
