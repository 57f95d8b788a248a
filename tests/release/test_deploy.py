"""Dockerfile, compose file, alerts, dashboard and unit of systemd: everything that they name exists.

The last test builds the image and starts the containers if Docker is running; otherwise it is skipped.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from ripplevec.cli.configuration import OTHER_VARIABLES, PREFIX
from ripplevec.cli.main import app
from ripplevec.service.server import CONNECTIONS, SHUTDOWN_SECONDS

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
SERVE: Any = typer.main.get_command(app).commands["serve"]  # type: ignore[attr-defined]
VARIABLES = {*OTHER_VARIABLES, *(f"{PREFIX}_{option.name.upper()}" for option in SERVE.params)}
SECRET_FILES = {"./tokens", "./metrics_token"}  # created by the user


def read_yaml(name: str) -> Any:
    return yaml.safe_load((DEPLOY / name).read_text())


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile in order, with joined lines and without comments."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]  # type: ignore[misc]


def last_stage() -> list[tuple[str, str]]:
    parsed = instructions()
    return parsed[max(number for number, (name, _) in enumerate(parsed) if name == "FROM") :]


def image_environment() -> dict[str, str]:
    words = shlex.split(dict(last_stage())["ENV"])
    return dict(word.split("=", 1) for word in words)


def expressions() -> list[str]:
    """Return all queries of the alerts and the dashboard."""
    alerts = [rule["expr"] for group in read_yaml("alerts.yaml")["groups"] for rule in group["rules"]]
    dashboard = json.loads((DEPLOY / "grafana/dashboards/ripplevec.json").read_text())
    return alerts + [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


@pytest.fixture
def readiness() -> Iterator[Any]:
    """Server whose `/readyz` answers with `status`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(self.server.status if self.path == "/readyz" else 404)  # type: ignore[attr-defined]
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_dockerfile_copies_files_that_exist_and_are_not_ignored() -> None:
    allowed = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    for name in allowed:
        assert (ROOT / name).exists(), name
    for arguments in [text.split() for name, text in instructions() if name == "COPY"]:
        if arguments[0].startswith("--from"):
            continue
        for source in arguments[:-1]:
            assert source == "." or source.split("/")[0] in allowed
            assert (ROOT / source).exists()


def test_dockerfile_installs_locked_requirements_and_an_existing_extra() -> None:
    commands = " ".join(text for name, text in instructions() if name == "RUN")
    assert "--require-hashes -r requirements/serve.txt" in commands
    assert "hatchling==" in (ROOT / "requirements/serve.txt").read_text(), "needed without build isolation"
    for extra in re.findall(r"\.\[([\w,]+)\]", commands):
        assert re.search(rf"^{extra} = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)


def test_dockerfile_runs_the_service_without_root_privileges() -> None:
    stage = last_stage()
    names = [name for name, _ in stage]
    assert names.index("USER") < names.index("CMD")
    user = dict(stage)["USER"]
    assert int(user) > 0, "a name cannot be checked by runAsNonRoot of Kubernetes"
    assert f"useradd --system --uid {user} --home-dir /var/lib/ripplevec --create-home ripplevec" in dict(
        reversed([entry for entry in stage if entry[0] == "RUN"])
    ).get("RUN", "")
    assert dict(stage)["EXPOSE"] == image_environment()["RIPPLEVEC_PORT"]
    assert image_environment()["RIPPLEVEC_STATE"].startswith(dict(stage)["VOLUME"])


def test_dockerfile_command_and_environment_are_accepted_by_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {name: value for name, value in image_environment().items() if name.startswith(PREFIX)}
    assert environment.keys() <= VARIABLES
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    program, command, *arguments = json.loads(dict(last_stage())["CMD"])
    assert (program, command) == ("ripplevec", "serve")
    context = SERVE.make_context("serve", arguments, auto_envvar_prefix=PREFIX)
    assert str(context.params["state"]) == environment["RIPPLEVEC_STATE"]
    assert context.params["port"] == int(environment["RIPPLEVEC_PORT"])


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False)])
def test_dockerfile_health_check_follows_readiness(readiness: Any, status: int, healthy: bool) -> None:
    readiness.status = status
    (program, *arguments) = json.loads(dict(last_stage())["HEALTHCHECK"].partition("CMD ")[2])
    assert program == "python"
    environment = os.environ | {"RIPPLEVEC_PORT": str(readiness.server_port)}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, check=False)
    assert (done.returncode == 0) is healthy


