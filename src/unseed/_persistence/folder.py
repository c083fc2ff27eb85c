"""A model's folder: written whole or not at all, read only if every byte is what the description says.

``model.json`` names the format, its version, every other file with length and SHA-256, and itself with a SHA-256. The digests
are against accidents: whoever can write the folder can write digests too, and finds nothing in the format that runs.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unseed._files import replaced
from unseed.errors import ModelFileError

FORMAT, FORMAT_VERSION = "unseed model", 1
DESCRIPTION, TENSORS = "model.json", "tensors.safetensors"
_LARGEST_DESCRIPTION = 1 << 26
_DIGEST = "sha256"
_AGAIN = "copy the whole folder again, or save the model again"


def canonical(document: object) -> bytes:
    """The one way unseed writes a JSON document; NaN and what JSON does not know raise ValueError or TypeError."""
    return (json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode()


def check_target(path: str | Path) -> Path:
    """Where a model can be written: a new or empty folder, or one that holds a model and nothing else."""
    target = Path(os.path.realpath(path))
    try:
        if not target.exists():
            return target
        if not target.is_dir():
            raise ModelFileError(f"{path} is a file; give the name of a folder")
        present = {entry.name for entry in target.iterdir()}
    except OSError as error:
        raise ModelFileError(f"{path} cannot be looked at ({error.strerror}); choose another folder") from error
    if not present:
        return target
    try:
        files = _parsed(target / DESCRIPTION).get("files")
    except ModelFileError as error:
        raise ModelFileError(f"{path} exists and holds no unseed model; choose another folder, or remove it") from error
    for stranger in sorted(present - {DESCRIPTION, *(files if isinstance(files, dict) else ())}):
        raise ModelFileError(f"{path} holds {stranger}, which saving would delete; move it, or choose another folder")
    return target


def write(path: str | Path, description: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
    """A model that is there is replaced when the new one is complete."""
    target = check_target(path)
    listed = {name: {"bytes": len(content), _DIGEST: _digest(content)} for name, content in files.items()}
    document = {"format": FORMAT, "format_version": FORMAT_VERSION, **description, "files": listed}
    document[_DIGEST] = _digest(canonical(document))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replaced(target) as fresh:
            fresh.mkdir()
            for name, content in {**files, DESCRIPTION: canonical(document)}.items():
                (fresh / name).write_bytes(content)
    except OSError as error:
        raise ModelFileError(
            f"{path} cannot be written ({error.strerror}); free space or choose another folder; what was there is still there"
        ) from error


def read_description(path: str | Path) -> dict[str, Any]:
    """Description of a model, if this version of unseed can read it and no byte has changed."""
    folder = Path(path)
    try:
        is_there = folder.exists()
    except OSError as error:
        raise ModelFileError(f"{path} cannot be looked at ({error.strerror}); give a folder that you may read") from error
    if not is_there:
        raise ModelFileError(f"{path} does not exist; give the folder that was saved to")
    if not folder.is_dir():
        raise ModelFileError(f"{path} is a file; give the folder that was saved to")
    name = folder / DESCRIPTION
    document = _parsed(name)
    version = document.get("format_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ModelFileError(f"{name} has no format version that makes sense ({version!r}); {_AGAIN}")
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} was written by a newer unseed (format {version}, this one reads up to {FORMAT_VERSION}); upgrade unseed"
        )
    without = {key: value for key, value in document.items() if key != _DIGEST}
    if document.get(_DIGEST) != _digest(canonical(without)) or canonical(document) != _content(name):
        raise ModelFileError(f"{name} was changed after it was saved (its SHA-256 differs); {_AGAIN}")
    return document


def read_file(path: str | Path, description: Mapping[str, Any], file: str) -> bytes:
    """Content of one of the files that a description lists, if it is as long as listed and no byte has changed."""
    name, files = Path(path) / file, description.get("files")
    entry = files.get(file) if isinstance(files, dict) else None
    if not isinstance(entry, dict) or Path(file).name != file:
        raise ModelFileError(f"{path} has no {file}; it was saved without one")
    try:
        size = name.stat().st_size
    except OSError as error:
        raise ModelFileError(f"{name} cannot be read ({error.strerror}); {_AGAIN}") from error
    if size != entry.get("bytes"):
        raise ModelFileError(f"{name} has {size:,} bytes and should have {entry.get('bytes')}; {_AGAIN}")
    content = _content(name)
    if _digest(content) != entry.get(_DIGEST):
        raise ModelFileError(f"{name} was changed after it was saved (its SHA-256 differs); {_AGAIN}")
    return content


def documents(extra: Mapping[str, Any]) -> dict[str, bytes]:
    """Further JSON documents that shall lie beside a model, as files."""
    files = {}
    for name, document in extra.items():
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_-]+\.json", name) or name == DESCRIPTION:
            raise ModelFileError(f"extra[{name!r}]: give a plain name that ends in .json and is not {DESCRIPTION}")
        try:
            files[name] = canonical(document)
        except (TypeError, ValueError) as error:
            raise ModelFileError(f"extra[{name!r}] is not JSON ({error}); use numbers, text, lists and dictionaries") from error
    return files


def read_document(path: str | Path, name: str) -> Any:
    """A JSON document that was saved beside a model with ``save(path, extra={name: ...})``.

    Parameters
    ----------
    path : str or Path
        Folder of the model.
    name : str
        Such as ``"table.json"``.
    """
    return json.loads(read_file(path, read_description(path), name))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _content(name: Path) -> bytes:
    try:
        return name.read_bytes()
    except OSError as error:
        raise ModelFileError(f"{name} cannot be read ({error.strerror}); {_AGAIN}") from error


def _parsed(name: Path) -> dict[str, Any]:
    """The description as it stands, if it is one of an unseed model at all."""
    try:
        size = name.stat().st_size
    except OSError as error:
        raise ModelFileError(f"{name} cannot be read ({error.strerror}); give a folder that was saved by unseed") from error
    if size > _LARGEST_DESCRIPTION:
        raise ModelFileError(f"{name} has {size:,} bytes, more than any description of a model; {_AGAIN}")
    try:
        document = json.loads(_content(name))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{name} is damaged ({error}); {_AGAIN}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{name} does not describe an unseed model; give a folder that was saved by unseed")
    return document
