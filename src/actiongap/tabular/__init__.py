"""The exact side: MDPs, their solution, the operators iterated on them, and the paper's theorems as checks."""
