"""Counts the events of the service, and writes counters and histograms in Prometheus's text format."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Upper bounds of the histograms' buckets, in seconds.
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_AUDIO_SECONDS = (1.0, 3.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)


class Metrics:
    """The metrics of one service, with a registry of its own."""

    def __init__(self):
        self._registry = CollectorRegistry()
        self.requests = self._counter("requests", "Answered requests", "route", "status")
        self.refused = self._counter("refused", "Requests refused at the door", "reason")
        self.request_seconds = self._histogram(
            "request_seconds", "From the headers of a request to the end of its response", _SECONDS, "route"
        )
        self.audio_seconds = self._histogram("audio_seconds", "Length of the recordings", _AUDIO_SECONDS)
        self.worker_deaths = self._counter("worker_deaths", "Worker processes that died and were replaced")
        self.connections = Gauge("speech_connections", "Open requests", registry=self._registry)
        self._batch_tasks = self._histogram("batch_tasks", "Pieces in a batch", (1, 2, 4, 8, 16))
        self._computed = self._counter("computed_audio_seconds", "Audio that the workers have recognised")
        self._busy = self._counter("worker_busy_seconds", "Time that the workers have computed")

    def watch_workers(self, count: Callable[[], int]) -> None:
        """Show how many workers are ready."""
        Gauge("speech_workers", "Workers that are ready", registry=self._registry).set_function(count)

    def watch_streams(self, count: Callable[[], int]) -> None:
        """Show how many live streams are open."""
        Gauge("speech_live_streams", "Live streams", registry=self._registry).set_function(count)

    def watch_queue(self, seconds: Callable[[], float]) -> None:
        """Show how much audio waits."""
        Gauge(
            "speech_waiting_audio_seconds",
            "Audio that waits, and the same for conversions",
            registry=self._registry,
        ).set_function(seconds)

    def batch(self, tasks: int, audio_seconds: float, seconds: float) -> None:
        """A worker has computed a batch."""
        self._batch_tasks.observe(tasks)
        self._computed.inc(audio_seconds)
        self._busy.inc(seconds)

    def text(self) -> bytes:
        """All metrics in Prometheus's text format."""
        return generate_latest(self._registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"speech_{name}", text, labels, registry=self._registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(f"speech_{name}", text, labels, buckets=buckets, registry=self._registry)
