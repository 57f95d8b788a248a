"""Temporal graph network (TGN) of PyTorch Geometric as a link predictor, with the settings of its published example.

Rossi et al., "Temporal Graph Networks for Deep Learning on Dynamic Graphs" (2020). Every vertex has a memory that a
recurrent cell updates with its events; attention over its ten latest events turns memories into vectors. Trained on the
processor, for a number of epochs or seconds. Events have no features here.
"""

from __future__ import annotations

import logging
from time import process_time
from typing import Any

import numpy as np

from ripplevec.errors import MissingExtraError
from ripplevec.lab.temporal.protocol import BATCH_SIZE, Scores
from ripplevec.lab.temporal.streams import Ids

try:
    import torch
    from torch_geometric.nn import TransformerConv
    from torch_geometric.nn.models.tgn import IdentityMessage, LastAggregator, LastNeighborLoader, TGNMemory
except ImportError as error:
    raise MissingExtraError("ripplevec.lab.temporal.tgn", "torch") from error

DIM, NEIGHBORS, HEADS, DROPOUT, LEARNING_RATE = 100, 10, 2, 0.1, 1e-4
"""Settings of the example: size of memories, times and vectors; events that attention reads; its heads and dropout."""

EPOCHS = 50
"""Passes over the training part in the example."""

MESSAGE_DIM = 1
"""Size of the features of an event, which are all zero."""

log = logging.getLogger(__name__)


class TgnPredictor:
    """TGN, trained on the events that are given for learning when the first event of another part arrives.

    Parameters
    ----------
    vertices : int
        Number of vertices; ids are smaller.
    epochs : int
        Passes over the training part.
    seconds : float
        Processor time after which no further epoch begins; the first one always does.
    seed : int
        Seed of the weights and of the negative examples.
    """

    def __init__(self, vertices: int, *, epochs: int = EPOCHS, seconds: float = np.inf, seed: int = 0) -> None:
        torch.manual_seed(seed)
        message = IdentityMessage(MESSAGE_DIM, DIM, DIM)
        self.memory = TGNMemory(vertices, MESSAGE_DIM, DIM, DIM, message, LastAggregator())
        width = MESSAGE_DIM + DIM
        self.attention = TransformerConv(DIM, DIM // HEADS, heads=HEADS, dropout=DROPOUT, edge_dim=width)
        self.source_layer, self.target_layer = torch.nn.Linear(DIM, DIM), torch.nn.Linear(DIM, DIM)
        self.output_layer = torch.nn.Linear(DIM, 1)
        self.modules = torch.nn.ModuleList(
            [self.memory, self.attention, self.source_layer, self.target_layer, self.output_layer]
        )
        self.neighbors = LastNeighborLoader(vertices, size=NEIGHBORS)
        self.positions = torch.empty(vertices, dtype=torch.long)
        self.epochs, self.seconds, self.epochs_done = epochs, seconds, 0
        self.training: list[tuple[Any, Any, Any]] = []
        self.times: list[Any] = []  # of all events since the memory was reset

    def process(
        self, src: Ids, dst: Ids, time: Ids, candidates: Ids | None, *, learn: bool, one_by_one: bool
    ) -> Scores:
        """Keep events for learning; score the candidates of later ones with the state before the batch, then record."""
        if one_by_one:
            raise ValueError("TGN updates its memory after every batch")
        events = torch.from_numpy(src), torch.from_numpy(dst), torch.from_numpy(time)
        if learn:
            self.training.append(events)
            return np.empty((0, 0))
        if self.training:
            self.train()
        with torch.no_grad():
            scores = np.empty((0, 0)) if candidates is None else self._score_lines(events[0], candidates)
            self._record(events)
        return scores

    def train(self) -> None:
        """Train on the events given for learning; the memory has followed them all afterward."""
        src, dst, time = (torch.cat(columns) for columns in zip(*self.training, strict=True))
        first, last = int(dst.min()), int(dst.max())
        optimizer = torch.optim.Adam(self.modules.parameters(), lr=LEARNING_RATE)
        began = process_time()
        while self.epochs_done < self.epochs and (not self.epochs_done or process_time() - began < self.seconds):
            self.modules.train()
            self.memory.reset_state()
            self.neighbors.reset_state()
            self.times.clear()
            total = 0.0
            for begin in range(0, len(src), BATCH_SIZE):
                events = tuple(column[begin : begin + BATCH_SIZE] for column in (src, dst, time))
                other = torch.randint(first, last + 1, (len(events[0]),))
                total += self._train_batch(optimizer, events, other) * len(events[0])
            self.epochs_done += 1
            log.info("TGN: epoch=%d loss=%.4f seconds=%.0f", self.epochs_done, total / len(src), process_time() - began)
        self.modules.eval()
        self.training.clear()

    def _train_batch(self, optimizer: Any, events: Any, other: Any) -> float:
        """Take one step: the events are positive examples, the same sources with other targets negative ones."""
        optimizer.zero_grad()
        src, dst, _ = events
        vertices = torch.cat([src, dst, other]).unique()
        vectors = self._embed(vertices)
        loss = torch.zeros(())
        for targets, outcome in ((dst, 1.0), (other, 0.0)):
            log_odds = self._score(vectors[self.positions[src]], vectors[self.positions[targets]])
            expected = torch.full_like(log_odds, outcome)
            loss = loss + torch.nn.functional.binary_cross_entropy_with_logits(log_odds, expected)
        self._record(events)
        loss.backward()
        optimizer.step()
        self.memory.detach()
        return float(loss.detach())

    def _embed(self, vertices: Any) -> Any:
        """Return vectors of vertices and of their neighbors; `positions` holds the row of each."""
        vertices, edges, numbers = self.neighbors(vertices)
        self.positions[vertices] = torch.arange(len(vertices))
        memory, updated = self.memory(vertices)
        times = torch.cat(self.times)[numbers] if self.times else torch.empty(0, dtype=torch.long)
        elapsed = (updated[edges[0]] - times).to(memory.dtype)
        features = torch.cat([self.memory.time_enc(elapsed), torch.zeros(len(times), MESSAGE_DIM)], dim=1)
        return self.attention(memory, edges, features)

    def _score(self, sources: Any, targets: Any) -> Any:
        """Return the log-odds of edges, given the vectors of both ends."""
        return self.output_layer((self.source_layer(sources) + self.target_layer(targets)).relu())[..., 0]

    def _score_lines(self, src: Any, candidates: Ids) -> Scores:
        """Return the log-odds of the candidates of each source; a candidate of −1 has no meaning."""
        others = torch.from_numpy(np.maximum(candidates, 0))
        vectors = self._embed(torch.cat([src, others.ravel()]).unique())
        rows = self.positions[others]
        sources, targets = self.source_layer(vectors[self.positions[src]]), self.target_layer(vectors)
        lines = [
            self.output_layer((source + targets[row]).relu())[:, 0].numpy()
            for source, row in zip(sources, rows, strict=True)
        ]
        return np.stack(lines).astype(np.float64)

    def _record(self, events: Any) -> None:
        """Update memories and neighbors with events."""
        src, dst, time = events
        self.memory.update_state(src, dst, time, torch.zeros(len(src), MESSAGE_DIM))
        self.neighbors.insert(src, dst)
        self.times.append(time)
