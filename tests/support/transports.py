"""What requests to storage go through."""

import re

from azure.core.pipeline.transport import AioHttpTransport

NAMED = re.compile(rb'("value"\s*:\s*")\d+:')
"""How an error says which operation of a transaction it is about."""


class Recorder(AioHttpTransport):
    """Notes every request; can lose the next answers after the service has given them, or have errors say less."""

    def __init__(self):
        super().__init__()
        self.requests = []
        self.lose_answers = 0
        self.names_operations = True
        """Whether the error of a transaction says which operation is at fault, which not every service does."""

    async def send(self, request, **options):
        self.requests.append((request.method, request.url))
        response = await super().send(request, **options)
        if self.lose_answers and request.method != "GET":
            self.lose_answers -= 1
            raise ConnectionResetError("the answer was lost")
        if not self.names_operations:
            response._content = NAMED.sub(rb"\1", await response.read())
        return response
