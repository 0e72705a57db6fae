"""randflake.django and randflake.rest_framework, with the real ones, the newest and the oldest."""

import doctest
import json
import os
import pickle
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPException
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

import django
import psycopg
import pymysql
import pytest
import randflake.django
import randflake.rest_framework
import servers
from asgiref.sync import async_to_sync
from conftest import ROOT, eventually
from django.apps import apps
from django.contrib.auth.tokens import default_token_generator
from django.core import serializers
from django.core.exceptions import FieldError, ImproperlyConfigured, ValidationError
from django.core.management import call_command
from django.db import IntegrityError, connection, connections, models
from django.db.migrations.writer import MigrationWriter
from django.db.models import Case, Exists, F, OuterRef, Prefetch, Subquery, Value, When
from django.db.models.functions import Coalesce
from django.forms import modelformset_factory
from django.test import AsyncClient, Client, RequestFactory, override_settings
from django.test.utils import isolate_apps
from django.urls import NoReverseMatch, Resolver404, resolve, reverse
from django.utils.http import urlsafe_base64_decode, urlsafe_base64_encode
from django.views.debug import technical_500_response
from randflake import (
    Codes,
    InvalidArgumentError,
    InvalidTypeError,
    RandflakeError,
    StoreError,
    decode_string,
    encode_string,
    init_store,
    list_leases,
)
from randflake.django import RandflakeField, generator, new_id
from randflake.rest_framework import IdsAsText
from randflake.testing import FakeRandflake
from randflake.text import TextForm
from rest_framework import serializers as rest_serializers
from rest_framework.serializers import (
    ListField,
    ModelSerializer,
    PrimaryKeyRelatedField,
    Serializer,
)
from shop.models import CLOAK, LAYOUT, SECRET, Gift, Note, Order, Post, Remark, User
from shop.urls import OrderForm, OrderSerializer, PostConverter, PostSerializer, UserConverter

CODES = Codes(SECRET, "orders", check=3)
DIGITS = decode_string("1234567890123")
"""The id of a text that looks like a number."""

IDS = [4594531474933654033, -4594531474933654033, DIGITS, 0, -1, 2**63 - 1, -(2**63)]
BAD_TEXTS = ["", "0" * 13, "01", "vvvvvvvvvvvvv", "3vgoe12ccb8gH", "user-1", "-1", " 1", "1_1", "é"]

flake = FakeRandflake()
KEYED: list[Any] = [Order, User, Post]


@pytest.fixture(autouse=True)
def ids() -> Iterator[None]:
    """One generator for all tests, without a store."""
    with patch("randflake.django.generator", lambda: flake):
        yield


def test_the_oldest_versions(older: Callable[..., None]) -> None:
    older("django==4.2", "djangorestframework==3.15.0")


# --- the field --------------------------------------------------------------


def newest() -> None:
    """Skips what takes long with older versions, which do the same."""
    if django.VERSION < (5,):
        pytest.skip("the newest version is asked")


SQLITE = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}


def settings_of(server: servers.Server) -> dict[str, Any]:
    if server.kind == "mariadb":
        # A stand-in for mysqlclient, which would have to be compiled.
        pymysql.version_info = (2, 2, 1, "final", 0)
        pymysql.install_as_MySQLdb()
    url = urlsplit(server.url())
    return {
        "ENGINE": f"django.db.backends.{server.scheme}",
        "NAME": url.path.strip("/"),
        "USER": url.username,
        "PASSWORD": servers.PASSWORD,
        "HOST": "127.0.0.1",
        "PORT": server.port,
    }


@contextmanager
def using(database: dict[str, Any]) -> Iterator[None]:
    connections["default"].close()
    before = connections.settings
    connections.settings = connections.configure_settings({"default": database})
    del connections["default"]
    try:
        call_command("migrate", run_syncdb=True, verbosity=0)
        yield
    finally:
        connections["default"].close()
        connections.settings = before
        del connections["default"]


@pytest.fixture(scope="module", params=["sqlite", "postgresql", "mariadb"])
def tables(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Any]]:
    if request.param == "mariadb":
        newest()
    starters = {"postgresql": servers.postgres, "mariadb": servers.mariadb}
    with ExitStack() as stack:
        database = SQLITE
        if request.param != "sqlite":
            folder = tmp_path_factory.mktemp(request.param)
            database = settings_of(stack.enter_context(starters[request.param](folder)))
        stack.enter_context(using(database))
        yield [Remark, Note, Gift, Order, Post, User]


@pytest.fixture
def database(tables: list[Any]) -> None:
    """Empty tables, in each kind of database."""
    for model in tables:
        model.objects.all().delete()


def number_inside(thing: Any) -> int:
    """Returns what the database itself has as the key."""
    table, column = thing._meta.db_table, thing._meta.pk.column
    with connection.cursor() as cursor:
        cursor.execute(f"select {column} from {table}")
        ((number,),) = cursor.fetchall()
    assert isinstance(number, int)
    return number


@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize("model", KEYED)
@pytest.mark.usefixtures("database")
def test_the_database_has_the_number_and_the_attribute_the_text(model: Any, id: int) -> None:
    text = model._meta.pk.form.encode(id)
    for given in (id, text):
        made = model.objects.create(pk=given)
        assert made.pk == text
        assert number_inside(made) == id
        found = model.objects.get(pk=given)
        assert (found, found.pk, hash(found)) == (made, text, hash(made))
        found.delete()


@pytest.mark.parametrize("model", KEYED)
@pytest.mark.usefixtures("database")
def test_a_default_is_a_new_id(model: Any) -> None:
    made = [model(**({"username": str(n)} if model is User else {})) for n in range(100)]
    texts = {each.pk for each in made}
    assert len(texts) == 100
    assert all(re.fullmatch(model._meta.pk.form.pattern, text) for text in texts)
    model.objects.bulk_create(made)
    assert set(model.objects.values_list("pk", flat=True)) == texts
    assert model.objects.in_bulk(list(texts)).keys() == texts


@pytest.mark.usefixtures("database")
def test_queries_take_texts_and_numbers() -> None:
    orders = [Order.objects.create(id=id, title=str(id)) for id in IDS]
    for id, order in zip(IDS, orders, strict=True):
        text = encode_string(id)
        assert order.id == text
        for given in (id, text):
            assert Order.objects.get(id=given) == order
            assert Order.objects.get(pk__in=[given]) == order
            assert Order.objects.get_or_create(id=given) == (order, False)
            assert Order.objects.filter(id=given).update(title="seen") == 1
            assert Order.objects.exclude(pk=given).count() == len(IDS) - 1
            larger = Order.objects.filter(id__gt=given).count()
            assert larger == sum(other > id for other in IDS)
    assert [order.id for order in Order.objects.order_by("id")] == list(
        map(encode_string, sorted(IDS))
    )
    assert Order.objects.filter(id__range=(-10, "a")).count() == 2
    assert Order.objects.filter(id__gte=0, id__lt=1).values().get()["id"] == "0"
    assert Order.objects.aggregate(models.Max("id")) == {"id__max": encode_string(2**63 - 1)}
    assert Order.objects.filter(id=None).count() == 0
    assert Order.objects.filter(id=models.F("id")).count() == len(IDS)
    assert Order.objects.filter(id__in=Order.objects.filter(id=-1)).get().id == encode_string(-1)
    with pytest.raises(IntegrityError):
        Order.objects.bulk_create([Order(id=-1)])


