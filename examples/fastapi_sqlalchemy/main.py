"""A shop with FastAPI and SQLAlchemy: ids in URLs, in JSON and in the database.

An item has an id of Randflake. An order has a Snowflake, so that the database finds the orders of a
day by their primary key; outside, a cloak hides it. Settings: DATABASE_URL, RANDFLAKE_STORE and
RANDFLAKE_SECRET. Once: `python main.py`. Then: `uvicorn main:app --workers 2`.
"""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, time, timedelta
from math import ceil
from typing import Annotated

from fastapi import Body, FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from randflake import Cloak, Layout, Randflake, RetryLaterError, Snowflake, init_store
from randflake.pydantic import AsText, Id
from randflake.sqlalchemy import IdType
from randflake.text import TextForm
from sqlalchemy import ForeignKey, create_engine, select
from sqlalchemy.exc import NoResultFound, StatementError
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship, sessionmaker

layout = Layout("twitter")
item_ids = Randflake.lazy(acquire_timeout=2)  # each worker leases with its first id
order_ids = Snowflake.lazy(layout=layout, namespace="orders", acquire_timeout=2)
store, secret = os.environ["RANDFLAKE_STORE"], os.environ["RANDFLAKE_SECRET"]
cloak = Cloak(secret, "orders.id")
engine = create_engine(os.environ["DATABASE_URL"])
sessions = sessionmaker(engine, expire_on_commit=False)


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "shop_order"
    id: Mapped[int] = mapped_column(IdType(), primary_key=True, default=order_ids.generate)
    customer: Mapped[str]
    items: Mapped[list["Item"]] = relationship(lazy="selectin")


class Item(Base):
    __tablename__ = "shop_item"
    id: Mapped[int] = mapped_column(IdType(), primary_key=True, default=item_ids.generate)
    order_id: Mapped[int] = mapped_column(IdType(), ForeignKey(Order.id), index=True)
    name: Mapped[str]


OrderId = Annotated[int, AsText(TextForm("order", cloak=cloak))]


class ItemAnswer(BaseModel, from_attributes=True):
    id: Id
    order_id: OrderId
    name: str


class OrderAnswer(BaseModel, from_attributes=True):
    id: OrderId
    customer: str
    items: list[ItemAnswer]


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with item_ids, order_ids:  # gives the node ids back at the end
        yield


app = FastAPI(lifespan=lifespan)
app.add_exception_handler(NoResultFound, lambda *_: JSONResponse({}, 404))


@app.exception_handler(StatementError)  # what SQLAlchemy makes of the error of a default
@app.exception_handler(RetryLaterError)
def retry_later(_: Request, error: Exception) -> JSONResponse:
    cause = error.orig if isinstance(error, StatementError) else error
    if not isinstance(cause, RetryLaterError):
        raise error
    return JSONResponse({}, 503, {"Retry-After": str(max(1, ceil(cause.retry_after)))})


@app.post("/orders", status_code=201, response_model=OrderAnswer)
def make_order(customer: Annotated[str, Body()], items: Annotated[list[str], Body()]) -> Order:
    with sessions.begin() as session:
        order = Order(customer=customer, items=[Item(name=name) for name in items])
        session.add(order)
    return order  # committed


@app.get("/orders", response_model=list[OrderAnswer])
def get_orders(day: date) -> Sequence[Order]:
    first = datetime.combine(day, time(), UTC)
    ids = layout.first_id_at(first), layout.last_id_at(first + timedelta(days=1, milliseconds=-1))
    with sessions() as session:
        return session.scalars(select(Order).where(Order.id.between(*ids)).order_by(Order.id)).all()


@app.get("/orders/{id}", response_model=OrderAnswer)
def get_order(id: OrderId) -> Order:
    with sessions() as session:
        return session.get_one(Order, id)


@app.get("/items/{id}", response_model=ItemAnswer)
def get_item(id: Id) -> Item:
    with sessions() as session:
        return session.get_one(Item, id)


if __name__ == "__main__":  # once, and not with each start or deploy
    init_store(store, secret, "new")
    init_store(store, mode="new", layout=layout, namespace="orders")
    Base.metadata.create_all(engine)
