/* A stand-in for libnvidia-ml.so.1: as much of NVML as the agent asks for, through NVIDIA's own binding.

   What the machine is like stands in the file "state" of the folder that NVML_STAND_IN names, a line for each fact,
   "gpus 8" or "3.temperature 91", and is read anew at each call; what it does not say is healthy. XIDs come through the
   fifo "events", as lines "GPU XID". */

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, TIMEOUT = 10, UNINITIALIZED = 1, LOST = 15, UNKNOWN = 999 };
enum { GPUS_MAX = 64, RECOVERY_ACTION = 230, XID_EVENT = 8 };

typedef struct { int index; } Device;
typedef struct { int fifo; } EventSet;
typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } PciInfo;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned gpu, memory; } Utilisation;
typedef struct { Device *device; unsigned long long type, data; unsigned gpu_instance, compute_instance; } EventData;
typedef union { double real; unsigned number; unsigned long long wide; } Value;
typedef struct { unsigned field, scope; long long at, latency; unsigned type; int result; Value value; } Field;

static Device devices[GPUS_MAX];
static EventSet set;
static int started = 0;

static void in_folder(char *path, size_t size, const char *name) {
    const char *folder = getenv("NVML_STAND_IN");
    snprintf(path, size, "%s/%s", folder ? folder : ".", name);
}

static long fact(const char *key, long otherwise) {
    char path[4096], line[256], name[128];
    long value;
    in_folder(path, sizeof path, "state");
    FILE *file = fopen(path, "r");
    if (!file) return otherwise;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "%127s %ld", name, &value) == 2 && strcmp(name, key) == 0) otherwise = value;
    fclose(file);
    return otherwise;
}

static long of(const Device *device, const char *key, long otherwise) {
    char name[128];
    snprintf(name, sizeof name, "%d.%s", device->index, key);
    return fact(name, otherwise);
}

/* A driver that hangs does so inside a call. */
static int trouble(const Device *device) {
    while (fact("hangs", 0)) usleep(10000);
    if (!started) return UNINITIALIZED;
    long gone = fact("driver", 0);
    return gone ? (int)gone : device ? (int)of(device, "error", 0) : OK;
}

#define NUMBER(name, key, otherwise)                        \
    int name(Device *device, unsigned *found) {             \
        int error = trouble(device);                        \
        if (!error) *found = (unsigned)of(device, key, otherwise); \
        return error;                                       \
    }

NUMBER(nvmlDeviceGetPowerUsage, "power", 300000)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width", 16)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max", 16)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_gen", 5)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_gen_max", 5)

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    long refused = fact("driver", 0);
    if (refused) return (int)refused;
    for (int index = 0; index < GPUS_MAX; index++) devices[index].index = index;
    started++;
    return OK;
}

int nvmlShutdown(void) {
    if (!started) return UNINITIALIZED;
    started--;
    return OK;
}

const char *nvmlErrorString(int code) { return code == OK ? "Success" : "as the stand-in was told"; }

int nvmlDeviceGetCount_v2(unsigned *count) {
    int error = trouble(NULL);
    if (!error) *count = (unsigned)fact("gpus", 8);
    return error;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **device) {
    int error = trouble(NULL);
    if (error) return error;
    if (index >= GPUS_MAX || (long)index >= fact("gpus", 8)) return INVALID;
    *device = &devices[index];
    return of(*device, "error", 0) == LOST ? LOST : OK;
}

int nvmlDeviceGetUUID(Device *device, char *text, unsigned size) {
    int error = trouble(device);
    if (!error) snprintf(text, size, "GPU-stand-in-%d", device->index);
    return error;
}

int nvmlDeviceGetName(Device *device, char *text, unsigned size) {
    int error = trouble(device);
    if (!error) snprintf(text, size, "NVIDIA H100 80GB HBM3");
    return error;
}

int nvmlDeviceGetPciInfo_v3(Device *device, PciInfo *info) {
    int error = trouble(device);
    if (error) return error;
    memset(info, 0, sizeof *info);
    info->bus = (unsigned)(0x10 + device->index);
    snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", info->bus);
    return OK;
}

