"""A model's folder: written whole or not at all, read only if every byte is what the description says.

``model.json`` names the format, its version, every other file with length and SHA-256, and itself with a SHA-256. The digests
are against accidents: whoever can write the folder can write digests too, and finds nothing in the format that runs.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unseed._files import replaced
from unseed._gone import GONE
from unseed._persistence.codec import (
    NotDescribableError,
    decode,
    decode_option,
    describe,
    encode,
    narrow,
    tensors_from_bytes,
    tensors_to_bytes,
)
from unseed._state import NumberArray, Record, State
from unseed._version import __version__
from unseed.errors import ModelFileError

FORMAT, FORMAT_VERSION = "unseed model", 1
DESCRIPTION, TENSORS = "model.json", "tensors.safetensors"
_LARGEST_DESCRIPTION = 1 << 26
_DIGEST = "sha256"
_GIVEN = {"type": "given", "fields": {}}
_AGAIN = "copy the whole folder again, or save the model again"


def canonical(document: object) -> bytes:
    """The one way unseed writes a JSON document; NaN and what JSON does not know raise ValueError or TypeError."""
    return (json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode()


def check_target(path: str | Path) -> Path:
    """Where a model can be written: a new or empty folder, or one that holds a model and nothing else."""
    target = Path(os.path.realpath(path))
    with _explained(path, "cannot be looked at", "choose another folder"):
        if target.exists() and not target.is_dir():
            raise ModelFileError(f"{path} is a file; give the name of a folder")
        present = {entry.name for entry in target.iterdir()} if target.exists() else set()
    if not present:
        return target
    try:
        files = _parsed(target / DESCRIPTION)[0].get("files")
    except ModelFileError as error:
        raise ModelFileError(f"{path} exists and holds no unseed model; choose another folder, or remove it") from error
    for stranger in sorted(present - {DESCRIPTION, *(files if isinstance(files, dict) else ())}):
        raise ModelFileError(f"{path} holds {stranger}, which saving would delete; move it, or choose another folder")
    return target


def write_model(path: str | Path, kind: str, parameters: Mapping[str, Any], state: State, extra: Mapping[str, Any]) -> None:
    """Write a model and further documents; a model that is there is replaced when the new one is complete."""
    target, arrays = check_target(path), dict[str, NumberArray]()
    facts = encode(state, parameters, arrays)
    content, table = tensors_to_bytes(arrays)
    files = {TENSORS: content, **_documents(extra)}
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "unseed_version": __version__,
        "kind": kind,
        "parameters": described(parameters),
        "fitted": facts,
        "tensors": table,
        "files": {name: {"bytes": len(content), _DIGEST: _digest(content)} for name, content in files.items()},
    }
    document[_DIGEST] = _digest(canonical(document))
    with _explained(path, "cannot be written", "free space or choose another folder; what was there is still there"):
        target.parent.mkdir(parents=True, exist_ok=True)
        with replaced(target) as fresh:
            fresh.mkdir()
            for name, content in {**files, DESCRIPTION: canonical(document)}.items():
                (fresh / name).write_bytes(content)


def bytes_of(state: State, parameters: Mapping[str, Any]) -> int:
    """Bytes that the numbers of a model take on disk."""
    arrays: dict[str, NumberArray] = {}
    encode(state, parameters, arrays)
    return sum(narrow(values).nbytes for values in arrays.values())


def code_among(parameters: Mapping[str, Any]) -> list[str]:
    """Names of the constructor arguments that are functions or objects of others, and must be given again."""
    return [name for name, value in described(parameters).items() if value == _GIVEN]


def kind_of(path: str | Path) -> str:
    """Name of the class whose ``load`` reads a folder."""
    kind = _description(path).get("kind")
    if not isinstance(kind, str):
        raise ModelFileError(f"{path} does not say which regressor it holds; save the model again")
    return kind


def read_model(path: str | Path, kind: str, given: Mapping[str, Any]) -> tuple[dict[str, Any], Record]:
    """Constructor arguments, among them those that are given since no file can hold them, and what fitting has left."""
    document = _description(path)
    if document.get("kind") != kind:
        other = str(document.get("kind"))[:60]
        if other in GONE:
            raise ModelFileError(f"{path} holds a model that this version of unseed cannot read: {GONE[other]}; fit it again")
        remedy = "fit_stream(pieces, checkpoint=...) goes on from it" if " " in other else f"use {other}.load({str(path)!r})"
        raise ModelFileError(f"{path} holds a {other} and not a {kind}; {remedy}")
    source, tensors_file = str(Path(path) / DESCRIPTION), str(Path(path) / TENSORS)
    arguments, facts = document.get("parameters"), document.get("fitted")
    if not isinstance(arguments, dict) or not isinstance(facts, dict):
        raise ModelFileError(f"{source} is damaged; save the model again")
    missing = {name for name, value in arguments.items() if value == _GIVEN}
    for name in sorted(missing - given.keys()):
        raise ModelFileError(
            f"{path}: {name} is code of your own, which no file of unseed holds; give it again: "
            f"{kind}.load({str(path)!r}, {name}=...)"
        )
    for name in sorted(given.keys() - missing):
        raise ModelFileError(f"{path}: {name} was given, and is stored with the model (or no argument at all); leave it out")
    arrays = tensors_from_bytes(_file(path, document, TENSORS), document.get("tensors"), tensors_file)
    parameters = {
        name: given[name] if name in missing else decode_option(source, name, value, {}) for name, value in arguments.items()
    }
    return parameters, Record(source, decode(source, facts, parameters), arrays)


def read_document(path: str | Path, name: str) -> Any:
    """A JSON document that was saved beside a model with ``save(path, extra={name: ...})``.

    Parameters
    ----------
    path : str or Path
        Folder of the model.
    name : str
        Such as ``"table.json"``.
    """
    return json.loads(_file(path, _description(path), name))


def described(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Constructor arguments as JSON; those that are code are marked."""
    found: dict[str, Any] = {}
    for name, value in parameters.items():
        try:
            found[name] = describe(value)
        except NotDescribableError:
            found[name] = _GIVEN
    return found