@pytest.mark.usefixtures("database")
def test_relations_have_texts() -> None:
    for number, id in enumerate(IDS):
        user = User.objects.create(id=id, username=str(id))
        for given in (user, user.pk, id):
            name = "user" if given is user else "user_id"
            order = Order.objects.create(**{name: given})
            assert Order.objects.get(user=given, pk=order.pk).user_id == user.pk
        assert Order.objects.filter(user__id=user.pk).count() == 3
        assert Order.objects.filter(user__in=[id]).count() == 3
        assert {order.user for order in user.order_set.select_related("user")} == {user}
        assert {order.user for order in user.order_set.prefetch_related("user")} == {user}
        order.refresh_from_db()
        order.parent, order.title = order, "any"
        order.full_clean()
        order.save()
        assert order.order_set.get() == order
        gift = Gift.objects.create(id=encode_string(number + 1000), wish="any")
        assert Gift.objects.get(pk=gift.pk).order_ptr.pk == gift.pk == encode_string(number + 1000)
        post = Post.objects.create(pk=id)
        post.tags.add(order)
        assert post.tags.get() == order
        assert Post.objects.get(tags=order.pk) == post


@pytest.mark.usefixtures("database")
def test_a_column_that_is_no_key_may_be_null_and_has_no_default() -> None:
    order = Order.objects.create()
    assert Order.objects.get(elsewhere=None) == order
    Order.objects.update(elsewhere=DIGITS)
    order.refresh_from_db()
    assert order.elsewhere == "1234567890123"
    assert Order.objects.defer("elsewhere").get().elsewhere == "1234567890123"
    order.elsewhere = models.F("elsewhere")
    order.save()
    (raw,) = Order.objects.raw("select * from shop_order")
    assert (raw.id, raw.elsewhere) == (order.id, "1234567890123")
    raw.elsewhere = -1
    assert Order.objects.bulk_update([raw], ["elsewhere"]) == 1
    assert Order.objects.get(elsewhere__isnull=False) == order
    assert Order.objects.get(elsewhere=-1).elsewhere == "fvvvvvvvvvvvv"


@pytest.mark.usefixtures("database")
def test_a_note_is_about_anything() -> None:
    for id in IDS:
        order = Order.objects.create(pk=id)
        note = Note.objects.create(thing=order)
        note.refresh_from_db()
        assert (note.object_id, note.thing) == (encode_string(id), order)
        assert order.notes.get() == note
        assert Order.objects.get(notes=note) == order
        assert Order.objects.prefetch_related("notes").get(pk=id).notes.count() == 1


def texts_of(expression: Any, **filters: Any) -> list[Any]:
    """Returns the value of an expression for the orders that are found."""
    return list(Order.objects.filter(**filters).values_list(expression, flat=True))


PLAIN, OF_USER = "1234567890123", "user_1234567890123"
ORDERS_OF = Order.objects.filter(user=OuterRef("pk"))

# Each path of the guide's table, and its result for an order with this id.
PATHS: dict[str, tuple[Callable[[], Any], Any]] = {
    "values": (
        lambda: Order.objects.values("id", "user", "user__id").get(pk=DIGITS),
        {"id": PLAIN, "user": OF_USER, "user__id": OF_USER},
    ),
    "aggregate": (lambda: Order.objects.aggregate(x=models.Max("user")), {"x": OF_USER}),
    "in_bulk": (lambda: list(Order.objects.in_bulk([DIGITS])), [PLAIN]),
    "F": (lambda: texts_of(F("user__id")), [OF_USER]),
    "subquery": (
        lambda: list(User.objects.values_list(Subquery(ORDERS_OF.values("id")), flat=True)),
        [PLAIN],
    ),
    "exists": (lambda: User.objects.filter(Exists(ORDERS_OF)).count(), 1),
    "case": (
        lambda: texts_of(Case(When(pk=PLAIN, then=F("user")), default=F("parent"))),
        [OF_USER],
    ),
    "value": (lambda: texts_of(Value("5", output_field=RandflakeField())), ["5"]),
    "coalesce": (lambda: texts_of(Coalesce("parent", "id")), [PLAIN]),
    "in another column": (lambda: texts_of("pk", id__in=[F("id")]), [PLAIN]),
    "union": (
        lambda: list(Order.objects.values_list("id").union(Order.objects.values_list("id"))),
        [(PLAIN,)],
    ),
    "update": (
        lambda: (Order.objects.update(parent=DIGITS), texts_of("parent"))[1],
        [PLAIN],
    ),
    "update_or_create": (
        lambda: Order.objects.update_or_create(id=PLAIN, defaults={"elsewhere": 77})[0].elsewhere,
        "2d",
    ),
    "bulk_update of a key": (
        lambda: (
            Order.objects.bulk_update([Order(pk=PLAIN, parent_id=DIGITS)], ["parent"]),
            texts_of("parent"),
        )[1],
        [PLAIN],
    ),
    "pickle of a query": (
        lambda: pickle.loads(pickle.dumps(Order.objects.filter(pk=PLAIN))).get().pk,
        PLAIN,
    ),
    "pickle of a row": (lambda: pickle.loads(pickle.dumps(Order.objects.get())).user_id, OF_USER),
    "select_related": (lambda: Order.objects.select_related("user").get().user.pk, OF_USER),
    "prefetch of a key": (lambda: Order.objects.prefetch_related("user").get().user.pk, OF_USER),
    "prefetch backwards": (
        lambda: [it.pk for it in User.objects.prefetch_related("order_set").get().order_set.all()],
        [PLAIN],
    ),
    "prefetch to an attribute": (
        lambda: [
            it.pk
            for it in User.objects.prefetch_related(Prefetch("order_set", to_attr="them"))
            .get()
            .them
        ],
        [PLAIN],
    ),
    "prefetch of many to many": (
        lambda: [it.pk for it in Post.objects.prefetch_related("tags").get().tags.all()],
        [PLAIN],
    ),
    "prefetch of a generic key": (
        lambda: Note.objects.prefetch_related("thing").get().thing.pk,
        PLAIN,
    ),
    "prefetch behind a generic key": (
        lambda: Note.objects.prefetch_related("thing__user").get().thing.user.pk,
        OF_USER,
    ),
    "prefetch of a generic relation": (
        lambda: [it.object_id for it in Order.objects.prefetch_related("notes").get().notes.all()],
        [PLAIN],
    ),
    "many to many, set": (
        lambda: (Post.objects.get().tags.set([DIGITS]), Post.objects.get().tags.get().pk)[1],
        PLAIN,
    ),
}


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.usefixtures("database")
def test_every_path_has_texts(name: str) -> None:
    user = User.objects.create(pk=DIGITS, username="u")
    order = Order.objects.create(pk=DIGITS, user=user)
    Note.objects.create(thing=order)
    Post.objects.create().tags.add(order)
    run, expected = PATHS[name]
    assert run() == expected


