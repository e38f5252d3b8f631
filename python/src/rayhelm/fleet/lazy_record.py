"""A map whose record is built when a value is first checked, because its fields are data."""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

__all__ = ["LazyRecord", "type_of"]


class LazyRecord:
    """Annotation of a map: `Annotated[dict[str, Any], LazyRecord(build)]`. The map is kept as it was written."""

    def __init__(
        self, build: Callable[[], type[BaseModel]], build_part: Callable[[frozenset[str]], type[BaseModel] | None]
    ) -> None:
        """`build`: returns the record, cached. `build_part`: the one with these keys alone, which takes less time; None
        if it has not all of them."""
        self.build, self._build_part = build, build_part

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return handler(self.build().__pydantic_core_schema__)

    def _check(self, value: dict[str, Any]) -> dict[str, Any]:
        if not self._is_right(value):
            self.build().model_validate(value)
        return value

    def _is_right(self, value: dict[str, Any]) -> bool:
        part = self._build_part(frozenset(value))
        if not part:
            return False
        try:
            part.model_validate(value)
        except ValidationError:
            return False
        return True


def type_of(info: FieldInfo) -> Any:
    """Return the annotation of a field, or the record of a lazy one."""
    lazy = next((each for each in info.metadata if isinstance(each, LazyRecord)), None)
    return lazy.build() if lazy else info.annotation
