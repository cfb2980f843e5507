"""An API by its OpenAPI specification, called over HTTP without a model. No key, no network but this machine.

python -m examples.catalogs.own_api
"""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from callsheet import create_supervisor, load


class Bookshop(BaseHTTPRequestHandler):
    """A shop on this machine, in the place of yours."""

    def do_GET(self) -> None:
        """Tells the price of a book to whoever has the key."""
        isbn = self.path.rsplit("/", 1)[-1]
        known = self.headers["Authorization"] == "Bearer of-mine"
        body = json.dumps({"isbn": isbn, "price": "12 EUR"} if known else {"error": "who are you?"}).encode()
        self.send_response(200 if known else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(("127.0.0.1", 0), Bookshop)
Thread(target=server.serve_forever, daemon=True).start()
os.environ |= {"BOOKSHOP_URL": f"http://127.0.0.1:{server.server_port}", "BOOKSHOP_KEY": "of-mine"}
workflow = create_supervisor(load("examples/catalogs/bookshop.json", yes=True))
state = workflow.compile().invoke({"messages": 'Tell the price of the book with the ISBN "978-0141439600"'})
for result in state["results"].values():
    print(result["status"], [call["tool"] for call in result["calls"]], result["result"] or result["error"])
server.shutdown()
