"""What jobs are expected to need over time, learnt from those that ended. Pure; knows no policy."""
