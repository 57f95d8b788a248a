"""Validation of request models."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationError

from ripplevec.service import schemas


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (schemas.VectorsRequest, '{"ids": ["a", 1, 123456789012345678901234567890]}'),
        (schemas.NearestRequest, '{"vector": [1, 2.5]}'),
        (schemas.PreviewRequest, '{"neighbors": [], "weights": null}'),
        (schemas.RemoveEdges, '{"edges": [["a", 1]], "key": null}'),
        (schemas.LabelsRequest, '{"labels": [["a", null], [1, "x"]]}'),
    ],
)
def test_request_model_valid_body_is_accepted(form: type[BaseModel], text: str) -> None:
    assert form.model_validate_json(text)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (schemas.VectorsRequest, '{"ids": ["a", 1.0]}'),
        (schemas.VectorsRequest, '{"ids": [true]}'),
        (schemas.VectorsRequest, '{"ids": [""]}'),
        (schemas.VectorsRequest, '{"ids": ["' + "x" * 1025 + '"]}'),
        (schemas.NearestRequest, '{"vector": [NaN]}'),
        (schemas.NearestRequest, '{"vector": [1e999]}'),
        (schemas.PreviewRequest, '{"neighbors": ["a"], "weights": [0]}'),
        (schemas.RemoveEdges, '{"edges": [["a", "b", 1]]}'),
        (schemas.RemoveEdges, '{"edges": []}'),
        (schemas.RemoveVertices, '{"ids": ["a"], "key": ""}'),
        (schemas.LabelsRequest, '{"labels": {"a": "x"}}'),
    ],
)
def test_request_model_invalid_body_is_rejected(form: type[BaseModel], text: str) -> None:
    with pytest.raises(ValidationError):
        form.model_validate_json(text)
