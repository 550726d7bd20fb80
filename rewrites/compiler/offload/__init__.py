"""From graphs of the tensor IR to graphs with accelerator operators, by proved rules only.

``operators`` has the accelerator operators with their exact meaning, which is that of the tensor IR.
"""
