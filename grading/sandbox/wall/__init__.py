"""How the wall is built, by kind of isolation, and what of the machine is seen through it."""
