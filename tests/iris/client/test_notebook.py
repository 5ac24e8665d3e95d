"""A job in a notebook: what is shown, and that nobody's text becomes markup."""

from html.parser import HTMLParser

from neorion.iris.client import IrisClient
from neorion.iris.client.notebook import html
from neorion.iris.model.gen import iris_pb as pb


class Reader(HTMLParser):
    """The words of a page, and its open elements."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        del attrs
        self.seen.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(job: pb.Job) -> Reader:
    reader = Reader()
    reader.feed(html(job))
    reader.close()
    assert reader.open == []
    return reader


def test_a_job_shows_its_tasks_and_why_it_waits():
    job = pb.Job(
        name="/ann/train",
        state="running",
        tasks={"running": 3, "succeeded": 5, "pending": 0},
        reason=pb.Reason(sentence="No worker has joined yet."),
    )
    text = " ".join(read(job).words)
    for words in ("/ann/train", "running", "5 succeeded, 3 running", "No worker has joined yet."):
        assert words in text
    assert "pending" not in text


def test_a_job_that_failed_shows_how():
    ending = pb.Ending(cause="exit_code", code=3)
    words = read(pb.Job(name="/ann/train", state="failed", tasks={"failed": 1}, ending=ending)).words
    assert "/ann/train ended with exit code 3." in words


def test_a_job_that_nobody_knows_any_more_shows_its_name(client: IrisClient):
    job = client.submit("true", "shown")
    assert "/shown</b>" in (job._repr_html_() or "")
    job.id = "job-forgotten"
    assert job._repr_html_() is None
    assert "/shown job-forgotten" in repr(job)


def test_what_strangers_wrote_is_text():
    job = pb.Job(name="/a/b", state="failed", ending=pb.Ending(message="<script>alert(1)</script>"))
    reader = read(job)
    assert "script" not in reader.seen
    assert "<script>alert(1)</script>" in " ".join(reader.words)
