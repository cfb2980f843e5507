"""Plans, works and answers without a model: it fills a form, reads, and asks."""
