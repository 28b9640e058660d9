"""`make mutants`: faults planted into the shipped code one by one, each of which a test has to notice."""
