"""The operators inside other people's agents: one module for each library, which is imported there and nowhere else."""
