"""Values of both sides compared: folds step by step, by induction, and in memory."""
