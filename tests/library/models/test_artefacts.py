"""The models' bytes repeat; a model file of unknown origin is judged before any runtime sees it."""

import itertools
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from deep_learning_cases.errors import FileError, InputError, ModelError
from deep_learning_cases.ground import files
from deep_learning_cases.models import artefacts, conv, data


@pytest.fixture
def model(random_weights):
    """The lab's own model, parsed; a test changes it and asks what the check says."""
    return onnx.load_model_from_string(artefacts.onnx_bytes(random_weights))


def refused(model, tmp_path, content=None) -> str:
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString() if content is None else content)
    with pytest.raises(ModelError) as caught:
        artefacts.check_onnx(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "expected" in message
    assert message.endswith("build the models again")
    assert "\n" not in message
    assert len(message) < 400 + len(str(path))
    return message


def test_the_models_of_the_lab_are_accepted(random_models):
    artefacts.check_onnx(random_models / artefacts.FP32)
    artefacts.check_onnx(random_models / artefacts.INT8)


def test_the_exported_model_is_plain_onnx_without_traces_of_where_it_was_made(model):
    onnx.checker.check_model(model, full_check=True)
    assert (model.ir_version, model.opset_import[0].version) == (8, 17)
    assert not model.metadata_props
    assert not model.doc_string
    assert {tensor.name for tensor in model.graph.initializer} == set(conv.WEIGHT_SHAPES)


def test_the_same_weights_give_the_same_bytes_in_another_process(random_weights, tmp_path):
    (tmp_path / "w.npz").write_bytes(artefacts.weights_bytes(random_weights))
    code = (
        "import sys; from deep_learning_cases import artefacts as a, files as f; w = a.read_weights(sys.argv[1]);"
        "print(f.sha256_bytes(a.onnx_bytes(w)), f.sha256_bytes(a.weights_bytes(w)))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "w.npz")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert printed == [
        files.sha256_bytes(artefacts.onnx_bytes(random_weights)),
        files.sha256_bytes(artefacts.weights_bytes(random_weights)),
    ]


def test_weights_come_back_as_they_were_saved(random_weights, random_models):
    again = artefacts.read_weights(random_models / artefacts.WEIGHTS)
    assert sorted(again) == sorted(random_weights)
    assert all(np.array_equal(again[name], random_weights[name]) for name in again)


def test_weights_of_another_network_are_refused(random_weights, tmp_path):
    with pytest.raises(InputError, match="expected conv1_bias"):
        artefacts.weights_bytes({"a": np.zeros(1, np.float32)})
    wrong = {**random_weights, "dense2_bias": np.zeros(11, np.float32)}
    (tmp_path / "w.npz").write_bytes(data.archive_bytes(**wrong))
    with pytest.raises(ModelError, match=r"w.npz: dense2_bias is float32 of shape \(11,\)"):
        artefacts.read_weights(tmp_path / "w.npz")
    (tmp_path / "w.npz").write_bytes(b"no archive")
    with pytest.raises(ModelError, match=r"not a readable .npz"):
        artefacts.read_weights(tmp_path / "w.npz")
    with pytest.raises(FileError):
        artefacts.read_weights(tmp_path / "missing.npz")


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(FileError, match="cannot read"):
        artefacts.check_onnx(tmp_path / "nothing.onnx")
    with pytest.raises(FileError, match="cannot read"):
        artefacts.check_onnx(tmp_path)


@pytest.mark.parametrize("content", [b"", b"not a model", b"\0" * 100, b"\x08\x08", b"PK\x03\x04", b"{}"])
def test_something_else_is_not_a_model(tmp_path, content):
    assert "is not an ONNX model" in refused(None, tmp_path, content)


def test_a_cut_model_and_one_with_a_byte_more_are_not_models(model, tmp_path):
    content = model.SerializeToString()
    assert "not a" in refused(None, tmp_path, content[: len(content) // 2])
    assert "is not an ONNX model" in refused(None, tmp_path, content + b"\0")


def test_a_huge_file_is_not_even_read_whole(tmp_path):
    path = tmp_path / "model.onnx"
    with path.open("wb") as stream:
        stream.truncate(artefacts.MAX_MODEL_BYTES + 1)
    with pytest.raises(ModelError, match="larger than 4194304 bytes"):
        artefacts.check_onnx(path)


def external(tensor, file="/etc/passwd"):
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=file)


def test_external_weights_are_refused(model, tmp_path):
    external(model.graph.initializer[2])
    assert "keeps the tensor 'conv2_weight' in another file" in refused(model, tmp_path)


def test_external_data_in_a_constant_and_without_the_flag_is_refused(model, tmp_path):
    tensor = numpy_helper.from_array(np.zeros(1, np.float32), "hidden")
    external(tensor)
    model.graph.node.append(helper.make_node("Constant", [], ["c"], value=tensor))
    assert "'hidden' in another file" in refused(model, tmp_path)
    model.graph.node.pop()
    model.graph.initializer[0].external_data.add(key="location", value="x")
    assert "'conv1_weight' in another file" in refused(model, tmp_path)


def test_subgraphs_functions_and_foreign_operators_are_refused(model, tmp_path):
    body = helper.make_graph([helper.make_node("Identity", ["a"], ["b"])], "body", [], [])
    with_graph = helper.make_node("Relu", ["conv1"], ["x"], name="odd", body=body)
    loop = helper.make_node("Loop", ["", ""], ["x"], body=body)
    foreign = helper.make_node("EPContext", [], ["x"], domain="com.microsoft")
    maker = helper.make_node("ConstantOfShape", ["s"], ["x"])
    for node, message in (
        (with_graph, "a graph or sparse tensor inside node 'odd'"),
        (loop, "the operator 'Loop'"),
        (foreign, "the operator 'com.microsoft.EPContext'"),
        (maker, "the operator 'ConstantOfShape'"),
    ):
        model.graph.node.append(node)
        assert message in refused(model, tmp_path)
        model.graph.node.pop()
    model.functions.append(
        helper.make_function("mine", "F", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])], model.opset_import)
    )
    assert "defines 1 function(s)" in refused(model, tmp_path)


