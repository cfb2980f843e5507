"""Result files, statistics and the tables of the documentation."""
