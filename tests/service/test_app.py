"""The application: its OpenAPI description, error responses and documentation."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from ripplevec.service.security import Tokens
from ripplevec.service.settings import Limits

QUICK = settings(
    max_examples=10, derandomize=True, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
READ, WRITE = "read-token-0123456789", "write-token-0123456789"

BEYOND_SCHEMAS = {
    "GET /v1/changes": (410, "retained sequence number"),
    "GET /v1/vertices/{id}/nearest": (422, "a model with attributes"),
    "POST /v1/arrivals": (422, "one per neighbor|attribute"),
    "POST /v1/attributes/nearest": (422, "attribute"),
    "POST /v1/edges": (422, "one per neighbor|attribute"),
    "POST /v1/nearest/many": (422, "either vertices or vectors|a vector of"),
    "POST /v1/preview": (422, "one per row|attribute"),
    "POST /v1/recommend": (422, "not in the model"),
    "POST /v1/score": (422, "not in the model"),
    "PUT /v1/attributes": (422, "attribute"),
}
"""Status and reason (a regular expression) of requests that are rejected although they match the schema."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.value)
def test_openapi_generated_requests_are_answered_as_described(start: Any, mode: GenerationMode) -> None:
    service = start(limits=Limits(poll_seconds=0.01))
    service.edges(*[[f"r{i}", f"r{(i + step) % 40}"] for i in range(40) for step in (1, 2, 5)])
    schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    statuses: set[int] = set()

    def send_and_validate(case: Any) -> None:
        answer = case.call()
        statuses.add(answer.status_code)
        status, reason = BEYOND_SCHEMAS.get(case.operation.label, (0, ""))
        beyond = answer.status_code == status and re.search(reason, answer.text) is not None
        case.validate_response(answer, excluded_checks=[positive_data_acceptance] if beyond else [])
        if answer.status_code >= 400:
            assert answer.json()["error"]

    operations = []
    for result in schema.get_all_operations():
        operation = result.ok()
        operations.append(operation.label)
        if mode is GenerationMode.POSITIVE or has_input(operation):
            QUICK(given(operation.as_strategy(generation_mode=mode))(send_and_validate))()
    assert len(operations) == len(set(operations)) >= 15
    service.runtime.model.check()
    assert service.http.get("/readyz").status_code == 200
    assert 200 in statuses if mode is GenerationMode.POSITIVE else statuses & {400, 415, 422}


def has_input(operation: Any) -> bool:
    return bool(operation.body) or bool(list(operation.iter_parameters()))


@pytest.mark.filterwarnings("ignore::ripplevec.errors.SelfLoopWarning")
@pytest.mark.parametrize("tokens", [Tokens(), Tokens.of([READ], [WRITE])], ids=["open", "tokens"])
def test_openapi_schemathesis_run_finds_no_mismatch(start: Any, tmp_path: Path, tokens: Tokens) -> None:
    service = start(limits=Limits(poll_seconds=0.01), tokens=tokens, token=WRITE if tokens else None)
    service.edges(*[[f"r{i}", f"r{(i + step) % 40}"] for i in range(40) for step in (1, 2, 5)])
    config = tmp_path / "schemathesis.toml"
    config.write_text(
        "".join(
            f'[[operations]]\ninclude-name = "{name}"\n'
            "checks.positive_data_acceptance.expected-statuses = "
            f'["2xx", "3xx", 401, 403, 404, 409, 429, "5xx", {status}]\n'
            for name, (status, _) in BEYOND_SCHEMAS.items()
        )
    )
    program = [str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(config)]
    options = ["--checks", "all", "--seed", "1", "--max-examples", "5", "--continue-on-failure", "--no-color"]
    options += ["-H", f"Authorization: Bearer {WRITE}"] if tokens else []
    found = subprocess.run(
        [*program, "run", f"{service.url}/openapi.json", *options],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
    )
    assert found.returncode == 0, found.stdout
    service.runtime.model.check()


def test_openapi_response_models_match_responses(service: Any) -> None:
    description = service.http.get("/openapi.json").json()
    for name, path in {"Vertex": "/v1/vertices/r0", "Neighbors": "/v1/vertices/r0/nearest"}.items():
        fields = set(description["components"]["schemas"][name]["properties"])
        assert set(service.http.get(path).json()) == fields
    receipt = service.edges(["r0", "r7"]).json()
    assert set(receipt) == set(description["components"]["schemas"]["Receipt"]["properties"])
    assert {
        "POST /v1/arrivals",
        "POST /v1/edges",
        "DELETE /v1/edges",
        "DELETE /v1/vertices/{id}",
        "PUT /v1/labels",
    } <= {f"{method.upper()} {path}" for path, methods in description["paths"].items() for method in methods}


def test_unexpected_error_response_reveals_no_details(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    service = start()
    service.edges(["a", "b"])

    def broken(*_: Any) -> None:
        raise RuntimeError("secret insides")

    monkeypatch.setattr(service.runtime.model, "nearest_with_sequence", broken)
    answer = service.http.get("/v1/vertices/a/nearest")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert service.http.get("/v1/vertices/a").status_code == 200


def test_docs_list_every_endpoint_and_metric(service: Any) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "service.md").read_text()
    paths = service.http.get("/openapi.json").json()["paths"]
    endpoints = [f"{method.upper()} {path}" for path, methods in paths.items() for method in methods]
    assert [name for name in endpoints if f"`{name}`" not in page] == []
    metrics = re.findall(r"^# TYPE ripplevec_(\w+) ", service.http.get("/metrics").text, re.MULTILINE)
    assert [name for name in metrics if f"`{name}`" not in page and not name.endswith("_created")] == []