@pytest.mark.usefixtures("database")
def test_what_is_set_again_stays() -> None:
    orders = [Order.objects.create(), Order.objects.create()]
    post = Post.objects.create()
    post.tags.set(orders)
    rows = Post.tags.through.objects.order_by("pk")
    before = list(rows.values_list("pk", flat=True))
    for given in (orders, [order.pk for order in orders], [decode_string(o.pk) for o in orders]):
        post.tags.set(given)
        post.tags.add(*given)
        assert list(rows.values_list("pk", flat=True)) == before
    post.tags.set([decode_string(orders[0].pk)])
    assert list(post.tags.all()) == orders[:1]


@isolate_apps("shop")
def test_an_array_of_ids(start: Callable[[str], servers.Server]) -> None:
    from django.contrib.postgres.fields import ArrayField

    ids = ArrayField(RandflakeField())
    keeper = type("Keeper", (models.Model,), {"__module__": "shop.models", "ids": ids})
    with using(settings_of(start("postgres"))):
        with connection.schema_editor() as editor:
            editor.create_model(keeper)
        keeper.objects.create(ids=["1234567890123", -1])
        kept = keeper.objects.get(ids=[DIGITS, -1])
        assert kept.ids == ["1234567890123", encode_string(-1)]
        for looked in ("contains", "contained_by", "overlap", "exact"):
            for given in (["1234567890123", encode_string(-1)], [DIGITS, -1]):
                assert keeper.objects.filter(**{f"ids__{looked}": given}).count() == 1
        assert keeper.objects.filter(ids__0="1234567890123").values_list("ids__1").get() == (
            encode_string(-1),
        )


@pytest.mark.usefixtures("database")
def test_a_foreign_key_is_a_text_as_soon_as_it_is_set() -> None:
    user = User.objects.create(pk=DIGITS, username="u")
    gift = Gift.objects.create(user_id=DIGITS, wish="any")
    models.prefetch_related_objects([gift], "user")
    assert (gift.user_id, gift.user) == (user.pk, user)
    # From an application that was loaded before the adapter.
    assert apps.get_model("admin", "LogEntry")(user_id=DIGITS).user_id == user.pk
    assert Note(kind_id=5).kind_id == 5
    gift.user_id = F("user_id")
    gift.save()
    assert Gift.objects.get(user=user) == gift


@isolate_apps("shop")
def test_a_foreign_key_may_lead_to_one_whose_model_comes_later() -> None:
    def made(name: str, **fields: Any) -> Any:
        return type(name, (models.Model,), {"__module__": "shop.models", **fields})

    first = made("First", key=models.ForeignKey("Second", models.CASCADE))
    second = made("Second", of=models.OneToOneField("Third", models.CASCADE, primary_key=True))
    assert first(key_id=DIGITS).key_id == DIGITS
    made("Third", id=RandflakeField(primary_key=True, form=TextForm("third")))
    assert first(key_id=DIGITS).key_id == second(pk=DIGITS).pk == "third_1234567890123"


@pytest.mark.usefixtures("database")
def test_a_generic_key_to_ids_of_several_forms_is_a_column_of_texts() -> None:
    things = [model.objects.create() for model in (User, Order, Post)]
    for thing in things:
        Remark.objects.create(thing=thing)
    remarks = Remark.objects.order_by("pk")
    assert [remark.thing for remark in remarks] == things
    assert [remark.thing for remark in remarks.prefetch_related("thing")] == things
    assert Remark.objects.get(object_id=things[0].pk).thing == things[0]
    # A column of ids has one form, and refuses the others before a row is written.
    for other in (things[0], things[2]):
        with pytest.raises(InvalidArgumentError, match="an id's text"):
            Note.objects.create(thing=other)
    assert not Note.objects.exists()


def test_a_field_that_the_database_does_not_number_is_no_automatic_one() -> None:
    """What the guide says about DEFAULT_AUTO_FIELD, and its alternative."""
    with (
        override_settings(DEFAULT_AUTO_FIELD="randflake.django.RandflakeField"),
        isolate_apps("shop"),
        pytest.raises(ValueError, match="must subclass AutoField"),
    ):
        type("Bad", (models.Model,), {"__module__": "shop.models"})
    with isolate_apps("shop"):
        meta = type("Meta", (), {"abstract": True})
        names = {"__module__": "shop.models", "Meta": meta}
        base = type(
            "Base",
            (models.Model,),
            {"id": RandflakeField(primary_key=True, form=TextForm("made")), **names},
        )
        made = type("Made", (base,), {"__module__": "shop.models"})
        assert re.fullmatch(TextForm("made").pattern, made().pk)


@pytest.mark.usefixtures("database")
def test_snowflakes_are_found_by_day_and_hidden_outside() -> None:
    now = datetime.now(UTC)
    days = [now - timedelta(days=days) for days in (2, 1, 0)]
    made = [Post.objects.create(pk=LAYOUT.first_id_at(day) + 7) for day in days]
    day = (LAYOUT.first_id_at(days[1]), LAYOUT.last_id_at(days[1]))
    assert Post.objects.get(id__range=day) == made[1]
    assert list(Post.objects.filter(pk__gte=day[0]).order_by("pk")) == made[1:]
    number = LAYOUT.first_id_at(days[1]) + 7
    assert made[1].pk == f"post_{CLOAK.hide_string(number)}"
    # Any guess reveals some number, and half of these are negative in a BIGINT.
    guesses = [f"post_{encode_string(guess)}" for guess in range(20)]
    assert not Post.objects.filter(pk__in=guesses).exists()
    assert not any(Post.objects.filter(pk=guess).exists() for guess in guesses)


