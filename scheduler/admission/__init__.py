"""Decides which orders may be claimed now, and which agents get their steps.

Implements SCH-11, AGT-10 and WRK-2. Each part answers one question. It uses what the last refresh
found, and the changes by this process since then:

* `OpenRequests`: how many requests does each agent have?
* `AdmissionPolicy`: how many may it have?
* `ClaimQueue`: which order gets the next free slot?

`Admission` joins the three. The sequence of the waiting orders is the same in every process, and
the first orders get the free slots. So processes that refresh at the same time choose the same
orders. A wrong belief lasts until the next refresh.
"""
