"""What happens to requests while something happens to a fleet: every failure and every change, under steady load, on a
real node (`make node`), with tiny models in place of real ones.

rows     what happens, one after the other, and on which scene
scene    a fleet that is installed, and how it becomes whole again
pods, doors, changes    what happens
redis    a Redis for what has to outlive a head
page     the table as it is told
"""
