"""Matchers by name. A registered matcher joins the contract suite, the engine's choice and the benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from inspect import signature
from types import MappingProxyType
from typing import TypeVar

from tocsin.language.parsing.cursor import closest
from tocsin.matching.matcher import Matcher
from tocsin.model.errors import MatcherError

Factory = TypeVar("Factory", bound=Callable[..., Matcher])

_MATCHERS: dict[str, Callable[..., Matcher]] = {}
_DECLARED: dict[str, str] = {}  # matchers whose module is imported when one is made


def declare(module: str, *names: str) -> None:
    """Make matchers known without importing the module that registers them."""
    _DECLARED.update(dict.fromkeys(names, module))


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
    declared = {name: partial(create_matcher, name) for name in _DECLARED}
    return MappingProxyType({**declared, **_MATCHERS})


def create_matcher(name: str, **options: object) -> Matcher:
    """Return a new, empty matcher.

    >>> create_matcher("orcale")
    Traceback (most recent call last):
    tocsin.model.errors.MatcherError: there is no matcher `orcale`; did you mean `oracle`? Known: ...
    """
    factory = _factory(name)
    _check_options(name, factory, options)
    return factory(**options)


def thread_options(name: str, threads: int) -> dict[str, int]:
    """Return the options with which a matcher uses so many threads; raise `MatcherError` if it uses one only."""
    if threads == 1:
        return {}
    if "threads" not in signature(_factory(name)).parameters:
        raise MatcherError(f"the matcher `{name}` matches with one thread; `adaptive` takes more")
    return {"threads": threads}


def _factory(name: str) -> Callable[..., Matcher]:
    """Return what makes a matcher; its module is imported."""
    if name in _DECLARED and name not in _MATCHERS:
        import_module(_DECLARED[name])
    factory = _MATCHERS.get(name)
    if factory is None:
        known = sorted({*_MATCHERS, *_DECLARED})
        near = closest(str(name), tuple(known))
        hint = f"did you mean `{near}`? Known" if near else "known"
        raise MatcherError(f"there is no matcher `{name}`; {hint}: {', '.join(known)}")
    return factory


def _check_options(name: str, factory: Callable[..., Matcher], options: Mapping[str, object]) -> None:
    """Raise `MatcherError` if a matcher has no such option."""
    taken = tuple(signature(factory).parameters)
    for option in options:
        if option not in taken:
            near = closest(option, taken)
            hint = f"; did you mean `{near}`?" if near else ""
            known = f"Its options: {', '.join(taken)}" if taken else "It has none"
            raise MatcherError(f"the matcher `{name}` has no option `{option}`{hint or '.'} {known}")


def name_of(matcher: Matcher) -> str:
    """Return the name that a matcher's class is registered under."""
    for name, factory in _MATCHERS.items():
        if factory is type(matcher):
            return name
    raise MatcherError(f"`{type(matcher).__name__}` is not a registered matcher")
