from django.contrib.auth.models import AbstractUser
from django.contrib.contenttypes.fields import GenericForeignKey, GenericRelation
from django.contrib.contenttypes.models import ContentType
from django.db import models
from randflake import Cloak, Layout, Snowflake
from randflake.django import RandflakeField
from randflake.text import TextForm

SECRET = "c41f0d7e92b85a36e6d10f7a48b3529c"
"""Not the secret of other tests, which assign node ids manually."""

CLOAK = Cloak(SECRET, "post.id")
LAYOUT = Layout("twitter")

snowflakes = Snowflake(11, LAYOUT)


def new_post() -> int:
    return snowflakes.generate()


class User(AbstractUser):
    id = RandflakeField(primary_key=True, form=TextForm("user"))


class Order(models.Model):
    id = RandflakeField(primary_key=True)
    user = models.ForeignKey(User, models.CASCADE, null=True, blank=True)
    parent = models.ForeignKey("self", models.CASCADE, null=True, blank=True)
    elsewhere = RandflakeField("Id elsewhere", null=True, blank=True, unique=True)
    title = models.CharField(max_length=50)
    notes = GenericRelation("Note", "object_id", "kind")


class Gift(Order):
    wish = models.CharField(max_length=50)


class Post(models.Model):
    id = RandflakeField(primary_key=True, form=TextForm("post", cloak=CLOAK), default=new_post)
    tags = models.ManyToManyField(Order)


class Note(models.Model):
    """About any object, with a key from the database."""

    kind = models.ForeignKey(ContentType, models.CASCADE)
    object_id = RandflakeField()
    thing = GenericForeignKey("kind", "object_id")


class Remark(models.Model):
    """About any object, with ids of several forms, which only their texts distinguish."""

    kind = models.ForeignKey(ContentType, models.CASCADE)
    object_id = models.CharField(max_length=80)
    thing = GenericForeignKey("kind", "object_id")
