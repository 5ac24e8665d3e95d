import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.keel.base import Terminal
from neorion.keel.store.dialect import for_postgres, for_sqlite, statements


def test_a_script_is_cut_at_its_semicolons_and_nowhere_else():
    script = """
        -- a comment; with a semicolon
        INSERT INTO a VALUES ('x;y', "odd;name"); /* another; one */
        SELECT 1;;
    """
    assert statements(script) == ["""INSERT INTO a VALUES ('x;y', "odd;name")""", "SELECT 1"]


@given(st.lists(st.text(st.characters(exclude_characters="\x00")), min_size=1, max_size=5))
def test_quoted_text_survives_any_translation(texts: list[str]):
    quoted = ["'" + text.replace("'", "''") + "'" for text in texts]
    sql = f"SELECT {', '.join(quoted)}, ?"
    assert for_sqlite(sql) == sql
    # psycopg takes %% for a percent sign, also inside of quotes.
    assert for_postgres(sql) == f"SELECT {', '.join(quoted)}, ".replace("%", "%%") + "%s"


def test_types_are_translated_where_tables_are_made():
    table = "CREATE TABLE t (i INTEGER PRIMARY KEY, r REAL, t TEXT NOT NULL, b BLOB)"
    assert for_sqlite(table) == f"{table} STRICT"
    assert for_postgres(table) == (
        'CREATE TABLE t (i BIGINT PRIMARY KEY, r DOUBLE PRECISION, t TEXT COLLATE "C" NOT NULL, b BYTEA)'
    )
    assert for_postgres("SELECT integer FROM t") == "SELECT integer FROM t"
    assert for_postgres("CREATE TABLE blob (body BLOB)") == "CREATE TABLE blob (body BYTEA)"


def test_a_comment_after_a_table_does_not_swallow_its_strictness():
    assert for_sqlite("CREATE TABLE t (i INTEGER) -- why").endswith(") STRICT")


@pytest.mark.parametrize(
    "sql",
    ["begin", " /* x */ Rollback", "pragma foreign_keys = off", "ATTACH 'x' AS y", "", "SELECT 1; SELECT 2"],
)
def test_what_belongs_to_the_store_is_refused(sql: str):
    for translate in (for_sqlite, for_postgres):
        with pytest.raises(Terminal) as caught:
            translate(sql)
        assert caught.value.code == "store.sql"


def test_a_constraint_that_could_break_anothers_commit_is_refused():
    with pytest.raises(Terminal):
        for_sqlite("CREATE TABLE t (a INTEGER REFERENCES u (b) DEFERRABLE INITIALLY DEFERRED)")
