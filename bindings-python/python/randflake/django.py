"""Ids in Django: a model field, a URL converter, and one generator for the project.

    from django.db import models
    from randflake.django import RandflakeField

    class Order(models.Model):
        id = RandflakeField(primary_key=True)

The database has a BIGINT; everything else in Django has the id's text: attributes, forms, the
admin, URLs, fixtures and sessions.
"""

# The attribute is a text, with or without a form: Django turns keys into strings in the admin, in
# choices, in fixtures and in links, and reads them back, and a string of digits could be a number
# or a text. So a string is always a text here, and a number an int. The field is no subclass of a
# field of integers, which the admin shows with separators of thousands.

from __future__ import annotations

from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.conf import settings
from django.core.exceptions import EmptyResultSet, ImproperlyConfigured, ValidationError
from django.core.signals import setting_changed
from django.db import models
from django.db.models.fields.related import lazy_related_operation, resolve_relation
from django.db.models.fields.related_descriptors import ForeignKeyDeferredAttribute
from django.db.models.lookups import Exact, PatternLookup, Regex
from django.db.models.query_utils import DeferredAttribute
from django.db.models.signals import class_prepared
from django.http import HttpResponse
from django.utils.deprecation import MiddlewareMixin

from randflake._form import form_of
from randflake._randflake import Randflake
from randflake.errors import InvalidArgumentError, RetryLaterError
from randflake.text import TextForm

if TYPE_CHECKING:
    from randflake._randflake import LeasedRandflake

__all__ = ["IdConverter", "RandflakeField", "RetryLaterMiddleware", "generator", "new_id"]

_made: dict[str, LeasedRandflake] = {}


def generator() -> LeasedRandflake:
    """Returns the generator of the project, which leases its node id with its first id.

    It is configured by RANDFLAKE in the settings: a dict with the arguments of Randflake.lazy in
    capital letters, such as STORE, SECRET, NAMESPACE and TTL, or with SECRET_FILE, the path of a
    file with the secret. What is missing comes from the environment: RANDFLAKE_STORE,
    RANDFLAKE_SECRET or RANDFLAKE_SECRET_FILE, RANDFLAKE_NAMESPACE.

    Raises ImproperlyConfigured for wrong settings.

    >>> from django.test import override_settings
    >>> from randflake.django import generator
    >>> with override_settings(RANDFLAKE={"STORE": "redis://127.0.0.1/0", "TTL": 60}):
    ...     generator().node_ids
    ()
    """
    if not _made:
        try:
            # The generator of a second thread that gets here is not used, and leases nothing.
            _made.setdefault("generator", Randflake.lazy(**_options()))
        except (InvalidArgumentError, TypeError, OSError) as error:
            raise _wrong(error) from error
    return _made["generator"]


def new_id() -> int:
    """Returns a new id of the project's generator: the default of a RandflakeField.

    Raises what generate raises, and ImproperlyConfigured for wrong or missing settings.

    >>> import tempfile
    >>> from django.test import override_settings
    >>> from randflake import generate_secret
    >>> from randflake.django import generator, new_id
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = {"STORE": folder + "/ids.db", "SECRET": generate_secret()}
    ...     with override_settings(RANDFLAKE=store):
    ...         new_id() != new_id()
    ...         generator().close()
    True
    """
    try:
        return generator().generate()
    except InvalidArgumentError as error:  # of the secret, or of the environment
        raise _wrong(error) from error


class _Number(int):
    """The number in the database. It equals the text, since Django may compare it with attributes.

    Django does so when it prefetches generic foreign keys, and when it sets many-to-many relations.
    """

    text: str

    def __new__(cls, number: int, text: str) -> _Number:
        made = super().__new__(cls, number)
        made.text = text
        return made

    def __getnewargs__(self) -> Any:
        return int(self), self.text

    def __eq__(self, other: object) -> bool:
        return self.text == other if isinstance(other, str) else super().__eq__(other)

    def __hash__(self) -> int:
        return hash(self.text)


