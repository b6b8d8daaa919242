"""What the matrix is: the specification of an attention layer and the values it is made of."""
