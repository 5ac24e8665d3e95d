"""Tasks that waited longer than they may are given up."""

from neorion.iris.act.deck import Deck
from neorion.iris.act.lives import Lives
from neorion.iris.decide import Timed, deadlines
from neorion.iris.model import TaskState


def give_up_late(deck: Deck, lives: Lives) -> None:
    book = deck.book
    waiting = [
        Timed(job, task.index, book.jobs[job].spec.limits, task.since)
        for job in book.impatient
        for task in book.tasks[job]
        if task.state is TaskState.PENDING
    ]
    for late in deadlines(waiting, deck.clock.now()).over:
        task = book.tasks[late.job][late.task]
        # The first one given up ends its whole job.
        if task.state is TaskState.PENDING:
            lives.give_up(task)
