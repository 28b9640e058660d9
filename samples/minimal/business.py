"""The smallest business: a workflow with one step that calls one service."""

from engine.workflow import Agent, Model, Operation, OrderEndpoint, Text, Workflow, application


class Poster(Model):
    """The payload of an order. Here it is also the request to the service."""

    picture: Text


class Printer(Agent):
    """The service that prints posters."""

    print_poster = Operation(Poster)


# An agent calls one service. It reads the service's address from the setting PRINTER_URL.
printer = Printer("printer", refusal="out of paper")

# Anybody may place an order over HTTP: POST /api/workflows/poster/orders.
posters = Workflow("poster", Poster, endpoint=OrderEndpoint(open=True))


@posters.step(printer.print_poster)
def printing(order: Poster) -> Poster:
    """Print the poster."""
    return order  # the request: the agent sends it, and repeats it until the service answers


MINIMAL = application(posters, agents=[printer], sample=Poster(picture="A lighthouse"))
