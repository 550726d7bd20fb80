"""From graphs of the tensor IR to compiled models: by admitted rules, to calls of proved mappings."""
