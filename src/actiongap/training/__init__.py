"""Training: run folders, checkpoints, the loop compiled into one program, evaluation."""
