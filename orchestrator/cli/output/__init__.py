"""Output for people in the terminal."""
