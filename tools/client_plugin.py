"""A plugin of protoc: typed clients of services, which need no library but the messages.

The generated module of `echo.proto` is `echo_client.py`. It holds one class for each service.
"""

from protobuf import DescFile, DescMethod, DescService
from protobuf.plugin import File, Module, Schema, get_comments, run

_ABC = Module("collections.abc")
_MAPPING = _ABC.ident("Mapping", type_only=True)
_GENERATOR = _ABC.ident("AsyncGenerator", type_only=True)
_CALLER = Module("neorion.keel.rpc.port").ident("Caller", type_only=True)


def generate(schema: Schema[None]) -> None:
    for desc in schema.files_to_generate:
        if desc.services:
            _module(schema.generate_file(desc, "_client.py"), desc)


def _module(file: File, desc: DescFile) -> None:
    file.preamble(desc)
    for service in desc.services:
        file.print()
        _service(file, service)


def _service(file: File, service: DescService) -> None:
    with file.scope(f"class {service.name}Client:"):
        _doc(file, service)
        with file.scope("def __init__(self, caller: ", _CALLER, ") -> None:"):
            file.print("self._caller = caller")
        for method in service.methods:
            file.print()
            _method(file, method)


def _method(file: File, method: DescMethod) -> None:
    path = f"/{method.parent.type_name}/{method.name}"
    stream = method.method_kind == "server_streaming"
    answer = (_GENERATOR, "[", method.output, "]") if stream else (method.output,)
    signature = (
        f"def {_snake(method.name)}(self, request: ",
        method.input,
        ", *, headers: ",
        _MAPPING,
        "[str, str] | None = None, timeout_ms: int | None = None) -> ",
        *answer,
        ":",
    )
    call = "self._caller.stream" if stream else "await self._caller.unary"
    with file.scope("" if stream else "async ", *signature):
        _doc(file, method)
        file.print("return ", call, f"({path!r}, request, ", method.output, ", headers, timeout_ms)")


def _doc(file: File, desc: DescService | DescMethod) -> None:
    if lines := get_comments(desc).lines():
        with file.doc(*lines[:1]):
            for line in lines[1:]:
                file.print(line)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


if __name__ == "__main__":
    run("client_plugin", "1", generate)