def test_compose_mounts_files_that_exist() -> None:
    compose = read_yaml("compose.yaml")
    for service in compose["services"].values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert (DEPLOY / source).exists() if source.startswith(".") else source in compose["volumes"]
        assert set(service.get("secrets", [])) <= compose["secrets"].keys()
        assert service.get("depends_on", {}).keys() <= compose["services"].keys()
    assert {secret["file"] for secret in compose["secrets"].values()} == SECRET_FILES
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {f"deploy/{name.removeprefix('./')}" for name in SECRET_FILES} <= set(ignored)


def test_compose_starts_services_when_those_they_need_are_healthy() -> None:
    services = read_yaml("compose.yaml")["services"]
    needed = {name: rule for service in services.values() for name, rule in service.get("depends_on", {}).items()}
    assert needed.keys() == {"ripplevec", "prometheus"}
    assert all(rule == {"condition": "service_healthy"} for rule in needed.values())
    assert "HEALTHCHECK" in dict(last_stage())
    assert "test" in services["prometheus"]["healthcheck"], "the image of Prometheus has no health check"


def test_compose_is_local_and_pins_images() -> None:
    for service in read_yaml("compose.yaml")["services"].values():
        assert "build" in service or re.search(r":v?\d+\.\d+\.\d+$", service["image"])
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_compose_command_and_environment_are_accepted_by_serve() -> None:
    service = read_yaml("compose.yaml")["services"]["ripplevec"]
    assert {name for name in service["environment"] if name.startswith(PREFIX)} <= VARIABLES
    program, command, *arguments = service["command"]
    assert (program, command) == ("ripplevec", "serve")
    context = SERVE.make_context("serve", ["--state", "state", *arguments])
    assert context.params["token_file"] == Path("/run/secrets/tokens")


def read_unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(delimiters="=", comment_prefixes="#", interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names of settings are case-sensitive
    parser.read_string((DEPLOY / "ripplevec.service").read_text())
    return parser


def test_unit_command_is_accepted_by_serve_and_its_paths_are_writable() -> None:
    service = read_unit()["Service"]
    program, command, *arguments = shlex.split(service["ExecStart"])
    assert (Path(program).name, command) == ("ripplevec", "serve")
    context = SERVE.make_context("serve", arguments)
    assert context.params["state"].is_relative_to(Path("/var/lib") / service["StateDirectory"])
    assert service["Environment"] == f"NUMBA_CACHE_DIR=/var/cache/{service['CacheDirectory']}"
    page = (ROOT / "docs/operations.md").read_text()
    assert "](../deploy/ripplevec.service)" in page
    for path in (program.removesuffix("/bin/ripplevec"), str(context.params["token_file"])):
        assert path in page, path
    assert f"useradd --system --home /var/lib/ripplevec --create-home {service['User']}" in page


def test_unit_allows_all_connections_restarts_and_can_compile() -> None:
    start, service = read_unit()["Unit"], read_unit()["Service"]
    assert int(service["LimitNOFILE"]) > 2 * CONNECTIONS
    assert int(service["TimeoutStopSec"]) >= 2 * SHUTDOWN_SECONDS
    assert service["Restart"] == "on-failure"
    assert int(service["RestartSec"]) * int(start["StartLimitBurst"]) < int(start["StartLimitIntervalSec"])
    assert "MemoryDenyWriteExecute" not in service, "kernels are compiled at run time"
    for name in ("NoNewPrivileges", "PrivateDevices", "ProtectHome", "RestrictNamespaces"):
        assert service[name] == "yes", name
    assert service["ProtectSystem"] == "strict"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_unit_is_valid_for_systemd(tmp_path: Path) -> None:
    unit = (DEPLOY / "ripplevec.service").read_text()
    program = read_unit()["Service"]["ExecStart"].split()[0]
    (tmp_path / "ripplevec.service").write_text(unit.replace(program, "/bin/true"))
    command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "ripplevec.service")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_prometheus_reads_the_metrics_of_the_service() -> None:
    compose, prometheus = read_yaml("compose.yaml"), read_yaml("prometheus.yaml")
    (job,) = prometheus["scrape_configs"]
    host, port = job["static_configs"][0]["targets"][0].split(":")
    assert host in compose["services"]
    assert host in compose["services"]["ripplevec"]["environment"]["RIPPLEVEC_ALLOW_HOST"].split()
    assert port == image_environment()["RIPPLEVEC_PORT"]
    assert job["metrics_path"] == "/metrics"
    mounted = {volume.split(":")[1] for volume in compose["services"]["prometheus"]["volumes"]}
    assert set(prometheus["rule_files"]) <= mounted
    assert job["authorization"]["credentials_file"] == "/run/secrets/metrics_token"


