"""What the way of a request inside Ray costs: `serve.dataPath` of chart ray-service, side by side on one computer."""
