"""Rules, lemmas and theorems as subjects: what they claim, how they are proved, what a proof of them must contain."""
