"""What a release says, and which tag may be one."""

import tomllib

import pytest

from development import release
from development.faults import DevelopmentCode
from development.release import ROOT, ReleaseError, notes_of, with_links_to
from functions_alone.faults import StackFault

CHANGELOG = """# Changelog

## Unreleased

### Added

- Sugar.

## 1.2.0

### Added

- Milk: see [the page](docs/milk.md).

### What an upgrade needs

- A cup.

## 1.1.0

- Tea.

## 1.0.0
"""


@pytest.fixture
def repository(tmp_path):
    """Makes a repository of this version."""

    def made(version):
        (tmp_path / "pyproject.toml").write_text(f'[project]\nversion = "{version}"\n')
        (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
        return tmp_path

    return made


def test_the_notes_are_the_entries_of_the_version_alone(repository):
    """With their heads, and without the heading of the version."""
    notes = notes_of("v1.2.0", repository("1.2.0"))
    section = CHANGELOG.split("## 1.2.0\n")[1].split("## 1.1.0", maxsplit=1)[0]
    assert notes == section.strip()


@pytest.mark.parametrize("tag", ["v1.1.0", "1.2.0", "v1.2", "v1.2.0-rc1", ""])
def test_a_tag_of_another_version_is_refused(tag, repository):
    """With the tag that fits."""
    with pytest.raises(ReleaseError) as caught:
        notes_of(tag, repository("1.2.0"))
    assert list(caught.value.faults) == [
        StackFault(DevelopmentCode.TAG_DIFFERS, tag, {"expected": "v1.2.0"})
    ]


@pytest.mark.parametrize("version", ["1.0.0", "2.0.0"])
def test_a_version_without_entries_is_refused(version, repository):
    """Whether its heading is there or not."""
    with pytest.raises(ReleaseError) as caught:
        notes_of(f"v{version}", repository(version))
    assert list(caught.value.faults) == [
        StackFault(DevelopmentCode.NOTES_MISSING, "CHANGELOG.md", {"version": version})
    ]


@pytest.mark.parametrize(
    ("link", "elsewhere"),
    [
        ("[a](docs/milk.md)", "[a](https://host/files/docs/milk.md)"),
        ("[a](docs/milk.md#warm)", "[a](https://host/files/docs/milk.md#warm)"),
        ("[a](https://other/docs)", "[a](https://other/docs)"),
        ("[a](#warm)", "[a](#warm)"),
    ],
)
def test_a_link_into_the_repository_leads_there_from_elsewhere(link, elsewhere):
    """Any other link stays as it is."""
    assert with_links_to("https://host/files", link) == elsewhere


def test_the_command_prints_the_notes_or_a_fault(repository, monkeypatch, capsys):
    """The exit code says which."""
    monkeypatch.setattr(release.notes_of, "__defaults__", (repository("1.2.0"),))
    assert release.main(["v1.2.0"]) == 0
    assert "](docs/milk.md)" in capsys.readouterr().out
    assert release.main(["v1.2.0", "https://host/files"]) == 0
    assert "](https://host/files/docs/milk.md)" in capsys.readouterr().out
    assert release.main(["v1.1.0"]) == 1
    printed = capsys.readouterr()
    assert (printed.out, f"[{DevelopmentCode.TAG_DIFFERS}]" in printed.err) == ("", True)


def test_the_version_of_the_repository_can_be_released():
    """It has entries, and each file that names the version names the same one."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert notes_of(f"v{version}")
    platform = tomllib.loads((ROOT / "tools/functions_alone/pyproject.toml").read_text())
    assert platform["project"]["version"] == version
    assert f"template: scheduler-agent-supervisor@{version}\n" in (ROOT / "azure.yaml").read_text()
