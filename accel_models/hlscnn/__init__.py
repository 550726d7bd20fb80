"""HLSCNN, an accelerator for two-dimensional convolutions: ILA, number formats, data layouts and program files.

The model is trusted to describe HLSCNN at its AXI port as far as public sources describe it: the accelerator's own
source is not public.  Where they are silent or disagree, :class:`~accel_models.hlscnn.options.HlscnnOptions` has a
parameter.  Nothing is proved here.  ``model`` has the ILA and ``convolution`` its kernel; ``numerics`` and
``quantise`` the numbers, on words and on arrays; ``layout`` addresses; ``program`` program files.
"""
