"""The JSON form: a tree of the same operators.

Every node is an object with one key, the operator, and its arguments in a list; a constant stands for itself.

| node | means |
|---|---|
| `{"and": [c, …]}`, `{"or": [c, …]}`, `{"not": [c]}`, `true`, `false` | conditions |
| `{"=": [t, t]}`, likewise every operator of the language: `{"between": [t, low, high]}`, `{"in": [t, v, …]}`, `{"is missing": [t]}` | predicates |
| `"IBM"`, `1.5`, `true`, `{"timestamp": ["2026-01-01T00:00:00Z"]}` | constants |
| `{"attribute": ["price"]}`, `{"attribute": ["price", "a"]}` | an attribute, and of which event |
| `{"parameter": ["p"]}`, `{"parameters": ["ps"]}` | a template's value, or list of values |
| `{"+": [t, t]}`, `{"negative": [t]}`, `{"duration": []}`, `{"span": [10, "minutes"]}`, `{"avg": [t]}`, `{"count": []}` | other terms |
| `{"all": []}`, first in `select` | `*` beside other items |
"""

from tocsin.language.json_form.reader import from_json, predicate_from_json
from tocsin.language.json_form.writer import Json, predicate_to_json, to_json

__all__ = ["Json", "from_json", "predicate_from_json", "predicate_to_json", "to_json"]