class RandflakeField(models.Field):
    """A BIGINT in the database, and the text of an id everywhere else.

    The attribute of a model is the text; a number that it is set to becomes its text. Queries take
    a text, or an int for the number inside, as for a range of Snowflakes. A primary key is not
    shown in forms and has new_id as its default; any other field has a default only if you give it
    one.

    form: how the ids look outside; None for the plain text. It is not part of migrations.

    Raises InvalidTypeError for another kind of form, and InvalidArgumentError with
    INVALID_ARGUMENT for a primary key with a cloak or codes and no default. Queries raise
    InvalidArgumentError with INVALID_ID, which is a ValueError, for a text that is not an id.

    >>> from randflake.django import RandflakeField
    >>> from randflake.text import TextForm
    >>> field = RandflakeField(form=TextForm("user"))
    >>> field.to_python("user_3vgoe12ccb8gh"), field.get_prep_value("user_3vgoe12ccb8gh")
    ('user_3vgoe12ccb8gh', 4594531474933654033)
    """

    def __init__(self, *args: Any, form: TextForm | None = None, **options: Any) -> None:
        self.form = form_of(form)
        if options.get("primary_key"):
            if (self.form.cloak or self.form.codes) and "default" not in options:
                raise InvalidArgumentError(
                    "a cloak and codes are for numbers that sort: pass as default a function of a "
                    "module that returns one, such as generate of a Snowflake or of Tickets",
                    "INVALID_ARGUMENT",
                )
            options = {"default": new_id, "editable": False, **options}
        super().__init__(*args, **options)

    def get_internal_type(self) -> str:
        return "BigIntegerField"

    def get_lookup(self, lookup_name: str) -> Any:
        """Returns only lookups that compare: others would search in decimal digits."""
        lookup = super().get_lookup(lookup_name)
        return None if lookup and issubclass(lookup, PatternLookup | Regex) else lookup

    def from_db_value(self, value: int | None, *_: object) -> str | None:
        return None if value is None else self.form.encode(value)

    def get_prep_value(self, value: Any) -> _Number | None:
        value = super().get_prep_value(value)
        if value is None:
            return None
        number = self.form.decode(value) if isinstance(value, str) else value
        return _Number(number, self.form.encode(number))

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        value = super().get_db_prep_value(value, connection, prepared)
        return int(value) if isinstance(value, _Number) else value

    def to_python(self, value: Any) -> str | None:
        """Reads input from outside, which must be a text: the numbers of JSON may be rounded."""
        if value is None:
            return None
        try:
            return self.form._as_written(value)
        except InvalidArgumentError as error:
            raise ValidationError(str(error), code="invalid") from error

    def formfield(self, **options: Any) -> Any:
        # A CharField, as for any field.
        return super().formfield(**{"validators": [self.to_python], "empty_value": None, **options})

    class descriptor_class(DeferredAttribute):
        """Makes the attribute the text, no matter what it is set to."""

        def __set__(self, instance: Any, value: Any) -> None:
            instance.__dict__[self.field.attname] = self.field._outside(value)

    def _outside(self, value: Any) -> Any:
        if isinstance(value, str) and self.form.codes is not None:
            # What is no code is refused by what reads the attribute, as any other text.
            with suppress(InvalidArgumentError):
                return self.form._as_written(value)
        return self.form.encode(value) if hasattr(value, "__index__") else value


class _KeyAttribute(ForeignKeyDeferredAttribute):
    """Makes the attribute of a foreign key the text, too: prefetching compares it with a `pk`."""

    def __init__(self, field: Any, target: RandflakeField) -> None:
        super().__init__(field)
        self.target = target

    def __set__(self, instance: Any, value: Any) -> None:
        super().__set__(instance, self.target._outside(value))


@RandflakeField.register_lookup
class _InSearch(Exact):
    """The lookup of `search_fields = ["=id"]` in the admin: other words match nothing."""

    lookup_name = "iexact"
    prepare_rhs = False

    def get_db_prep_lookup(self, value: Any, connection: Any) -> Any:
        try:
            value = self.lhs.output_field.get_prep_value(value)
        except InvalidArgumentError:
            raise EmptyResultSet from None
        return super().get_db_prep_lookup(value, connection)


