"""The app as the benchmark's hosts run it: the production app, watched."""
