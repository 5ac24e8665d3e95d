# A CKS cluster for iris: its network, the cluster, and a bucket for results. NodePools are made by iris itself.
terraform {
  required_version = ">= 1.6"
  required_providers {
    coreweave = {
      source  = "coreweave/coreweave"
      version = "~> 0.21"
    }
  }
}

# The token is read from COREWEAVE_API_TOKEN.
provider "coreweave" {}

resource "coreweave_networking_vpc" "iris" {
  name = "${var.cluster_name}-vpc"
  zone = var.zone

  host_prefixes = [
    { name = "hosts", type = "PRIMARY", prefixes = [var.host_cidr] },
  ]

  vpc_prefixes = [
    { name = "pods", value = var.pod_cidr },
    { name = "services", value = var.service_cidr },
    { name = "load-balancers", value = var.load_balancer_cidr },
  ]
}

resource "coreweave_cks_cluster" "iris" {
  name    = var.cluster_name
  version = var.kubernetes_version
  zone    = var.zone
  # The API server has a public name: a laptop submits jobs through it, with a token of CoreWeave.
  public = true

  vpc_id                 = coreweave_networking_vpc.iris.id
  pod_cidr_name          = "pods"
  service_cidr_name      = "services"
  internal_lb_cidr_names = ["load-balancers"]
}
