"""Cluster DNS: CoreDNS as a process of this machine, reached through the usual Service.

Answers for the cluster only; no question is passed on to the machine's name servers.
"""

from neorion.drydock.dns.coredns import DNS_PROGRAMS, dns_part, publish_dns

__all__ = ["DNS_PROGRAMS", "dns_part", "publish_dns"]
