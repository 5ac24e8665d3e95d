"""Loads a file into a typed model, or reports everything that is wrong with it."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar, cast

from pydantic import ValidationError

from neorion.keel.base import Denied, Finding, Invalid, NotFound
from neorion.keel.config.document import (
    TEXT_MAX_BYTES,
    DocumentTooLarge,
    Findings,
    Steps,
    YamlNode,
    decode,
    read,
    read_scalar,
)
from neorion.keel.config.interpolation import Sources, resolve
from neorion.keel.config.locate import locate, of_type
from neorion.keel.config.messages import Explainer
from neorion.keel.config.model import Model, Problem
from neorion.keel.config.secret import SecretValue

AnyModel = TypeVar("AnyModel", bound=Model)


class InvalidConfig(Invalid):
    """A file is not valid; `findings` hold the position, the reason and a hint for each mistake."""

    findings: tuple[Finding, ...] = ()


def load(path: Path, model: type[AnyModel], env: Mapping[str, str], *, with_secrets: bool = True) -> AnyModel:
    """Returns the model that a file describes. References are resolved in `env` and in the file's folder.

    Without `with_secrets`, secrets are what the file says, as in `${NAME}`: this process needs none of them.
    """
    sources = Sources(env, path.parent)
    return _loaded(_content(path), model, sources, str(path), with_secrets=with_secrets)


def loads(
    text: str,
    model: type[AnyModel],
    env: Mapping[str, str],
    *,
    file: str = "text",
    folder: Path | None = None,
    with_secrets: bool = True,
) -> AnyModel:
    """The same from a text; `file` is its name in findings, `folder` where relative references start."""
    content = text.encode("utf-8", "surrogatepass")
    return _loaded(content, model, Sources(env, folder or Path()), file, with_secrets=with_secrets)


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            # One byte above the limit reveals a file that is too large without reading all of it.
            return file.read(TEXT_MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(
            "config.missing", f"The file {path} does not exist.", hint="Check the path, or create the file."
        ) from None
    except PermissionError:
        raise Denied(
            "config.unreadable",
            f"The file {path} may not be read by this user.",
            hint=f"See who may: ls -l {path}",
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the name is not possible"
        raise Invalid(
            "config.unusable", f"{path} cannot be read: {reason}.", hint="Name a regular file."
        ) from None


def _loaded(
    content: bytes, model: type[AnyModel], sources: Sources, file: str, *, with_secrets: bool
) -> AnyModel:
    findings = Findings(file)
    try:
        root = read(decode(content, findings), findings)
        kept = () if with_secrets else tuple(of_type(root, model, SecretValue))
        resolve(root, sources, findings, kept)
        loaded = _validated(root, model, findings)
    except DocumentTooLarge:
        loaded = None
    if loaded is None or findings.found:
        # Raised outside of any handler, because a traceback must not show the input of pydantic.
        raise _refusal(findings)
    return loaded


def _refusal(findings: Findings) -> InvalidConfig:
    found = findings.sorted()
    if len(found) == 1:
        error = InvalidConfig(
            "config.invalid", f"{found[0].subject}: {found[0].sentence}", hint=found[0].hint
        )
    else:
        error = InvalidConfig(
            "config.invalid",
            f"{findings.file} has {len(findings.found)} problems, the first at {found[0].subject}.",
            hint="Correct them; nothing was applied.",
        )
    error.findings = found
    return error


def _validated(root: YamlNode, model: type[AnyModel], findings: Findings) -> AnyModel | None:
    """Validates as JSON, pydantic's strict mode for data: "3" is not a number, but a list fills a tuple."""
    while True:
        try:
            # A file without a value is a mapping without keys.
            plain: object = {} if root.value is None else _plain(root)
            loaded = model.model_validate_json(json.dumps(plain))
        except ValidationError as error:
            errors = error.errors(include_url=False)
        else:
            explainer = Explainer(root, model, findings)
            for steps, problem in _problems(loaded, ()):
                explainer.own(locate(root, (*steps, *problem.steps)), problem.sentence, problem.hint)
            return loaded
        if not sum(_reread(locate(root, each["loc"]).node) for each in errors):
            Explainer(root, model, findings).explain(errors)
            return None


def _reread(node: YamlNode) -> bool:
    """Converts the text of a whole reference to the number or boolean that it spells, after the field refused the text."""
    if not node.whole or not isinstance(node.value, str):
        return False
    node.whole = False
    try:
        value = read_scalar(node.value)
    except OverflowError:
        return False
    changed = value != node.value
    node.value = value
    return changed


def _plain(node: YamlNode) -> object:
    if isinstance(node.value, list):
        return [_plain(child) for child in node.value]
    if isinstance(node.value, dict):
        return {key: _plain(child) for key, child in node.value.items()}
    return node.value


def _problems(value: object, steps: Steps) -> Iterator[tuple[Steps, Problem]]:
    """The problems that the models in a tree of values report, each with the path to its model."""
    if isinstance(value, Model):
        for problem in value.problems():
            yield steps, problem
        for name, field in type(value).model_fields.items():
            yield from _problems(getattr(value, name), (*steps, field.alias or name))
    elif isinstance(value, Mapping):
        for key, child in cast("Mapping[object, object]", value).items():
            yield from _problems(child, (*steps, str(key)))
    elif isinstance(value, list | tuple):
        for index, child in enumerate(cast("list[object]", value)):
            yield from _problems(child, (*steps, index))
