"""One arbitrary element of a tensor as a term over several number formats, with folds and quantified conditions."""
