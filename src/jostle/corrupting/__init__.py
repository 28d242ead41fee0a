"""The machine that corrupts: what is a corruption, where it strikes, and how frames are pulled through it."""
