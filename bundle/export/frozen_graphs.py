"""A model in one mode in; a frozen graph file, as TensorFlow 1 tools and OpenCV read it, out."""

from pathlib import Path

from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from bundle.export.stages import Stage
from bundle.runtimes.artefacts import NEXT_SUFFIX, OUTPUT


def write_frozen_graph(stage: Stage, path: Path) -> None:
    """Write ``stage`` as a GraphDef without variables; inputs, output and states keep their names."""
    concrete = stage.function(None).get_concrete_function()
    frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=False)
    definition = frozen.graph.as_graph_def()
    # The outputs of a dictionary are sorted by name.
    names = sorted([OUTPUT, *(name + NEXT_SUFFIX for name in stage.state_names)])
    existing = {node.name for node in definition.node}
    for name, tensor in zip(names, frozen.outputs, strict=True):
        if name in existing:
            continue  # the graph has kept the name
        node = definition.node.add(op="Identity", name=name, input=[tensor.name.removesuffix(":0")])
        node.attr["T"].type = tensor.dtype.as_datatype_enum
    path.write_bytes(definition.SerializeToString(deterministic=True))