@pytest.mark.usefixtures("database")
def test_what_is_no_id_is_refused() -> None:
    order = Order.objects.create()
    for bad in [*BAD_TEXTS, 2**63, -(2**63) - 1, 1.0, b"1", True, object()]:
        if bad is not True:
            with pytest.raises(InvalidArgumentError) as refused:
                Order.objects.get(pk=bad)
            assert refused.value.code == "INVALID_ID"
        with pytest.raises(ValueError, match="an id"):
            Order.objects.filter(elsewhere__in=[bad])
        with pytest.raises(ValidationError):
            Order._meta.pk.to_python(bad)
        with pytest.raises(ValueError, match="an id"):
            Order.objects.create(pk=bad)
    # A number from outside may have been rounded.
    with pytest.raises(ValidationError):
        Order._meta.pk.to_python(4594531474933654033)
    order.elsewhere = "no id"
    with pytest.raises(ValidationError, match="0-9"):
        order.full_clean()
    for text in (encode_string(1), "order_1", "user1", "User_1"):
        with pytest.raises(InvalidArgumentError, match='"user_"'):
            User.objects.get(pk=text)


@pytest.mark.parametrize(
    "lookup",
    ["contains", "icontains", "startswith", "istartswith", "endswith", "iendswith", "regex"],
)
def test_no_query_looks_into_the_decimal_digits(lookup: str) -> None:
    with pytest.raises(FieldError, match=f"Unsupported lookup '{lookup}'"):
        Order.objects.filter(**{f"pk__{lookup}": str(DIGITS)[:4]})


@pytest.mark.usefixtures("sqlite")
def test_a_constraint_has_the_number() -> None:
    condition = "condition" if django.VERSION >= (5, 1) else "check"
    constraint = models.CheckConstraint(**{condition: models.Q(id__gt=-1), "name": "positive"})
    with connection.schema_editor() as editor:
        assert '"id" > -1' in str(constraint.create_sql(Order, editor)).replace("shop_order.", "")
    constraint.validate(Order, Order(pk=0))
    with pytest.raises(ValidationError):
        constraint.validate(Order, Order(pk=-1))


@pytest.mark.usefixtures("sqlite")
def test_ids_are_no_amounts() -> None:
    with pytest.raises(FieldError, match="output_field"):
        Order.objects.annotate(x=F("id") + 1).get()


def test_wrong_declarations_are_refused() -> None:
    for form in ("user", "", CLOAK, TextForm, 0):
        with pytest.raises(InvalidTypeError, match="form must be a TextForm"):
            randflake.rest_framework.RandflakeField(form=form)  # type: ignore[arg-type]
        with pytest.raises(InvalidTypeError, match="form must be a TextForm"):
            RandflakeField(form=form)  # type: ignore[arg-type]
    for hides in (TextForm(cloak=CLOAK), TextForm(codes=CODES)):
        with pytest.raises(InvalidArgumentError, match="pass as default"):
            RandflakeField(primary_key=True, form=hides)
        assert not RandflakeField(form=hides).has_default()


def test_codes_are_the_text_of_a_field() -> None:
    field = RandflakeField(form=TextForm(codes=CODES))
    code = CODES.encode(7)
    assert field.to_python(code) == field.from_db_value(7) == code
    prepared = field.get_prep_value(code)
    assert prepared is not None
    assert int(prepared) == 7
    shown = randflake.rest_framework.RandflakeField(form=TextForm(codes=CODES))
    assert shown.to_internal_value(code) == shown.to_representation(7) == code
    # As it may be typed, it becomes the one that is written, since frameworks compare texts.
    letters = TextForm(codes=Codes(SECRET, "orders", alphabet="crockford"))
    typed = RandflakeField(form=letters)
    code = letters.encode(7)
    assert typed.to_python(code.lower()) == typed._outside(code.lower()) == code
    assert typed._outside("no code") == "no code"
    typed_outside = randflake.rest_framework.RandflakeField(form=letters)
    assert typed_outside.to_internal_value(code.lower()) == code
    converter = randflake.django.IdConverter()
    converter.form = letters
    assert converter.to_python(code.lower()) == converter.to_url(7) == code
    for wrong in ("12345678", "1234567", "", "x" * 8):
        with pytest.raises(ValidationError):
            field.to_python(wrong)
        with pytest.raises(rest_serializers.ValidationError):
            shown.to_internal_value(wrong)


def test_a_migration_has_neither_form_nor_secret() -> None:
    for model in KEYED:
        code, imports = MigrationWriter.serialize(model._meta.pk)
        default = f"{Post.__module__}.new_post" if model is Post else "randflake.django.new_id"
        assert code == (
            f"randflake.django.RandflakeField(default={default}, editable=False, "
            "primary_key=True, serialize=False)"
        )
        assert "import randflake.django" in imports
        # What a migration makes from it.
        again = model._meta.pk.clone()
        assert again.deconstruct()[1:] == model._meta.pk.deconstruct()[1:]
        assert again.form == TextForm()


@pytest.mark.parametrize("kind", ["json", "jsonl", "xml", "python"])
@pytest.mark.usefixtures("database")
def test_fixtures_come_back(kind: str) -> None:
    for id in IDS:
        joined = datetime(2026, 1, 1, tzinfo=UTC)
        user = User.objects.create(id=id, username=str(id), date_joined=joined)
        order = Order.objects.create(id=id, user=user, elsewhere=id)
        order.parent = order
        order.save()
        Post.objects.create(id=id).tags.add(order)
    before = [list(model.objects.order_by("pk").values()) for model in KEYED]
    things = [thing for model in (User, Order, Post) for thing in model.objects.all()]
    written = serializers.serialize(kind, things)
    if kind == "json":
        assert json.loads(written)[0]["pk"] == things[0].pk
    for model in (Post, Order, User):
        model.objects.all().delete()
    for read in serializers.deserialize(kind, written):
        read.save()
    assert [list(model.objects.order_by("pk").values()) for model in KEYED] == before
    assert [post.tags.get().pk for post in Post.objects.order_by("pk")] == [
        encode_string(id) for id in sorted(IDS)
    ]


# --- URLs, forms and the admin ----------------------------------------------


@pytest.fixture
def sqlite() -> Iterator[None]:
    with using(SQLITE):
        yield


@pytest.mark.parametrize("id", IDS)
def test_urls_have_texts(id: int) -> None:
    for name, form in (
        ("order", TextForm()),
        ("user", UserConverter.form),
        ("post", PostConverter.form),
    ):
        text = form.encode(id)
        assert reverse(name, args=[text]) == reverse(name, args=[id]) == f"/{name}s/{text}/"
        assert resolve(f"/{name}s/{text}/").kwargs == {"pk": text}


@pytest.mark.usefixtures("sqlite")
def test_a_url_without_an_id_is_not_found() -> None:
    order = Order.objects.create(pk=-1)
    client = Client()
    assert client.get(reverse("order", args=[order.pk])).content.decode() == order.pk
    assert client.get(reverse("order", args=[5])).status_code == 404
    for bad in BAD_TEXTS:
        assert client.get(f"/orders/{bad}/").status_code == 404
        with pytest.raises(Resolver404):
            resolve(f"/posts/{bad}/")
        with pytest.raises(NoReverseMatch):
            reverse("order", args=[bad])
    for wrong in (2**63, 1.5, None):
        with pytest.raises(NoReverseMatch):
            reverse("order", args=[wrong])


