"""Calls over HTTP: routes, answers, problem details, the description of the API."""
