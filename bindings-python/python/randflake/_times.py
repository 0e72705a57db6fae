"""Unix milliseconds as datetimes, which end with the year 9999, and back."""

from datetime import UTC, datetime, timedelta

from randflake.errors import InvalidArgumentError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def datetime_of(unix_ms: int) -> datetime:
    """Returns an aware datetime in UTC."""
    try:
        return _EPOCH + timedelta(milliseconds=unix_ms)
    except OverflowError:
        raise InvalidArgumentError(
            f"datetimes end with the year 9999, got {unix_ms} unix milliseconds",
            "INVALID_ARGUMENT",
        ) from None


def unix_ms_of(time: datetime) -> int | None:
    """Returns the millisecond of a datetime, rounded down; None without a time zone."""
    if time.utcoffset() is None:
        return None
    return (time - _EPOCH) // timedelta(milliseconds=1)
