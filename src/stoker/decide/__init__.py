"""Policy and prediction: pure functions of values, with the time as an argument. Knows no process and no clock."""
