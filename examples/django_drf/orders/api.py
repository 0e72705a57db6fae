from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from randflake.rest_framework import IdsAsText
from rest_framework.routers import DefaultRouter
from rest_framework.serializers import ModelSerializer
from rest_framework.viewsets import ModelViewSet

from .models import Item, Order, layout


class ItemSerializer(IdsAsText, ModelSerializer):
    class Meta:
        model = Item
        fields = ("id", "order", "name")


class NewItemSerializer(ItemSerializer):
    class Meta(ItemSerializer.Meta):
        read_only_fields = ("order",)


class OrderSerializer(IdsAsText, ModelSerializer):
    items = NewItemSerializer(many=True)

    class Meta:
        model = Order
        fields = ("id", "customer", "items")

    def create(self, validated_data: dict[str, Any]) -> Any:
        items = validated_data.pop("items")
        order = Order.objects.create(**validated_data)
        Item.objects.bulk_create([Item(order=order, **item) for item in items])
        return order


class Items(ModelViewSet):
    queryset = Item.objects.all()
    serializer_class = ItemSerializer


class Orders(ModelViewSet):
    queryset = Order.objects.order_by("id").prefetch_related("items")
    serializer_class = OrderSerializer

    def filter_queryset(self, queryset: Any) -> Any:
        if day := self.request.query_params.get("day"):
            first = datetime.combine(date.fromisoformat(day), time(), UTC)
            last = first + timedelta(days=1, milliseconds=-1)
            return queryset.filter(id__range=(layout.first_id_at(first), layout.last_id_at(last)))
        return queryset


router = DefaultRouter()
router.register("items", Items)
router.register("orders", Orders)
urlpatterns = router.urls
