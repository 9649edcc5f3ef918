"""The HTTP API: operations, schemas, the OpenAPI document, problem documents."""
