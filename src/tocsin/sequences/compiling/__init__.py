"""The compiler: a sequence's expression becomes an automaton.

A chain of steps is read from the expression; every name becomes the value it stands for, of the event at hand or held
from before; conditions move to the earliest place where they mean the same; and what each node has to hold follows,
from the end backwards, from what comes after it.
"""

from tocsin.sequences.compiling.compiler import compile_expression
from tocsin.sequences.compiling.parameters import parameters_in_programs

__all__ = ["compile_expression", "parameters_in_programs"]