def test_grafana_finds_its_data_source_and_dashboard() -> None:
    (source,) = read_yaml("grafana/provisioning/datasources/prometheus.yaml")["datasources"]
    (provider,) = read_yaml("grafana/provisioning/dashboards/ripplevec.yaml")["providers"]
    grafana = read_yaml("compose.yaml")["services"]["grafana"]
    mounts = {volume.split(":")[1]: DEPLOY / volume.split(":")[0] for volume in grafana["volumes"]}
    assert mounts[provider["options"]["path"]] == DEPLOY / "grafana/dashboards"
    home = Path(grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert (mounts[str(home.parent)] / home.name).exists()
    dashboard = json.loads((DEPLOY / "grafana/dashboards/ripplevec.json").read_text())
    assert {panel["datasource"]["uid"] for panel in dashboard["panels"]} == {source["uid"]}
    cells = [
        (panel["gridPos"]["x"] + column, panel["gridPos"]["y"] + row)
        for panel in dashboard["panels"]
        for column in range(panel["gridPos"]["w"])
        for row in range(panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells)), "panels overlap"
    assert max(column for column, _ in cells) < 24


@pytest.mark.parametrize("expression", expressions())
def test_sums_of_series_that_may_be_absent_have_a_value(expression: str) -> None:
    """In PromQL, a sum of which one part has no series is empty: no response has had status 500, as a rule."""
    for part in expression.split(" + "):
        assert " + " not in expression or "{" not in part or "or vector(0)" in part, part


@pytest.mark.parametrize("expression", expressions())
def test_alerts_and_dashboard_use_documented_metrics(expression: str) -> None:
    table = (ROOT / "docs/service.md").read_text().partition("## Metrics")[2].partition("\n## ")[0]
    documented = set(re.findall(r"`(\w+)`", table))
    named = {re.sub("_bucket$", "", name) for name in re.findall(r"\bripplevec_(\w+)", expression)}
    assert named
    assert named <= documented


OVERRIDES = """
services:
  ripplevec: {{ports: !override ["127.0.0.1::8080"]}}
  grafana: {{ports: !override ["127.0.0.1::3000"]}}
secrets:
  tokens: {{file: {folder}/tokens}}
  metrics_token: {{file: {folder}/metrics_token}}
"""
"""Free ports and tokens of its own, so that the test does not disturb containers that are running."""


@pytest.fixture
def compose(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Return a function that runs `docker compose` with the files of this repository; remove everything at the end."""
    if shutil.which("docker") is None or any(
        subprocess.run(["docker", *words], capture_output=True, check=False).returncode
        for words in (["info"], ["compose", "version"])
    ):
        pytest.skip("needs Docker with its compose plugin, and a running engine (`docker info`)")
    (tmp_path / "tokens").write_text("write secret\nread metrics\n")
    (tmp_path / "metrics_token").write_text("metrics")
    tmp_path.chmod(0o755)
    (tmp_path / "overrides.yaml").write_text(OVERRIDES.format(folder=tmp_path))
    files = ["-f", str(DEPLOY / "compose.yaml"), "-f", str(tmp_path / "overrides.yaml")]

    def run(*words: str) -> str:
        command = ["docker", "compose", "-p", f"ripplevec-test-{os.getpid()}", *files, *words]
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    yield run
    run("down", "--volumes", "--rmi", "local")


@pytest.mark.timeout(1800)
def test_compose_builds_and_starts_and_keeps_the_state(compose: Callable[..., str]) -> None:
    compose("up", "--build", "--detach", "--wait")

    def request(path: str, body: bytes | None = None) -> Any:
        headers = {"Authorization": "Bearer secret", "Content-Type": "application/json"}
        address = f"http://{compose('port', 'ripplevec', '8080')}{path}"
        with urllib.request.urlopen(urllib.request.Request(address, body, headers), timeout=60) as response:
            return json.load(response)

    request("/v1/edges", json.dumps({"edges": [["alice", "bob"]]}).encode())
    compose("restart", "ripplevec")
    compose("up", "--detach", "--wait")
    assert request("/v1/stats")["vertices"] == 2
    with urllib.request.urlopen(f"http://{compose('port', 'grafana', '3000')}/api/health", timeout=60) as response:
        assert json.load(response)["database"] == "ok"
