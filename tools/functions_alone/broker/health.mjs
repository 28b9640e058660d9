/** `GET /health` over HTTP: whether the broker serves, and how many messages each queue has. */
import http from 'node:http';

export class HealthServer {
  #server;

  constructor(broker) {
    this.#server = http.createServer((request, response) => {
      const known = request.method === 'GET' && request.url === '/health';
      const body = known ? { status: 'healthy', queues: broker.counts() } : { error: 'only GET /health is here' };
      response.writeHead(known ? 200 : 404, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    });
  }

  /** Resolves to the port it listens on. */
  listen(port) {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ port, host: '127.0.0.1' }, () => resolve(this.#server.address().port));
    });
  }

  close() {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
