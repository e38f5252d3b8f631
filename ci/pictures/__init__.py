"""Pictures of the dashboards: every panel is drawn from its own queries, as Grafana would."""
