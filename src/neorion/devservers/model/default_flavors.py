"""The flavors every cluster starts with. They are created once; what an operator changes or deletes stays so."""

from types import MappingProxyType

from neorion.devservers.model.flavor import DevServerFlavorSpec, Price, Resources


def _cpu(
    low: tuple[str, str], high: tuple[str, str], per_hour: str, *, default: bool = False
) -> DevServerFlavorSpec:
    return DevServerFlavorSpec(
        resources=Resources(
            requests={"memory": low[0], "cpu": low[1]},
            limits={"memory": high[0], "cpu": high[1]},
        ),
        price=Price(per_hour=per_hour),
        default=default,
    )


DEFAULT_FLAVORS = MappingProxyType(
    {
        "cpu-small": _cpu(("512Mi", "500m"), ("2Gi", "2"), "0.02", default=True),
        "cpu-medium": _cpu(("2Gi", "1"), ("8Gi", "4"), "0.05"),
        "cpu-large": _cpu(("4Gi", "2"), ("16Gi", "8"), "0.10"),
    }
)
