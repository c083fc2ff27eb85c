from pathlib import Path

import pytest
import torch

from unseed import _machine as machine
from unseed.errors import InvalidInputError


def test_auto_is_the_gpu_where_there_is_one(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert machine.resolve_device("auto").type == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert machine.resolve_device("auto").type == "cuda"


def test_unknown_and_absent_devices_are_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(InvalidInputError, match="device='gpu' is not known"):
        machine.resolve_device("gpu")
    with pytest.raises(InvalidInputError, match=r"device='cuda:3' is not on this machine \(1 GPUs seen\)"):
        machine.resolve_device("cuda:3")
    with pytest.raises(InvalidInputError, match="device='mps' has no float64 solves"):
        machine.resolve_device("mps")
    assert machine.resolve_device("cuda:0") == torch.device("cuda:0")


def test_available_memory_is_the_smallest_of_machine_and_container(monkeypatch, tmp_path: Path):
    assert machine.available_bytes(torch.device("cpu")) > 0
    monkeypatch.setattr(machine, "_machine_bytes", lambda: 10**12)
    for name, text in {
        "memory.max": "1000",
        "memory.current": "400",
        "memory.stat": "inactive_file 50\nanon 1",
    }.items():
        (tmp_path / name).write_text(text)
    files = (str(tmp_path / "memory.max"), str(tmp_path / "memory.current"), "inactive_file")
    monkeypatch.setattr(machine, "_CGROUPS", (files,))
    assert machine.available_bytes(torch.device("cpu")) == 650
    (tmp_path / "memory.max").write_text("max")
    assert machine.available_bytes(torch.device("cpu")) == 10**12


def test_without_proc_the_physical_pages_count(monkeypatch):
    monkeypatch.setattr(Path, "exists", lambda self: False)
    assert machine._machine_bytes() > 10**8
    monkeypatch.delattr("os.sysconf")
    assert machine._machine_bytes() > 10**15  # a system that does not tell: nothing is refused


def test_a_gpu_is_asked_for_its_own_memory(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (123, 456))
    assert machine.available_bytes(torch.device("cuda:0")) == 123
