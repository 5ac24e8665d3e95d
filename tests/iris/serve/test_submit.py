"""What cannot be is refused when it is submitted, whole."""

import hashlib
from pathlib import Path

import pytest
from protobuf import Oneof

from neorion.iris.app.parts import ControllerSettings
from neorion.iris.model import (
    AttemptId,
    Digest,
    JobId,
    JobName,
    Quota,
    Resources,
    UserQuotas,
    WorkerShape,
    wire,
)
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.base import Conflict, Invalid
from tests.iris.serve.office import asking, joining, office

pytestmark = pytest.mark.anyio


async def test_a_bundle_that_nobody_sent_is_refused(tmp_path: Path):
    async with office(tmp_path) as there:
        request = asking("/ada/job")
        assert request.spec is not None
        request.spec.environment = pb.Environment(bundle="ab" * 32)
        with pytest.raises(Invalid, match="was not sent") as refused:
            await there.jobs("ada").submit(request)
        assert refused.value.code == "iris.blob_missing"
        assert not there.parts.context.cluster.jobs


async def test_a_dry_run_needs_no_blob_that_is_sent_when_it_is_meant(tmp_path: Path):
    async with office(tmp_path) as there:
        request = asking("/ada/job")
        assert request.spec is not None
        request.spec.environment, request.dry_run = pb.Environment(bundle="ab" * 32), True
        assert (await there.jobs("ada").submit(request)).name == "/ada/job"
        assert not there.parts.context.cluster.jobs


async def test_a_dry_run_is_refused_beside_what_is_there(tmp_path: Path):
    async with office(tmp_path) as there:
        jobs = there.jobs("ada")
        await jobs.submit(asking("/ada/job"))
        # The same submission once more, which is the same job; then others under its name, and under its key.
        question = asking("/ada/job")
        question.dry_run = True
        assert (await jobs.submit(question)).name == "/ada/job"
        question.key = "another"
        with pytest.raises(Conflict, match="already exists"):
            await jobs.submit(question)
        question = asking("/ada/other")
        question.key, question.dry_run = "/ada/job", True
        with pytest.raises(Conflict, match="which is a different job"):
            await jobs.submit(question)


async def test_a_description_that_is_too_large_is_refused_and_many_inputs_are_not(tmp_path: Path):
    async with office(tmp_path) as there:
        request = asking("/ada/job")
        assert request.spec is not None
        request.spec.environment = pb.Environment(variables={f"V{n}": "x" * 100_000 for n in range(11)})
        with pytest.raises(Invalid) as refused:
            await there.jobs("ada").submit(request)
        assert refused.value.code == "iris.spec_too_large"
        body = b"{}"
        many = asking("/ada/many", replicas=20_000)
        assert many.spec is not None
        digest = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        many.spec.inputs = [digest] * 20_000
        many.blobs = [pb.Blob(digest=digest, body=body)]
        assert (await there.jobs("ada").submit(many)).id


async def test_a_key_is_one_job_for_its_user_alone(tmp_path: Path):
    async with office(tmp_path) as there:
        hers, his = asking("/ada/job"), asking("/bob/job")
        hers.key = his.key = "nightly"
        first, other = await there.jobs("ada").submit(hers), await there.jobs("bob").submit(his)
        again = await there.jobs("ada").submit(hers)
        assert (first.existed, other.existed, again.existed) == (False, False, True)
        assert first.id == again.id != other.id
        for job in (first, other):
            there.parts.context.cluster.drop_job(JobId(job.id))
        assert not there.parts.context.cluster.keys


