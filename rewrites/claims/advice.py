"""What helps where a proof of a mapping ends in UNKNOWN: advice by the words of the reason."""

from __future__ import annotations

import re

METHODS = frozenset({"bmc", "chc", "hash"})
"""The methods that give such reasons."""

_BOUND = "compute on more bits, or state the missing bound in the size domain"
_INITIAL = (
    "set it in the program before it is read, or pair it as an input; a store of zeros in a loop of its own makes a "
    "sum's first value known"
)
_SAMPLES = "give sample_shapes: a few small shapes of the size domain at which every loop has an iteration"
_SHAPE = (
    "another form of loop or address is needed (LIMITATIONS.md says which are followed); --method bmc with a --shape "
    "proves this program at one shape"
)
_SPLIT = "split the loop as `cell` is split, so that each counter is a coordinate, or a quotient or remainder of one"
_TRIED = "look at this place of the program with the values of the solver's model, which stand below"
_CASES = (
    "if the program is right at these sizes, they may show a case that no sample shows: add them to sample_shapes, or "
    "shapes that show every case, such as one block, one with a rest, and several with and without one; or "
)

_TIME = (
    "give solvers more time (--timeout); where that does not help, write addresses as concatenations or products of "
    "few sizes, and state bounds on products of sizes in the size domain"
)

ADVICE: tuple[tuple[str, str], ...] = (
    (
        r"needs the answer (unsat;(?!.*: sat\b)|sat;(?!.*: unsat\b)).*"
        r": unknown (timeout|TIMEOUT|canceled|interrupted|RESOURCEOUT|max\. (resource|memory))",
        _TIME,
    ),
    (
        r"\(lemmas\) needs the answer",
        "correct the lemma, which must hold for all operands, whether they occur or not",
    ),
    (
        r"\(values\) needs the answer unsat.*: sat",
        "both sides must apply the same functions in the same order: state a lemma for functions that differ, leave "
        "functions out of abstract whose bodies matter, or use --method hash for sums in another order",
    ),
    (
        r"\(coordinates\) needs the answer",
        "correct `cell`, whose coordinates must reach every element of the output: their extents must multiply to its "
        "rows and columns, and rows and columns must have the coordinates as digits, the last one the least",
    ),
    (r"\(no overflow\) needs the answer|may leave its|divides by what may be 0", _BOUND),
    (
        r"\(health\) needs the answer",
        "the output must depend on the paired inputs: check inputs, output and what the program sends",
    ),
    (
        r"needs the answer unsat.*: unknown",
        _TIME,
    ),
    (
        r"meet the index together",
        "let loops that carry a sum, or lead to one, run in one order on both sides, or add by one operator that is "
        "associative and commutative on all bits",
    ),
    (
        r"not shown to be injective|only the fold's iterations' .*: sat",
        "give each counter digits of its own in the address, and state in the size domain that they fit",
    ),
    (r"\([^)]*: (cells|accumulation)\b[^)]*\) needs the answer unsat;.*: sat.*no run at these sizes", _CASES + _TRIED),
    (r"needs the answer \w+;.*: (sat|unsat)", _TRIED),
    (
        r"must select exactly one instruction|not shown to be a valid command|of .* selects|is not valid|is reserved",
        "write addresses as concatenations of literals with the part that varies, so that decodes fold to true or "
        "false; give iterations that mean another instruction a loop of their own",
    ),
    (
        r"whether and where .* writes depends",
        "store in every iteration, and let data choose the value (ite(condition, new, old)) in place of whether it is "
        "stored; registers that say where must be set in the program before",
    ),
    (
        r"as it was before the program|which the program does not determine|which no device tensor corresponds to"
        r"|has no word for may keep its value",
        _INITIAL,
    ),
    (r"no term was found|not numbered by its counters|does not write a cell of .* often enough", _SPLIT),
    (
        r"which write gives a cell|begins anew in its first iteration",
        "store in one loop over all cells, or let a first or last iteration, a size or a block decide which store it "
        "is; write zeros before the first addition, and give `cell` coordinates where the device works in blocks; "
        "single shapes are proved by --method bmc with a --shape",
    ),
    (
        r"do not correspond: they run|folds .* loops where the IR folds|registers of different sorts"
        r"|is no single register|written by others while|no value of the IR corresponds"
        r"|reads an element of .* that the IR does not|in any order|the device's summands|begin with different values"
        r"|runs more often than that of the IR|sums of loops where the IR has"
        r"|the device folds by|folds by no operator|the step of a fold"
        r"|an? (index|condition on indices)\b",
        "let the IR's loops run as the device's do, with equal extents over the whole size domain and registers of the "
        "same widths; a mask is a register that is too narrow; sums in another order must read the same elements of "
        "inputs, each as often; leave functions that add to a sum out of abstract",
    ),
    (r"sample shapes?\b|at any sample|no sample satisfies|sample sizes|sample_shapes", _SAMPLES),
    (
        r"Spacer|no invariant",
        "write the loop with plain counters from 0 and one store, or split it into such loops",
    ),
    (r"depends on no input|must depend on an input", "pair the tensors that the output is made of as inputs"),
    (
        r"takes longer than the timeout|pairs would be compared|summands to be written out",
        "choose a smaller --shape, or --method chc, which proves every size",
    ),
    (
        r"more than its counter can count|more iterations than its|counted with more than 32 bits",
        "give the counter as many bits as its extent needs, and not more than 32",
    ),
    (
        r"accumulates (over|in turn)|how often .* adds|depends on what it holds"
        r"|as often as a memory says|a memory that is a term|stores data"
        r"|an address that|under a condition that stays open|carries a register|reads .* and writes it"
        r"|is not followed from|of its own|whole memory|depends on a register|writes \S+ depending on its registers"
        r"|no integer counterpart|must not depend on what|is no size|not known while unrolling|no single memory"
        r"|has no value here|used outside of the loops"
        r"|memory that a term makes|more than \w+ cases|addresses of .* depend on other data"
        r"|copies|stands beside stores|must have a literal extent|the definition of",
        _SHAPE,
    ),
    (
        r"use --method (bmc|chc)|differ on values that were tried|of a sum|uninterpreted, .*bit by bit",
        "sums by one commutative, associative operator on all bits are declared in `sums`; --method bmc keeps their "
        "order, and chc where it must",
    ),
    (
        r"steps that were found do not prove|a step must be used at numbers|invariant given for",
        "report this claim, for a guess of the prover was wrong, which proves nothing; --method bmc decides one shape",
    ),
)
"""Patterns that are searched in the reason of an UNKNOWN, each with what helps; the first one that is found counts."""


def advice_for(reason: str) -> str:
    """What helps where a proof ended with this reason; empty where nothing is known.

    >>> advice_for("this operation may leave its 8 bits: n + 1")
    'compute on more bits, or state the missing bound in the size domain'
    """
    return next((advice for pattern, advice in ADVICE if re.search(pattern, reason, re.DOTALL)), "")
