"""From graphs of the tensor IR to compiled models: by admitted rules, to calls of proved mappings.

``offload`` chooses what runs on an accelerator, by ``graph_rules``; ``codegen`` makes calls, ``memory`` plans
addresses, ``composition`` bounds errors of networks, and ``artefact`` is the result.  No accelerator is known here.
"""
