"""Web pages of the service: plans and costs of studies, and forms to ask and to tell."""
