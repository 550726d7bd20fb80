"""The language in which accelerators, tensor operators and programs are described.

Typed expressions, instruction-level abstractions (ILAs), kernels (loop nests) and program fragments, with the
scalar interpreter that gives them meaning.  This package trusts only Python and NumPy; it proves nothing itself
and imports no solver.  All other packages interpret what is written here.
"""

from .interpreter.compile import Memory, compile_function, compile_kernel, compile_terms
from .interpreter.flatten import child_differs, child_ila, run_child
from .interpreter.machine import CommandError, Machine, run_fragment
from .language import simplify as _simplify  # noqa: F401  (registers itself with the constructors)
from .language.build import all_of, any_of, concat, const, false, ite, load_bytes, store_bytes, true
from .language.expr import Expr, Function, free_variables, postorder, resize, substitute, substitute_all, var
from .language.fragment import Fragment
from .language.function import inline, inline_all, primitive, uninterpreted
from .language.kernel import Command, ExtentError, For, Kernel, Let, Load, Statement, Store, walk
from .language.model import Ila, Instruction
from .language.sorts import BOOL, BoolSort, BvSort, MemSort, Sort, bv, mem
from .native.arrays import ArrayMemory, run_on_arrays
from .packages import require_packages
from .streams.simulator import CommandStream, Simulator
from .text.listing import show_expr, show_ila, show_kernel, show_statements
from .text.portable import canonical_text, digest, fragment_to_json, function_to_json, ila_to_json, kernel_to_json
from .text.portable_read import PortableError, fragment_from_json, function_from_json, ila_from_json, kernel_from_json

require_packages()  # all of them import this one first

__all__ = [
    "BOOL",
    "ArrayMemory",
    "BoolSort",
    "BvSort",
    "Command",
    "CommandError",
    "CommandStream",
    "Expr",
    "ExtentError",
    "For",
    "Fragment",
    "Function",
    "Ila",
    "Instruction",
    "Kernel",
    "Let",
    "Load",
    "Machine",
    "MemSort",
    "Memory",
    "PortableError",
    "Simulator",
    "Sort",
    "Statement",
    "Store",
    "all_of",
    "any_of",
    "bv",
    "canonical_text",
    "child_differs",
    "child_ila",
    "compile_function",
    "compile_kernel",
    "compile_terms",
    "concat",
    "const",
    "digest",
    "false",
    "fragment_from_json",
    "fragment_to_json",
    "free_variables",
    "function_from_json",
    "function_to_json",
    "ila_from_json",
    "ila_to_json",
    "inline",
    "inline_all",
    "ite",
    "kernel_from_json",
    "kernel_to_json",
    "load_bytes",
    "mem",
    "postorder",
    "primitive",
    "resize",
    "run_child",
    "run_fragment",
    "run_on_arrays",
    "show_expr",
    "show_ila",
    "show_kernel",
    "show_statements",
    "store_bytes",
    "substitute",
    "substitute_all",
    "true",
    "uninterpreted",
    "var",
    "walk",
]