async def test_a_key_of_children_is_one_job_for_their_parent_alone(tmp_path: Path):
    async with office(tmp_path) as there:
        await there.join("by-hand")
        children: list[tuple[str, bool]] = []
        for name in ("/ada/left", "/ada/right"):
            parent = await there.started((await there.jobs("ada").submit(asking(name))).id)
            message = asking(f"{name}/part").spec
            assert message is not None
            spec, content = wire.spec(message, JobName(message.name)), Digest(message.name)
            for _ in range(2):
                job, existed = there.parts.admission.submit(
                    spec, "part-1", content, AttemptId(parent.attempt)
                )
                children.append((job.spec.name, existed))
        assert children == [
            ("/ada/left/part", False),
            ("/ada/left/part", True),
            ("/ada/right/part", False),
            ("/ada/right/part", True),
        ]


async def test_what_never_fits_is_refused_with_what_would(tmp_path: Path):
    shapes = [WorkerShape(Resources(4000, 2**34, 2**34, 4, "H100"), {})]
    caps = UserQuotas(Quota(cpu_milli=3000))
    settings = ControllerSettings(tmp_path, secret="a secret", shapes=shapes, caps=caps)
    async with office(tmp_path, settings) as there:
        for cpu, gpus, says in (
            (1000, 8, "It needs 8 GPUs on one worker; the largest has 4 GPUs."),
            (4000, 1, "It needs more cores at once than the 3 cores that ada may have."),
        ):
            request = asking("/ada/job", cpu_milli=cpu)
            assert request.spec is not None
            request.spec.resources = pb.Resources(cpu_milli=cpu, gpus=gpus)
            with pytest.raises(Invalid) as refused:
                await there.jobs("ada").submit(request)
            assert (refused.value.code, refused.value.sentence) == ("iris.infeasible", says)
            assert refused.value.hint


async def test_a_gang_is_let_in_where_it_fits_and_not_where_it_never_will(tmp_path: Path):
    """One task of it fills a worker: machines started by hand as one slice hold a gang, and those of a group count once."""

    def gang(key: str, replicas: int) -> pb.SubmitRequest:
        request = asking(f"/ada/{key}-{replicas}", replicas=replicas, cpu_milli=4000)
        assert request.spec is not None
        request.spec.gang = key
        request.dry_run = True
        return request

    shapes = [WorkerShape(Resources(4000, 2**32, 2**32), {"zone": "a"}, slices=4)]
    async with office(tmp_path, ControllerSettings(tmp_path, secret="a secret", shapes=shapes)) as there:
        for _ in range(3):
            await there.join("by-hand", "rack-1")
        await there.jobs("ada").submit(gang("slice", 3))
        piece = there.slice("group-1")
        made = joining("group-1")
        made.attributes = {"zone": "a"}
        await there.worker(piece).join(made)
        await there.jobs("ada").submit(gang("zone", 4))
        for key, most in (("slice", 3), ("zone", 4)):
            with pytest.raises(Invalid) as refused:
                await there.jobs("ada").submit(gang(key, most + 1))
            assert refused.value.sentence.endswith(f"one {key} can never hold more than {most} of them.")


async def test_a_key_used_again_is_the_same_job_if_the_same_is_said_about_it(tmp_path: Path):
    """The same function is pickled to other bytes by the next run of the same program."""

    def calling(body: bytes, **variables: str) -> pb.SubmitRequest:
        request = asking("/ada/nightly")
        assert request.spec is not None
        digest = hashlib.sha256(body).hexdigest()
        request.spec.entry = Oneof("call", pb.Call(function=digest))
        request.spec.inputs = [digest]
        request.spec.environment = pb.Environment(variables=variables)
        request.blobs = [pb.Blob(digest=digest, body=body)]
        return request

    async with office(tmp_path) as there:
        jobs = there.jobs("ada")
        first = await jobs.submit(calling(b"one pickle", a="1", b="2"))
        again = await jobs.submit(calling(b"another pickle of it", b="2", a="1"))
        assert (again.id, again.existed) == (first.id, True)
        for other in (calling(b"one pickle", a="2", b="2"), asking("/ada/nightly")):
            with pytest.raises(Conflict, match="which is a different job"):
                await jobs.submit(other)
