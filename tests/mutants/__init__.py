"""`make mutants`: faults seeded into the shipped code one by one, each of which a test has to notice."""