@pytest.mark.usefixtures("sqlite")
def test_forms_show_and_take_texts() -> None:
    user = User.objects.create(pk=DIGITS, username="u")
    parent = Order.objects.create(pk=DIGITS)
    assert "id" not in OrderForm().fields
    shown = OrderForm(instance=Order(elsewhere=DIGITS, user=user)).as_div()
    assert 'value="1234567890123"' in shown
    assert '<option value="user_1234567890123" selected>' in shown
    given = {"elsewhere": "fvvvvvvvvvvvv", "user": user.pk, "parent": parent.pk, "title": "t"}
    form = OrderForm(given)
    assert form.is_valid(), form.errors
    saved = Order.objects.get(pk=form.save().pk)
    assert (saved.elsewhere, saved.user, saved.parent) == ("fvvvvvvvvvvvv", user, parent)
    assert OrderForm(given | {"elsewhere": ""}).save().elsewhere is None
    for bad in set(BAD_TEXTS) - {"", " 1"}:
        assert OrderForm(given | {"elsewhere": bad}).errors.keys() == {"elsewhere"}
        assert OrderForm(given | {"elsewhere": "", "user": bad}).errors.keys() == {"user"}
    assert "elsewhere" in OrderForm(given).errors  # it is unique


@pytest.mark.usefixtures("sqlite")
def test_formsets_have_texts() -> None:
    from django.contrib.contenttypes.forms import generic_inlineformset_factory

    order = Order.objects.create(pk=DIGITS, title="one")
    note = Note.objects.create(thing=order)
    notes = generic_inlineformset_factory(Note, ct_field="kind", fk_field="object_id")
    assert notes(instance=order).forms[0].instance == note
    orders = modelformset_factory(Order, fields=["title"])
    given = {"form-TOTAL_FORMS": 1, "form-INITIAL_FORMS": 1, "form-0-id": order.pk}
    formset = orders({**given, "form-0-title": "two"}, queryset=Order.objects.all())
    assert formset.is_valid(), formset.errors
    assert [saved.title for saved in formset.save()] == ["two"]


@pytest.mark.usefixtures("sqlite")
def test_the_admin_shows_and_takes_texts() -> None:
    staff = User.objects.create_superuser("staff", password="pass")
    client = Client()
    assert client.login(username="staff", password="pass")
    for id in IDS:
        user = User.objects.create(pk=id, username=str(id))
        order = Order.objects.create(pk=id, user=user, elsewhere=id, title="one")
        text, url = encode_string(id), f"/admin/shop/order/{encode_string(id)}/change/"
        listed = client.get("/admin/shop/order/").content.decode()
        assert f'<a href="{url}">{text}</a>' in listed
        assert f'<td class="field-elsewhere">{text}</td>' in listed
        assert f'<option value="user_{text}" selected>' in client.get(url).content.decode()
        change = {"user": user.pk, "parent": text, "elsewhere": text, "title": "two"}
        assert client.post(url, change).status_code == 302
        order.refresh_from_db()
        assert (order.title, order.parent_id, order.user_id) == ("two", text, user.pk)
        assert text in client.get(f"/admin/shop/order/{text}/history/").content.decode()
        for word, count in ((text, 1), (user.pk, 1), (f"{text} two", 1), ("no-id", 0)):
            found = client.get("/admin/shop/order/", {"q": word}).content.decode()
            assert found.count('<td class="field-elsewhere">') == count, word
        asked = {"app_label": "shop", "model_name": "order", "field_name": "parent", "term": text}
        answer = client.get("/admin/autocomplete/", asked).json()
        assert [choice["id"] for choice in answer["results"]] == [text]
        listing = {"form-TOTAL_FORMS": 1, "form-INITIAL_FORMS": 1, "_save": "Save"}
        listing |= {"form-0-id": text, "form-0-title": "three"}
        assert client.post(f"/admin/shop/order/?id={text}", listing).status_code == 302
        order.refresh_from_db()
        assert order.title == "three"
        # As quoted by the admin: the underscore of the prefix.
        url = f"/admin/shop/user/user_5F{text}/change/"
        assert url in client.get("/admin/shop/user/").content.decode()
        inline = {"order_set-TOTAL_FORMS": 2, "order_set-INITIAL_FORMS": 1, "username": str(id)}
        inline |= {"order_set-0-id": text, "order_set-0-user": user.pk, "order_set-0-title": "four"}
        inline |= {"order_set-1-user": user.pk, "order_set-1-title": "new"}
        assert client.post(url, inline).status_code == 302
        assert sorted(user.order_set.values_list("title", flat=True)) == ["four", "new"]
        gift = Gift.objects.create(parent=order, wish="any")
        raw = client.get(f"/admin/shop/gift/{gift.pk}/change/").content.decode()
        assert re.search(rf'name="parent" value="{text}"', raw)
        action = {"action": "delete_selected", "_selected_action": text, "post": "yes"}
        assert client.post("/admin/shop/order/", action).status_code == 302
        assert not Order.objects.filter(pk=id).exists()
    for bad in ("no-id", str(2**70)):
        assert client.get(f"/admin/shop/order/{bad}/change/").status_code == 302
    assert client.session["_auth_user_id"] == staff.pk


@pytest.mark.usefixtures("sqlite")
def test_a_link_for_a_new_password_finds_the_user() -> None:
    """In the form that the views of django.contrib.auth make and read."""
    for id in IDS:
        user = User.objects.create(pk=id, username=str(id))
        link = urlsafe_base64_encode(str(user.pk).encode())
        found = User.objects.get(pk=urlsafe_base64_decode(link).decode())
        assert default_token_generator.check_token(found, default_token_generator.make_token(user))


# --- Django REST framework --------------------------------------------------


