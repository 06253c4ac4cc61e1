// An application of CAS. The arguments are the URL of the server and the version of the protocol. It prints its port.
import { createServer } from "node:http";
import client from "http-cas-client";

let handler;
const server = createServer(async (request, response) => {
  try {
    if (await handler(request, response)) {
      response.end(JSON.stringify(request.principal));
    } else {
      response.end();
    }
  } catch (error) {
    response.statusCode = 500;
    response.end(String(error));
  }
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address();
  handler = client({
    casServerUrlPrefix: process.argv[2],
    serverName: `http://127.0.0.1:${port}`,
    cas: Number(process.argv[3]),
  });
  console.log(port);
});
