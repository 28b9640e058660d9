"""What requests to storage go through."""

from azure.core.pipeline.transport import AioHttpTransport


class Recorder(AioHttpTransport):
    """Notes every request, and can lose the next answers after the service has given them."""

    def __init__(self):
        super().__init__()
        self.requests = []
        self.lose_answers = 0

    async def send(self, request, **options):
        self.requests.append((request.method, request.url))
        response = await super().send(request, **options)
        if self.lose_answers and request.method != "GET":
            self.lose_answers -= 1
            raise ConnectionResetError("the answer was lost")
        return response
