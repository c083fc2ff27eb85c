"""What is damaged, foreign, newer or half written is refused in one sentence; what was there before is still there."""

import json
import os
import re
import shutil
import struct

import numpy as np
import pytest
import safetensors.numpy
from numpy.testing import assert_array_equal

from unseed import MLP, DeepEnsembleRegressor, MCDropoutRegressor, PNCRegressor, read_document
from unseed._persistence import kind_of
from unseed._persistence.folder import _digest, canonical
from unseed.errors import InvalidInputError, ModelFileError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 2))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=24)
OPTIONS = {"network": MLP(bias_scale=1.0, width=8), "regularization": 0.01, "random_state": 0}
JSON, TENSORS = "model.json", "tensors.safetensors"


@pytest.fixture(scope="module")
def reg():
    return PNCRegressor(**OPTIONS).fit(X, Y)


@pytest.fixture
def model(reg, tmp_path):
    reg.save(tmp_path / "model")
    return tmp_path / "model"


def refused(path, match=".", cls=PNCRegressor, **given):
    """Refused in one line that names the folder."""
    with pytest.raises(ModelFileError, match=match) as caught:
        cls.load(path, **given)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    assert ";" in message  # fault; remedy
    return message


def flipped(file, position):
    content = bytearray(file.read_bytes())
    content[position] ^= 0x11
    file.write_bytes(content)


def signed(folder, change, tensors=None):
    """Change a description, and tensors, and sign both again: as somebody would who means to."""
    document = json.loads((folder / JSON).read_bytes())
    if tensors is not None:
        arrays = dict(safetensors.numpy.load((folder / TENSORS).read_bytes()))
        tensors(arrays)
        content = safetensors.numpy.save(arrays)
        (folder / TENSORS).write_bytes(content)
        document["files"][TENSORS] = {"bytes": len(content), "sha256": _digest(content)}
    change(document)
    document.pop("sha256", None)
    document["sha256"] = _digest(canonical(document))
    (folder / JSON).write_bytes(canonical(document))


class TestAccidents:
    @pytest.mark.parametrize("file", [JSON, TENSORS])
    @pytest.mark.parametrize("share", np.linspace(0, 0.999, 23).round(3).tolist())
    def test_any_flipped_byte_is_noticed(self, model, file, share):
        flipped(model / file, int(share * (model / file).stat().st_size))
        refused(model)

    @pytest.mark.parametrize("file", [JSON, TENSORS])
    @pytest.mark.parametrize("kept", [0, 1, 7, 8, 9, 100, 0.5, -1])
    def test_a_file_cut_short_is_noticed(self, model, file, kept):
        content = (model / file).read_bytes()
        (model / file).write_bytes(content[: int(kept * len(content)) if isinstance(kept, float) else kept])
        refused(model)

    @pytest.mark.parametrize("file", [JSON, TENSORS])
    def test_a_file_that_grew_is_noticed(self, model, file):
        (model / file).write_bytes((model / file).read_bytes() + b" ")
        refused(model)

    @pytest.mark.parametrize("file", [JSON, TENSORS])
    def test_a_missing_file_is_named(self, model, file):
        (model / file).unlink()
        assert file in refused(model, "cannot be read")

    @pytest.mark.parametrize("file", [JSON, TENSORS])
    def test_a_folder_in_place_of_a_file(self, model, file):
        (model / file).unlink()
        (model / file).mkdir()
        refused(model)

    def test_files_of_two_models_do_not_mix(self, model, tmp_path):
        PNCRegressor(**OPTIONS | {"random_state": 1}).fit(X, Y).save(tmp_path / "other")
        shutil.copy(tmp_path / "other" / TENSORS, model / TENSORS)
        refused(model, "SHA-256")

    def test_paths_that_are_no_models(self, model, tmp_path):
        refused(tmp_path / "nowhere", "does not exist")
        refused(model / JSON, "is a file")
        (tmp_path / "empty").mkdir()
        refused(tmp_path / "empty", "cannot be read")
        (tmp_path / "empty" / JSON).write_text("[1, 2]")
        refused(tmp_path / "empty", "does not describe an unseed model")
        (tmp_path / "empty" / JSON).write_text("[" * 100_000)
        refused(tmp_path / "empty", "damaged")

    def test_a_description_too_large_to_be_one_is_not_read(self, model):
        with (model / JSON).open("r+b") as file:
            file.truncate(1 << 40)  # a sparse file: a terabyte that takes no space
        refused(model, "more than any description")

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
    def test_no_permission(self, model):
        (model / TENSORS).chmod(0)
        refused(model, "Permission denied")
        model.parent.chmod(0)
        try:
            refused(model, "Permission denied")
        finally:
            model.parent.chmod(0o700)


