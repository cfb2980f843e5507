"""The methods that are compared: ours, the papers' baselines, rivals."""
