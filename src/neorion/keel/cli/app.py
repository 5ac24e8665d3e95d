"""Commands and groups: click's, with shared options, headings in the help, and parts that load when they are used."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple, cast

import click
from click.shell_completion import CompletionItem

from neorion.keel.cli.shared_options import Format, SharedOption, SharedOptions, shared_options

_HEADING: Final = "Commands"
_SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}


class NotStarted(Exception):
    """A command that runs the user's own program failed before that program began. The cause is the real error."""


class _Context(click.Context):
    """One prefix for the variables of a whole command line: `IRIS_TIMEOUT` is `--timeout` in each of its commands."""

    def __init__(
        self,
        command: click.Command,
        parent: click.Context | None = None,
        auto_envvar_prefix: str | None = None,
        **settings: Any,  # noqa: ANN401 -- click's own
    ) -> None:
        if auto_envvar_prefix is None and parent is not None:
            auto_envvar_prefix = parent.auto_envvar_prefix
        super().__init__(command, parent=parent, auto_envvar_prefix=auto_envvar_prefix, **settings)


class Command(click.Command):
    """Calls its function with an `Output` first, then with the command's own parameters.

    `run`, ".module:function", names that function, relative to the package of the declaration. It is imported when the
    command is called, so that the help loads no client. Without `run` the declared function itself is called.
    `extras` are the optional packages that the function's module imports.
    `starting` is a line shown at once where the command waits, before anything is imported. It may name parameters.
    `runs_user_command` is for commands that return the exit code of the user's own program. The exit code of a
    failure before that is 125.
    """

    context_class = _Context

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 -- click's own
        heading: str = _HEADING,
        run: str = "",
        extras: Sequence[str] = (),
        starting: str = "",
        runs_user_command: bool = False,
        **kwargs: Any,  # noqa: ANN401 -- click's own
    ) -> None:
        kwargs["context_settings"] = {**_SETTINGS, **(kwargs.get("context_settings") or {})}
        super().__init__(*args, **kwargs)
        self.heading = heading
        self._run = run
        self._extras = extras
        self._starting = starting
        self._runs_user_command = runs_user_command
        for param in self.params:
            if isinstance(param, click.Option):
                param.show_envvar = param.allow_from_autoenv
        self.params.extend(shared_options())

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401 -- click's own
    ) -> click.Context:
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            if self._runs_user_command:
                raise NotStarted from error
            raise

    def invoke(self, ctx: click.Context) -> int | None:
        from neorion.keel.cli import kit  # noqa: PLC0415 -- the help does not need it

        out = kit.Output.of(SharedOptions.taken_from(ctx.params))
        if self._starting and ctx.params.get("wait") and out.shared.output is Format.TABLE:
            out.say(self._starting.format_map(ctx.params))
        try:
            if self._extras:
                kit.require_extra(*self._extras)
            return ctx.invoke(self.implementation(), out, **ctx.params)
        except (click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if self._runs_user_command:
                raise NotStarted from error
            raise

    def implementation(self) -> Callable[..., int | None]:
        """The function that does the work, imported if it is in another module."""
        declared = cast("Callable[..., int | None]", self.callback)
        if not self._run:
            return declared
        module, _, function = self._run.partition(":")
        return getattr(import_module(module, declared.__module__.rpartition(".")[0]), function)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, shared in (("Options", False), ("Shared options", True)):
            params = (param for param in self.get_params(ctx) if isinstance(param, SharedOption) is shared)
            records = [
                record
                for param in params
                if isinstance(param, click.Option) and (record := param.get_help_record(ctx)) is not None
            ]
            with formatter.section(title):
                formatter.write_dl(records)


class _Mount(NamedTuple):
    target: str
    help: str
    heading: str


class App(click.Group):
    """A command line, or a part of one that another mounts.

    `env_prefix` is the one declaration that gives every option its environment variable.
    """

    context_class = _Context
    command_class = Command
    # click's convention: groups below this one get the same class.
    group_class = type

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 -- click's own
        heading: str = _HEADING,
        env_prefix: str | None = None,
        distribution: str = "",
        **kwargs: Any,  # noqa: ANN401 -- click's own
    ) -> None:
        kwargs["context_settings"] = {**_SETTINGS, "auto_envvar_prefix": env_prefix}
        kwargs.setdefault("subcommand_metavar", "COMMAND ...")
        super().__init__(*args, **kwargs)
        self.heading = heading
        self._mounts: dict[str, _Mount] = {}
        if distribution:
            self.params.append(_version_option(distribution))

    def mount(self, name: str, target: str, *, help: str, heading: str = _HEADING) -> None:  # noqa: A002 -- click's name
        """Adds a command or sub-app by name only: `target`, "module:attribute", is imported when it is used."""
        self._mounts[name] = _Mount(target, help, heading)

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return [*self.commands, *self._mounts]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        mount = self._mounts.get(cmd_name)
        if mount is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = mount.target.partition(":")
        return getattr(import_module(module), attribute)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, heading, words in self._listed():
            sections.setdefault(heading, []).append((name, words))
        widest = max((len(name) for rows in sections.values() for name, _ in rows), default=0)
        for heading, rows in sections.items():
            with formatter.section(heading):
                # Padded, so that the sections read as one column.
                formatter.write_dl([(name.ljust(widest), words) for name, words in rows])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [
            CompletionItem(name, help=words)
            for name, _, words in self._listed()
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def _listed(self) -> list[tuple[str, str, str]]:
        """Name, heading and help of each command, without importing what is mounted."""
        own = [
            (name, getattr(command, "heading", _HEADING), command.get_short_help_str(limit=100))
            for name, command in self.commands.items()
            if not command.hidden
        ]
        return own + [(name, mount.heading, mount.help) for name, mount in self._mounts.items()]


def _version_option(distribution: str) -> click.Option:
    def show(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: FBT001 -- click calls it
        del param
        if value and not ctx.resilient_parsing:
            from importlib.metadata import version  # noqa: PLC0415 -- costs as much as click, and only --version needs it

            click.echo(f"{ctx.find_root().info_name} {version(distribution)}")
            ctx.exit()

    return click.Option(
        ["--version"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        allow_from_autoenv=False,
        callback=show,
        help="Show the version and exit.",
    )
