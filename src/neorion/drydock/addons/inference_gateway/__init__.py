"""A gateway with the Inference Extension: Envoy routes to InferencePools as their endpoint pickers say.

Routes lead to InferencePools alone, by host name and weight. For Services there is Traefik.
"""

from neorion.drydock.addons.inference_gateway.deploy import NAME, PROGRAMS, start, url

__all__ = ["NAME", "PROGRAMS", "start", "url"]
