"""`osb skills`: instructions for coding agents land where those look for them, and go away again."""

import json
import subprocess

import pytest

PLACES = {
    "claude": ".claude/skills/command-execution.md",
    "cursor": ".cursor/rules/command-execution.mdc",
    "codex": ".codex/skills/command-execution/SKILL.md",
    "opencode": ".agents/skills/command-execution/SKILL.md",
    "copilot": ".github/copilot-instructions.md",
    "windsurf": ".windsurfrules",
    "cline": ".clinerules",
}


@pytest.fixture
def skills(bin_dir, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "project").mkdir()

    def run(*words, status=0):
        done = subprocess.run([bin_dir / "osb", "skills", *words], cwd=tmp_path / "project", env={"HOME": str(tmp_path / "home")}, capture_output=True, text=True)
        assert done.returncode == status, done.stderr
        return done.stderr if status else json.loads(done.stdout) if "json" in words else done.stdout

    return run


@pytest.mark.parametrize("target", PLACES)
@pytest.mark.parametrize("scope", ["project", "global"])
def test_install_again_and_uninstall(skills, tmp_path, target, scope):
    where = tmp_path / ("project" if scope == "project" else "home") / PLACES[target]
    words = ["command-execution", "-t", target, "--scope", scope, "-o", "json"]

    def status(*command):
        operations = skills(*command)["operations"]
        assert [(one["skill"], one["target"], one["scope"]) for one in operations] == [("command-execution", target, scope)]
        return operations[0]["status"]

    assert status("install", *words) == "installed"
    assert "osb exec" in where.read_text()
    assert where.read_text().startswith("---\n") == (target in ("claude", "codex", "opencode"))
    assert status("install", *words) == "already_present"
    where.write_text(where.read_text().replace("osb exec", "osb old"))
    assert status("install", *words) == "updated"
    states = {(one["target"], one["scope"]): one["skills"] for one in skills("list", "-o", "json")["targets"]}
    assert [one["status"] for one in states[target, scope] if one["skill"] == "command-execution"] == ["installed"]
    assert status("uninstall", *words) == "removed"
    assert not where.exists()
    assert status("uninstall", *words) == "not_installed"


def test_words_of_others_stay(skills, tmp_path):
    where = tmp_path / "project/.clinerules"
    where.write_text("Be kind.\n")
    skills("install", "--all-builtins", "-t", "cline", "--scope", "project")
    assert where.read_text().startswith("Be kind.\n") and where.read_text().count("<!-- BEGIN opensandbox-") == 5
    skills("uninstall", "-t", "cline", "--scope", "project")
    assert where.read_text().strip() == "Be kind."


def test_members_for_programs(skills):
    """Those that the published client has, in JSON and in YAML."""
    listed = skills("list", "-o", "json")
    assert all({"slug", "title", "summary", "trigger_hint", "area", "source_path"} <= set(one) for one in listed["skills"]) and len(listed["skills"]) == 5
    assert all({"target", "scope", "label", "layout", "skills"} <= set(one) for one in listed["targets"])
    shown = skills("show", "sandbox-lifecycle", "-o", "json")
    assert set(shown) == {"skill", "title", "area", "summary", "trigger_hint", "when_to_use", "quick_start", "json_shapes", "content"}
    assert shown["trigger_hint"].startswith("Use when") and len(shown["when_to_use"]) >= 2 and "osb run" in shown["quick_start"]
    lines = skills("show", "sandbox-lifecycle", "-o", "yaml").splitlines()
    assert "skill: sandbox-lifecycle" in lines and not lines[0].startswith("{")


def test_show_and_mistakes(skills):
    assert skills("show", "network-egress").startswith("---\nname: network-egress")
    assert "--all-builtins" in skills("install", "-t", "codex", "--scope", "project", status=2)
    assert "no such skill" in skills("install", "nothing", "-t", "codex", "--scope", "project", status=2)
    for missing in (["-t", "codex"], ["--scope", "project"], ["-t", "emacs", "--scope", "project"]):
        skills("install", "command-execution", *missing, status=2)
