"""HTTP: routes, answers, problem details, and the OpenAPI description."""
