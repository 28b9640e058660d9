"""Parcels go from HTTP over a Storage Queue and a Service Bus queue to whoever asks where they are."""

import azure.functions as func

app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)
delivered: list[str] = []


@app.route("parcels", methods=["POST"])
@app.queue_output("parcel", "%PARCELS%", "Parcels")
def send(req: func.HttpRequest, parcel: func.Out[str]) -> func.HttpResponse:
    """Take a parcel."""
    parcel.set(req.get_body().decode())
    return func.HttpResponse(status_code=202)


@app.queue_trigger("parcel", "%PARCELS%", "Parcels")
@app.service_bus_queue_output("$return", connection="Vans", queue_name="vans")
def load(parcel: func.QueueMessage) -> str:
    """Load it onto a van."""
    return parcel.get_body().decode()


@app.service_bus_queue_trigger("parcel", connection="Vans", queue_name="vans")
def deliver(parcel: func.ServiceBusMessage) -> None:
    """Bring it to its door."""
    delivered.append(parcel.get_body().decode())


@app.route("parcels", methods=["GET"])
def where(req: func.HttpRequest) -> func.HttpResponse:
    """Say which parcels were delivered."""
    return func.HttpResponse("\n".join(delivered) or "none")
