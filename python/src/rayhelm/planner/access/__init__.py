"""Access: services, tenants and gateways of the plan."""
