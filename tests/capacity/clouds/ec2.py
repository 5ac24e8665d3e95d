"""A real EC2 endpoint, moto's, behind a door that can fail as Amazon's does."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from unittest.mock import patch
from urllib.parse import parse_qs

import aiohttp
from moto.server import ThreadedMotoServer

from neorion.capacity.aws import AwsProvider, AwsSettings
from neorion.capacity.provider import Intent, IntentId
from neorion.keel.clock import SystemClock, SystemIds
from tests.capacity.clouds.gate import Answer, Call, Gate, opened

REGION = "us-west-2"
# One of the images that moto begins with.
IMAGE = "ami-12c6146b"
KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "a-secret-key-of-aws",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
}


def action(call: Call) -> str:
    return parse_qs(call.body.decode()).get("Action", [""])[0]


def error(status: int, code: str, message: str) -> Answer:
    """An error in the form of the EC2 query protocol."""
    body = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors>"
        "<RequestID>ea966190-f9aa-478e-9ede-example</RequestID></Response>"
    )
    return Answer(status, body.encode(), {"Content-Type": "text/xml;charset=UTF-8"})


NO_CAPACITY = error(
    500,
    "InsufficientInstanceCapacity",
    "We currently do not have sufficient p5.48xlarge capacity in the Availability Zone you requested (us-west-2a). "
    "Our system will be working on provisioning additional capacity. You can currently get p5.48xlarge capacity by not "
    "specifying an Availability Zone in your request or choosing us-west-2b, us-west-2c.",
)
QUOTA = error(
    400,
    "VcpuLimitExceeded",
    "You have requested more vCPU capacity than your current vCPU limit of 0 allows for the instance bucket that the "
    "specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an "
    "adjustment to this limit.",
)
LOCKED_OUT = error(
    401,
    "AuthFailure",
    "AWS was not able to validate the provided access credentials",
)


class Ec2Rig:
    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.provider = AwsProvider("aws", AwsSettings((REGION,), endpoint=gate.url), SystemClock())
        self.intent = Intent(
            SystemIds().new(IntentId), "navarch-a", "p5.48xlarge", REGION, f"{REGION}a", image=IMAGE
        )

    def empty(self) -> None:
        self.gate.refuse = lambda call: NO_CAPACITY if action(call) == "RunInstances" else None

    def fill_quota(self) -> None:
        self.gate.refuse = lambda call: QUOTA if action(call) == "RunInstances" else None

    def lock_out(self) -> None:
        self.gate.refuse = lambda _: LOCKED_OUT

    def lose_answers(self) -> None:
        self.gate.lose = lambda call: action(call) == "RunInstances"

    def answer_again(self) -> None:
        self.gate.lose = lambda _: False


@asynccontextmanager
async def ec2() -> AsyncGenerator[Ec2Rig]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    moto = f"http://{host}:{port}"

    async with aiohttp.ClientSession() as http:

        async def forward(call: Call) -> Answer:
            headers = {key: value for key, value in call.headers.items() if key != "Host"}
            async with http.request(
                call.method, moto + call.path, headers=headers, data=call.body
            ) as response:
                kind = response.headers["Content-Type"]
                return Answer(response.status, await response.read(), {"Content-Type": kind})

        async with http.post(f"{moto}/moto-api/reset"):
            pass
        try:
            with patch.dict(os.environ, KEYS):
                async with opened(forward) as gate:
                    yield Ec2Rig(gate)
        finally:
            server.stop()
