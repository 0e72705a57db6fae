"""Ids in Django REST framework: text in JSON, both ways.

from rest_framework.serializers import ModelSerializer
from randflake.rest_framework import IdsAsText

class OrderSerializer(IdsAsText, ModelSerializer):
    class Meta:
        model = Order
        fields = ["id", "customer", "total"]
"""

from __future__ import annotations

from typing import Any

from django.core.validators import RegexValidator
from rest_framework import serializers

from randflake._form import form_of
from randflake.django import RandflakeField as _ModelField
from randflake.errors import InvalidArgumentError
from randflake.text import TextForm

__all__ = ["IdsAsText", "RandflakeField"]


class RandflakeField(serializers.Field):
    """An id as its text. A number is refused, since JavaScript rounds it before sending.

    form: how ids look; None for the plain text.

    Its value is the text, as with a RandflakeField of a model. It can also show a value given as a
    number.

    >>> from randflake.rest_framework import RandflakeField
    >>> RandflakeField().to_representation(4594531474933654033)
    '3vgoe12ccb8gh'
    """

    def __init__(self, *, form: TextForm | None = None, **options: Any) -> None:
        self.form = form_of(form)
        super().__init__(**options)
        # For schemas: input has already been checked.
        self.validators.append(RegexValidator(self.form.pattern))

    def to_internal_value(self, data: Any) -> str:
        try:
            return self.form._as_written(data)
        except InvalidArgumentError as error:
            raise serializers.ValidationError(str(error), code="invalid") from error

    def to_representation(self, value: int | str) -> str:
        return value if isinstance(value, str) else self.form.encode(value)


class IdsAsText:
    """Comes before ModelSerializer: ids are text, and so are the keys of relations.

    Its fields are as above. Without it, a relation accepts a number that was rounded. A serializer
    without a model may use it for its PrimaryKeyRelatedFields.
    """

    def get_fields(self) -> Any:
        """Returns the fields, with the form of ids in relations that were declared by hand."""
        fields = super().get_fields()  # type: ignore[misc]
        for field in fields.values():
            relation = getattr(field, "child_relation", field)
            if getattr(relation, "pk_field", False) is None and relation.queryset is not None:
                relation.pk_field = _field_of_key(relation.queryset.model)
        return fields

    def build_standard_field(self, field_name: str, model_field: Any) -> Any:
        field, options = super().build_standard_field(field_name, model_field)  # type: ignore[misc]
        if isinstance(model_field, _ModelField) and "choices" not in options:
            options.pop("model_field", None)
            return RandflakeField, {**options, "form": model_field.form}
        return field, options

    def build_relational_field(self, field_name: str, relation_info: Any) -> Any:
        field, options = super().build_relational_field(field_name, relation_info)  # type: ignore[misc]
        if issubclass(field, serializers.PrimaryKeyRelatedField):
            options["pk_field"] = _field_of_key(relation_info.related_model)
        return field, options


def _field_of_key(model: Any) -> RandflakeField | None:
    key = model._meta.pk
    while key.remote_field:  # the key of a model which inherits from another
        key = key.target_field
    return RandflakeField(form=key.form) if isinstance(key, _ModelField) else None