@pytest.mark.parametrize("id", IDS)
@pytest.mark.usefixtures("sqlite")
def test_json_has_texts_both_ways(id: int) -> None:
    client = Client()
    text = encode_string(id)
    user = User.objects.create(pk=id, username="u")
    Order.objects.create(pk=id)
    sent = {"title": "t", "user": f"user_{text}", "parent": text, "elsewhere": text}
    made = client.post("/api/orders/", sent, content_type="application/json")
    assert made.status_code == 201, made.content
    got = json.loads(made.content)
    assert {name: got[name] for name in sent} == sent
    assert client.get(f"/api/orders/{got['id']}/").json() == got
    shown = client.get(f"/api/users/{user.pk}/").json()
    assert shown == {"id": f"user_{text}", "username": "u", "order_set": [got["id"]]}
    post = client.post("/api/posts/", {"tags": [text]}, content_type="application/json").json()
    assert re.fullmatch(Post._meta.pk.form.pattern, post["id"])
    assert client.get(f"/api/posts/{post['id']}/").json() == post == {**post, "tags": [text]}
    assert client.delete(f"/api/posts/{post['id']}/").status_code == 204
    # Rounded or not, a number is refused, and so is anything that is not an id.
    for name in ("user", "parent", "elsewhere"):
        for bad in (id, float(id), True, [text], {}, *BAD_TEXTS):
            if bad == "" and name != "elsewhere":
                continue  # no relation
            refused = client.post(
                "/api/orders/",
                sent | {"elsewhere": None, name: bad},
                content_type="application/json",
            )
            assert (refused.status_code, [*refused.json()]) == (400, [name]), (name, bad)
    for bad in set(BAD_TEXTS) - {""}:
        assert client.get(f"/api/orders/{bad}/").status_code == 404


@pytest.mark.usefixtures("sqlite")
def test_a_serializer_without_the_mixin_shows_texts_and_refuses_numbers() -> None:
    class Plain(ModelSerializer):
        class Meta:
            model = Order
            fields = ("id", "user", "elsewhere", "title")

    user = User.objects.create(pk=-1, username="u")
    order = Order(pk=DIGITS, elsewhere=-1, user=user)
    assert Plain(order).data["elsewhere"] == "fvvvvvvvvvvvv"
    assert (Plain(order).data["id"], Plain(order).data["user"]) == ("1234567890123", user.pk)
    assert Plain(data={"title": "t", "elsewhere": "1"}).is_valid()
    assert not Plain(data={"title": "t", "elsewhere": 1}).is_valid()
    # But a relation accepts one, as the guide says.
    assert Plain(data={"title": "t", "user": -1}).is_valid()


@pytest.mark.usefixtures("sqlite")
def test_a_relation_to_a_model_that_inherits_has_texts() -> None:
    class WithGift(IdsAsText, ModelSerializer):
        class Meta:
            model = Order
            fields = ("id", "gift")

    class GiftSerializer(IdsAsText, ModelSerializer):
        class Meta:
            model = Gift
            fields = ("id", "wish")

    gift = Gift.objects.create(id=DIGITS, wish="any")
    text = "1234567890123"
    assert WithGift(gift.order_ptr).data == {"id": text, "gift": text}
    assert GiftSerializer(gift).data == {"id": text, "wish": "any"}
    assert isinstance(WithGift().fields["gift"].pk_field, randflake.rest_framework.RandflakeField)


@pytest.mark.usefixtures("sqlite")
def test_relations_that_a_serializer_declares_refuse_numbers() -> None:
    class Declared(IdsAsText, ModelSerializer):
        user = PrimaryKeyRelatedField(queryset=User.objects.all())

        class Meta:
            model = Order
            fields = ("user",)

    class Many(IdsAsText, Serializer):
        users = PrimaryKeyRelatedField(queryset=User.objects, many=True)
        ids = ListField(child=randflake.rest_framework.RandflakeField())

    user = User.objects.create(pk=DIGITS, username="u")
    assert Declared(data={"user": user.pk}).is_valid()
    assert Declared({"user": user}).data == {"user": user.pk}
    assert not Declared(data={"user": DIGITS}).is_valid()
    assert Many(data={"users": [user.pk], "ids": ["5"]}).is_valid()
    assert not Many(data={"users": [DIGITS], "ids": ["5"]}).is_valid()
    assert not Many(data={"users": [user.pk], "ids": [5]}).is_valid()


@pytest.mark.usefixtures("sqlite")
def test_filters_of_lists_take_texts() -> None:
    from rest_framework import filters, generics

    class Orders(generics.ListAPIView):
        queryset = Order.objects.all()
        serializer_class = OrderSerializer
        filter_backends = (filters.SearchFilter, filters.OrderingFilter)
        search_fields = ("=id", "=user__id")
        ordering_fields = ("id",)

    def found(**query: str) -> list[str]:
        return [it["id"] for it in Orders.as_view()(RequestFactory().get("/", query)).data]

    user = User.objects.create(pk=DIGITS, username="u")
    orders = [Order.objects.create(pk=id, user=user) for id in (-1, DIGITS)]
    assert found(search="1234567890123") == [orders[1].pk]
    assert sorted(found(search=user.pk)) == sorted(order.pk for order in orders)
    assert found(search="no-id") == []
    assert found(ordering="-id") == [orders[1].pk, orders[0].pk]


@pytest.mark.usefixtures("sqlite")
def test_pages_of_the_browsable_api_show_and_take_texts() -> None:
    user = User.objects.create(pk=DIGITS, username="u")
    order = Order.objects.create(user=user)
    page = f"/api/orders/{order.pk}/"
    shown = Client().get(page, HTTP_ACCEPT="text/html").content.decode()
    assert re.search(f'<option value="{user.pk}" selected *>', shown)
    assert (
        Client()
        .put(page, f"title=t&user={user.pk}", "application/x-www-form-urlencoded")
        .data["user"]
        == user.pk
    )


def test_a_field_of_its_own() -> None:
    class Asked(Serializer):
        id = randflake.rest_framework.RandflakeField(form=TextForm("user"))

    assert Asked({"id": DIGITS}).data == Asked({"id": "user_1234567890123"}).data
    asked = Asked(data={"id": "user_1234567890123"})
    assert asked.is_valid()
    assert asked.validated_data == {"id": "user_1234567890123"}
    for bad in ("1234567890123", DIGITS, None):
        assert not Asked(data={"id": bad}).is_valid()


def test_the_schema_has_the_pattern() -> None:
    from rest_framework.schemas.openapi import AutoSchema

    schema = AutoSchema()
    order = schema.map_serializer(OrderSerializer())["properties"]
    assert order["user"]["type"] == "string"
    assert order["elsewhere"].items() >= {"type": "string", "pattern": TextForm().pattern}.items()
    assert schema.map_serializer(PostSerializer())["properties"]["tags"]["items"] == {
        "type": "string"
    }


# --- settings ---------------------------------------------------------------


@pytest.fixture
def real() -> Iterator[None]:
    """The generator that the settings say."""
    with patch("randflake.django.generator", generator):
        yield


@pytest.mark.parametrize(
    "given",
    [
        {"SECRET": SECRET},
        {"SECRET_FILE": "secret"},
        {"SECRET": SECRET, "TTL": 60, "NAMESPACE": "orders", "ON_LEASE_CHANGE": repr},
    ],
)
@pytest.mark.usefixtures("real")
def test_the_generator_is_made_as_the_settings_say(tmp_path: Path, given: dict[str, Any]) -> None:
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    given = {"STORE": tmp_path / "ids.db", **given}
    if "SECRET_FILE" in given:
        given["SECRET_FILE"] = tmp_path / given["SECRET_FILE"]
    with override_settings(RANDFLAKE=given):
        made = generator()
        assert made is generator()
        assert made.node_ids == ()
        assert not (tmp_path / "ids.db").exists()
        assert made.inspect(new_id()).node_id == made.node_ids[0]
        (lease,) = list_leases(
            tmp_path / "ids.db", namespace=given.get("NAMESPACE", "default")
        ).leases
        assert lease.state == "held"
        made.close()


