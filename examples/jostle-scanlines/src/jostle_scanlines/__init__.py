"""Parts for jostle that live in a package of their own."""
