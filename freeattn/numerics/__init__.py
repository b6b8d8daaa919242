"""What numbers come out: curves compiled from symbols, roots on the right branch, edges, atoms, laws."""
