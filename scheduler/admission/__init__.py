"""Which orders may be claimed now, and which agents take their steps (SCH-11, AGT-10, WRK-2).

Each part answers one question, from what the last refresh found and from this process's own
changes since then:

1. `OpenRequests`: how many requests does each agent have?
2. `AdmissionPolicy`: how many may it have?
3. `ClaimQueue`: which order gets the next free slot?

`Admission` joins the three. The sequence of the waiting orders is the same in every process, and
the free slots belong to the first of them. So processes that refresh at the same time choose the
same orders. A wrong belief lasts until the next refresh.
"""