class TestVersions:
    def test_a_newer_format_asks_for_an_upgrade(self, model):
        signed(model, lambda document: document.update(format_version=3))
        message = refused(model, re.escape("was written by a newer unseed (format 3, this one reads up to 1); upgrade unseed"))
        assert message.startswith(str(model))

    def test_a_newer_format_may_be_signed_otherwise(self, model):
        document = json.loads((model / JSON).read_bytes()) | {"format_version": 2, "sha256": {"by": "another rule"}}
        (model / JSON).write_text(json.dumps(document))
        refused(model, "newer unseed")

    @pytest.mark.parametrize("version", [0, -1, "1", None, True, 1.0])
    def test_a_version_that_makes_no_sense(self, model, version):
        signed(model, lambda document: document.update(format_version=version))
        refused(model, "no format version")

    def test_another_class_is_named(self, model):
        refused(model, r"holds a PNCRegressor and not a DeepEnsembleRegressor; use PNCRegressor.load", DeepEnsembleRegressor)
        assert kind_of(model) == "PNCRegressor"


def at(document, *keys):
    for key in keys:
        document = document[key]
    return document


def put(*keys, value):
    def change(document):
        at(document, *keys[:-1])[keys[-1]] = value

    return change


def drop(*keys):
    return lambda document: at(document, *keys[:-1]).pop(keys[-1])


DESCRIPTIONS = {
    "a foreign type": put("parameters", "interval", value={"type": "os.system", "fields": {"command": "true"}}),
    "a class that is not an option": put("fitted", "engine", value={"type": "Task", "fields": {}}),
    "a field that is not one": put("fitted", "network", "fields", "__class__", value=1),
    "a value out of range": put("fitted", "network", "fields", "depth", value=-1),
    "an overflowing number": put("fitted", "network", "fields", "depth", value=1.5),
    "an argument too many": put("parameters", "command", value=1),
    "a description that is none": put("fitted", "interval", value={"type": 3}),
    "another kind of option": put("fitted", "interval", value={"type": "MLP", "fields": {}}),
    "text for a number": put("fitted", "regularization", value="0.01"),
    "a parameter that is not there": put("fitted", "network", value={"type": "parameter", "fields": {"name": "self"}}),
    "another engine": put("fitted", "engine", value={"type": "NetworkEngine", "fields": {}}),
    "no engine": drop("fitted", "engine"),
    "no part": drop("fitted", "scaling"),
    "a part that is none": put("fitted", "scaling", value=[]),
    "an unknown kind": put("fitted", "trained", "kind", value="pickle"),
    "a rival from nowhere": put("fitted", "has_rival", value=True),
    "no rows": put("fitted", "has_rows", value=False),
    "a replicate from nowhere": put("fitted", "plan", "reference", value=[99]),
    "a negative seed": put("fitted", "rows", "seed", value=-1),
    "input scales of other features": put("fitted", "network", "fields", "input_scale", value=[1.0, 2.0, 3.0]),
    "names of other features": put("fitted", "feature_names_in", value=["a"]),
    "names of other outputs": put("fitted", "output_names", value=["a", "b"]),
    "an output that is not known": put("fitted", "output", value="polars"),
    "a device that is none": put("parameters", "device", value="toaster"),
    "no fitted part": drop("fitted"),
    "no table of tensors": drop("tensors"),
    "a table that is none": put("tensors", value=[]),
    "another shape": put("tensors", "rows.inputs", "shape", value=[48, 1]),
    "a shape of the end of the world": put("tensors", "rows.inputs", "shape", value=[10**12, 2]),
    "another dtype": put("tensors", "rows.inputs", "dtype", value="object"),
    "a tensor too many": put("tensors", "more", value={"dtype": "float64", "stored_as": "float64", "shape": [1]}),
    "no list of files": drop("files"),
    "no tensors file": drop("files", TENSORS),
}


