"""The connection strings of the local storage and the local broker."""

from functions_alone.ports import HOST, Ports

AZURITE_ACCOUNT = "devstoreaccount1"
AZURITE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


def storage_connection_string(ports: Ports) -> str:
    services = {"Blob": ports.blob_port, "Queue": ports.queue_port, "Table": ports.table_port}
    endpoints = "".join(
        f"{name}Endpoint=http://{HOST}:{port}/{AZURITE_ACCOUNT};" for name, port in services.items()
    )
    return f"DefaultEndpointsProtocol=http;AccountName={AZURITE_ACCOUNT};AccountKey={AZURITE_KEY};{endpoints}"


def service_bus_connection_string(ports: Ports) -> str:
    """Return the broker's connection string, in the form that users of Microsoft's emulator know."""
    return (
        f"Endpoint=sb://localhost:{ports.amqp_port};SharedAccessKeyName=RootManageSharedAccessKey;"
        "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;"
    )
