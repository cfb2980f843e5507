"""The nodes around one step: selection, offers to the worker, missing values, observation."""