@pytest.mark.parametrize("change", DESCRIPTIONS.values(), ids=DESCRIPTIONS)
def test_descriptions_that_were_changed_and_signed_again(model, change):
    signed(model, change)
    with pytest.raises(InvalidInputError) as caught:
        PNCRegressor.load(model)
    assert isinstance(caught.value, ModelFileError) or "toaster" in str(caught.value)
    assert "\n" not in str(caught.value)


def entry(name, value):
    def change(arrays):
        arrays[name] = arrays[name].copy()
        arrays[name].reshape(-1)[0] = value

    return change


def renamed(arrays):
    arrays["other"] = arrays.pop("rows.inputs")


TENSOR_CHANGES = {
    "NaN": entry("trained.dual_base", np.nan),
    "infinity": entry("rows.inputs", -np.inf),
    "a scale of zero": entry("scaling.y_scale", 0.0),
    "a row from nowhere": entry("checked.indices", 10**9),
    "another name": renamed,
    "fewer rows": lambda arrays: arrays.update({"rows.inputs": arrays["rows.inputs"][:-1].copy()}),
}


@pytest.mark.parametrize("change", TENSOR_CHANGES.values(), ids=TENSOR_CHANGES)
def test_tensors_that_were_changed_and_signed_again(model, change):
    signed(model, lambda document: None, change)
    refused(model)


def test_tensors_and_table_that_agree_on_something_else(model):
    def fewer(arrays):
        arrays["rows.inputs"] = arrays["rows.inputs"][:-1].copy()

    signed(model, put("tensors", "rows.inputs", "shape", value=[23, 2]), fewer)
    refused(model, "labels_base")


def test_a_header_longer_than_the_file(model):
    content = (model / TENSORS).read_bytes()
    changed = struct.pack("<Q", 1 << 60) + content[8:]
    (model / TENSORS).write_bytes(changed)
    signed(model, put("files", TENSORS, value={"bytes": len(changed), "sha256": _digest(changed)}))
    refused(model, "not a safetensors file")


