"""The fleet file: its types, how it is read, and what its errors say."""
