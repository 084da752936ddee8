"""deploy/values.yaml and deploy/kubernetes/: what can be judged without a cluster."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
VALUES = yaml.safe_load((DEPLOY / "values.yaml").read_text())


def _manifests() -> list[dict]:
    return [one for file in sorted((DEPLOY / "kubernetes").glob("*.yaml")) for one in yaml.safe_load_all(file.open())]


def _one(kind: str, name: str) -> dict:
    (found,) = [one for one in _manifests() if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return found


def _pod(name: str) -> dict:
    return _one("Deployment", name)["spec"]["template"]["spec"]


def test_every_selector_finds_its_pods():
    labels = [one["spec"]["template"]["metadata"]["labels"] for one in _manifests() if one["kind"] == "Deployment"]
    selectors = [one["spec"]["selector"] for one in _manifests() if one["kind"] == "Service"]
    selectors += [one["spec"]["podSelector"]["matchLabels"] for one in _manifests() if one["kind"] == "NetworkPolicy"]
    assert len(selectors) == 5
    for selector in selectors:
        assert any(selector.items() <= found.items() for found in labels), selector


def test_the_exchange_is_one_volume_at_one_place_for_all():
    claim = _one("PersistentVolumeClaim", "nbgrader-exchange")
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    storage = VALUES["singleuser"]["storage"]
    assert storage["extraVolumes"]["nbgrader-exchange"]["persistentVolumeClaim"]["claimName"] == "nbgrader-exchange"
    students = storage["extraVolumeMounts"]["nbgrader-exchange"]["mountPath"]
    mounts = {mount["name"]: mount["mountPath"] for mount in _pod("formgrader")["containers"][0]["volumeMounts"]}
    assert students == mounts["exchange"] == VALUES["singleuser"]["extraEnv"]["DLCASES_EXCHANGE"]
    assert _environment("formgrader")["DLCASES_EXCHANGE"] == students


def test_only_instructors_may_open_formgrader():
    (role,) = VALUES["hub"]["loadRoles"].values()
    assert role["groups"] == ["instructors"]
    assert role["scopes"][0] == "access:services!service=formgrader"
    assert json.loads(_environment("formgrader")["JUPYTERHUB_OAUTH_ACCESS_SCOPES"]) == [role["scopes"][0]]
    service = VALUES["hub"]["services"]["formgrader"]
    assert _environment("formgrader")["JUPYTERHUB_CLIENT_ID"] == service["oauth_client_id"]
    assert VALUES["hub"]["config"]["JupyterHub"]["load_groups"] == {"instructors": {"users": ["instructor"]}}


def test_students_images_hold_no_grader_and_reach_no_worker():
    assert VALUES["singleuser"]["image"]["name"].endswith("-student")
    rules = VALUES["singleuser"]["networkPolicy"]["egressAllowRules"]
    assert not any(rules.values())
    allowed = _one("NetworkPolicy", "dask-scheduler")["spec"]["ingress"][0]["from"]
    assert [one["podSelector"]["matchLabels"]["app"] for one in allowed] == ["formgrader", "dask-worker"]


def test_the_address_for_the_scheduler_is_the_services():
    port = _one("Service", "dask-scheduler")["spec"]["ports"][0]["port"]
    address = f"tcp://dask-scheduler:{port}"
    assert address in _pod("dask-worker")["containers"][0]["command"]
    assert f"--scheduler {address}" in (DEPLOY / "kubernetes.md").read_text()


def test_pods_hold_no_token_of_the_cluster_and_no_more_rights_than_the_wall_needs():
    """Where submissions run the grader changes the user, which takes root with these capabilities and no others."""
    needed = {"CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETPCAP", "SETUID"}
    for name, user, added in (("formgrader", 0, needed), ("dask-scheduler", 10000, set()), ("dask-worker", 0, needed)):
        pod = _pod(name)
        assert pod["automountServiceAccountToken"] is False
        (container,) = pod["containers"]
        context = pod.get("securityContext", {}) | container["securityContext"]
        assert context["runAsUser"] == user
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"]["drop"] == ["ALL"]
        assert set(context["capabilities"].get("add", [])) == added
        assert container["resources"]["limits"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give capabilities away")
def test_the_wall_stands_with_the_capabilities_of_these_pods():
    capabilities = _pod("dask-worker")["containers"][0]["securityContext"]["capabilities"]["add"]
    # A Python in a closed home, as this test's may be, can only be read with one more.
    bounds = ",".join(["-all", *(f"+{name.lower()}" for name in (*capabilities, "DAC_READ_SEARCH"))])
    code = (
        "from grading.sandbox.box import open_box\n"
        "with open_box() as box:\n"
        "    run = box.run([{'id': 'a', 'source': 'import os; print(os.getuid() > 65535)'}])\n"
        "    print(box.isolation['kind'], box.isolation['user_changed'], run.outputs['a'][0]['text'])"
    )
    command = ["setpriv", "--bounding-set", bounds, "--inh-caps", "-all", "--no-new-privs", sys.executable, "-c", code]
    done = subprocess.run(command, cwd=DEPLOY.parent, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["landlock", "True", "True"], done.stderr
    assert not [line for line in done.stderr.splitlines() if "could not remove" in line]


def test_everybody_gets_a_user_id_of_their_own_and_its_name_once():
    hook = _hook()
    spawner = SimpleNamespace(user=SimpleNamespace(id=7), image="student:1", init_containers=[{"name": "other"}])
    for _ in range(2):
        asyncio.run(hook(spawner))
    assert spawner.uid == 20007
    assert [one["name"] for one in spawner.init_containers] == ["other", "own-user-id"]
    assert spawner.init_containers[1]["securityContext"]["runAsUser"] == 20007


def test_the_pod_that_kubespawner_makes_of_it(monkeypatch, tmp_path):
    from traitlets.config import Config

    cluster = {"clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:1"}}]}
    context = {"contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}], "current-context": "x"}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(cluster | context | {"users": [{"name": "x", "user": {}}]}))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    kubespawner = pytest.importorskip("kubespawner")  # reads KUBECONFIG once, when it is imported
    config = Config()
    config.KubeSpawner.volumes = VALUES["singleuser"]["storage"]["extraVolumes"]
    config.KubeSpawner.volume_mounts = VALUES["singleuser"]["storage"]["extraVolumeMounts"]

    async def made():
        spawner = kubespawner.KubeSpawner(config=config, _mock=True)
        spawner.user.id = 7
        await _hook()(spawner)
        return await spawner.get_pod_manifest()

    pod = asyncio.run(made())
    container = pod.spec.containers[0]
    context = container.security_context
    assert (context["runAsUser"] if isinstance(context, dict) else context.run_as_user) == 20007
    assert "/etc/passwd" in str(container.volume_mounts)
    assert "jovyan:x:20007" in str(pod.spec.init_containers)


def _hook():
    from traitlets.config import Config

    names = {"c": Config()}
    exec(VALUES["hub"]["extraConfig"]["own-user-id"], names)
    return names["c"].KubeSpawner.pre_spawn_hook


def _environment(name: str) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in _pod(name)["containers"][0]["env"]}
