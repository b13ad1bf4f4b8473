"""Matchers by name. A registered matcher joins the contract suite, the engine's choice and the benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

from tocsin.language.parsing.cursor import closest
from tocsin.matching.matcher import Matcher
from tocsin.model.errors import MatcherError

__all__ = ["create_matcher", "register", "registered_matchers"]

Factory = TypeVar("Factory", bound=Callable[..., Matcher])

_MATCHERS: dict[str, Callable[..., Matcher]] = {}


def register(name: str) -> Callable[[Factory], Factory]:
    """Return a decorator that makes a matcher known under `name`."""

    def remember(factory: Factory) -> Factory:
        if name in _MATCHERS:
            raise MatcherError(f"two matchers are called `{name}`")
        _MATCHERS[name] = factory
        return factory

    return remember


def registered_matchers() -> Mapping[str, Callable[..., Matcher]]:
    """Return every matcher by its name."""
    return MappingProxyType(_MATCHERS)


def create_matcher(name: str, **options: object) -> Matcher:
    """Return a new, empty matcher.

    >>> create_matcher("orcale")
    Traceback (most recent call last):
    tocsin.model.errors.MatcherError: there is no matcher `orcale`; did you mean `oracle`? Known: oracle
    """
    factory = _MATCHERS.get(name)
    if factory is None:
        near = closest(name, tuple(_MATCHERS))
        hint = f"did you mean `{near}`? " if near else ""
        raise MatcherError(f"there is no matcher `{name}`; {hint}Known: {', '.join(sorted(_MATCHERS))}")
    return factory(**options)
