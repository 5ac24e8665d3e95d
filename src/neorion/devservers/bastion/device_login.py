"""Logins that the user confirms in a browser, as keyboard-interactive authentication shows them."""

from typing import TYPE_CHECKING, Final

from asyncssh.auth import KbdIntChallenge

from neorion.devservers.adapters.identity import DeviceLogin
from neorion.devservers.model.login import IdentityProvider
from neorion.keel.base import Denied, Error

if TYPE_CHECKING:
    from neorion.devservers.bastion.context import Context

_LANGUAGE: Final = "en"


class DeviceAuthentication:
    """One for each connection. A challenge has a text and no questions, so that the client waits for the next one."""

    def __init__(self, context: "Context", connection: str) -> None:
        self._context = context
        self._connection = connection
        self._login: DeviceLogin | None = None
        self._provider: IdentityProvider | None = None
        # The token of a user who has confirmed the login.
        self.token = ""
        self.refusal = ""

    @property
    def patience_s(self) -> float:
        """The time that the login may take from now on."""
        return self._login.life.seconds if self._login is not None else 0.0

    async def begin(self) -> KbdIntChallenge:
        context = self._context
        provider = context.directory.policy.identity_provider
        if provider is None or self._login is not None:
            return False
        if len(context.device_logins) >= context.limits.device_logins:
            return self.refuse("Too many logins wait for their confirmation. Log in again in a minute.")
        context.device_logins.add(self._connection)
        try:
            self._login = await context.openid.begin(provider)
        except Error as error:
            return self.refuse(error.sentence)
        self._provider = provider
        return _challenge(f"Open {self._login.url} and confirm the code {self._login.code}")

    async def finish(self, user: str) -> KbdIntChallenge:
        """Waits for the confirmation. A refusal is shown once, and then the authentication has failed."""
        provider, login = self._provider, self._login
        if self.refusal or provider is None or login is None:
            return False
        try:
            token = await self._context.openid.token(provider, login)
            named = await self._context.openid.user(provider, token)
            if named != user:
                raise Denied(
                    "devservers.identity_refused",
                    f"You confirmed the login as {named}, and not as {user}.",
                    hint="Log in with the name that the identity provider knows.",
                )
        except Error as error:
            return self.refuse(error.sentence)
        finally:
            self.close()
        self.token = token
        return True

    def close(self) -> None:
        self._context.device_logins.discard(self._connection)

    def refuse(self, sentence: str) -> KbdIntChallenge:
        """Shows the sentence, and ends the authentication with the client's next message."""
        self.close()
        self.token = ""
        self.refusal = sentence
        return _challenge(sentence)


def _challenge(text: str) -> KbdIntChallenge:
    return "", f"{text}\n", _LANGUAGE, ()
