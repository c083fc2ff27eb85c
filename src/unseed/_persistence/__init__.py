"""Models on disk: a folder of JSON and safetensors, in which nothing can run."""

from unseed._persistence.compressed import Compression
from unseed._persistence.folder import (
    bytes_of,
    check_target,
    code_among,
    described,
    kind_of,
    read_document,
    read_model,
    write_model,
)

__all__ = [
    "Compression",
    "bytes_of",
    "check_target",
    "code_among",
    "described",
    "kind_of",
    "read_document",
    "read_model",
    "write_model",
]
