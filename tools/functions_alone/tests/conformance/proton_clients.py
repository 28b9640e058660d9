"""Many connections of Qpid Proton that take messages; run by a Python that has Proton. Prints what each got.

python3 proton_clients.py PORT QUEUE CONNECTIONS MESSAGES_PER_CONNECTION
"""

import json
import sys

from proton.handlers import MessagingHandler
from proton.reactor import AtMostOnce, Container


class Clients(MessagingHandler):
    """Each connection sends open, attach and credit in one breath, and closes when it has its messages."""

    def __init__(self, port, queue, connections, messages):
        super().__init__(prefetch=0)
        self.address, self.queue, self.messages = f"amqp://127.0.0.1:{port}", queue, messages
        self.received = [[] for _ in range(connections)]
        self.faults = []

    def on_start(self, event):
        for number in range(len(self.received)):
            connection = event.container.connect(
                self.address, reconnect=False, allowed_mechs="ANONYMOUS", sasl_enabled=True
            )
            receiver = event.container.create_receiver(
                connection, self.queue, name=str(number), options=AtMostOnce()
            )
            receiver.flow(self.messages)

    def on_message(self, event):
        received = self.received[int(event.receiver.name)]
        received.append(bytes(event.message.body).decode())
        if len(received) == self.messages:
            event.connection.close()

    def fault(self, event):
        self.faults.append(f"{event.type}: {event.transport and event.transport.condition}")

    on_transport_error = on_connection_error = on_session_error = on_link_error = fault


port, queue, connections, messages = sys.argv[1:]
clients = Clients(port, queue, int(connections), int(messages))
Container(clients).run()
json.dump({"received": clients.received, "faults": clients.faults}, sys.stdout)
