from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import include, path, register_converter
from randflake.django import IdConverter
from randflake.rest_framework import IdsAsText
from randflake.text import TextForm
from rest_framework.routers import DefaultRouter
from rest_framework.serializers import ModelSerializer
from rest_framework.viewsets import ModelViewSet

from shop.models import Gift, Order, Post, User


class UserConverter(IdConverter):
    form = TextForm("user")


class PostConverter(IdConverter):
    form = Post._meta.pk.form


register_converter(IdConverter, "id")
register_converter(UserConverter, "user")
register_converter(PostConverter, "post")


class OrderForm(forms.ModelForm):
    class Meta:
        model = Order
        fields = "__all__"


class OrderSerializer(IdsAsText, ModelSerializer):
    class Meta:
        model = Order
        fields = "__all__"


class UserSerializer(IdsAsText, ModelSerializer):
    class Meta:
        model = User
        fields = ("id", "username", "order_set")


class PostSerializer(IdsAsText, ModelSerializer):
    class Meta:
        model = Post
        fields = "__all__"


def views_of(model: Any, serializer: Any) -> Any:
    return type(
        f"{model.__name__}Views",
        (ModelViewSet,),
        {"queryset": model.objects.order_by("pk"), "serializer_class": serializer},
    )


router = DefaultRouter()
router.register("orders", views_of(Order, OrderSerializer))
router.register("users", views_of(User, UserSerializer))
router.register("posts", views_of(Post, PostSerializer))


class OrderAdmin(admin.ModelAdmin):
    ordering = ("id",)
    list_display = ("id", "user", "elsewhere", "title")
    list_editable = ("title",)
    search_fields = ("=id", "=user__id", "title")
    readonly_fields = ("id",)
    autocomplete_fields = ("parent",)


class GiftAdmin(admin.ModelAdmin):
    raw_id_fields = ("parent",)


class OrderInline(admin.TabularInline):
    model = Order
    extra = 0


class UserAdmin(admin.ModelAdmin):
    inlines = (OrderInline,)
    fields = ("username",)


site = admin.AdminSite()
site.register(Order, OrderAdmin)
site.register(Gift, GiftAdmin)
site.register(User, UserAdmin)


def show(_: object, pk: str) -> HttpResponse:
    return HttpResponse(get_object_or_404(Order, pk=pk).pk)


def make(_: object) -> HttpResponse:
    return HttpResponse(Order().pk)


async def make_async(_: object) -> HttpResponse:
    return HttpResponse(Order().pk)


urlpatterns = [
    path("make/", make),
    path("make-async/", make_async),
    path("orders/<id:pk>/", show, name="order"),
    path("users/<user:pk>/", show, name="user"),
    path("posts/<post:pk>/", show, name="post"),
    path("admin/", site.urls),
    path("api/", include(router.urls)),
]
