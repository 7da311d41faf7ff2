"""Discos de verdad de todos los tamaños: o cabe, o se dice cuánto falta; lo anterior sigue y no queda basura."""

import re
import resource
import subprocess
from itertools import count
from pathlib import Path

import pytest
import torch

from enlace.durable import latest, publish, verify
from enlace.errors import ResourceError
from enlace.train.checkpoint import PREFIX
from enlace.train.state import KIND
from enlace.train.train import train
from tests.test_resume import exact_state, make_run

from .forks import IGNORE_FORK_WARNING, exit_as_a_command, start_child, wait_for
from .mounts import small_disk
from .saver import check, save_next

pytestmark = [pytest.mark.filterwarnings(IGNORE_FORK_WARNING), pytest.mark.timeout(3600)]
PAGE = resource.getpagesize()


def test_a_publication_on_a_disk_of_every_size_keeps_the_previous(tmp_path: Path) -> None:
    failures = 0
    for pages in count(8):
        with small_disk(tmp_path / "disco", pages * PAGE) as folder:
            publish(folder / "step-1", {"model.bin": bytes(5_000)}, kind="checkpoint")
            try:
                publish(folder / "step-2", {"model.bin": (bytes(10_000) for _ in range(10))}, kind="checkpoint")
            except ResourceError as error:
                failures += 1
                assert "no hay espacio" in error.what
                assert [place.name for place in folder.iterdir()] == ["step-1"]
            verify(folder / "step-1", "checkpoint")
            if (folder / "step-2").exists():
                verify(folder / "step-2", "checkpoint")
                break
    assert failures > 10


def test_saves_on_a_disk_of_every_size_keep_the_previous(tmp_path: Path) -> None:
    failures = 0
    for pages in count(1):
        with small_disk(tmp_path / "disco", pages * PAGE) as disk:
            done = 0
            try:
                while done < 3:
                    save_next(disk / "corrida")
                    done += 1
            except ResourceError as error:
                failures += 1
                assert re.search(" quedan .+ libres", error.what)
                assert not list(disk.rglob(".tmp-*"))
                assert check(disk / "corrida") in (done, done + 1)
            else:
                assert check(disk / "corrida") == 3
                break
    assert failures > 10


def test_a_training_on_a_disk_of_every_size_fits_or_says_what_is_missing(tmp_path: Path, long_run: bool) -> None:
    torch.set_num_threads(1)
    whole = make_run(tmp_path, "entera")
    assert train(whole)
    expected, failures = exact_state(whole), 0
    for pages in count(1, 1 if long_run else 48):
        with small_disk(tmp_path / "disco", pages * PAGE) as disk:
            run = make_run(tmp_path, "corrida", runs_dir=str(disk))
            output = tmp_path / "salida"
            output.unlink(missing_ok=True)
            child = start_child(lambda run=run, output=output: exit_as_a_command(lambda: train(run), output))
            code, said = wait_for(child), output.read_text()
            if code == 0:
                assert exact_state(run) == expected
                break
            failures += 1
            # Casi siempre, antes de empezar; la estimación no cuenta los pocos kB de los ficheros pequeños.
            assert code == 8 and re.search("^error: .* quedan .+ libres$", said, re.MULTILINE), said
            assert "Traceback" not in said
            assert not list(disk.rglob(".tmp-*"))
            assert latest(disk / run.name / "checkpoints", PREFIX, KIND)[1] == []
            subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
            assert train(run, resume="auto")
            assert exact_state(run) == expected
    assert failures > 5
