"""What Pegboard costs, beside what it is compared with, in one run. `python -m bench` prints the tables."""
