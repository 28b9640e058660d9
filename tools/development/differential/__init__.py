"""The differential run: compares the decisions of this tree with those of an earlier commit.

Each side runs in its own process from its own files. Both get the same courses of moves, and answer each move with a
decision in a neutral form. The first differing decisions of a course are reported.

A course is a list of moves from the submission on: a claim, a reply, a recovery, an action, an external event, each
with its time and arguments. The run compares courses instead of single snapshots, because the compared commits may
differ in the form of a snapshot. Each side keeps its own records between two moves, so nothing has to be translated.
Courses that share their beginning form a tree, so each move is decided once.

`side.py` is the only module that knows the records and functions of its commit, and the run takes it from each side's
tree. `courses.py` makes courses from neutral decisions. `tests/exploration/courses.py` makes courses to every
snapshot that the exploration reaches. `comparison.py` compares them, with the allowed differences in
`differences.py`.
"""
