"""Random MLIR programs, put to the passes of compilers: is what a pass gives a refinement of what it gets?"""
