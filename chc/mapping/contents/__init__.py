"""What cells hold, as terms and folds: what one write stored, and what several of them add up or do in turn."""
