"""What all stand-ins for a leased generator or a counter in a test have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self, SupportsIndex, TypeVar

from randflake._async import Opening
from randflake._changes import logger
from randflake.errors import InvalidArgumentError, RandflakeError, RetryLaterError, StoreError

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable
    from types import TracebackType

    import numpy as np
    from numpy.typing import NDArray

    from randflake._randflake import Randflake, Snowflake, Tickets, _Int64Buffer
    from randflake.errors import _Code

_Made = TypeVar("_Made")

RETRY_LATER = ("LEASE_UNAVAILABLE", "SEQUENCE_EXHAUSTED", "CLOCK_MOVED_BACK", "LEASE_NOT_STARTED")
LASTING = ("LIFETIME_OVER", "CLOCK_BEFORE_EPOCH", "FORKED", "CLOSED", "INTERNAL")

_BROKEN = "the store of a test is broken"


class Fake:
    """Stands in for a real one, and has one inside."""

    _flake: Randflake | Snowflake | Tickets
    _failures: deque[RandflakeError]
    _retry_later: ClassVar[tuple[str, ...]] = RETRY_LATER
    _lasting: ClassVar[tuple[str, ...]] = LASTING

    def _call(self, generate: Callable[..., _Made], *arguments: object) -> _Made:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def _log(self) -> None:
        logger.warning(
            "made a %s, which is for tests: others make the same ids", type(self).__qualname__
        )

    def _fail_next(self, code: _Code, retry_after: float, times: int) -> None:
        codes = self._retry_later + self._lasting
        if code not in codes:
            raise invalid(f"generate raises one of {', '.join(codes)}, got {code!r}")
        for _ in range(times):
            self._failures.append(failure(code, retry_after))

    def generate(self) -> int:
        """Generates an id, or hands out a number, as a real one does."""
        return self._call(self._flake.generate)

    def generate_many(self, n: SupportsIndex) -> list[int]:
        """As a real one does."""
        return self._call(self._flake.generate_many, n)

    def generate_array(self, n: SupportsIndex) -> NDArray[np.int64]:
        """As a real one does."""
        return self._call(self._flake.generate_array, n)

    def fill(self, buffer: _Int64Buffer) -> None:
        """As a real one does."""
        self._call(self._flake.fill, buffer)

    async def generate_many_async(self, n: SupportsIndex) -> list[int]:
        """As generate_many, on this thread."""
        return self.generate_many(n)

    async def generate_array_async(self, n: SupportsIndex) -> NDArray[np.int64]:
        """As generate_array, on this thread."""
        return self.generate_array(n)

    async def aclose(self) -> None:
        """As close."""
        self.close()

    def __enter__(self) -> Self:
        self._flake.__enter__()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        self.close()

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return self._flake.__reduce_ex__(protocol)  # which refuses

    def __dir__(self) -> list[str]:
        return sorted({*dir(type(self)), *dir(self._flake)})

    if not TYPE_CHECKING:

        @property
        def __class__(self) -> type:
            """Makes isinstance take it for the class that it replaces, as unittest.mock does."""
            return self._flake.__class__

        def __getattr__(self, name: str) -> object:
            if name == "_flake":  # it could not be made
                raise AttributeError(name)
            return getattr(self._flake, name)


class Opened(Opening[_Made]):
    """What leased_async returns: there is no store to wait for."""

    def __init__(self, flake: _Made) -> None:
        super().__init__(lambda: flake, (), None)
        self._opened = flake

    async def _open(self) -> _Made:
        return self._opened


def failure(code: _Code, retry_after: float, cause: StoreError | None = None) -> RandflakeError:
    if code not in RETRY_LATER:
        return RandflakeError("a test lets this call fail", code)
    error = RetryLaterError("a test lets this call fail", code, retry_after)
    if code == "LEASE_UNAVAILABLE":
        error.__cause__ = cause or StoreError(_BROKEN, "STORE_UNAVAILABLE", retry_after)
    return error


def broken(code: _Code, codes: tuple[str, ...]) -> StoreError:
    """Returns the error of a store, if it is one of these."""
    if code not in codes:
        raise invalid(f"the error of a store is one of {', '.join(codes)}, got {code!r}")
    return StoreError(_BROKEN, code, 1.0)


def invalid(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(message, "INVALID_ARGUMENT")
