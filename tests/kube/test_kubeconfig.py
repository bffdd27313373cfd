"""Which kubeconfigs we connect with, and why not with the others."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

import pytest
import yaml

from console.kube.client import Kube
from console.kube.errors import KubeconfigRefused, Unauthorized
from console.kube.kubeconfig import Connection, in_cluster, parse
from tests.kube.faulty import Faulty, Reply

PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def config(user: dict[str, object] | None = None, **cluster: object) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "one",
            "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u"}}, {"name": "two", "context": {"cluster": "d"}}],
            "clusters": [
                {"name": "c", "cluster": {"server": "https://api.example:6443"} | cluster},
                {"name": "d", "cluster": {"server": "http://127.0.0.1:8001/clusters/x/"}},
            ],
            "users": [{"name": "u", "user": {"token": "s3cret"} if user is None else user}],
        }
    )


def test_the_current_context_is_taken_unless_another_is_asked_for() -> None:
    assert parse(config(**{"certificate-authority-data": encoded(PEM)})) == Connection("https://api.example:6443", PEM, "s3cret")
    assert parse(config(), context="two") == Connection("http://127.0.0.1:8001/clusters/x")


def test_secrets_are_not_in_the_repr() -> None:
    user: dict[str, object] = {"token": "s3cret", "client-certificate-data": encoded(PEM), "client-key-data": encoded("k3y")}
    assert "s3cret" not in repr(parse(config(user)))
    assert "k3y" not in repr(parse(config(user)))


def test_a_rendered_kubeconfig_reads_back_the_same() -> None:
    user: dict[str, object] = {"token": "s3cret", "client-certificate-data": encoded(PEM), "client-key-data": encoded("k3y")}
    connection = parse(config(user, **{"certificate-authority-data": encoded(PEM)}))
    assert parse(connection.to_kubeconfig("aurora")) == connection
    assert yaml.safe_load(connection.to_kubeconfig("aurora"))["current-context"] == "aurora"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "lists no clusters"),
        ("hello", "lists no clusters"),
        ("a: [", "no YAML"),
        ("\x00", "no YAML"),
        ("x" * 600_000, "too long"),
        ("clusters: []", "no current context"),
        ("clusters: []\ncurrent-context: gone", "no context named 'gone'"),
        ("clusters: [1]\ncontexts: [{name: a, context: {cluster: [z]}}]\ncurrent-context: a", "no cluster named ''"),
        (config(server="ftp://x"), "no http or https address"),
        (config(server=5), "no http or https address"),
        (config(server="https://[::1"), "no http or https address"),
        (config(server="https://host:99999"), "no http or https address"),
        (config(server="https://me:pw@host"), "more than a host"),
        (config(server="http://10.0.0.1:8080"), "plain http to another machine"),
        (config(server="http://localhost.evil.example"), "plain http to another machine"),
        (config(**{"insecure-skip-tls-verify": True}), "skips TLS verification"),
        (config(**{"proxy-url": "http://p"}), "proxy-url"),
        (config(**{"certificate-authority": "/etc/shadow"}), "certificate-authority of this kubeconfig is a file"),
        (config(**{"certificate-authority-data": "%%%"}), "no base64"),
        (config({"tokenFile": "/var/run/secrets/token"}), "tokenFile of this kubeconfig is a file"),
        (config({"client-certificate-data": encoded(PEM)}), "one half"),
        (config({"username": "a", "password": "b"}), "password"),
        (config({"auth-provider": {"name": "gcp"}}), "auth-provider"),
        (config({"token": "a\nb"}), "no plain text"),
        (config({"token": ["a"]}), "no plain text"),
        (config({"exec": {"command": "sh", "args": ["-c", "id"]}}), "would run the command 'sh'"),
        (config({"exec": "sh"}), "would run the command ''"),
    ],
)
def test_a_kubeconfig_we_do_not_take_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(KubeconfigRefused, match=why) as caught:
        parse(text)
    assert len(caught.value.sentence) < 300


def test_yaml_that_unfolds_without_end_is_refused_in_no_time() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    bomb = "\n".join([*lines, "clusters: [{name: *a29, cluster: {server: *a29}}]", "current-context: *a29"])
    with pytest.raises(KubeconfigRefused, match="no current context"):
        parse(bomb)
    with pytest.raises(KubeconfigRefused, match="no context named"):
        parse(bomb, context="x")


def test_a_command_is_taken_where_it_is_allowed_but_not_with_an_environment() -> None:
    plugin: dict[str, object] = {"command": "aws", "args": ["eks", "get-token"], "apiVersion": "client.authentication.k8s.io/v1"}
    command = parse(config({"exec": plugin}), allowed_commands={"aws"}).command
    assert command
    assert command.argv == ("aws", "eks", "get-token")
    hostile = plugin | {"env": [{"name": "LD_PRELOAD", "value": "/tmp/x.so"}]}
    with pytest.raises(KubeconfigRefused, match="environment"):
        parse(config({"exec": hostile}), allowed_commands={"aws"})


def test_an_operators_own_kubeconfig_may_name_files(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text(PEM)
    (tmp_path / "token").write_text("t")
    assert parse(config(**{"certificate-authority": str(tmp_path / "ca.crt")}), files=True).ca == PEM
    with pytest.raises(KubeconfigRefused, match=r"gone\.crt.*cannot be read"):
        parse(config(**{"certificate-authority": str(tmp_path / "gone.crt")}), files=True)
    with pytest.raises(KubeconfigRefused, match="no absolute path"):
        parse(config(**{"certificate-authority": "ca.crt"}), files=True)
    inside = in_cluster("fd00::1", "443", tmp_path)
    assert (inside.server, inside.ca, inside.token_file) == ("https://[fd00::1]:443", PEM, str(tmp_path / "token"))


def test_a_broken_certificate_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(KubeconfigRefused, match="broken"):
        Kube(Connection("https://api.example", ca=PEM))


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


async def test_a_commands_token_is_used_until_it_is_refused(
    server: Faulty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://secret")
    count = tmp_path / "count"
    said = '{"kind":"ExecCredential","status":{"token":"t%s%s"}}'
    command = script(tmp_path / "tok", f'echo x >> {count}; printf \'{said}\' "$(wc -l < {count})" "$DATABASE_URL"')
    seen: list[str] = []

    def answer(request: object) -> Reply:
        seen.append(request.headers["authorization"])  # type: ignore[attr-defined]
        return Reply({"gitVersion": "v1"}, 401 if len(seen) == 2 else 200)

    server.on("GET", "/version", answer)
    text = config({"exec": {"command": command}}, server=server.url)
    async with Kube(parse(text, allowed_commands={command})) as kube:
        await kube.version()
        await kube.version()
        await kube.version()
    assert seen == ["Bearer t1", "Bearer t1", "Bearer t2", "Bearer t2"]


@pytest.mark.parametrize("text", ["exit 1", "echo hello", "echo '{\"status\":{}}'", "echo '[1]'"])
async def test_a_command_without_a_token_is_an_error_with_a_sentence(server: Faulty, tmp_path: Path, text: str) -> None:
    command = script(tmp_path / "tok", text)
    async with Kube(parse(config({"exec": {"command": command}}, server=server.url), allowed_commands={command})) as kube:
        with pytest.raises(Unauthorized, match="gave no token"):
            await kube.version()
    nowhere = command + "-gone"
    async with Kube(parse(config({"exec": {"command": nowhere}}, server=server.url), allowed_commands={nowhere})) as kube:
        with pytest.raises(Unauthorized, match="cannot be started"):
            await kube.version()
    assert not server.requests
