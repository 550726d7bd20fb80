"""Dependency tokens of VTA order a program's modules, proved for any number of blocks, and for one program."""
