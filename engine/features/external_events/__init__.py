"""External events: a person, or a service at its callback URL, completes a step (ANS).

The decisions on an order use `steps`, the verbs, and `callback_urls`. The other modules decide
about an event, and are in a layer above the decisions on an order.
"""
