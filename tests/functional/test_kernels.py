"""The kernels' own tests, with the interpreters of the code interpreter image, in a sandbox of it."""

import io
import tarfile

import pytest
from lib.interpreter import NAME, REPOSITORY

FOLDER = REPOSITORY / "src" / "interpreter"


@pytest.fixture(scope="module")
def sandbox(interpreter_api):
    made = interpreter_api.create(image={"uri": NAME}, resourceLimits={"cpu": "2", "memory": "4Gi"}, timeout=600)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for path in [*FOLDER.glob("*.py"), *FOLDER.glob("kernels/*.*")]:
            tar.add(path, path.relative_to(FOLDER))
    interpreter_api.upload(made["id"], "/tmp/kernels.tar", archive.getvalue())
    assert interpreter_api.run(made["id"], "mkdir /tmp/kernels && tar -C /tmp/kernels -xf /tmp/kernels.tar").exit_code == 0
    yield made["id"]
    interpreter_api.delete(made["id"])


@pytest.mark.parametrize("language", ["python", "node", "java", "go"])
def test_in_the_image(interpreter_api, sandbox, language):
    ran = interpreter_api.run(sandbox, f"cd /tmp/kernels && python3 -B {language}_kernel_test.py 2>&1", client_timeout=140)
    assert ran.exit_code == 0, ran.stdout
    assert "skipped" not in ran.stdout, ran.stdout
