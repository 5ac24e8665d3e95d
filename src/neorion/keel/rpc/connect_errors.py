"""Errors between the families and the library that serves Connect. Clients do without it."""

from connectrpc.code import Code
from connectrpc.errors import ConnectError

from neorion.keel.base import Error
from neorion.keel.rpc import http_errors, wire


def to_connect(error: Error) -> ConnectError:
    return ConnectError(Code(wire.code_of(error)), http_errors.text(error.sentence), [wire.to_detail(error)])


def from_connect(error: ConnectError) -> Error:
    details = ((detail.type_name, detail.message_bytes) for detail in error.details)
    return wire.from_connect(error.code.value, error.message, details)
