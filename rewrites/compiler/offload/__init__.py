"""From graphs of the tensor IR to graphs with accelerator operators, by proved rules only.

``compiler`` is the door, ``backend`` what it knows of one accelerator.  ``rule_sets`` and ``directed`` apply rules,
``costs`` says what is cheapest, and ``reasons`` why an operator stays on the host.
"""