@pytest.mark.parametrize(
    ("reg", "change"),
    [
        (DeepEnsembleRegressor(members=2, engine="linearized", **OPTIONS), put("fitted", "members", value=10**12)),
        (DeepEnsembleRegressor(members=2, engine="linearized", **OPTIONS), put("fitted", "trained", "width", value=10**12)),
        (MCDropoutRegressor(steps=2, **OPTIONS), put("fitted", "rate", value=1.5)),
        (MCDropoutRegressor(steps=2, **OPTIONS), put("fitted", "width", value=9)),
        (MCDropoutRegressor(steps=2, **OPTIONS), put("fitted", "network", value="auto")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_models_that_were_changed_and_signed_again(reg, change, tmp_path):
    reg.fit(X, Y).save(tmp_path / "model")
    signed(tmp_path / "model", change)
    refused(tmp_path / "model", cls=type(reg))


def test_a_model_of_a_kind_that_is_gone_says_what_to_fit_instead(model):
    signed(model, put("kind", value="BlockwisePNCRegressor"))
    refused(model, "BlockwisePNCRegressor is gone: PNCRegressor takes any number of rows .*; fit it again$")


class TestWriting:
    def test_a_model_is_replaced(self, reg, model):
        other = PNCRegressor(**OPTIONS | {"random_state": 1}).fit(X, Y)
        other.save(model)
        assert_array_equal(PNCRegressor.load(model).predict(X, return_std=True)[1], other.predict(X, return_std=True)[1])
        assert sorted(os.listdir(model.parent)) == ["model"]

    def test_an_empty_folder_and_a_new_one_are_filled(self, reg, tmp_path):
        (tmp_path / "empty").mkdir()
        for path in (tmp_path / "empty", tmp_path / "new" / "deep", str(tmp_path / "text") + "/"):
            reg.save(path)
            assert sorted(os.listdir(path)) == [JSON, TENSORS]

    def test_what_is_no_model_is_left_alone(self, reg, tmp_path):
        (tmp_path / "thesis").mkdir()
        (tmp_path / "thesis" / "chapter.tex").write_text("words")
        with pytest.raises(ModelFileError, match="holds no unseed model; choose another folder"):
            reg.save(tmp_path / "thesis")
        assert (tmp_path / "thesis" / "chapter.tex").read_text() == "words"
        (tmp_path / "notes").write_text("words")
        with pytest.raises(ModelFileError, match="is a file"):
            reg.save(tmp_path / "notes")
        with pytest.raises(ModelFileError, match="cannot be written"):
            reg.save(tmp_path / "notes" / "model")
        assert (tmp_path / "notes").read_text() == "words"

    def test_a_strangers_file_among_a_models_is_not_deleted(self, reg, model):
        (model / "notes.txt").write_text("words")
        with pytest.raises(ModelFileError, match=r"holds notes\.txt, which saving would delete"):
            reg.save(model)
        assert (model / "notes.txt").read_text() == "words"
        PNCRegressor.load(model)

    def test_a_failed_save_leaves_the_old_model(self, reg, model):
        before = {name: (model / name).read_bytes() for name in (JSON, TENSORS)}
        with pytest.raises(ModelFileError, match="is not JSON"):
            reg.save(model, extra={"table.json": {"price": float("nan")}})
        with pytest.raises(ModelFileError, match="is not JSON"):
            reg.save(model, extra={"table.json": object()})
        assert {name: (model / name).read_bytes() for name in (JSON, TENSORS)} == before
        assert sorted(os.listdir(model.parent)) == ["model"]

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
    def test_no_permission(self, reg, tmp_path):
        (tmp_path / "closed").mkdir(mode=0o500)
        with pytest.raises(ModelFileError, match="Permission denied"):
            reg.save(tmp_path / "closed" / "model")

    def test_an_estimator_that_was_not_fitted_has_nothing_to_save(self, tmp_path):
        with pytest.raises(ValueError, match="not fitted"):
            PNCRegressor().save(tmp_path / "model")

    def test_the_same_model_gives_the_same_bytes(self, reg, model, tmp_path):
        PNCRegressor.load(model).save(tmp_path / "again")
        for name in (JSON, TENSORS):
            assert (tmp_path / "again" / name).read_bytes() == (model / name).read_bytes()

    def test_a_link_to_a_folder_stays_a_link(self, reg, model, tmp_path):
        (tmp_path / "link").symlink_to(model)
        reg.save(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        PNCRegressor.load(tmp_path / "link")


class TestDocuments:
    def test_documents_lie_beside_the_model(self, reg, tmp_path):
        table = {"columns": ["größe", "b"], "missing": {"a": 1.5}, "target": None}
        reg.save(tmp_path / "model", extra={"table.json": table, "notes.json": [1, 2]})
        assert read_document(tmp_path / "model", "table.json") == table
        assert read_document(tmp_path / "model", "notes.json") == [1, 2]
        PNCRegressor.load(tmp_path / "model").save(tmp_path / "model")  # without them
        with pytest.raises(ModelFileError, match=r"has no table\.json"):
            read_document(tmp_path / "model", "table.json")

    def test_a_changed_document_is_noticed(self, reg, tmp_path):
        reg.save(tmp_path / "model", extra={"table.json": {"a": 1}})
        file = tmp_path / "model" / "table.json"
        file.write_text(file.read_text().replace("1", "2"))
        with pytest.raises(ModelFileError, match="SHA-256"):
            read_document(tmp_path / "model", "table.json")

    @pytest.mark.parametrize("name", ["model.json", "../table.json", "table.txt", "a/b.json", ".json", 3])
    def test_names_that_cannot_be(self, reg, tmp_path, name):
        with pytest.raises(ModelFileError, match="plain name"):
            reg.save(tmp_path / "model", extra={name: {}})
        assert not (tmp_path / "model").exists()

    def test_a_description_cannot_point_out_of_its_folder(self, reg, tmp_path):
        reg.save(tmp_path / "model")
        (tmp_path / "secret.json").write_text('{"key": 1}\n')
        content = (tmp_path / "secret.json").read_bytes()
        signed(
            tmp_path / "model",
            put("files", "../secret.json", value={"bytes": len(content), "sha256": _digest(content)}),
        )
        with pytest.raises(ModelFileError):
            read_document(tmp_path / "model", "../secret.json")
