"""Qdrant sink: a collection with one point per vertex, kept in step with a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID, uuid5

from ripplevec.batch import Id
from ripplevec.errors import InvalidValueError, MissingExtraError, check_choice
from ripplevec.io.sinks.vector_store import VectorRows, VectorStoreSink

DISTANCES = ("cosine", "dot", "euclid")

_POINTS_PER_REQUEST = 1000
_NAMESPACE = UUID("6ba7b812-9dad-11d1-80b4-00c04fd430c8")  # of object identifiers, RFC 9562


class QdrantSink(VectorStoreSink):
    """`qdrant://HOST:PORT?collection=vertices`, or `qdrant:///FOLDER?…` for the local mode of the client library.

    A point has the current vector of a vertex, and a payload with `id` (text or integer) and `sequence` (of the last
    batch that moved the vertex). Its own id is a UUID that depends on the vertex id only (`point_id`). The collection
    is created with the first changes. With the distance `cosine`, Qdrant scales vectors to length 1; with `dot` and
    `euclid` it keeps them as they are.
    """

    def __init__(
        self,
        location: str,
        *,
        collection: str = "vertices",
        distance: str = "cosine",
        api_key: str | None = None,
        https: str = "no",
    ) -> None:
        try:
            import qdrant_client
        except ImportError as error:
            raise MissingExtraError("a Qdrant sink", "qdrant") from error
        super().__init__()
        check_choice("distance", distance, DISTANCES)
        check_choice("https", https, ("yes", "no"))
        self._models, self._collection, self._distance = qdrant_client.models, collection, distance
        if location.startswith("/"):
            # The client is created in one thread and used in another, but never in two at a time.
            self._client = qdrant_client.QdrantClient(path=location, force_disable_check_same_thread=True)
        else:
            scheme = "https" if https == "yes" else "http"
            self._client = qdrant_client.QdrantClient(url=f"{scheme}://{location}", api_key=api_key)

    def close(self) -> None:
        """Write the queued changes and close the connection."""
        super().close()
        self._client.close()

    def _apply(self, updated: VectorRows | None, removed: Sequence[Id]) -> None:
        if updated is not None:
            self._upsert(updated)
        if removed and self._client.collection_exists(self._collection):
            self._delete([point_id(name) for name in removed])

    def _replace_all(self, rows: VectorRows) -> None:
        self._upsert(rows)
        self._delete(list(set(self._read_point_ids()) - set(map(point_id, rows.ids))))

    def _newest_sequence_and_size(self) -> tuple[int, int]:
        # Unknown: without transactions, points of an interrupted flush may be newer than others of the same flush.
        return -1, 0

    def _upsert(self, rows: VectorRows) -> None:
        self._prepare_collection(rows.vectors.shape[1])
        for start in range(0, len(rows.ids), _POINTS_PER_REQUEST):
            part = slice(start, start + _POINTS_PER_REQUEST)
            payloads = [
                {"id": name, "sequence": sequence}
                for name, sequence in zip(rows.ids[part], rows.sequences[part].tolist(), strict=True)
            ]
            ids: Any = [point_id(name) for name in rows.ids[part]]
            points = self._models.Batch(ids=ids, vectors=rows.vectors[part].tolist(), payloads=payloads)
            self._client.upsert(self._collection, points, wait=True)

    def _delete(self, point_ids: Sequence[str]) -> None:
        for start in range(0, len(point_ids), _POINTS_PER_REQUEST):
            points: Any = list(point_ids[start : start + _POINTS_PER_REQUEST])
            self._client.delete(self._collection, self._models.PointIdsList(points=points), wait=True)

    def _prepare_collection(self, dim: int) -> None:
        """Create the collection, or check that it has vectors of this dimension with this distance."""
        expected = self._models.VectorParams(size=dim, distance=self._models.Distance[self._distance.upper()])
        if not self._client.collection_exists(self._collection):
            self._client.create_collection(self._collection, expected)
            return
        existing: Any = self._client.get_collection(self._collection).config.params.vectors
        size, distance = getattr(existing, "size", None), getattr(existing, "distance", None)
        if (size, distance) != (expected.size, expected.distance):
            wanted = f"vectors of {dim} dimensions, distance {self._distance}"
            # A collection with several named vectors has neither a size nor a distance.
            got = f"{size} dimensions, distance {distance.value.lower()}" if distance else "named vectors"
            raise InvalidValueError.of(f"collection {self._collection}", wanted, got)

    def _read_point_ids(self) -> Iterator[str]:
        offset: Any = None
        while True:
            points, offset = self._client.scroll(
                self._collection, limit=_POINTS_PER_REQUEST, offset=offset, with_payload=False, with_vectors=False
            )
            yield from (str(point.id) for point in points)
            if offset is None:
                return


def point_id(name: Id) -> str:
    """Return the id of the point of a vertex."""
    return str(uuid5(_NAMESPACE, f"{type(name).__name__}:{name}"))
