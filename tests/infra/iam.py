"""Decides as IAM does whether a policy allows a call: an explicit deny wins, and what no statement allows is denied."""

import json
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

VALUES = {
    "account": "111122223333",
    "arn": "arn:aws",
    "cluster": "devservers",
    "efs_file_system": "arn:aws:elasticfilesystem:us-east-1:111122223333:file-system/fs-1",
    "interruption_queue": "arn:aws:sqs:us-east-1:111122223333:devservers-interruptions",
    "node_role": "arn:aws:iam::111122223333:role/devservers-node",
    "region": "us-east-1",
}


def policy(file: Path) -> list[dict[str, Any]]:
    """The statements, with placeholders filled as Terraform fills them."""
    text = re.sub(r"\$\{(\w+)\}", lambda found: VALUES[found[1]], file.read_text())
    return json.loads(text)["Statement"]


def allows(
    statements: list[dict[str, Any]], action: str, resource: str, context: Mapping[str, str] | None = None
) -> bool:
    effects = {one["Effect"] for one in statements if _applies(one, action, resource, context or {})}
    return effects == {"Allow"}


def _applies(statement: dict[str, Any], action: str, resource: str, context: Mapping[str, str]) -> bool:
    return (
        any(fnmatchcase(action.lower(), one.lower()) for one in _list(statement["Action"]))
        and any(fnmatchcase(resource, one) for one in _list(statement["Resource"]))
        and all(
            _holds(operator, context.get(key), _list(values))
            for operator, keys in statement.get("Condition", {}).items()
            for key, values in keys.items()
        )
    )


def _holds(operator: str, value: str | None, values: list[str]) -> bool:
    match operator:
        case "StringEquals" | "Bool":
            return value in values
        case "StringLike":
            return value is not None and any(fnmatchcase(value, one) for one in values)
        case _:
            raise ValueError(f"condition operator {operator}")


def _list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
