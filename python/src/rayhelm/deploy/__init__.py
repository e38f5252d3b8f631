"""What is deployed: values of each release, rendered objects, Argo CD applications, pages.

values                  types of the values of each chart: the source of schemas, values.yaml and README tables
compose                 values of each release, made from a plan
render.files            every file of `rayhelm render` as text
charts.helm             helm: templates and lint
network                 which connections the charts allow
images                  images of a fleet, and how to mirror them
"""
