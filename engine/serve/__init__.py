"""A run as an HTTP server. It speaks LibreTranslate's API, which OmegaT, Weblate and others have a client for."""