@pytest.mark.usefixtures("real")
def test_without_settings_the_generator_is_that_of_the_environment(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with override_settings(RANDFLAKE={}):
        monkeypatch.delenv("RANDFLAKE_STORE", raising=False)
        monkeypatch.delenv("RANDFLAKE_SECRET", raising=False)
        with pytest.raises(ImproperlyConfigured, match="RANDFLAKE_SECRET"):
            new_id()
        monkeypatch.setenv("RANDFLAKE_SECRET", SECRET)
        with pytest.raises(ImproperlyConfigured, match="RANDFLAKE_STORE"):
            new_id()
        monkeypatch.setenv("RANDFLAKE_STORE", str(store))
        assert new_id() != new_id()
        generator().close()


WRONG = {
    "no dict": ("redis://127.0.0.1", "must be a dict, got str"),
    "an unknown name": ({"STROE": "a"}, "'stroe'"),
    "a bad option": ({"TTL": -1}, "ttl"),
    "a bad store": ({"STORE": 5}, "store"),
    "a bad secret": ({"STORE": "redis://127.0.0.1", "SECRET": SECRET[1:]}, "32 hex digits"),
    "two secrets": ({"SECRET": SECRET, "SECRET_FILE": "/none"}, "SECRET and SECRET_FILE"),
    "a name that is none": ({5: 5}, "'5'"),
    "a file that is none": ({"SECRET_FILE": 5.0}, "float"),
    "no file": ({"SECRET_FILE": "/none"}, "No such file"),
    "a file of something else": ({"STORE": "/x", "SECRET_FILE": sys.executable}, "hex digits"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.usefixtures("real")
def test_a_wrong_setting_is_improper_and_the_secret_stays_hidden(name: str) -> None:
    given, message = WRONG[name]
    with override_settings(RANDFLAKE=given, DEBUG=True):
        with pytest.raises(ImproperlyConfigured, match=message) as raised:
            new_id()
        # Django's error page shows the settings and the variables of functions.
        request = RequestFactory().get("/")
        error = raised.value
        error.__traceback__ = error.__traceback__.tb_next if error.__traceback__ else None
        page = technical_500_response(request, type(error), error, error.__traceback__)
        assert "RANDFLAKE" in page.content.decode()
        assert SECRET[1:] not in page.content.decode()


@pytest.mark.usefixtures("real")
def test_a_store_that_grants_nothing_is_an_error_of_its_own(store: Path) -> None:
    init_store(store, "0" + SECRET[1:], "new")
    with override_settings(RANDFLAKE={"STORE": store, "SECRET": SECRET}):
        with pytest.raises(StoreError) as raised:
            new_id()
        assert raised.value.code == "SECRET_MISMATCH"


@pytest.mark.usefixtures("real")
def test_threads_share_one_generator(store: Path) -> None:
    with override_settings(RANDFLAKE={"STORE": store, "SECRET": SECRET}):
        made: list[int] = []
        barrier = threading.Barrier(8)

        def make() -> None:
            barrier.wait()
            made.extend(new_id() for _ in range(100))

        threads = [threading.Thread(target=make) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(made)) == 800
        assert list_leases(store).held == 1
        generator().close()


@pytest.mark.parametrize("module", [randflake.django, randflake.rest_framework])
@pytest.mark.usefixtures("real")
def test_the_documentation_is_there_and_its_examples_run(module: Any) -> None:
    for name in module.__all__:
        item = getattr(module, name)
        text = item.__doc__
        assert text.split("\n")[0].endswith(".")
        example = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
        out: list[str] = []
        results = doctest.DocTestRunner(verbose=False).run(example, out=out.append)
        assert results.failed == 0, "".join(out)


@pytest.mark.usefixtures("sqlite")
def test_answers_503_while_there_is_no_id() -> None:
    def answers() -> list[Any]:
        asked = ["/make/", "/make-async/"]

        @async_to_sync
        async def get(path: str) -> Any:
            return await AsyncClient().get(path)

        return [
            *(Client().get(path) for path in asked),
            *(get(path) for path in asked),
            Client().post("/api/orders/", {"title": "t"}, content_type="application/json"),
        ]

    for retry_after, seconds in ((1.2, "2"), (0.0, "1")):
        flake.fail_next("LEASE_UNAVAILABLE", retry_after=retry_after, times=5)
        assert [(it.status_code, it["Retry-After"]) for it in answers()] == [(503, seconds)] * 5
    assert [it.status_code for it in answers()] == [200] * 4 + [201]
    flake.fail_next("LIFETIME_OVER")
    with pytest.raises(RandflakeError, match="a test lets this call fail"):
        Client().get("/make/")


# --- whole projects ---------------------------------------------------------

GUIDE = (ROOT / "docs/guides/django.md").read_text(encoding="utf-8")

PROJECT: dict[str, str] = {
    re.match(r"# (\S+)\n", code)[1]: code  # type: ignore[index]
    for code in re.findall(r"^```python\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
}
"""The files of the guide, by the path that their first line names, and what every project has."""

PROJECT["manage.py"] = """
import os, sys
from django.core.management import execute_from_command_line

os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"
execute_from_command_line(sys.argv)
"""
PROJECT["shop/__init__.py"] = PROJECT["blog/__init__.py"] = ""
PROJECT["shop/settings.py"] += """
SECRET_KEY = POSTS_SECRET = "c41f0d7e92b85a36e6d10f7a48b3529c"
ALLOWED_HOSTS = ["*"]
DEBUG = True
ROOT_URLCONF = "roots"
USE_TZ = True
STATIC_URL, STATIC_ROOT = "static/", "FOLDER/static"
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes"]
INSTALLED_APPS += ["django.contrib.staticfiles", "shop", "blog"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "FOLDER/project.db"}}
"""
PROJECT["roots.py"] = """
from datetime import datetime, timedelta, timezone
from blog.models import Post, of_hours
from django.http import JsonResponse
from django.urls import include, path
from shop.api import router
from shop.models import Customer, Order
from shop.urls import urlpatterns

def make(request):
    order = Order.objects.create(customer=Customer.objects.create(name="Ada"))
    return JsonResponse({"id": order.id, "customer": order.customer_id})

def make_post(request):
    now, hour = datetime.now(timezone.utc), timedelta(hours=1)
    posts = [Post.objects.create() for _ in range(3)]
    found = list(of_hours(now - hour, now + hour))
    older = of_hours(now - 2 * hour, now - hour).count()
    return JsonResponse({"id": posts[0].id, "all": found[-3:] == posts, "older": older})

urlpatterns += [path("", make), path("post/", make_post), path("api/", include(router.urls))]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, code in PROJECT.items():
        for folder in ("FOLDER", "/var/lib/shop", "/run/secrets"):
            code = code.replace(folder, str(tmp_path))
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(code, encoding="utf-8")
    return tmp_path


def manage(project: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if "RANDFLAKE" not in name}
    done = subprocess.run(
        [sys.executable, "-W", "error", "manage.py", *arguments],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_no_command_needs_a_store_or_a_secret_and_migrations_are_stable(project: Path) -> None:
    manage(project, "makemigrations", "shop", "blog")
    migration = (project / "shop/migrations/0001_initial.py").read_text()
    assert "randflake.django.RandflakeField(default=randflake.django.new_id" in migration
    migration = (project / "blog/migrations/0001_initial.py").read_text()
    assert "randflake.django.RandflakeField(default=blog.models.new_post_id" in migration
    assert SECRET not in migration
    assert "form" not in migration
    # Another form does not change the database.
    models = project / "shop/models.py"
    models.write_text(models.read_text().replace('TextForm("customer")', 'TextForm("client")'))
    assert "No changes" in manage(project, "makemigrations", "--check", "--dry-run")
    manage(project, "migrate")
    manage(project, "collectstatic", "--no-input")
    assert not (project / "ids.db").exists()


@pytest.mark.parametrize("engine", ["postgres", "mariadb"])
def test_no_command_changes_leases_in_the_same_database(
    project: Path, start: Callable[[str], servers.Server], engine: str
) -> None:
    newest()
    server = start(engine)
    database = settings_of(server) | {"NAME": "project"}
    url = server.url().removesuffix(urlsplit(server.url()).path) + "/project"
    if engine == "mariadb":
        server.mysql("create database project")
    else:
        with psycopg.connect(server.url(), autocommit=True) as created:
            created.execute("create database project")
    init_store(url, SECRET, "new")

    def leases() -> Any:
        if engine == "mariadb":
            content = server.mysql("select * from project.randflake_entry")
            return content, server.mysql("show create table project.randflake_entry")
        with psycopg.connect(url) as asked:
            content = asked.execute("select * from randflake_leases.entry").fetchall()
            columns = "select * from information_schema.columns where table_name = 'entry'"
            return content, asked.execute(columns).fetchall()

    before = leases()
    with (project / "shop/settings.py").open("a") as settings:
        settings.write(f"DATABASES = {{'default': {database!r}}}\n")
        if engine == "mariadb":
            settings.write("import pymysql\n")
            settings.write(f"pymysql.version_info = {pymysql.version_info!r}\n")
            settings.write("pymysql.install_as_MySQLdb()\n")
    manage(project, "makemigrations", "shop", "blog")
    manage(project, "migrate")
    manage(project, "flush", "--no-input")
    assert leases() == before
    inspected = manage(project, "inspectdb")
    assert "class ShopOrder(" in inspected
    assert ("class RandflakeEntry(" in inspected) == (engine == "mariadb")
    # As the guide says.
    (tables,) = re.findall(r"^python manage.py inspectdb (.+)$", GUIDE, re.MULTILINE)
    inspected = manage(project, "inspectdb", *tables.split())
    assert re.findall(r"^class (\w+)", inspected, re.MULTILINE) == ["ShopCustomer", "ShopOrder"]
    assert leases() == before


@contextmanager
def serving(project: Path, *command: str) -> Iterator[tuple[int, Callable[..., Any]]]:
    """Runs a server, and yields its process id and a function that requests a page."""
    newest()
    store = project / "ids.db"
    init_store(store, SECRET, "new")
    init_store(store, mode="new", layout=LAYOUT, namespace="posts")
    (project / "randflake").write_text(SECRET)
    manage(project, "migrate", "--run-syncdb")
    port = servers.free_port()
    with (project / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, *(part.replace("PORT", str(port)) for part in command)],
            cwd=project,
            env={**os.environ, "DJANGO_SETTINGS_MODULE": "shop.settings"}
            | {"RANDFLAKE_STORE": str(store)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def ask(page: str = "") -> Any:
        deadline = time.monotonic() + 60
        while True:
            assert process.poll() is None, (project / "log").read_text()
            try:
                with urlopen(f"http://127.0.0.1:{port}/{page}", timeout=10) as response:
                    return json.load(response)
            except HTTPError as error:
                with error:
                    return error.code
            except (OSError, HTTPException):
                assert time.monotonic() < deadline, (project / "log").read_text()
                time.sleep(0.05)

    try:
        yield process.pid, ask
    finally:
        process.terminate()
        process.wait(60)


def holders(project: Path) -> set[str]:
    return {lease.note for lease in list_leases(project / "ids.db").leases if lease.state == "held"}


def test_only_workers_lease_where_gunicorn_loads_the_project_before_it_forks(project: Path) -> None:
    command = ["-m", "gunicorn", "--preload", "--workers", "2", "--bind", "127.0.0.1:PORT"]
    with serving(project, *command, "django.core.wsgi:get_wsgi_application()") as (master, ask):
        made: list[Any] = []
        eventually(lambda: (made.append(ask()), len(holders(project)))[1] == 2)
        assert not [note for note in holders(project) if re.search(rf"\b{master}\b", note)]
        made += [ask() for _ in range(50)]
        assert len(holders(project)) == 2
        for order in made[:20]:
            assert ask(f"orders/{order['id']}/") == ask(f"api/orders/{order['id']}/") == order
            assert ask(f"customers/{order['customer']}/") == {"name": "Ada"}
            assert ask(f"orders/{order['customer']}/") == ask(f"customers/{order['id']}/") == 404
        post = ask("post/")
        assert (post["all"], post["older"]) == (True, 0)
        assert post["id"].startswith("post_")
    ids = [each[name] for each in made for name in ("id", "customer")]
    assert len(set(ids)) == len(ids)
    assert holders(project) == set()


def test_runserver_leases_with_its_first_id_and_again_when_it_has_reloaded(project: Path) -> None:
    with serving(project, "manage.py", "runserver", "PORT") as (_, ask):
        ids = [ask()["id"]]
        (before,) = holders(project)

        def has_reloaded() -> bool:
            # Repeatedly: it does not count a file that is touched before it first looks.
            (project / "shop/urls.py").touch()
            return before not in holders(project)

        def leases() -> bool:
            ids.append(ask()["id"])
            return len(holders(project) - {before}) == 1

        eventually(has_reloaded)
        eventually(leases)
        assert len(set(ids)) == len(ids)