class IdConverter:
    """Reads ids in URLs, and writes them. A text that is not an id is a 404.

    form: how the ids look; a class of your own may have another one.

        from django.urls import register_converter
        from randflake.django import IdConverter
        from randflake.text import TextForm

        class OrderConverter(IdConverter):
            form = TextForm("order")

        register_converter(IdConverter, "id")  # path("users/<id:pk>/", user)
        register_converter(OrderConverter, "order")  # path("orders/<order:pk>/", order)

    >>> from randflake.django import IdConverter
    >>> IdConverter().to_python("3vgoe12ccb8gh")
    '3vgoe12ccb8gh'
    """

    regex = "[^/]+"
    form = TextForm()

    def to_python(self, value: str) -> str:
        """Returns the text, a code as its form writes it.

        Raises InvalidArgumentError with the code INVALID_ID, which Django treats as no match.
        """
        return self.form._as_written(value)

    def to_url(self, value: int | str) -> str:
        """Returns the text of an id.

        value: the text, or the number inside.

        Raises InvalidArgumentError with the code INVALID_ID.
        """
        return self.to_python(value) if isinstance(value, str) else self.form.encode(value)


class RetryLaterMiddleware(MiddlewareMixin):
    """Answers 503 with Retry-After while there is no id, also for Django REST framework.

    That is when a view raises RetryLaterError, such as LEASE_UNAVAILABLE while the store is
    unreachable.

        MIDDLEWARE = ["randflake.django.RetryLaterMiddleware", ...]

    >>> from randflake import RetryLaterError
    >>> from randflake.django import RetryLaterMiddleware
    >>> error = RetryLaterError("no lease yet", "LEASE_UNAVAILABLE", 1.5)
    >>> answer = RetryLaterMiddleware(lambda request: None).process_exception(None, error)
    >>> answer.status_code, answer["Retry-After"]
    (503, '2')
    """

    def process_exception(self, _request: Any, error: Exception) -> Any:
        """Returns the answer to an error, or None for any other error."""
        if isinstance(error, RetryLaterError):
            seconds = max(1, ceil(error.retry_after))
            return HttpResponse(status=503, headers={"Retry-After": str(seconds)})
        return None


def _options() -> dict[str, Any]:
    """Returns what Randflake.lazy takes.

    Django's error page shows the variables of functions: this one fails without having the secret.
    """
    given = getattr(settings, "RANDFLAKE", {})
    if not isinstance(given, dict):
        kind = type(given).__qualname__
        del given
        raise TypeError(f"it must be a dict, got {kind}")
    options = {str(name).lower(): value for name, value in given.items()}
    path = options.pop("secret_file", None)
    if path is None:
        return options
    if options.get("secret") is not None:
        del given, options
        raise TypeError("SECRET and SECRET_FILE are both set; remove one of them")
    return {**options, "secret": Path(path).read_text("utf-8", errors="replace").strip()}


def _wrong(error: Exception) -> Any:
    return ImproperlyConfigured(f"RANDFLAKE in the settings, or the environment: {error}")


def _forget(*, setting: str, **_: object) -> None:
    """Makes another generator when a test sets RANDFLAKE."""
    if setting == "RANDFLAKE":
        _made.clear()


setting_changed.connect(_forget)


def _prepare_keys(sender: Any, **_: object) -> None:
    for field in sender._meta.local_fields:
        if isinstance(field, models.ForeignKey):
            _when_known(sender, field, field)


def _when_known(model: Any, field: Any, key: Any) -> None:
    """Looks at the target of a key, once that is loaded. It may be a foreign key itself."""

    def prepare(_model: Any, related: Any) -> None:
        name = key.remote_field.field_name or related._meta.pk.name  # as Django will set it
        target = related._meta.get_field(name)
        if target.remote_field:
            _when_known(model, field, target)
        # Any other kind of attribute stays as it is.
        elif isinstance(target, RandflakeField) and (
            type(vars(model).get(field.attname)) is ForeignKeyDeferredAttribute
        ):
            setattr(model, field.attname, _KeyAttribute(field, target))

    lazy_related_operation(prepare, model, resolve_relation(key.model, key.remote_field.model))


for _models in apps.all_models.values():
    for _model in _models.values():  # the ones of applications that were loaded before
        _prepare_keys(_model)
class_prepared.connect(_prepare_keys)
