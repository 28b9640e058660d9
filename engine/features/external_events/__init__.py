"""External events: a person, or a service over its callback URL, completes a step (ANS).

The decisions on an order use `steps`, the verbs, and `callback_urls`. The other modules are the
decisions about an event, and stand above those on an order.
"""
