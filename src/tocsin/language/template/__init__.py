"""Templates: one text with parameters, many rows of values, and no parse per row."""

from tocsin.language.template.columns import Column, Rows
from tocsin.language.template.template import Template, TemplateRows

__all__ = ["Column", "Rows", "Template", "TemplateRows"]
