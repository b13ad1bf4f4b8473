"""The subscription language: queries from text, JSON or Python, and their normal forms."""

from tocsin.language.build.expressions import (
    Clause,
    Expression,
    all_of,
    any_of,
    attr,
    avg,
    count,
    duration,
    maximum,
    minimum,
    param,
    span,
    total,
)
from tocsin.language.build.queries import StreamBuilder, TableBuilder, stream, table
from tocsin.language.check import Checked, check
from tocsin.language.json_form import Json, from_json, to_json
from tocsin.language.normal import Cnf, Dnf, to_cnf, to_dnf, to_nnf, to_normal
from tocsin.language.parsing.parser import parse, parse_condition
from tocsin.language.printer import condition_text, to_text
from tocsin.language.template import Template, TemplateRows

__all__ = [
    "Checked",
    "Clause",
    "Cnf",
    "Dnf",
    "Expression",
    "Json",
    "StreamBuilder",
    "TableBuilder",
    "Template",
    "TemplateRows",
    "all_of",
    "any_of",
    "attr",
    "avg",
    "check",
    "condition_text",
    "count",
    "duration",
    "from_json",
    "maximum",
    "minimum",
    "param",
    "parse",
    "parse_condition",
    "span",
    "stream",
    "table",
    "to_cnf",
    "to_dnf",
    "to_json",
    "to_nnf",
    "to_normal",
    "to_text",
    "total",
]
