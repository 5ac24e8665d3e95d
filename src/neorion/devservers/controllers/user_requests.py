"""Answers the requests of first logins: checks the evidence, and makes the DevServerUser where the policy allows it."""

from contextlib import suppress

from neorion.devservers.controllers.devserver import to_datetime
from neorion.devservers.controllers.users import UserWriter
from neorion.devservers.decide.first_login import RequestObserved, decide_request, is_allowed
from neorion.devservers.model.kube_types import LOGIN_POLICIES, USER_REQUESTS, USERS, DevServerUserRequest
from neorion.devservers.model.login import POLICY_NAME, DevServerLoginPolicySpec
from neorion.devservers.ports import EvidenceChecker
from neorion.keel.base import Denied, Duration, NotFound
from neorion.keel.clock import Clock
from neorion.keel.kube import ObjectKey
from neorion.keel.kube.control import InformerFactory
from neorion.keel.telemetry import logger

log = logger(__name__)


class UserRequests:
    """The reconcile of requests. The user controller's own reconcile then provisions the user."""

    def __init__(
        self,
        informers: InformerFactory,
        namespace: str,
        writer: UserWriter,
        clock: Clock,
        checker: EvidenceChecker,
    ) -> None:
        self.requests = informers.of(USER_REQUESTS, namespace)
        self.policies = informers.of(LOGIN_POLICIES)
        self._writer = writer
        self._clock = clock
        self._checker = checker

    async def reconcile(self, key: ObjectKey) -> Duration | None:
        request = self.requests.get(key)
        if request is None or request.meta.deleted is not None:
            return None
        seen = await self._observe(request)
        decision = decide_request(seen, to_datetime(self._clock.now()))
        if decision.delete:
            await self._writer.applier.delete(USER_REQUESTS, request)
            return None
        if decision.user is not None:
            self._writer.fence.check()
            await self._writer.api.create(USERS, decision.user)
            log.info("user made at first login", user=request.spec.user, request=key.name)
        await self._writer.applier.write_status(USER_REQUESTS, request, decision.status)
        return decision.wake

    async def _observe(self, request: DevServerUserRequest) -> RequestObserved:
        found = self.policies.get(ObjectKey("", POLICY_NAME))
        policy = found.spec if found is not None else DevServerLoginPolicySpec()
        user, refusal = None, ""
        if request.status.phase is None and is_allowed(request, policy):
            try:
                await self._checker.verify(request.spec, policy)
            except Denied as error:
                refusal = error.sentence
            with suppress(NotFound):
                user = await self._writer.api.get(USERS, request.spec.user)
        return RequestObserved(request, policy, user, refusal)
