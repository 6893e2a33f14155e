"""The daemon as a process with a socket and a real watcher. One test uses the real model."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from live.conftest import Home, until

_FACTS = {
    "cats.md": "# Cats\n\nThe kitten sleeps on the sofa and purrs when it is stroked.\n",
    "money.md": "# Interest\n\nThe central bank raised its rates to slow down inflation.\n",
    "rust.md": "# Ownership\n\nA value has one owner; borrowing it mutably excludes all other borrows.\n",
    "soup.md": "# Soup\n\nSimmer the onions, add stock and lentils, season with cumin.\n",
}


def _section(n: int) -> str:
    words = " ".join(
        f"Sentence {m} of section {n} tells something about matter {n * 31 + m}." for m in range(12)
    )
    return f"## Section {n}\n\n{words}\n"


def test_the_main_job_with_the_real_model(real_home: Home) -> None:
    home = real_home
    for name, text in _FACTS.items():
        home.write(name, text)
    long = "# Long\n\n" + "\n".join(_section(n) for n in range(12))
    home.write("deep/long.md", long)
    home.run()
    home.call("sync")
    first = home.status()
    assert first["state"] == "idle"
    assert first["degraded"] == []
    assert first["files"] == len(_FACTS) + 1
    assert first["chunks"] == first["store"]["rows"] == first["embedded_total"] > len(_FACTS)

    assert home.found("a pet animal dozing on furniture", "vector")[0] == "cats.md"
    assert home.found("monetary policy", "hybrid")[0] == "money.md"
    assert home.found("recipe for a warm dish", "vector")[0] == "soup.md"
    assert home.anchord("verify", "--vectors", "all").returncode == 0

    embedded = _cost(home)
    home.write("deep/long.md", long.replace("about matter 160", "about the subject 160"))
    assert 1 <= embedded() <= 4
    home.write("deep/long.md", "A line before everything.\n\n" + long)
    assert embedded() <= 3
    os.utime(home.folder / "deep/long.md")
    assert embedded() == 0
    os.rename(home.folder / "deep", home.folder / "elsewhere")
    assert embedded() == 0
    assert {row["path"] for row in home.dump()} == {*_FACTS, "elsewhere/long.md"}
    (home.folder / "cats.md").unlink()
    assert embedded() == 0
    assert "cats.md" not in home.found("a pet animal dozing on furniture", "vector")
    assert home.command("verify").code == 0

    assert home.terminate() == 0
    home.run()
    home.call("sync")
    again = home.status()
    assert (again["embedded_total"], again["reused_total"], again["commits_total"]) == (0, 0, 0)
    assert again["chunks"] == len(home.dump())


def _cost(home: Home) -> Callable[[], int]:
    """Return a function that syncs and returns the number of texts embedded since its last call."""
    before = home.status()["embedded_total"]

    def spent() -> int:
        nonlocal before
        home.call("sync")
        now = home.status()["embedded_total"]
        before, difference = now, now - before
        return int(difference)

    return spent


def test_a_save_is_found_without_asking_for_it(home: Home) -> None:
    home.write("a.md", "# A\n\nOld words.\n")
    home.run()
    until(lambda: home.found("old words") == ["a.md"])
    home.write("a.md", "# A\n\nNew zebrafish.\n")
    until(lambda: home.found("zebrafish") == ["a.md"])
    home.write("fresh/deep/b.md", "# B\n\nA giraffe.\n")
    until(lambda: home.found("giraffe") == ["fresh/deep/b.md"])
    os.rename(home.folder / "fresh", home.folder / "stale")
    until(lambda: home.found("giraffe") == ["stale/deep/b.md"])
    (home.folder / "a.md").unlink()
    until(lambda: home.found("zebrafish") == [])
    assert home.status()["latency_ms"]["p50"] is not None


def test_f1_a_kill_in_the_middle_of_an_index_converges_and_embeds_nothing_twice(home: Home) -> None:
    for n in range(300):
        home.write(
            f"d{n % 7}/{n:03}.md",
            f"# Note {n}\n\n" + "\n".join(_section(100 * n + m) for m in range(3)),
        )
    home.run()
    until(lambda: home.status()["chunks"] > 0)
    home.kill()
    committed = len(home.dump())
    assert home.anchord("status").returncode == 3
    home.run()
    home.call("sync")
    status = home.status()
    assert status["chunks"] > committed > 0
    assert status["embedded_total"] == status["chunks"] - committed
    assert home.command("verify", "--vectors", "all").code == 0


def test_sync_holds_while_other_files_are_written_all_the_time(home: Home) -> None:
    home.write("log.md", "# Log\n")
    home.run()
    ending = threading.Event()

    def write_on() -> None:
        n = 0
        while not ending.is_set():
            n += 1
            with (home.folder / "log.md").open("a") as log:
                log.write(f"\nEntry {n} with some words.\n")
            home.write(f"noise/{n % 50}.md", f"# Noise {n}\n\nWords {n}.\n")
            ending.wait(0.002)  # Hundreds of writes a second, and CPU time remains for the daemon.

    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        for n in range(15):
            home.write("mine.md", f"# Mine\n\nThe word of the day is quokka{n}.\n")
            home.call("sync")
            assert home.found(f"quokka{n}") == ["mine.md"]
    finally:
        ending.set()
        writer.join()
    home.call("sync")
    assert home.command("verify").code == 0


def test_g1_a_second_instance_is_refused_with_one_line(home: Home) -> None:
    home.run()
    assert home.process is not None
    refused = home.anchord("run", str(home.folder))
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert f"process {home.process.pid}" in refused.stderr
    assert home.anchord("start").returncode == 1
    assert home.call("ping") == "pong"


def test_g2_a_socket_left_by_a_killed_daemon_is_taken_over(home: Home) -> None:
    home.run()
    home.kill()
    assert (home.path / "run" / "anchord.sock").exists()
    answer = home.anchord("sync")
    assert (answer.returncode, answer.stderr.count("\n")) == (3, 1)
    home.run()
    assert home.call("ping") == "pong"


def test_start_and_stop_in_the_background(home: Home) -> None:
    home.write("a.md", "# A\n\nWords.\n")
    started = home.anchord("start", str(home.folder))
    assert started.returncode == 0, started.stderr
    try:
        assert home.anchord("sync").returncode == 0
        assert home.found("words") == ["a.md"]
        assert home.anchord("index").returncode == 0
    finally:
        assert home.anchord("stop").returncode == 0
    assert home.anchord("status").returncode == 3
    events = [
        json.loads(line)["event"]
        for line in (home.path / "log" / "anchord.log").read_text().splitlines()
    ]
    assert events[0] == "daemon.ready"
    assert events[-1] == "daemon.stopped"


def test_a_failed_start_says_why(home: Home) -> None:
    (home.path / "config.toml").write_text("[embeding]\n")
    failed = home.anchord("start")
    assert failed.returncode == 2
    assert "unknown key `embeding`; did you mean `embedding`?" in failed.stderr


def test_g11_added_and_removed_roots_are_followed_at_once(home: Home, tmp_path: Path) -> None:
    home.write("a.md", "# A\n\nWords of the first.\n")
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.md").write_text("# B\n\nWords of the second, about capybaras.\n")
    home.run()
    home.call("sync")
    before = home.status()["embedded_total"]
    assert home.command("add", str(other)).code == 0
    home.call("sync")
    assert home.found("capybaras") == ["b.md"]
    assert home.status()["embedded_total"] == before + 1
    assert home.command("remove", "other").code == 0
    assert home.found("capybaras") == []
    assert {root["name"] for root in home.call("roots")} == {"docs"}
    with (home.path / "config.toml").open("a") as config:
        config.write(f'[[root]]\npath = "{other}"\n')
    assert home.process is not None
    home.process.send_signal(signal.SIGHUP)
    until(lambda: home.found("capybaras") == ["b.md"])
    assert home.command("verify").code == 0


def test_d1_the_rows_of_a_root_that_went_away_are_kept_and_status_is_degraded(home: Home) -> None:
    home.write("a.md", "# A\n\nA wombat.\n")
    home.run()
    home.call("sync")
    away = home.folder.with_name("away")
    home.folder.rename(away)
    until(lambda: home.status()["state"] == "degraded")
    assert "the folder does not exist" in home.status()["degraded"][0]
    assert home.command("status").code == 1
    assert home.call("sync")["away"] == ["docs"]
    assert home.found("wombat") == ["a.md"]
    away.rename(home.folder)
    until(lambda: home.status()["state"] == "idle")
    home.write("a.md", "# A\n\nA numbat.\n")
    until(lambda: home.found("numbat") == ["a.md"])


def test_bad_files_are_named_and_the_others_indexed(home: Home) -> None:
    home.write("good.md", "# Good\n\nAn axolotl.\n")
    (home.folder / "latin.md").write_bytes(
        b"# Caf\xe9\n\nSome words that are long enough to be text.\n"
    )
    (home.folder / "nul.md").write_bytes(
        b"# Nul\n\nSome words\0 that are long enough to be text.\n"
    )
    (home.folder / "huge.md").write_bytes(b"x" * 50_000_000)
    os.mkfifo(home.folder / "pipe.md")
    (home.folder / "dangling.md").symlink_to("nothing")
    (home.folder / "loop.md").symlink_to("loop.md")
    (home.folder / "up").symlink_to(".")
    home.run()
    home.call("sync")
    reasons = {Path(failure["path"]).name: failure["reason"] for failure in home.status()["failed"]}
    assert {name: reason.split(":")[0] for name, reason in reasons.items()} == {
        "latin.md": "not UTF-8 at byte 5",
        "nul.md": "NUL at character 17",
        "huge.md": "50,000,000 bytes, over the limit of 2,000,000",
        "pipe.md": "a named pipe",
        "dangling.md": "symbolic link to nothing",
        "loop.md": "symbolic link in a loop",
        "up": "symbolic link to a folder above it",
    }
    assert {row["path"] for row in home.dump()} == {"good.md", "latin.md", "nul.md"}
    assert home.command("verify").code == 0
    for name in ("pipe.md", "dangling.md", "loop.md", "up", "huge.md"):
        (home.folder / name).unlink()
    home.call("sync")
    assert {Path(failure["path"]).name for failure in home.status()["failed"]} == {
        "latin.md",
        "nul.md",
    }


def test_h7_neither_log_nor_status_carries_content(home: Home) -> None:
    home.write("secret.md", "# Plan\n\nThe swordfish clause.\n")
    home.run()
    home.call("sync")
    home.write("secret.md", "# Plan\n\nThe swordfish clause, amended.\n")
    home.call("sync")
    assert home.found("swordfish") == ["secret.md"]
    assert "swordfish" not in (home.path / "run.log").read_text()
    assert "swordfish" not in json.dumps(home.status())
