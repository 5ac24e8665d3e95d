"""Operators that clusters have, one module for each. A check uses the first that is served.

Each makes its own objects. What is concluded about an operator is in `decide`.
"""

from typing import Final

from neorion.conformance.adapters.operators.kueue import KueueOperator
from neorion.conformance.adapters.operators.operator import Edit, TestedOperator
from neorion.conformance.adapters.operators.trainer import Trainer

OPERATORS: Final[tuple[TestedOperator, ...]] = (KueueOperator(), Trainer())

__all__ = ["OPERATORS", "Edit", "TestedOperator"]
