"""Normal forms of elements of tensors, and the steps that lead to them."""
