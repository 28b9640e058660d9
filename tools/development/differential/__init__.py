"""The differential run: whether the decisions of this tree are those of an earlier commit.

Each side runs in a process of its own, from its own files. Both get the same courses, and answer each move with
a decision in one neutral form; the first answers of a course that differ are reported.

A course is a list of moves from the submission on: a claim, a reply, a recovery, an action, an answer, each with
its time and its arguments. Courses are compared, and not single snapshots, because the form of a snapshot is what
the compared commits differ in: each side keeps its own records between two moves, and nobody translates them.
Courses that share their beginning form a tree, so each move is decided once.

Three parts: `side.py` is all that knows the records and functions of its commit, and the run takes each side's
from its own tree. `courses.py` makes courses from neutral decisions alone, and `tests/exploration/courses.py`
those to every snapshot that the exploration reaches. `comparison.py` compares, by the list in `differences.py`.
"""
