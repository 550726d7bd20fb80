"""The core of a processing element (PE): products of weight matrices with an input vector, plus a layer bias.

Source: ``PECore`` and ``PEManager`` of the FlexASR SystemC design.
"""

from __future__ import annotations

from accel_models.flexasr.functions import adpfloat_mul, pe_add_bias, pe_saturate, pe_shift
from accel_models.flexasr.layout import LANES, PE_COUNT
from accel_models.flexasr.options import FlexAsrOptions
from ila_lang import Expr, Ila, Kernel, all_of, concat, const, ite

from .processing_elements import MANAGERS, PORT_BITS, of_manager, of_pe

VALID = "rnn_layer_sizing_is_valid"


def core_pushes(ila: Ila, pe: int) -> Expr:
    """The number of vectors (12 bits) that a core gives its activation unit in a run."""
    s, prefix = ila.states, f"pe{pe}_rnn_layer_sizing_"
    outputs, managers = s[prefix + "num_output"].zext(12), s[prefix + "num_manager"].zext(12)
    return ite(s[prefix + "is_valid"], outputs * managers, const(0, 12))


def core_ends(ila: Ila, pe: int) -> Expr:
    """Whether the runs of a core end.

    Hardware tests for equality with the count less one: a count of 0 is never met.  (A manager whose products are
    skipped in the first run counts no inputs there; that a layer of one timestep then ends without inputs, too, is left
    out.)  With more than two managers a core would use one that does not exist.
    """
    s = ila.states
    managers = s[f"pe{pe}_rnn_layer_sizing_num_manager"]
    conditions = [managers != 0, managers <= len(MANAGERS), s[f"pe{pe}_rnn_layer_sizing_num_output"] != 0]
    conditions += [
        (managers <= number) | (s[f"pe{pe}_mem_mngr_{name}_num_input"] != 0) for number, name in enumerate(MANAGERS)
    ]
    return all_of(conditions) | ~s[f"pe{pe}_{VALID}"]


def pe_cores(kernel: Kernel, ila: Ila, options: FlexAsrOptions, first: Expr) -> None:
    """Appends a run of the cores of all PEs to a kernel; ``first`` (Boolean) marks the first run.

    For each output vector o and each of the core's managers m: 16 rows of W[o] * x, summed in 32 bits with wrap, moved
    to 14 fraction bits, plus a bias vector, cut to 20 bits; the vector o * num_manager + m at the port to
    the activation unit.  Weights of an output are num_input tiles of 16 x 16 codes.  Clustered weights take half the
    room: four bits each, the even column in the low half, that select a code from the manager's table.
    """
    s = ila.states
    inputs = s["pe_core_input_buffer"]
    k = kernel

    def configured(name: str) -> Expr:
        return of_pe(ila, pe, f"rnn_layer_sizing_{name}")

    def managed(name: str) -> Expr:
        return of_manager(ila, pe, manager[0], name)

    def bit(condition: Expr) -> Expr:
        return ite(condition, const(1, 1), const(0, 1))

    def input_address(base: Expr, index: Expr, lane: Expr) -> Expr:
        # hardware's addresses of this buffer have eight bits
        return concat(pe, (base + index.zext(16))[options.input_buffer - 1 : 0], lane[3:0])

    with k.loop("core_pe", const(PE_COUNT, 3)) as counter, k.when("core_valid", of_pe(ila, counter[1:0], VALID)):
        pe = counter[1:0]
        managers = k.let("core_managers", configured("num_manager"))
        cluster, has_bias = k.let("core_cluster", bit(configured("is_cluster"))), configured("is_bias")
        zero_first = k.let("core_zero_first", bit(configured("is_zero_first") & first))
        with k.loop("core_output", configured("num_output")) as output, k.loop("core_manager", managers) as manager:
            products = k.let("core_products", bit(~(managed("zero_active") & (zero_first == 1))))
            num_input = k.let("core_num_input", managed("num_input"))
            base_weight, base_input = k.let("core_weights", managed("base_weight")), managed("base_input")
            base_input = k.let("core_inputs", base_input)
            base_bias = k.let("core_biases", managed("base_bias"))
            bias_w = k.let("core_bias_w", managed("adpfloat_bias_w"))
            bias_i = k.let("core_bias_i", managed("adpfloat_bias_i"))
            bias_b = k.let("core_bias_b", managed("adpfloat_bias_b"))
            tiles = output.zext(16) * num_input.zext(16)
            with k.loop("core_row", const(LANES, 5)) as row:
                acc = k.let("core_acc", const(0, 32))
                with (
                    k.when("core_plain", (products == 1) & (cluster == 0)),
                    k.loop("core_input", num_input) as i,
                    k.loop("core_column", const(LANES, 5)) as column,
                ):
                    vector = (tiles + i.zext(16)) * 16 + row.zext(16) + base_weight
                    w = k.load("core_w", s["pe_core_weight_buffer"], concat(pe, vector, column[3:0]))
                    x = k.load("core_x", inputs, input_address(base_input, i, column))
                    k.assign(acc, acc + adpfloat_mul(w, x))
                with (
                    k.when("core_clustered", (products == 1) & (cluster == 1)),
                    k.loop("core_c_input", num_input) as i,
                    k.loop("core_c_column", const(LANES, 5)) as column,
                ):
                    vector = (tiles + i.zext(16)) * 8 + row[4:1].zext(16) + base_weight
                    byte = concat(pe, vector, row[0], column[3:1])
                    pair = k.load("core_pair", s["pe_core_weight_buffer"], byte)
                    entry = concat(pe, manager[0], ite(column[0] == 1, pair[7:4], pair[3:0]))
                    w = k.load("core_c_w", s["pe_core_cluster_table"], entry)
                    x = k.load("core_c_x", inputs, input_address(base_input, i, column))
                    k.assign(acc, acc + adpfloat_mul(w, x))
                shifted = k.let("core_sum", pe_shift(acc, bias_w, bias_i))
                with k.when("core_has_bias", has_bias):
                    code = k.load("core_bias", inputs, input_address(base_bias, output, row))
                    k.assign(shifted, pe_add_bias(shifted, code, bias_b))
                place = output.zext(PORT_BITS) * managers.zext(PORT_BITS) + manager.zext(PORT_BITS)
                k.store(s["pe_core_port"], concat(pe, place, row[3:0]), pe_saturate(shifted))