int nvmlDeviceGetTemperature(Device *device, unsigned sensor, unsigned *found) {
    (void)sensor;
    int error = trouble(device);
    if (!error) *found = (unsigned)of(device, "temperature", 45);
    return error;
}

int nvmlDeviceGetTemperatureThreshold(Device *device, unsigned which, unsigned *found) {
    (void)which;
    int error = trouble(device);
    if (!error) *found = (unsigned)of(device, "slowdown", 90);
    return error;
}

int nvmlDeviceGetUtilizationRates(Device *device, Utilisation *found) {
    int error = trouble(device);
    if (!error) *found = (Utilisation){(unsigned)of(device, "utilisation", 50), 10};
    return error;
}

int nvmlDeviceGetMemoryInfo(Device *device, Memory *found) {
    int error = trouble(device);
    if (!error) *found = (Memory){80ULL << 30, 60ULL << 30, 20ULL << 30};
    return error;
}

int nvmlDeviceGetTotalEccErrors(Device *device, unsigned type, unsigned counter, unsigned long long *found) {
    (void)counter;
    int error = trouble(device);
    if (!error) *found = (unsigned long long)of(device, type ? "ecc_uncorrected" : "ecc_corrected", 0);
    return error;
}

int nvmlDeviceGetRemappedRows(Device *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failure) {
    int error = trouble(device);
    if (error) return error;
    *corrected = (unsigned)of(device, "rows_corrected", 0);
    *uncorrected = (unsigned)of(device, "rows_uncorrected", 0);
    *pending = (unsigned)of(device, "rows_pending", 0);
    *failure = (unsigned)of(device, "rows_failure", 0);
    return OK;
}

int nvmlDeviceGetCurrentClocksEventReasons(Device *device, unsigned long long *found) {
    int error = trouble(device);
    if (!error) *found = (unsigned long long)of(device, "slowed_by", 0);
    return error;
}

int nvmlDeviceGetNvLinkState(Device *device, unsigned link, unsigned *active) {
    int error = trouble(device);
    if (error) return error;
    if (!fact("nvlinks", 18)) return NOT_SUPPORTED;
    if ((long)link >= fact("nvlinks", 18)) return INVALID;
    *active = !((of(device, "links_down", 0) >> link) & 1);
    return OK;
}

int nvmlDeviceGetFieldValues(Device *device, int count, Field *fields) {
    int error = trouble(device);
    if (error) return error;
    for (int i = 0; i < count; i++) {
        long action = fields[i].field == RECOVERY_ACTION ? of(device, "recovery_action", 0) : -1;
        fields[i].result = action < 0 ? NOT_SUPPORTED : OK;
        fields[i].type = 1;
        fields[i].value.wide = 0;
        fields[i].value.number = (unsigned)action;
    }
    return OK;
}

int nvmlEventSetCreate(EventSet **found) {
    char path[4096];
    int error = trouble(NULL);
    if (error) return error;
    in_folder(path, sizeof path, "events");
    /* Also for writing: the fifo must not end when an injector closes it. */
    set.fifo = open(path, O_RDWR | O_NONBLOCK);
    *found = &set;
    return set.fifo < 0 ? UNKNOWN : OK;
}

int nvmlEventSetFree(EventSet *one) {
    close(one->fifo);
    return OK;
}

int nvmlDeviceRegisterEvents(Device *device, unsigned long long types, EventSet *one) {
    (void)types, (void)one;
    return trouble(device);
}

int nvmlEventSetWait_v2(EventSet *one, EventData *data, unsigned timeout_ms) {
    char line[64];
    size_t size = 0;
    int gpu, xid, error = trouble(NULL);
    if (error) return error;
    struct pollfd ready = {one->fifo, POLLIN, 0};
    if (poll(&ready, 1, (int)timeout_ms) <= 0) return TIMEOUT;
    while (size < sizeof line - 1 && read(one->fifo, &line[size], 1) == 1 && line[size] != '\n') size++;
    line[size] = 0;
    if (sscanf(line, "%d %d", &gpu, &xid) != 2 || gpu < 0 || gpu >= GPUS_MAX) return UNKNOWN;
    *data = (EventData){&devices[gpu], XID_EVENT, (unsigned long long)xid, 0, 0};
    return OK;
}
