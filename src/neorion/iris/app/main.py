"""The command lines of iris' processes. What they do is imported when they do it."""

from neorion.keel.cli import App, run

app = App("python -m neorion.iris", help="The processes of iris.", env_prefix="IRIS")
app.mount(
    "controller", "neorion.iris.app.commands:controller", help="The process that keeps and places jobs."
)
app.mount("worker", "neorion.iris.app.commands:worker", help="The process that runs tasks on a machine.")
app.mount("local", "neorion.iris.app.commands:local", help="A whole cluster on this machine.")


def main(argv: list[str]) -> int:
    return run(app, argv)
