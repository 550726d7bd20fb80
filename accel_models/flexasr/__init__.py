"""FlexASR, an accelerator for speech models: ILA, numerics, data layouts and program files.

The model is trusted to describe FlexASR at its MMIO interface, down to its AdaptivFloat numerics.  Nothing is proved
here; the mappings in ``rewrites`` are proved against what is written here.  ``model`` has the ILA and ``units`` what a
start does; ``numerics`` and ``quantise`` the codes, on words and on arrays; ``layout`` addresses; ``program`` program
files; ``options`` the readings.
"""
