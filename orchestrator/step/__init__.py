"""What the supervisor does around one step: selection, the offer to the worker, missing values, observation."""
