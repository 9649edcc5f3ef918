"""The HTTP API: routes, schemas, the OpenAPI document, problem responses."""
