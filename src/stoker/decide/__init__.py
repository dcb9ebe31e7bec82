"""Pure policy and prediction: values in, values out, with the time as an argument. Knows no process and no clock."""
