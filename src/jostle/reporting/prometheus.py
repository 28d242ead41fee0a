"""Metrics of a watched stream in Prometheus's text format, and a small HTTP server for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from jostle.errors import BadValue, ResourceError

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LOOPBACK = "127.0.0.1"


class PrometheusMetric(NamedTuple):
    """A metric and its samples.

    Attributes:
        name: with its prefix and unit; of a counter with `_total`.
        kind: `counter`, `gauge` or `histogram`.
        about: one sentence.
        samples: (suffix of the name, labels, value).
    """

    name: str
    kind: str
    about: str
    samples: list[tuple[str, dict[str, str], float]]


def counter(name: str, about: str, value: float) -> PrometheusMetric:
    """Return a counter without labels."""
    return PrometheusMetric(name, "counter", about, [("", {}, value)])


def gauge(name: str, about: str, value: float) -> PrometheusMetric:
    """Return a gauge without labels."""
    return PrometheusMetric(name, "gauge", about, [("", {}, value)])


def by_label(name: str, kind: str, about: str, label: str, values: Iterable[tuple[str, float]]) -> PrometheusMetric:
    """Return a metric with one label."""
    return PrometheusMetric(name, kind, about, [("", {label: one}, value) for one, value in values])


def histogram(name: str, about: str, ends: Iterable[float], counts: list[int], total: float) -> PrometheusMetric:
    """Return a histogram with cumulative buckets.

    Args:
        ends: upper ends of the classes.
        counts: of each class, and one more of what lies above.
    """
    samples: list[tuple[str, dict[str, str], float]] = []
    below = 0
    for end, count in zip([*map(str, ends), "+Inf"], counts, strict=True):
        below += count
        samples.append(("_bucket", {"le": end}, below))
    return PrometheusMetric(name, "histogram", about, [*samples, ("_sum", {}, total), ("_count", {}, below)])


def render(metrics: Iterable[PrometheusMetric]) -> str:
    r"""Return the text of metrics.

    >>> print(render([by_label("x_total", "counter", "Things.", "kind", [('a "b"', 2.0)])]), end="")
    # HELP x_total Things.
    # TYPE x_total counter
    x_total{kind="a \"b\""} 2
    """
    lines = []
    for metric in metrics:
        about = metric.about.replace("\\", "\\\\").replace("\n", "\\n")
        lines += [f"# HELP {metric.name} {about}", f"# TYPE {metric.name} {metric.kind}"]
        for suffix, labels, value in metric.samples:
            words = ",".join(f'{name}="{_escape(text)}"' for name, text in labels.items())
            lines.append(f"{metric.name}{suffix}{f'{{{words}}}' if words else ''} {value:.10g}")
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def parse_listen_address(text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT` or `PORT`; without a host it is this machine alone.

    >>> parse_listen_address("9108"), parse_listen_address("[::1]:80")
    (('127.0.0.1', 9108), ('::1', 80))
    """
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise BadValue(f"{text!r} is no address to listen on; write HOST:PORT, as in {LOOPBACK}:9108")
    return host.strip("[]") or LOOPBACK, int(port)


@contextmanager
def serve_metrics(address: tuple[str, int], metrics: Callable[[], Iterable[PrometheusMetric]]) -> Iterator[int]:
    """Serve metrics at `/metrics` from a thread while the context lasts; yield the port.

    Raises:
        ResourceError: if the address cannot be listened on.
    """

    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            if self.path.split("?")[0] not in ("/metrics", "/"):
                self.send_error(404)
                return
            body = render(metrics()).encode()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Keep requests out of stderr, where the live line is."""

    class MetricsServer(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Ignore a client that goes before it has its answer."""

    if ":" in address[0]:
        import socket

        MetricsServer.address_family = socket.AF_INET6
    try:
        server = MetricsServer(address, Handler)
    except OSError as error:
        raise ResourceError(
            f"metrics cannot be served at {address[0]}:{address[1]} ({error.strerror}); choose another port"
        ) from None
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
