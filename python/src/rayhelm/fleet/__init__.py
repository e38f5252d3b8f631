"""The fleet file: its types, how it is read, and what its errors say.

fleet.Fleet             what is written, typed
load.load_fleet         from a path to a checked fleet
find_file               the fleet file that an argument names
explain                 what a field means, for `rayhelm explain` and the schema
"""
