"""A running daemon reads a changed configuration: conversations are detached and come back."""

from __future__ import annotations

from cli.conftest import Shell
from cli.test_detached import ALL, archived, built_talks, found, talks

from anchord.ipc.client import Client

__all__ = ["built_talks", "talks"]


def test_a_root_that_changes_its_kind_and_its_name_under_a_daemon_loses_nothing(
    talks: Shell,
) -> None:
    configuration = talks.config.read_text("utf-8")
    assert configuration.count('"conversations"') == configuration.count('"talks"') == 1

    def reload(configuration: str) -> None:
        """Do what SIGHUP does, and wait until the index follows."""
        talks.config.write_text(configuration, "utf-8")
        with Client(talks.home / "run" / "anchord.sock") as client:
            client.call("reload")
            client.call("sync")

    with talks.daemon():
        reload(configuration.replace('"conversations"', '"project"'))
        assert found(talks) == set()
        assert archived(talks) == ALL
        reload(configuration)
        assert found(talks) == archived(talks) == ALL
        reload(configuration.replace('"talks"', '"sessions"'))
        assert found(talks) == archived(talks) == ALL
        reload(
            configuration.replace('"talks"', '"sessions"').replace('"conversations"', '"project"')
        )
        assert archived(talks) == ALL
        reload(configuration + 'on_delete = "delete"\n')
        assert archived(talks) == ALL
        assert found(talks) < ALL
        reload(configuration)
        assert found(talks) == archived(talks) == ALL
        assert talks("verify", "--vectors", "all").code == 0
