"""Make `import lancedb` cost a third of its CPU time by loading on demand what anchord never uses.

Two thirds of lancedb's import (0.9 of 1.4 CPU seconds, 18 MB) go into three packages:

- `lance_namespace` and `lance_namespace_urllib3_client`, a generated OpenAPI client for remote
  catalogs. lancedb names a few of their classes in annotations. Stand-ins take their place in
  `sys.modules`: a name of theirs is a proxy that loads the real package when it is called, asked
  for an attribute, derived from, or used with `isinstance`.
- `overrides`, which compares the signatures of all of lancedb's overridden methods while the
  classes are made. On Python 3.12 and later lancedb uses a decorator that does nothing instead;
  here it gets such a one on Python 3.11, during its own import alone.

Of what is left, a sixth goes into modules of lancedb's own that anchord does not use either: they
have stand-ins of the same kind.

Importing this module installs a finder for the module `lancedb`. `anchord.store.table` imports it,
so it is in place before any module there imports lancedb. A program that imported lancedb before
is left as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, TypeVar, Union

_UNUSED_PACKAGES = (
    "lance_namespace",
    "lance_namespace_urllib3_client",
    "lance_namespace_urllib3_client.models",
)
_UNUSED_MODULES = (
    "lancedb.embeddings",
    "lancedb.embeddings.registry",
    "lancedb.functions",
    "lancedb.namespace",
)
"""Models that lancedb itself would call, functions of its cloud, and catalogs."""
Method = TypeVar("Method")


class _LazyName:
    """Stands for a name of a package that is not loaded yet."""

    def __init__(self, package: _LazyPackage, name: str) -> None:
        self._package = package
        self._name = name

    def _load(self) -> Any:  # noqa: ANN401 - whatever the package defines
        return getattr(self._package.load(), self._name)

    def __call__(self, *args: object, **options: object) -> object:
        return self._load()(*args, **options)

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)  # typing and inspect look these up.
        return getattr(self._load(), name)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self._load())

    def __subclasscheck__(self, subclass: type) -> bool:
        return issubclass(subclass, self._load())

    def __mro_entries__(self, _bases: tuple[object, ...]) -> tuple[object, ...]:
        return (self._load(),)  # A class that is derived from it is derived from the real one.

    def __or__(self, other: object) -> object:
        return Union[self, other]  # noqa: UP007 - the two are joined at run time

    __ror__ = __or__


class _LazyPackage(ModuleType):
    """Stands for a package until a name of it is used; its submodules can be imported meanwhile."""

    def __init__(self, spec: ModuleSpec) -> None:
        super().__init__(spec.name)
        self.__spec__ = spec
        self.__loader__ = spec.loader
        self.__file__ = spec.origin
        self.__package__ = spec.parent
        if spec.submodule_search_locations is not None:
            self.__path__ = list(spec.submodule_search_locations)
        self._is_loaded = False

    def load(self) -> ModuleType:
        """Run the package's own `__init__`, once."""
        if not self._is_loaded:
            self._is_loaded = True  # Before the load: the names that it looks up come back here.
            for name in list(self.__dict__):
                if isinstance(self.__dict__[name], _LazyName):
                    del self.__dict__[name]
            if self.__spec__ and self.__spec__.loader:
                self.__spec__.loader.exec_module(self)
        return self

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") or self._is_loaded:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        lazy = _LazyName(self, name)
        self.__dict__[name] = lazy
        return lazy


class _LightLoader(Loader):
    """lancedb's own loader, with the stand-ins in place while it runs."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        _install_lazy_packages(_UNUSED_PACKAGES)
        _install_lazy_packages(_UNUSED_MODULES)
        with _unchecked_overrides():
            self._loader.exec_module(module)


class _LancedbFinder(MetaPathFinder):
    """Finds the module `lancedb` where Python does, and gives it the loader above."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "lancedb":
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec and spec.loader:
            spec.loader = _LightLoader(spec.loader)
        return spec


def _install_lazy_packages(names: Sequence[str]) -> None:
    for name in names:
        parent, _, own_name = name.rpartition(".")
        if name in sys.modules:
            continue
        search_path = sys.modules[parent].__path__ if parent in sys.modules else None
        spec = PathFinder.find_spec(name, search_path)
        if spec:  # A later lancedb may need it no more.
            sys.modules[name] = _LazyPackage(spec)
            if parent in sys.modules:  # As the import of a submodule does.
                setattr(sys.modules[parent], own_name, sys.modules[name])


@contextmanager
def _unchecked_overrides() -> Iterator[None]:
    if sys.version_info >= (3, 12):
        yield
        return
    stand_in = ModuleType("overrides")
    stand_in.__dict__.update(override=_keep, EnforceOverrides=object)
    before = sys.modules.get("overrides")
    sys.modules["overrides"] = stand_in
    try:
        yield
    finally:
        del sys.modules["overrides"]
        if before:
            sys.modules["overrides"] = before


def _keep(method: Method) -> Method:
    return method


def _install() -> None:
    if "lancedb" not in sys.modules:
        sys.meta_path.insert(0, _LancedbFinder())


_install()
