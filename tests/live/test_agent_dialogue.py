"""An agent goes on with what it knows while files change and the daemon dies."""

from __future__ import annotations

import json

from live.conftest import Home
from live.test_agents import call_ok, first_id, refused, session, talk_here
from mcp.client.client import Client

SOUP = "# Soup\n\n## Onions\n\n{onions}\n\n## Salt\n\nAdd salt at the end.\n"


def write_soup(home: Home, onions: str) -> None:
    filler = " Words that make this section long enough to be a chunk of its own." * 12
    home.write("soup.md", SOUP.format(onions=onions + filler) + filler)


def test_an_agent_finds_the_successor_of_a_chunk_that_was_edited_while_the_daemon_died(
    home: Home,
) -> None:
    write_soup(home, "Simmer the onions slowly.")
    home.run()

    async def talk(client: Client) -> None:
        await call_ok(client, "sync", timeout=60)
        old = first_id(await call_ok(client, "search", query="simmer onions", k=1))
        assert "replaced" not in await call_ok(client, "show", id=old)
        home.kill()
        write_soup(home, "Roast the onions instead.")
        home.run()
        await call_ok(client, "sync", timeout=60)
        shown = await call_ok(client, "show", id=old)
        assert shown["replaced"] == old
        assert "Roast the onions" in shown["chunks"][0]["text"]
        write_soup(home, "Fry the onions at last.")
        await call_ok(client, "sync", timeout=60)
        assert "Fry the onions" in (await call_ok(client, "show", id=old))["chunks"][0]["text"]
        printed = home.anchord("show", old)
        assert "Fry the onions" in printed.stdout
        assert "was edited" in printed.stderr
        changed = await call_ok(client, "changes", since="1h")
        (change,) = changed["changes"]
        assert (change["file"], change["saves"]) == (f"{home.folder}/soup.md", 3)
        (home.folder / "soup.md").unlink()
        home.write("other.md", "# Other\n\nStays.\n")
        await call_ok(client, "sync", timeout=60)
        gone = json.loads(await refused(client, "show", id=old))
        assert gone["error"] == "the text of chunk [1] is gone: it was in [2] of root [3]"
        assert gone["names"] == [old, "soup.md", "docs"]

    session(home, talk)


def test_an_agent_lists_files_page_by_page_and_what_changed(home: Home) -> None:
    names = [f"part {number:03}/{'long name ' * 8}{number:03}.md" for number in range(90)]
    for name in names:
        home.write(name, f"# {name}\n\nText.\n")
    home.write("code.py", "print('hello')\n")
    home.run()
    home.call("sync")

    async def talk(client: Client) -> None:
        listed: list[str] = []
        cursor = ""
        while True:
            page = await call_ok(client, "files", kind="markdown", cursor=cursor)
            listed += [each["file"] for each in page["files"]]
            cursor = page.get("next", "")
            if not cursor:
                break
        assert listed == [f"{home.folder}/{name}" for name in names]
        (code,) = (await call_ok(client, "files", path="*.py"))["files"]
        assert (code["kind"], code["chunks"]) == ("code", 1)
        assert (await call_ok(client, "files", path=f"{home.folder}/part 007"))["files"]
        assert "No indexed file" in (await call_ok(client, "files", path="none"))["note"]
        assert "no kind" in await refused(client, "files", kind="none")
        assert "no cursor" in await refused(client, "files", cursor="\u202e")
        changed = await call_ok(client, "changes", path="*.py")
        assert [each["new"] for each in changed["changes"]] == [1]
        assert (await call_ok(client, "changes"))["omitted"] > 0
        (home.folder / "code.py").unlink()
        await call_ok(client, "sync", timeout=60)
        (gone,) = (await call_ok(client, "changes", path="*.py"))["changes"]
        assert gone["deleted"] is True
        assert "is not before" in await refused(client, "search", query="x", since="1d", until="2d")
        assert (await call_ok(client, "sessions"))["note"].startswith("No conversation")
        assert "note" not in await call_ok(client, "files", path=names[0])
        home.call("pause")
        for tool in ("files", "changes", "sessions"):
            assert "indexing is paused" in (await call_ok(client, tool))["note"]
        assert "there is no session" in await refused(client, "session", id="x")

    talk_here(home, talk)
