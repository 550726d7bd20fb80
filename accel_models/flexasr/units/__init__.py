"""FlexASR's units: what a start makes each of them do."""
