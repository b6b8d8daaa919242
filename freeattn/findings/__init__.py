"""What the package finds out about layers, collected as values: laws, predictions, derivations and evidence."""
