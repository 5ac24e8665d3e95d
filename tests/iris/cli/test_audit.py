"""Who changed what, on the command line."""

import json

from tests.iris.cli.calling import Iris


def test_the_audit_log_says_who_changed_what(iris: Iris):
    assert iris("run", "--name", "audited", "--", "true").code == 0
    shown = iris("audit", "--user", "admin", "--limit", "1")
    assert shown.code == 0
    assert "Submit" in shown.out
    (entry,) = json.loads(iris("audit", "--user", "admin", "--limit", "1", "-o", "json").out)
    assert entry["who"] == "admin"
    assert entry["target"].endswith("/audited")
    assert entry["outcome"] == "done"