def _documents(extra: Mapping[str, Any]) -> dict[str, bytes]:
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


def _description(path: str | Path) -> dict[str, Any]:
    """Description of a model, if this version of unseed can read it and no byte has changed."""
    folder = Path(path)
    with _explained(path, "cannot be looked at", "give a folder that you may read"):
        is_there, is_folder = folder.exists(), folder.is_dir()
    if not is_folder:
        raise ModelFileError(f"{path} {'is a file' if is_there else 'does not exist'}; give the folder that was saved to")
    name = folder / DESCRIPTION
    document, content = _parsed(name)
    version = document.get("format_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ModelFileError(f"{name} has no format version that makes sense ({version!r}); {_AGAIN}")
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} was written by a newer unseed (format {version}, this one reads up to {FORMAT_VERSION}); upgrade unseed"
        )
    without = {key: value for key, value in document.items() if key != _DIGEST}
    if document.get(_DIGEST) != _digest(canonical(without)) or canonical(document) != content:
        raise ModelFileError(f"{name} was changed after it was saved (its SHA-256 differs); {_AGAIN}")
    return document


def _parsed(name: Path) -> tuple[dict[str, Any], bytes]:
    """The description as it stands, if it is one of an unseed model at all, and its bytes."""
    with _explained(name, "cannot be read", "give a folder that was saved by unseed"):
        size = name.stat().st_size
        if size > _LARGEST_DESCRIPTION:
            raise ModelFileError(f"{name} has {size:,} bytes, more than any description of a model; {_AGAIN}")
        content = name.read_bytes()
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{name} is damaged ({error}); {_AGAIN}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{name} does not describe an unseed model; give a folder that was saved by unseed")
    return document, content


def _file(path: str | Path, description: Mapping[str, Any], file: str) -> bytes:
    """Content of one of the files that a description lists, if it is as long as listed and no byte has changed."""
    name, files = Path(path) / file, description.get("files")
    entry = files.get(file) if isinstance(files, dict) else None
    if not isinstance(entry, dict) or Path(file).name != file:
        raise ModelFileError(f"{path} has no {file}; it was saved without one")
    with _explained(name, "cannot be read", _AGAIN):
        size = name.stat().st_size
        if size != entry.get("bytes"):
            raise ModelFileError(f"{name} has {size:,} bytes and should have {entry.get('bytes')}; {_AGAIN}")
        content = name.read_bytes()
    if _digest(content) != entry.get(_DIGEST):
        raise ModelFileError(f"{name} was changed after it was saved (its SHA-256 differs); {_AGAIN}")
    return content


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@contextmanager
def _explained(path: str | Path, fault: str, remedy: str) -> Iterator[None]:
    """An error of the file system as a sentence with its remedy."""
    try:
        yield
    except OSError as error:
        raise ModelFileError(f"{path} {fault} ({error.strerror}); {remedy}") from error