def test_too_many_nodes_are_refused(model, tmp_path):
    model.graph.node.extend([helper.make_node("Relu", ["conv1"], [f"x{i}"]) for i in range(500)])
    assert "has 510 nodes: expected at most 500" in refused(model, tmp_path)


def test_padding_that_asks_for_gigabytes_is_refused_before_anything_runs(model, tmp_path):
    pads = next(attribute for attribute in model.graph.node[0].attribute if attribute.name == "pads")
    pads.ints[:] = [5_000] * 4
    model.graph.node[2].op_type = "GlobalMaxPool"  # brings the giant back to a size at which the rest fits
    del model.graph.node[2].attribute[:]
    model.graph.node[5].op_type = "Identity"
    del model.graph.node[5].attribute[:]
    tensor = next(tensor for tensor in model.graph.initializer if tensor.name == "dense1_weight")
    tensor.CopyFrom(numpy_helper.from_array(np.zeros((96, 32), np.float32), "dense1_weight"))
    needed = 16 * (8 + 2 * 5_000 - 2) ** 2
    assert f"needs {needed} numbers for 'conv1': expected at most 1048576 an image" in refused(model, tmp_path)


def test_a_batch_that_doubles_from_node_to_node_is_refused(model, tmp_path):
    names = ["conv1", *(f"x{i}" for i in range(40))]
    for source, target in itertools.pairwise(names):
        model.graph.node.append(helper.make_node("Concat", [source, source], [target], axis=0))
    assert "numbers for 'x10': expected at most" in refused(model, tmp_path)


def test_a_shape_that_is_known_only_while_running_is_refused(model, tmp_path):
    model.graph.node.append(helper.make_node("Cast", ["logits"], ["sizes"], to=TensorProto.INT64))
    model.graph.node.append(helper.make_node("Squeeze", ["sizes"], ["pads"]))
    model.graph.node.append(helper.make_node("Pad", ["dense1", "pads"], ["x"]))
    assert "computes the shape of 'x' while it runs" in refused(model, tmp_path)


def test_shapes_that_do_not_fit_together_are_refused(model, tmp_path):
    model.graph.initializer[4].CopyFrom(numpy_helper.from_array(np.zeros((96, 127), np.float32), "dense1_weight"))
    assert "is not a valid ONNX model" in refused(model, tmp_path)


@pytest.mark.parametrize(
    ("kind", "name", "element", "shape"),
    [
        ("input", "images", TensorProto.FLOAT, ["batch", 3, 32, 32]),
        ("input", "images", TensorProto.FLOAT, ["batch", 64]),
        ("input", "images", TensorProto.FLOAT, [1, 1, 8, 8]),
        ("input", "images", TensorProto.UINT8, ["batch", 1, 8, 8]),
        ("input", "pictures", TensorProto.FLOAT, ["batch", 1, 8, 8]),
        ("output", "logits", TensorProto.FLOAT, ["batch", 11]),
        ("output", "logits", TensorProto.FLOAT, ["batch"]),
        ("output", "conv1", TensorProto.FLOAT, ["batch", 10]),
    ],
)
def test_another_input_or_output_is_refused_with_both_forms(model, tmp_path, kind, name, element, shape):
    getattr(model.graph, kind)[0].CopyFrom(helper.make_tensor_value_info(name, element, shape))
    message = refused(model, tmp_path)
    assert f"has the {kind} '{name}'" in message
    assert "expected 'images' float32 (batch, 1, 8, 8)" in message or "expected 'logits' float32 (batch, 10)" in message


def test_a_second_input_or_output_is_refused(model, tmp_path):
    model.graph.input.append(helper.make_tensor_value_info("more", TensorProto.FLOAT, [1]))
    assert "has the input 'images'" in refused(model, tmp_path)
    model.graph.input.pop()
    model.graph.output.append(helper.make_tensor_value_info("conv1", TensorProto.FLOAT, None))
    assert "has the output 'logits'" in refused(model, tmp_path)


def test_an_output_that_only_claims_its_shape_is_refused(model, tmp_path):
    """The file says (batch, 10); its nodes give (batch, 96)."""
    del model.graph.node[-2:]
    model.graph.node[-1].output[0] = "logits"
    assert "expected" in refused(model, tmp_path)


def test_no_flipped_byte_brings_out_another_exception(random_models, tmp_path):
    """Two hundred places, spread over the file: accepted or refused, never a crash of the checker."""
    content = (random_models / artefacts.INT8).read_bytes()
    path, refusals = tmp_path / "model.onnx", 0
    for position in np.linspace(0, len(content) - 1, 200).astype(int):
        changed = bytearray(content)
        changed[position] ^= 0xFF
        path.write_bytes(bytes(changed))
        try:
            artefacts.check_onnx(path)
        except ModelError:
            refusals += 1
    assert refusals
