"""In which orders VTA's modules may run, and what that changes.

``schedule`` runs programs by three modules.  ``hazards`` and ``revisits`` check programs without running them, by the
footprints of ``footprint``.  The theorem is in :mod:`chc.token_order`.
"""
