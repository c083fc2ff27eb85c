"""Models on disk: a folder of JSON and safetensors, in which nothing can run."""

from unseed.persistence.folder import check_target, read_document
from unseed.persistence.model import code_among, kind_of, read_model, write_model
from unseed.persistence.record import Draft, Record
from unseed.persistence.report import Compression

__all__ = [
    "Compression",
    "Draft",
    "Record",
    "check_target",
    "code_among",
    "kind_of",
    "read_document",
    "read_model",
    "write_model",
]
