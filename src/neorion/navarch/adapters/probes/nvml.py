"""The driver's own library, through NVIDIA's binding. Every call here may block: the caller has a thread for it.

What a GPU does not support is None. A library or driver that does not answer is an error that says so; nothing stands in
for it.
"""

import ctypes
from collections.abc import Callable
from typing import Any, Final, TypeVar

import pynvml  # pyright: ignore[reportMissingTypeStubs] -- the binding has none

from neorion.keel.base import Retry
from neorion.navarch.adapters.probes.gpu_reading import GpuReading
from neorion.navarch.ports import Gpu

T = TypeVar("T")

# Not there on this model or driver, or not for this user: no sign of anything.
_UNKNOWABLE: Final = frozenset(
    {
        pynvml.NVML_ERROR_INVALID_ARGUMENT,
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_NO_PERMISSION,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_NO_DATA,
    }
)
# Failures of the driver as a whole: the library is opened again once it answers.
_DRIVER: Final = frozenset(
    {
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    }
)


class _NvmlError(Exception):
    """A code of NVML on its way to where it is understood."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Nvml:
    """One session with the library. Opened by the first question; not for two threads at a time."""

    def __init__(self) -> None:
        self._open = False
        self._events: Any = None
        self._handles: dict[int, Any] = {}
        self._index: dict[int, int] = {}

    def gpus(self) -> list[Gpu]:
        """Those that answer. One that is lost is not there."""
        return self._ask_each(_gpu)

    def readings(self) -> list[GpuReading]:
        return self._ask_each(_reading)

    def wait(self, ms: int) -> tuple[int, int] | None:
        """The GPU and the code of the next XID, or None if there was none in so many milliseconds."""
        self._ensure_open()
        if self._events is None:
            raise Retry(
                "probe.no_events", "The driver tells of no events.", hint="Read them in the kernel log."
            )
        try:
            data = _ask("nvmlEventSetWait_v2", self._events, ms)
        except _NvmlError as failed:
            self._check(failed)
            return None
        if data is None or data.eventType != pynvml.nvmlEventTypeXidCriticalError:
            return None
        return self._index.get(_address(data.device), -1), int(data.eventData)

    def close(self) -> None:
        """Lets go of every GPU: one that is in use cannot be reset."""
        if not self._open:
            return
        self._open = False
        try:
            self._drop()
            _call("nvmlShutdown")
        except _NvmlError:
            # The driver went away first; there is nothing left to let go of.
            return

    def _ask_each(self, question: Callable[[int, Any], T]) -> list[T]:
        handles = self._each()
        try:
            found = [_or_none(question, index, handle) for index, handle in handles]
        except _NvmlError as failed:
            self.close()
            raise _silent(failed) from None
        return [one for one in found if one is not None]

    def _each(self) -> list[tuple[int, Any]]:
        self._ensure_open()
        try:
            count = int(_call("nvmlDeviceGetCount"))
            if count != len(self._handles):
                self._drop()
                self._take(count)
        except _NvmlError as failed:
            self._check(failed)
            raise _silent(failed) from None
        return list(self._handles.items())

    def _ensure_open(self) -> None:
        if self._open:
            return
        try:
            _call("nvmlInit")
            self._open = True
            self._take(int(_call("nvmlDeviceGetCount")))
        except _NvmlError as failed:
            self.close()
            raise _silent(failed) from None

    def _take(self, count: int) -> None:
        """Handles of all GPUs, and one set of events for them."""
        for index in range(count):
            handle = _or_none(lambda index, _: _ask("nvmlDeviceGetHandleByIndex", index), index, None)
            if handle is not None:
                self._handles[index] = handle
        self._index = {_address(handle): index for index, handle in self._handles.items()}
        self._events = _or_none(lambda _, __: _ask("nvmlEventSetCreate"), 0, None)
        for index, handle in self._handles.items():
            if self._events is not None:
                _or_none(self._register, index, handle)

    def _drop(self) -> None:
        events, self._events, self._handles, self._index = self._events, None, {}, {}
        if events is not None:
            _call("nvmlEventSetFree", events)

    def _register(self, index: int, handle: Any) -> None:  # noqa: ANN401 -- the binding's own
        del index
        _ask("nvmlDeviceRegisterEvents", handle, pynvml.nvmlEventTypeXidCriticalError, self._events)

    def _check(self, failed: _NvmlError) -> None:
        if failed.code in _DRIVER:
            self.close()
            raise _silent(failed) from None


def _gpu(index: int, handle: Any) -> Gpu:  # noqa: ANN401 -- the binding's own
    used, memory = _ask("nvmlDeviceGetUtilizationRates", handle), _ask("nvmlDeviceGetMemoryInfo", handle)
    return Gpu(
        index=index,
        uuid=str(_ask("nvmlDeviceGetUUID", handle) or ""),
        model=str(_ask("nvmlDeviceGetName", handle) or ""),
        temperature=float(_ask("nvmlDeviceGetTemperature", handle, pynvml.NVML_TEMPERATURE_GPU) or 0),
        power=(_ask("nvmlDeviceGetPowerUsage", handle) or 0) / 1_000,
        utilisation=float(used.gpu) if used is not None else 0.0,
        memory_used=int(memory.used) if memory is not None else 0,
    )


def _reading(index: int, handle: Any) -> GpuReading:  # noqa: ANN401 -- the binding's own
    pci = _ask("nvmlDeviceGetPciInfo", handle)
    rows = _ask("nvmlDeviceGetRemappedRows", handle) or (0, 0, 0, 0)
    limit = _ask("nvmlDeviceGetTemperatureThreshold", handle, pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
    return GpuReading(
        gpu=_gpu(index, handle),
        bus=f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}" if pci is not None else "",
        slowdown_at=float(limit) if limit else None,
        slowed_by=_ask("nvmlDeviceGetCurrentClocksEventReasons", handle) or 0,
        ecc_corrected=_ecc(handle, pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED),
        ecc_uncorrected=_ecc(handle, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
        rows_pending=bool(rows[2]),
        rows_failure=bool(rows[3]),
        width=_ask("nvmlDeviceGetCurrPcieLinkWidth", handle),
        width_most=_ask("nvmlDeviceGetMaxPcieLinkWidth", handle),
        generation=_ask("nvmlDeviceGetCurrPcieLinkGeneration", handle),
        generation_most=_ask("nvmlDeviceGetMaxPcieLinkGeneration", handle),
        links=_links(handle),
        recovery=_recovery(handle),
    )


def _ecc(handle: Any, kind: int) -> int | None:  # noqa: ANN401 -- the binding's own
    return _ask("nvmlDeviceGetTotalEccErrors", handle, kind, pynvml.NVML_VOLATILE_ECC)


def _links(handle: Any) -> int:  # noqa: ANN401 -- the binding's own
    active = 0
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        state = _ask("nvmlDeviceGetNvLinkState", handle, link)
        if state is None:
            break
        active += bool(state)
    return active


def _recovery(handle: Any) -> int | None:  # noqa: ANN401 -- the binding's own
    try:
        values = _call("nvmlDeviceGetFieldValues", handle, [pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])
    except _NvmlError as failed:
        if failed.code == pynvml.NVML_ERROR_RESET_REQUIRED:
            return pynvml.NVML_GPU_RECOVERY_ACTION_GPU_RESET
        if failed.code in _UNKNOWABLE:
            return None
        raise
    if values[0].nvmlReturn != pynvml.NVML_SUCCESS:
        return None
    return int(values[0].value.uiVal)


def _or_none(ask: Callable[[int, Any], T], index: int, handle: Any) -> T | None:  # noqa: ANN401 -- the binding's own
    """None for a GPU that does not answer; a driver that does not is another matter."""
    try:
        return ask(index, handle)
    except _NvmlError as failed:
        if failed.code in _DRIVER:
            raise
        return None


def _ask(name: str, *args: Any) -> Any:  # noqa: ANN401 -- the binding has no types
    """Calls the library. Returns None if this GPU, driver or user has no such value."""
    try:
        return _call(name, *args)
    except _NvmlError as failed:
        if failed.code in _UNKNOWABLE or failed.code == pynvml.NVML_ERROR_RESET_REQUIRED:
            return None
        raise


def _call(name: str, *args: Any) -> Any:  # noqa: ANN401 -- the binding has no types
    """The one door to the binding."""
    try:
        return getattr(pynvml, name)(*args)
    except pynvml.NVMLError as error:
        # The binding sets it where it makes the error, out of sight of a type checker.
        raise _NvmlError(vars(error)["value"]) from None


def _silent(failed: _NvmlError) -> Retry:
    return Retry(
        "probe.nvml",
        f"NVML does not answer: {pynvml.NVMLError(failed.code)}.",
        hint="Check the driver with nvidia-smi; in a container, give it the devices and the driver's libraries.",
    )


def _address(handle: Any) -> int:  # noqa: ANN401 -- the binding's own
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
