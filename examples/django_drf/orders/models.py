import os

from django.db import models
from randflake import Cloak, Layout, Snowflake
from randflake.django import RandflakeField
from randflake.text import TextForm

layout = Layout("twitter")
flake = Snowflake.lazy(layout=layout, namespace="orders", acquire_timeout=2)
form = TextForm("order", cloak=Cloak(os.environ["RANDFLAKE_SECRET"], "orders.id"))


def new_order() -> int:
    return flake.generate()


class Order(models.Model):
    id = RandflakeField(primary_key=True, form=form, default=new_order)
    customer = models.CharField(max_length=100)


class Item(models.Model):
    id = RandflakeField(primary_key=True)
    order = models.ForeignKey(Order, models.CASCADE, related_name="items")
    name = models.CharField(max_length=100)
