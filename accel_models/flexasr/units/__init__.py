"""FlexASR's units: what a start makes each of them do.

One module for each unit, each with its kernel: ``gb_control``, ``layer_reduce``, ``zero_padding``, ``layer_norm`` and
``attention`` of the global buffer; ``processing_elements``, made of ``pe_core`` and ``pe_act``.
"""
