"""How the weights of networks are found, from rows to members."""
