"""VTA, a tensor accelerator with tasks ordered by tokens: instruction set, ILA, scheduling and products with tokens.

The model is trusted to describe VTA at the level of its 128-bit instructions.  The public implementations (a C++
simulator, an HLS design, a Chisel design) and the published ILA disagree; each point of disagreement is an option.
Nothing is proved here; mappings are proved against what is written here.  ``model`` has the ILA, ``isa`` the words,
``program`` program files, ``products`` programs with tokens, and ``order`` executes and checks such programs.
"""
